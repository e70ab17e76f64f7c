/* From an upstream to a connection that is up and verified: pooled, or dialled to an address checked now. */
#include "proxy/carrier/exchange.h"
#include "proxy/reach/reach.h"

static enum walk_next dial_next(struct exchange *x);

/* A pooled connection may have died while it waited. What is repeatable, or was not begun, gets a fresh one, once. */
static bool may_retry(const struct exchange *x)
{
    if (x->link != LINK_POOLED || x->answer != ANSWER_NONE)
        return false;
    return x->sent < SENT_HEAD || (x->f.repeatable && x->f.body != BODY_STREAM);
}

static void start_over(struct exchange *x)
{
    conn_free(&x->conn);
    carry_link(x, LINK_ADDRESSED);
    if (x->sent >= SENT_HEAD)
        carry_sent(x, SENT_BEFORE);
    x->body_out = x->out_bytes = 0;
    x->seen = 0;
}

/* The source says nothing: what the upstream said is an answer all the same. */
static void renew_late(void *arg)
{
    struct exchange *x = arg;
    timer_free(&x->timer);
    carry_resume(x);
}

static enum walk_next ask_for_another(struct exchange *x)
{
    if (x->cred == NULL || x->cred->version == 0 || !x->f.repeatable || x->f.body == BODY_STREAM ||
        x->websocket != NULL)
        return WALK_NEXT;
    x->timer = timer_new(x->carrier->loop, renew_late, x);
    if (x->timer == NULL)
        return WALK_NEXT;
    x->refused = x->cred->version;
    timer_set(x->timer, x->carrier->settings.release_ms);
    if (carry_ask_release(x) != 0) {
        timer_free(&x->timer);
        return WALK_NEXT;
    }
    return WALK_WAIT;
}

enum walk_next dial_renew(struct exchange *x)
{
    x->seen = 0; /* the head is read once more when it is known */
    if (x->refused == 0)
        return ask_for_another(x);
    if (x->renewed == NULL)
        return x->timer != NULL ? WALK_WAIT : WALK_NEXT;
    timer_free(&x->timer);
    if (x->renewed->version == x->refused) {
        cred_unref(&x->renewed);
        return WALK_NEXT;
    }
    cred_unref(&x->cred);
    x->cred = x->renewed;
    x->renewed = NULL;
    scrub_end(&x->scrub);
    x->f.release = RELEASE_COMES; /* not what is live here, which is the one that was refused */
    carry_link(x, LINK_LOST);
    carry_answer(x, ANSWER_NONE);
    start_over(x);
    x->tried = 0;
    return WALK_REWIND;
}

void dial_renew_none(struct exchange *x)
{
    if (x->refused == 0 || x->timer == NULL || x->renewed != NULL || swap_is_open(x))
        return;
    timer_free(&x->timer);
    carry_resume(x);
}

static void lost(struct exchange *x, enum conn_event ev)
{
    bool again = may_retry(x);
    carry_link(x, LINK_LOST);
    x->lost = ev;
    if (again)
        start_over(x);
    carry_resume(x);
}

static void not_up(struct exchange *x, enum conn_event ev)
{
    struct conn *failed = x->conn;
    const char *why = ev == CONN_TIMEOUT ? "no answer in time" : conn_why(failed);
    bool in_tls = x->link == LINK_HANDSHAKE;
    x->conn = NULL;
    /* Another address may answer, and until none does nothing has failed: a body that comes meanwhile waits. One that
     * shows the wrong certificate ends it (D17). */
    bool over = in_tls || dial_next(x) == WALK_FAIL;
    if (over)
        (void)carry_fail(x, in_tls ? "tls-failed" : "connect-failed", "the upstream could not be reached: %s", why);
    conn_free(&failed);
    if (over)
        carry_end(x);
}

static void is_up(struct exchange *x)
{
    carry_link(x, LINK_UP);
    carry_resume(x);
}

static void start_tls(struct exchange *x)
{
    struct err e = {""};
    struct tls_client *t = upstream_tls(&x->carrier->upstreams, x->upstream, &e);
    carry_link(x, LINK_HANDSHAKE);
    x->trust = x->carrier->upstreams.changes;
    bool begun = t != NULL && conn_tls_connect(x->conn, t, x->upstream->host) == 0;
    if (begun && x->cred != NULL && x->cred->pem != NULL)
        begun = conn_tls_certificate(x->conn, secret_bytes(x->cred->pem), &e) == 0;
    if (begun)
        return;
    (void)carry_fail(x, "tls-failed", "%s", e.text[0] ? e.text : "TLS to the upstream cannot be begun");
    carry_end(x);
}

/* An address that this machine was given after it was asked for its own (C21). */
static bool is_ours(struct exchange *x)
{
    struct addr inner = addr_unwrap(&x->addr);
    if (!conn_to_self(x->conn) || names_allowed(x->upstream, &inner))
        return false;
    (void)carry_fail(x, "private-address",
                     "the host's address is one of this machine; if that is meant, name it in "
                     "allow_private of this upstream");
    carry_end(x);
    return true;
}

