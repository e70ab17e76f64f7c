/* PARSE: from the bytes of a head to the canonical request the judge decides on. */
#include "proxy/front/front.h"

/* What would tell an origin another method than the one decided, or is the gateway's own. */
static bool never_forwarded(struct span name)
{
    static const struct span list[] = {
        SPAN("Expect"),
        SPAN("Countersign-Reason"),
        SPAN("X-HTTP-Method"),
        SPAN("X-HTTP-Method-Override"),
        SPAN("X-Method-Override"),
        SPAN("HTTP2-Settings"),
        SPAN("Max-Forwards"),
        SPAN("Early-Data"),
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        if (span_ieq(name, list[i]))
            return true;
    return name.n >= 6 && span_ieq(span_first(name, 6), SPAN("Proxy-"));
}

static void copy_fields(const struct http_head *h, struct wire_request *r)
{
    r->nfields = 0;
    for (size_t i = 0; i < h->nfields; i++) {
        struct span name = h->field[i].name;
        if (http_is_framing(name) || http_is_hop_by_hop(h, name) || http_is_forwarding(name) || never_forwarded(name))
            continue;
        r->field[r->nfields++] = h->field[i];
    }
}

/* Host, and in a tunnel its equality with the CONNECT authority: the destination has one spelling. */
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
    if (tunnel && (!span_eq(r->host, span_of(c->host, c->nhost)) || r->port != c->port)) {
        *e = (struct http_err){421, "misdirected", "the Host differs from the CONNECT authority"};
        return -1;
    }
    return 0;
}

static int same_identity(struct client *c, const struct http_head *h, struct http_err *e)
{
    const struct http_field *auth = http_find(h, SPAN("Proxy-Authorization"));
    if (c->state == CLIENT_TUNNEL || c->auth.n == 0)
        return 0;
    if (auth != NULL && span_eq_consttime(auth->value, dynbuf_span(&c->auth)))
        return 0;
    *e = (struct http_err){407, "second-identity", "another identity on one connection; open a new one"};
    return -1;
}

static enum walk_next send_request(struct client *c, const struct http_head *h, const struct wire_request *r)
{
    struct front *f = c->front;
    const struct http_field *why = http_find(h, SPAN("Countersign-Reason"));
    bool declared = h->framing != HTTP_NO_BODY, none = h->framing == HTTP_LENGTH && h->length == 0;
    struct dynbuf *b = chan_begin(f->judge, M_REQUEST, client_new_xid(c));
    struct exchange *x = &c->x;
    x->step = WALK_PARSE;
    x->is_head = span_eq(h->method, SPAN("HEAD"));
    x->keep_alive = h->keep_alive;
    x->old_client = h->minor == 0;
    x->expects = h->expect_continue;
    x->mode = declared && !none ? BODY_MODE_ASKED : BODY_MODE_DONE;
    http_body_begin(&x->reader, h);
    if (b == NULL)
        return WALK_FAIL;
    wire_put_request(b, r);
    msg_put_span(b, why ? span_first(why->value, 500) : SPAN_NONE);
    msg_put_u8(b, !declared ? 0 : none ? 1 : 2);
    msg_put_u64(b, h->framing == HTTP_LENGTH ? h->length : UINT64_MAX);
    msg_put_span(b, SPAN_NONE);
    if (chan_commit(f->judge) != 0)
        return WALK_FAIL;
    conn_deadline(c->conn, 0);
    return WALK_WAIT;
}

enum walk_next front_request(struct client *c, const struct http_head *h, struct http_err *e)
{
    char host[HTTP_HOST_MAX + 1];
    struct wire_request r;
    struct dynbuf path, query;
    enum walk_next n = WALK_FAIL;
    dynbuf_init(&path, 3 * HTTP_TARGET_MAX);
    dynbuf_init(&query, 3 * HTTP_TARGET_MAX);
    if (same_identity(c, h, e) != 0 || destination(c, h, host, &r, e) != 0)
        goto out;
    *e = (struct http_err){400, "bad-target", "the path or query has a spelling this gateway does not take"};
    if (http_canonical_path(h->path, true, &path) != 0 || http_canonical_query(h->query, &query) != 0)
        goto out;
    r.method = h->method;
    r.path = dynbuf_span(&path);
    r.query = dynbuf_span(&query);
    r.has_query = h->has_query;
    copy_fields(h, &r);
    *e = (struct http_err){503, "gateway-restarting", "the gateway is restarting; repeat the request"};
    if (c->front->judge != NULL)
        n = send_request(c, h, &r);
out:
    dynbuf_free(&path);
    dynbuf_free(&query);
    return n;
}
