/* What comes before a request: PROXY header, TLS, SOCKS greeting and login. */
#include "common/handshake/proxy2.h"
#include "common/handshake/socks5.h"
#include "proxy/lobby/pending.h"

static bool by_token(const struct pending *g)
{
    return g->door->identity == IDENTITY_TOKEN;
}

/* The listener alone, the source or the certificate says it. Empty: nobody of ours. */
static struct span whose(const struct pending *g)
{
    switch (g->door->identity) {
    case IDENTITY_SANDBOX: return span_str(g->door->sandbox);
    case IDENTITY_SOURCE: return door_source(g->door, &g->from);
    case IDENTITY_CERTIFICATE: return door_certificate(g->door, g->conn);
    default: return SPAN_NONE;
    }
}

/* Header and TLS are over: now to the protocol itself. */
static enum walk_next go_on(struct pending *g)
{
    bool http = g->door->way == WAY_HTTP;
    if (!by_token(g) && whose(g).n == 0) {
        const char *code = g->door->identity == IDENTITY_SOURCE ? "unknown-source" : "unknown-certificate";
        if (http)
            pending_say_problem(g, 403, code, "no sandbox of this gateway comes from there; see countersign.yaml");
        else
            pending_refuse(g, code, SPAN_NONE);
        return WALK_DONE;
    }
    if (g->door->way != WAY_SOCKS && !by_token(g)) {
        pending_handover(g, whose(g));
        return WALK_DONE;
    }
    g->step = http ? PENDING_HEAD : PENDING_GREETING;
    return WALK_NEXT;
}

void pending_tls_ready(struct pending *g)
{
    (void)go_on(g); /* input is told of next */
}

static enum walk_next plain_or_tls(struct pending *g)
{
    if (g->door->tls == NULL)
        return go_on(g);
    g->step = PENDING_TLS;
    g->tls = true;
    if (conn_tls_accept_own(g->conn, g->door->tls) != 0)
        pending_refuse(g, "tls-failed", SPAN_NONE);
    return WALK_DONE;
}

void pending_begin(struct pending *g)
{
    if (door_wants_header(g->door, &g->from))
        g->step = PENDING_PROXY;
    else
        (void)plain_or_tls(g);
}

enum walk_next pending_proxy(struct pending *g)
{
    struct proxy2 p;
    size_t used;
    enum proxy2_result r = proxy2_parse(conn_input(g->conn), &p, &used);
    if (r == PROXY2_MORE)
        return WALK_WAIT;
    if (r != PROXY2_OK ||
        (!p.local && addr_from_bytes(p.family, span_of(p.src, p.family == 4 ? 4 : 16), &g->from) != 0)) {
        pending_refuse(g, "bad-proxy-header", SPAN_NONE);
        return WALK_DONE;
    }
    conn_consume(g->conn, used);
    return plain_or_tls(g);
}

enum walk_next pending_greeting(struct pending *g)
{
    enum socks5_method method = SOCKS5_NO_METHOD;
    size_t used;
    enum socks5_result r =
        socks5_greeting(conn_input(g->conn), by_token(g) ? SOCKS5_PASSWORD : SOCKS5_NONE, &method, &used);
    if (r == SOCKS5_MORE)
        return WALK_WAIT;
    uint8_t answer[] = {5, (uint8_t)method};
    if (r != SOCKS5_OK || method == SOCKS5_NO_METHOD) {
        pending_refuse(g, r == SOCKS5_OK ? "socks-no-method" : "bad-socks",
                       r == SOCKS5_OK ? span_of(answer, sizeof(answer)) : SPAN_NONE);
        return WALK_DONE;
    }
    conn_consume(g->conn, used);
    if (conn_write(g->conn, span_of(answer, sizeof(answer))) != 0) {
        pending_free(g);
        return WALK_DONE;
    }
    g->step = PENDING_LOGIN;
    if (by_token(g))
        return WALK_NEXT;
    pending_handover(g, whose(g));
    return WALK_DONE;
}

enum walk_next pending_login(struct pending *g)
{
    struct span user, token;
    size_t used;
    enum socks5_result r = socks5_login(conn_input(g->conn), &user, &token, &used);
    if (r == SOCKS5_MORE)
        return WALK_WAIT;
    if (r != SOCKS5_OK) {
        pending_refuse(g, "bad-socks", SPAN_NONE);
        return WALK_DONE;
    }
    pending_ask(g, token);
    return WALK_DONE;
}