static void on_conn(void *arg, struct conn *c, enum conn_event ev)
{
    struct exchange *x = arg;
    if (x->link < LINK_UP) {
        if (ev == CONN_CONNECTED && is_ours(x))
            return;
        if (ev == CONN_CONNECTED && x->upstream->tls)
            start_tls(x);
        else if (ev == CONN_CONNECTED || ev == CONN_TLS_READY)
            is_up(x);
        else if (ev == CONN_FAILED || ev == CONN_TIMEOUT || ev == CONN_EOF || ev == CONN_TRUNCATED)
            not_up(x, ev);
        return;
    }
    switch (ev) {
    case CONN_FAILED:
    case CONN_EOF:
    case CONN_TRUNCATED: lost(x, ev); return;
    case CONN_TIMEOUT:
        if (x->websocket != NULL && carry_websocket_is_on(x->websocket)) {
            carry_websocket_timeout(x);
            return;
        }
        (void)carry_fail(x, "upstream-timeout", "the upstream was silent for too long");
        carry_end(x);
        return;
    case CONN_DATA:
    case CONN_DRAINED: carry_resume(x); return;
    case CONN_CONNECTED:
    case CONN_TLS_READY: return;
    }
}

static enum walk_next dial_next(struct exchange *x)
{
    uint64_t wait = x->carrier->settings.connect_ms;
    while (x->tried < x->nto) {
        struct sockaddr_storage ss;
        x->addr = x->to[x->tried++];
        socklen_t n = addr_sockaddr(&x->addr, x->upstream->port, &ss);
        x->trust = x->carrier->upstreams.changes;
        x->conn = n ? conn_dial(x->carrier->loop, (struct sockaddr *)&ss, n, CONN_IN, on_conn, x) : NULL;
        if (x->conn == NULL)
            continue;
        carry_link(x, LINK_DIALLING);
        /* An address that swallows packets must not eat the time of the next one. */
        conn_deadline(x->conn, x->tried < x->nto && wait > 3000 ? 3000 : wait);
        return WALK_WAIT;
    }
    return carry_fail(x, "connect-failed", "no address of the upstream can be connected to");
}

/* The addresses that were checked are the ones that are dialled, of these those that its sandbox may reach. */
static enum walk_next carry_addressed(struct exchange *x)
{
    carry_link(x, LINK_ADDRESSED);
    x->nto = 0;
    for (size_t i = 0; i < x->upstream->naddr; i++)
        if (reach_by_address(x->f.reach, x->f.request.host, &x->upstream->addr[i]))
            x->to[x->nto++] = x->upstream->addr[i];
    if (x->nto > 0 || x->upstream->naddr == 0)
        return WALK_NEXT;
    return carry_fail(x, "network-denied", "its sandbox may reach none of the addresses of this host");
}

static void addresses(void *arg, struct span code, struct span why)
{
    struct exchange *x = arg;
    if (code.n == 0) {
        if (carry_addressed(x) == WALK_NEXT)
            carry_resume(x);
        else
            carry_end(x);
        return;
    }
    static const char *const known[] = {"name-not-found", "private-address", "dns-failed"};
    const char *name = "dns-failed";
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (span_eq(code, span_str(known[i])))
            name = known[i];
    (void)carry_fail(x, name, "%.*s", SPAN_FMT(why));
    carry_end(x);
}

enum walk_next dial_go(struct exchange *x)
{
    struct carrier *c = x->carrier;
    struct span code, why;
    if (x->link >= LINK_UP)
        return WALK_NEXT;
    if (x->link == LINK_NONE) {
        switch (names_ask(&c->names, x->upstream, !x->f.repeatable, addresses, x, &code, &why)) {
        case NAMES_REFUSED:
            return carry_fail(x, span_eq(code, SPAN("private-address")) ? "private-address" : "dns-failed", "%.*s",
                              SPAN_FMT(why));
        case NAMES_ASKED: carry_link(x, LINK_NAMING); return WALK_WAIT;
        case NAMES_HERE:
            if (carry_addressed(x) != WALK_NEXT)
                return WALK_FAIL;
        }
    }
    if (x->link != LINK_ADDRESSED)
        return WALK_WAIT;
    struct pool_key k = {x->front->instance, x->upstream, x->addr, x->f.credential, x->to, x->nto};
    uint64_t idle = x->f.repeatable ? c->settings.pool_idle_ms : REUSE_ONCE_MS;
    bool own = x->websocket != NULL || (x->cred != NULL && x->cred->pem != NULL);
    x->conn = x->sent == SENT_BEFORE || own ? NULL : pool_take(&c->pool, &k, idle, &x->addr);
    if (x->conn == NULL)
        return dial_next(x);
    carry_link(x, LINK_POOLED);
    x->trust = c->upstreams.changes; /* or it would not be in the pool */
    conn_set_callback(x->conn, on_conn, x);
    return WALK_NEXT;
}
