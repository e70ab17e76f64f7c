/* INTERCEPT: a leaf for the host of a CONNECT is asked for, CONNECT is accepted, and TLS begins; or plain HTTP does,
 * which some clients (undici, Node's own proxy support) send through a tunnel also to http:// targets. */
#include "common/handshake/hello.h"
#include "common/log.h"
#include "proxy/front/client.h"

bool front_same_identity(const struct client *c, const struct http_head *h, struct http_err *e)
{
    if (c->state == CLIENT_TUNNEL || (c->auth.n == 0 && c->state != CLIENT_PLAIN))
        return true;
    const struct http_field *auth = http_find(h, SPAN("Proxy-Authorization"));
    if (c->state == CLIENT_PLAIN && auth == NULL)
        return true; /* who that is was said before, and not in HTTP */
    if (auth != NULL && c->auth.n > 0 && span_eq_consttime(auth->value, dynbuf_span(&c->auth)))
        return true;
    *e = (struct http_err){407, "second-identity", "another identity on one connection; open a new one"};
    return false;
}

/* Ask the judge for a leaf for c->host and c->port. -1: it cannot be asked. */
static int ask_leaf(struct client *c)
{
    struct front *f = c->front;
    uint64_t xid = f->judge ? client_new_xid(c) : 0;
    struct dynbuf *b = f->judge && client_says_step(c, xid) == 0 ? chan_begin(f->judge, M_CONNECT, xid) : NULL;
    if (b == NULL)
        return -1;
    c->x.step = WALK_INTERCEPT;
    msg_put_span(b, SPAN("https"));
    msg_put_span(b, span_of(c->host, c->nhost));
    msg_put_u16(b, c->port);
    if (chan_commit(f->judge) != 0)
        return -1;
    client_change(c, CLIENT_LEAF);
    client_wait(c, WAIT_LEAF);
    return 0;
}

enum walk_next front_connect(struct client *c, const struct http_head *h, struct http_err *e)
{
    if (!front_same_identity(c, h, e))
        return WALK_FAIL;
    *e = (struct http_err){400, "late-connect", "CONNECT is taken as the first request of a connection alone"};
    if (c->used)
        return WALK_FAIL;
    *e = (struct http_err){400, "bad-host", "the host name is not one this gateway takes"};
    if (http_canonical_host(h->host, c->host, &c->nhost) != 0)
        return WALK_FAIL;
    c->port = h->port;
    *e = (struct http_err){503, "gateway-restarting", "the gateway is restarting; repeat the request"};
    if (ask_leaf(c) != 0)
        return WALK_FAIL;
    c->x.old_client = h->minor == 0;
    return WALK_WAIT;
}

static void handshake(struct client *c, struct tls_leaf *leaf)
{
    client_change(c, CLIENT_HANDSHAKE);
    client_wait(c, WAIT_TLS);
    /* It takes what is there. */
    if (conn_tls_accept(c->conn, c->front->tls, leaf, span_of(c->host, c->nhost)) != 0)
        client_free(c);
    else
        c->hello = false;
}

void front_leaf(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span leaf = msg_get_span(&m, FRONT_LEAF_BYTES), ca = msg_get_span(&m, FRONT_LEAF_BYTES);
    if (c->state != CLIENT_LEAF)
        return;
    if (leaf.n == 0) { /* the judge has it in the audit */
        front_count(c->front, "tls-refused");
        if (c->hello) {
            client_exchange_end(c, "there is no leaf");
            front_alert(c, ALERT_ACCESS_DENIED);
        } else {
            front_reply(c, m.rest);
        }
        return;
    }
    struct tls_leaf *own = msg_end(&m) == 0 ? front_leaf_of(c->front, leaf, ca) : NULL;
    if (own == NULL) {
        log_exchange(LOG_ERROR, c->x.xid, "no TLS for %s: the keeper's leaf cannot be used", c->host);
        front_refuse(c, 503, "tls-refused", "the gateway has no usable certificate for this host");
        return;
    }
    client_exchange_end(c, "the leaf is there");
    if (c->hello) {
        handshake(c, own);
        return;
    }
    c->named = true;
    c->leaf = tls_leaf_keep(own);
    client_change(c, CLIENT_LOOK);
    client_wait(c, WAIT_TLS);
    if (client_write(c, SPAN("HTTP/1.1 200 Connection established\r\n\r\n")) != 0)
        client_free(c);
    else
        client_go_on(c); /* what is behind the CONNECT is the beginning of what it is for (A42) */
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

enum walk_next step_intercept(struct client *c, struct http_err *e)
{
    (void)e; /* who speaks TLS is told in TLS */
    struct span in = conn_input(c->conn);
    if (in.n == 0)
        return WALK_WAIT;
    c->hello = hello_begins(in.p[0]);
    if (c->hello && c->leaf != NULL) {
        struct tls_leaf *leaf = c->leaf;
        c->leaf = NULL;
        handshake(c, leaf);
        tls_leaf_free(&leaf);
    } else if (!c->hello) {
        enum walk_next other = front_stranger(c, in);
        if (other != WALK_NEXT)
            return other;
        tls_leaf_free(&c->leaf);
        client_change(c, CLIENT_PLAIN);
        return WALK_NEXT;
    } else if ((c->named || name_of_hello(c, in)) && ask_leaf(c) != 0) {
        front_refuse_tls(c, ALERT_INTERNAL, "gateway-restarting");
    }
    return WALK_DONE;
}
