#include "proxy/carrier/inject.h"

/* Hop-by-hop by its own name; what a client's Connection field named was removed by the front. */
static bool hop_by_hop(struct span name)
{
    static const struct http_head none;
    return http_is_hop_by_hop(&none, name);
}

static uint8_t folded(uint8_t c)
{
    return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

/* The same field to any server: case aside, and '_' taken for '-'. */
static bool same_slot(struct span a, struct span b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (folded(a.p[i]) != folded(b.p[i]))
            return false;
    return true;
}

static bool begins(struct span name, struct span prefix)
{
    return name.n >= prefix.n && same_slot(span_first(name, prefix.n), prefix);
}

/* Never from a client, whatever is injected. The front removed these already. */
static bool never(struct span name)
{
    return http_is_framing(name) || hop_by_hop(name) || http_is_forwarding(name) || span_ieq(name, SPAN("expect")) ||
           begins(name, SPAN("proxy-")) || begins(name, SPAN("countersign-"));
}

static bool dropped(const struct inject *in, struct span name)
{
    if (never(name))
        return true;
    if (in->identity && same_slot(name, SPAN("accept-encoding")))
        return true;
    if (in->header.n == 0)
        return false;
    return same_slot(name, in->header) || same_slot(name, SPAN("cookie")) || same_slot(name, SPAN("range")) ||
           same_slot(name, SPAN("if-range"));
}

bool inject_slot_ok(struct span header)
{
    return http_is_token(header) && !never(header) && !same_slot(header, SPAN("accept-encoding"));
}

static int write_target(struct dynbuf *out, const struct wire_request *r)
{
    struct dynbuf target;
    dynbuf_init(&target, HTTP_TARGET_MAX);
    (void)dynbuf_add(&target, r->path);
    if (r->has_query) {
        (void)dynbuf_add_byte(&target, '?');
        (void)dynbuf_add(&target, r->query);
    }
    int rc = dynbuf_ok(&target) ? http_write_request_line(out, r->method, dynbuf_span(&target)) : -1;
    dynbuf_free(&target);
    return rc;
}

static int write_host(struct dynbuf *out, const struct wire_request *r)
{
    struct dynbuf host;
    unsigned usual = span_eq(r->scheme, SPAN("https")) ? 443 : 80;
    dynbuf_init(&host, HTTP_HOST_MAX + 8);
    (void)dynbuf_add(&host, r->host);
    if (r->port != usual)
        (void)dynbuf_addf(&host, ":%u", (unsigned)r->port);
    int rc = dynbuf_ok(&host) ? http_write_field(out, SPAN("Host"), dynbuf_span(&host)) : -1;
    dynbuf_free(&host);
    return rc;
}

int inject_head(struct dynbuf *out, const struct inject *in)
{
    const struct wire_request *r = in->request;
    if (in->header.n == 0 ? in->value.n != 0 : (in->value.n == 0 || !inject_slot_ok(in->header)))
        return -1;
    if (in->framing == HTTP_UNTIL_CLOSE || write_target(out, r) != 0 || write_host(out, r) != 0)
        return -1;
    for (size_t i = 0; i < r->nfields; i++)
        if (!dropped(in, r->field[i].name) && http_write_field(out, r->field[i].name, r->field[i].value) != 0)
            return -1;
    if (in->header.n && http_write_field(out, in->header, in->value) != 0)
        return -1;
    if (in->identity && http_write_field(out, SPAN("Accept-Encoding"), SPAN("identity")) != 0)
        return -1;
    if (http_write_field(out, SPAN("Connection"), SPAN("keep-alive")) != 0)
        return -1;
    return http_write_end(out, in->framing, in->length);
}
