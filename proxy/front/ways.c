/* What comes before the first request on connections that are not HTTP's own: a PROXY header, a SOCKS5 request, the
 * first byte that tells TLS from HTTP, a ClientHello. What is said there is a claim: it names the host that is asked
 * about, and TLS, Host and the address that is dialled are held to it. */
#include "common/handshake/hello.h"
#include "common/handshake/proxy2.h"
#include "common/handshake/socks5.h"
#include "proxy/front/client.h"

static const char proxy2_signature[PROXY2_SIGNATURE + 1] = "\r\n\r\n\0\r\nQUIT\n";

/* The listener `countersign run` makes: the shim's captured connections come with a header, others speak HTTP. */
void front_first(struct client *c)
{
    struct span in = conn_input(c->conn);
    size_t n = in.n < PROXY2_SIGNATURE ? in.n : PROXY2_SIGNATURE, used = 0;
    struct proxy2 p;
    if (n == 0)
        return;
    if (memcmp(in.p, proxy2_signature, n) != 0) {
        client_state(c, CLIENT_PROXY);
        client_go_on(c);
        return;
    }
    switch (proxy2_parse(in, &p, &used)) {
    case PROXY2_MORE: return;
    case PROXY2_OK: break;
    default: front_refuse(c, 400, "bad-proxy-header", "the PROXY header cannot be understood"); return;
    }
    if (p.local || p.dst_port == 0) {
        front_refuse(c, 400, "bad-proxy-header", "the PROXY header names no destination");
        return;
    }
    c->port = p.dst_port;
    conn_consume(c->conn, used);
    client_state(c, CLIENT_LOOK);
    client_go_on(c);
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
void front_socks(struct client *c)
{
    struct socks5_request r;
    enum socks5_reply why = SOCKS5_FAILURE;
    uint8_t reply[SOCKS5_REPLY_BYTES];
    size_t used = 0;
    switch (socks5_request(conn_input(c->conn), &r, &used, &why)) {
    case SOCKS5_MORE: return;
    case SOCKS5_OK: break;
    default: front_refuse_socks(c, why, socks_code(why)); return;
    }
    c->port = r.port;
    c->named = r.family == 0;
    if (c->named && http_canonical_host(span_of(r.host, r.nhost), c->host, &c->nhost) != 0) {
        front_refuse_socks(c, SOCKS5_NOT_ALLOWED, "bad-host");
        return;
    }
    socks5_reply(SOCKS5_SUCCEEDED, reply);
    if (client_write(c, span_of(reply, sizeof(reply))) != 0) {
        client_free(c);
        return;
    }
    conn_consume(c->conn, used);
    client_state(c, CLIENT_LOOK);
    client_wait(c, WAIT_FIRST);
    client_go_on(c);
}

/* Which host, of a destination that was an address: what the client expects a certificate for. False: not known
 * (yet); the client may be gone. */
static bool name_of_hello(struct client *c, struct span in)
{
    struct hello h;
    switch (hello_parse(in, &h)) {
    case HELLO_MORE:
        if (in.n < FRONT_INPUT_MAX)
            return false;
        break;
    case HELLO_OK:
        if (http_canonical_host(span_of(h.name, h.nname), c->host, &c->nhost) == 0)
            return true;
        front_refuse_tls(c, ALERT_NO_NAME, "bad-server-name");
        return false;
    case HELLO_NO_NAME: front_refuse_tls(c, ALERT_NO_NAME, "no-server-name"); return false;
    case HELLO_BAD_NAME: front_refuse_tls(c, ALERT_NO_NAME, "bad-server-name"); return false;
    case HELLO_BAD: break;
    }
    front_refuse_tls(c, ALERT_DECODE_ERROR, "bad-hello");
    return false;
}

void front_look(struct client *c)
{
    struct span in = conn_input(c->conn);
    if (in.n == 0)
        return;
    c->hello = hello_begins(in.p[0]);
    if (c->hello && c->leaf != NULL) {
        struct tls_leaf *leaf = c->leaf;
        c->leaf = NULL;
        front_handshake(c, leaf);
        tls_leaf_free(&leaf);
    } else if (!c->hello) {
        tls_leaf_free(&c->leaf);
        client_state(c, CLIENT_PLAIN);
        client_go_on(c);
    } else if ((c->named || name_of_hello(c, in)) && front_ask_leaf(c) != 0) {
        front_refuse_tls(c, ALERT_INTERNAL, "gateway-restarting");
    }
}
