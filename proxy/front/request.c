/* PARSE: from the bytes of a head to the canonical request the judge decides on. */
#include "common/text/utf8.h"
#include "common/trace.h"
#include "proxy/canonical.h"
#include "proxy/front/client.h"

enum {
    REASON_MAX = 500,
    UNREAD_MAX = 2 * CONN_OUT_LOW /* of earlier answers, before the next request is looked at */
};

/* upgrade: what is left of it is one Upgrade field and the subprotocols; in their places there is room. */
static void copy_fields(const struct http_head *h, bool upgrade, struct wire_request *r)
{
    r->nfields = 0;
    for (size_t i = 0; i < h->nfields; i++) {
        struct span name = h->field[i].name;
        if (canonical_never_leaves(name) || http_is_framing(name) || http_is_hop_by_hop(h, name) ||
            http_is_forwarding(name))
            continue;
        if (upgrade && canonical_made_anew(name))
            continue;
        r->field[r->nfields++] = h->field[i];
    }
    if (upgrade)
        r->field[r->nfields++] = (struct http_field){SPAN("Upgrade"), SPAN("websocket")};
}

/* In a field that copy_fields leaves out. A proxy's own Via says no such thing. */
static bool says_forwarded(const struct http_head *h)
{
    for (size_t i = 0; i < h->nfields; i++)
        if (span_ieq(h->field[i].name, SPAN("X-Forwarded-For")) || span_ieq(h->field[i].name, SPAN("Forwarded")))
            return true;
    return false;
}

/* Host, and its equality with what was said of this connection before, as CONNECT, SNI, SOCKS or captured port: the
 * destination has one spelling. */
static int destination(struct client *c, const struct http_head *h, char *host, struct wire_request *r,
                       struct http_err *e)
{
    size_t n;
    bool tunnel = c->state == CLIENT_TUNNEL;
    if (http_canonical_host(h->host, host, &n) != 0) {
        *e = (struct http_err){400, "bad-host", "the host name is not one this gateway takes"};
        return -1;
    }
    r->scheme = tunnel ? SPAN("https") : SPAN("http");
    r->host = span_of(host, n);
    r->port = h->port ? h->port : tunnel ? 443 : 80;
    bool wrong = (tunnel || c->named) && !span_eq(r->host, span_of(c->host, c->nhost));
    if (c->state != CLIENT_PROXY && (wrong || r->port != c->port)) {
        *e = (struct http_err){421, "misdirected", "the Host is not where this connection goes to"};
        return -1;
    }
    return 0;
}

static bool reads(const struct http_head *h)
{
    return span_eq(h->method, SPAN("GET")) || span_eq(h->method, SPAN("HEAD"));
}

/* Java's HTTP client declares an empty body also for GET. That is none: else every read of its would be a write. Of
 * other methods it is passed on as it was said. */
static bool has_body(const struct http_head *h)
{
    return h->framing != HTTP_NO_BODY && !(reads(h) && h->framing == HTTP_LENGTH && h->length == 0);
}

static void begin(struct client *c, const struct http_head *h)
{
    struct exchange *x = &c->x;
    x->step = WALK_PARSE;
    x->is_head = span_eq(h->method, SPAN("HEAD"));
    x->writes = !reads(h);
    x->keep_alive = h->keep_alive;
    x->old_client = h->minor == 0;
    x->expects = h->expect_continue;
    if (h->framing == HTTP_LENGTH && has_body(h))
        x->declared = h->length;
    http_body_begin(&x->reader, h);
}

/* What is here of the body already is looked at before anybody is asked: a head whose body is known to be malformed
 * leaves no beginning upstream. */
static enum walk_next look_ahead(const struct http_head *h, struct span behind, struct http_err *e)
{
    struct http_body reader;
    struct span data;
    size_t used;
    enum http_result r;
    http_body_begin(&reader, h);
    do {
        used = 0;
        r = behind.n ? http_body_step(&reader, behind, &used, &data) : HTTP_MORE;
        behind = span_from(behind, used);
    } while (r == HTTP_MORE && used > 0);
    if (r != HTTP_BAD)
        return WALK_NEXT;
    *e = reader.err;
    return WALK_FAIL;
}

/* Of the agent's word for it: whole characters. */
static struct span said(struct span why)
{
    why = span_first(why, REASON_MAX);
    return span_first(why, utf8_run(why));
}

