/* INTERCEPT: CONNECT is accepted, a leaf for its host is asked for, and TLS begins. */
#include "proxy/front/front.h"

#include "common/log.h"

enum walk_next front_connect(struct client *c, const struct http_head *h)
{
    struct front *f = c->front;
    if (c->state != CLIENT_PROXY || f->judge == NULL)
        return WALK_FAIL;
    const struct http_field *auth = http_find(h, SPAN("Proxy-Authorization"));
    if (c->auth.n && (auth == NULL || !span_eq_consttime(auth->value, dynbuf_span(&c->auth))))
        return WALK_FAIL; /* a second identity on one connection */
    if (http_canonical_host(h->host, c->host, &c->nhost) != 0)
        return WALK_FAIL;
    c->port = h->port;
    struct dynbuf *b = chan_begin(f->judge, M_CONNECT, client_new_xid(c));
    c->x.step = WALK_INTERCEPT;
    c->x.old_client = h->minor == 0;
    if (b == NULL)
        return WALK_FAIL;
    msg_put_span(b, SPAN("https"));
    msg_put_span(b, span_of(c->host, c->nhost));
    msg_put_u16(b, c->port);
    if (chan_commit(f->judge) != 0)
        return WALK_FAIL;
    client_state(c, CLIENT_LEAF);
    return WALK_WAIT;
}

static void refused(struct client *c, struct frame *f, struct msg_in *m)
{
    f->payload = m->rest;
    front_reply(c, f);
}

void front_leaf(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span leaf = msg_get_span(&m, 16 * 1024), ca = msg_get_span(&m, 16 * 1024);
    if (c->state != CLIENT_LEAF)
        return;
    if (leaf.n == 0) {
        refused(c, f, &m);
        return;
    }
    exchange_end(c, "the leaf is there");
    c->leaf = msg_end(&m) == 0 ? tls_leaf_new(c->front->key, leaf, ca) : NULL;
    if (c->leaf == NULL || conn_write(c->conn, SPAN("HTTP/1.1 200 Connection established\r\n\r\n")) != 0) {
        log_error("no TLS for %s: the keeper's leaf cannot be used", c->host);
        client_free(c);
        return;
    }
    client_state(c, CLIENT_HANDSHAKE);
    conn_deadline(c->conn, HEAD_MS);
    if (conn_tls_accept(c->conn, c->front->tls, c->leaf, span_of(c->host, c->nhost)) != 0)
        client_free(c);
}
