/* ACCEPT: what comes first on connections that are not HTTP's own, a PROXY header or a SOCKS5 request. What is said
 * there is a claim: it names the host that is asked about, and TLS, Host and the address that is dialled are held to
 * it. */
#include "common/handshake/proxy2.h"
#include "common/handshake/socks5.h"
#include "proxy/front/client.h"

static const char proxy2_signature[PROXY2_SIGNATURE + 1] = "\r\n\r\n\0\r\nQUIT\n";

/* The listener `countersign run` makes: the shim's captured connections come with a header, others speak HTTP. */
static enum walk_next first(struct client *c, struct http_err *e)
{
    struct span in = conn_input(c->conn);
    size_t n = in.n < PROXY2_SIGNATURE ? in.n : PROXY2_SIGNATURE, used = 0;
    struct proxy2 p;
    if (n == 0)
        return WALK_WAIT;
    if (memcmp(in.p, proxy2_signature, n) != 0) {
        client_change(c, CLIENT_PROXY);
        return WALK_NEXT;
    }
    *e = (struct http_err){400, "bad-proxy-header", "the PROXY header cannot be understood"};
    switch (proxy2_parse(in, &p, &used)) {
    case PROXY2_MORE: return WALK_WAIT;
    case PROXY2_OK: break;
    default: return WALK_FAIL;
    }
    e->why = "the PROXY header names no destination";
    if (p.local || p.dst_port == 0)
        return WALK_FAIL;
    c->port = p.dst_port;
    conn_consume(c->conn, used);
    client_change(c, CLIENT_LOOK);
    return WALK_NEXT;
}

/* The listener of a started sandbox: its first process says which command a connection is of, and no connection is of
 * none. */
static enum walk_next step_of(struct client *c, struct http_err *e)
{
    struct proxy2 p;
    size_t used = 0;
    *e = (struct http_err){400, "bad-proxy-header", "the PROXY header says not which step this is of"};
    enum proxy2_result got = proxy2_parse(conn_input(c->conn), &p, &used);
    if (got == PROXY2_MORE)
        return WALK_WAIT;
    struct msg_in m = msg_in(p.own);
    if (got != PROXY2_OK || !p.local || wire_get_step(&m, &c->by) != 0 || msg_end(&m) != 0 || c->by.number == 0)
        return WALK_FAIL;
    conn_consume(c->conn, used);
    client_change(c, CLIENT_PROXY);
    return WALK_NEXT;
}

static const char *socks_code(enum socks5_reply why)
{
    switch (why) {
    case SOCKS5_BAD_COMMAND: return "socks-command";
    case SOCKS5_BAD_ADDRESS: return "socks-address";
    default: return "bad-socks";
    }
}

/* Nothing is dialled for it: whether it may comes with the request, and so does the word that it may not. */
static enum walk_next socks(struct client *c)
{
    struct socks5_request r;
    enum socks5_reply why = SOCKS5_FAILURE;
    uint8_t reply[SOCKS5_REPLY_BYTES];
    size_t used = 0;
    switch (socks5_request(conn_input(c->conn), &r, &used, &why)) {
    case SOCKS5_MORE: return WALK_WAIT;
    case SOCKS5_OK: break;
    default: front_refuse_socks(c, why, socks_code(why)); return WALK_DONE;
    }
    c->port = r.port;
    c->named = r.family == 0;
    if (c->named && http_canonical_host(span_of(r.host, r.nhost), c->host, &c->nhost) != 0) {
        front_refuse_socks(c, SOCKS5_NOT_ALLOWED, "bad-host");
        return WALK_DONE;
    }
    socks5_reply(SOCKS5_SUCCEEDED, reply);
    if (client_write(c, span_of(reply, sizeof(reply))) != 0) {
        client_free(c);
        return WALK_DONE;
    }
    conn_consume(c->conn, used);
    client_change(c, CLIENT_LOOK);
    client_wait(c, WAIT_FIRST);
    return WALK_NEXT;
}

enum walk_next step_accept(struct client *c, struct http_err *e)
{
    return c->state == CLIENT_SOCKS ? socks(c) : c->state == CLIENT_STEP ? step_of(c, e) : first(c, e);
}