static enum walk_next send_request(struct client *c, const struct http_head *h, const struct wire_request *r,
                                   const char *accept, struct span behind, size_t *taken)
{
    struct front *f = c->front;
    const struct http_field *why = http_find(h, SPAN("Countersign-Reason"));
    bool declared = has_body(h), here = false;
    uint64_t xid = client_new_xid(c);
    struct dynbuf *b = client_says_step(c, xid) == 0 ? chan_begin(f->judge, M_REQUEST, xid) : NULL;
    begin(c, h);
    memcpy(c->x.websocket.accept, accept, sizeof(c->x.websocket.accept));
    if (b == NULL)
        return WALK_FAIL;
    if (declared && h->framing == HTTP_LENGTH && h->length <= FRONT_INLINE_MAX && h->length <= behind.n) {
        here = true;
        *taken = (size_t)h->length;
    }
    c->x.mode = declared && !here ? BODY_MODE_ASKED : BODY_MODE_DONE;
    wire_put_request(b, r);
    msg_put_span(b, why ? said(why->value) : SPAN_NONE);
    msg_put_u8(b, (uint8_t)((!declared ? 0 : here ? 1 : 2) | (says_forwarded(h) ? REQUEST_FORWARDED : 0)));
    msg_put_u64(b, c->x.declared);
    msg_put_span(b, span_first(behind, *taken));
    if (chan_commit(f->judge) != 0)
        return WALK_FAIL;
    trace_step(c->x.xid, walk_name(WALK_PARSE), walk_next_name(WALK_NEXT));
    client_wait(c, WAIT_JUDGE);
    return WALK_WAIT;
}

/* One request, canonical, to the judge. behind: what came after its head; *taken: how much of that went along. */
static enum walk_next request(struct client *c, const struct http_head *h, struct span behind, size_t *taken,
                              struct http_err *e)
{
    struct front *f = c->front;
    char host[HTTP_HOST_MAX + 1], accept[WS_ACCEPT_TEXT + 1];
    struct wire_request r UNZEROED;
    if (!front_same_identity(c, h, e) || destination(c, h, host, &r, e) != 0)
        return WALK_FAIL;
    *e = (struct http_err){400, "bad-target", "the path or query has a spelling this gateway does not take"};
    dynbuf_reset(&f->path);
    dynbuf_reset(&f->query);
    if (http_canonical_path(h->path, true, &f->path) != 0 || http_canonical_query(h->query, &f->query) != 0)
        return WALK_FAIL;
    if (f->path.n + h->has_query + f->query.n > HTTP_TARGET_MAX) {
        *e = (struct http_err){414, "target-too-long", "the request target is over the limit once it is escaped"};
        return WALK_FAIL;
    }
    r.method = h->method;
    r.path = dynbuf_span(&f->path);
    r.query = dynbuf_span(&f->query);
    r.has_query = h->has_query;
    copy_fields(h, front_websocket_asked(h, accept), &r);
    *e = (struct http_err){400, "bad-field-value", "a field for a credential holds a byte that is not ASCII"};
    if (!canonical_credentials(&r))
        return WALK_FAIL;
    if (has_body(h) && look_ahead(h, behind, e) != WALK_NEXT)
        return WALK_FAIL;
    *e = (struct http_err){503, "gateway-restarting", "the gateway is restarting; repeat the request"};
    return f->judge != NULL ? send_request(c, h, &r, accept, behind, taken) : WALK_FAIL;
}

/* PARSE on the proxy port: CONNECT opens a tunnel, an absolute http:// target is a request. */
static enum walk_next read_head(struct client *c, struct http_err *e)
{
    struct http_head h UNZEROED;
    struct span in = conn_input(c->conn);
    size_t used = 0, taken = 0;
    *e = (struct http_err){400, "bad-request", "the request cannot be understood"};
    if (in.n == 0 || conn_queued(c->conn) >= UNREAD_MAX)
        return WALK_WAIT;
    enum http_place place = c->state == CLIENT_PROXY ? HTTP_ON_PROXY_PORT : HTTP_IN_TUNNEL;
    enum http_result r = http_parse_request(in, place, &c->seen, &h, &used, e);
    if (r == HTTP_MORE) {
        client_wait(c, WAIT_HEAD);
        return WALK_WAIT;
    }
    c->seen = 0;
    enum walk_next n = WALK_FAIL;
    if (r == HTTP_OK && h.form == HTTP_AUTHORITY)
        n = front_connect(c, &h, e);
    else if (r == HTTP_OK)
        n = request(c, &h, span_from(in, used), &taken, e);
    if (n == WALK_FAIL)
        return WALK_FAIL;
    c->used = true;
    conn_consume(c->conn, used + taken);
    return n;
}

enum walk_next step_parse(struct client *c, struct http_err *e)
{
    if (!client_asks(c))
        return read_head(c, e);
    if (c->x.state == EXCHANGE_SWITCHED)
        front_websocket_go_on(c);
    else
        front_body_go_on(c);
    return WALK_DONE;
}
