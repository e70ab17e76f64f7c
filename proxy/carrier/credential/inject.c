#include "proxy/carrier/credential/inject.h"

#include "proxy/outbound.h"

int inject_marked(struct dynbuf *out, const struct inject *in, enum slot_kind part, struct span text)
{
    if (in->slot != part)
        return dynbuf_add(out, text);
    if (!slot_has_mark(text, in->slot_at, in->name) || in->value.n == 0)
        return -1;
    (void)dynbuf_add(out, span_first(text, in->slot_at));
    (void)dynbuf_add(out, in->value);
    return dynbuf_add(out, span_from(text, in->slot_at + slot_mark_bytes(in->name)));
}

static int write_target(struct dynbuf *out, const struct inject *in)
{
    const struct wire_request *r = in->request;
    struct dynbuf target;
    dynbuf_init(&target, HTTP_TARGET_MAX);
    int rc = inject_marked(&target, in, SLOT_PATH, r->path);
    if (rc == 0 && r->has_query) {
        (void)dynbuf_add_byte(&target, '?');
        rc = inject_marked(&target, in, SLOT_QUERY, r->query);
    } else if (in->slot == SLOT_QUERY) {
        rc = -1;
    }
    if (rc == 0)
        rc = dynbuf_ok(&target) ? http_write_request_line(out, r->method, dynbuf_span(&target)) : -1;
    dynbuf_wipe(&target);
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
    bool signs = in->nsignature > 0;
    struct outbound outbound = outbound_of(r, signs || in->value.n > 0, in->header, in->identity);
    for (size_t i = 0; i < in->nsignature; i++)
        outbound_add_slot(&outbound, in->signature[i].name);
    if (signs && (in->value.n > 0 || in->slot != SLOT_HEADER))
        return -1;
    bool field = in->slot == SLOT_HEADER && in->value.n > 0;
    if (field ? !outbound_slot_ok(in->header) : in->header.n != 0)
        return -1;
    if (in->slot != SLOT_HEADER && (in->value.n == 0 || !slot_is_marked(in->slot)))
        return -1;
    if ((in->ws_key.n != 0) != outbound_is_upgrade(r))
        return -1;
    if (in->framing == HTTP_UNTIL_CLOSE || write_target(out, in) != 0 || write_host(out, r) != 0)
        return -1;
    for (size_t i = 0; i < r->nfields; i++) {
        const struct http_field *f = &r->field[i];
        struct span value = in->range.n && span_ieq(f->name, SPAN("range")) ? in->range : f->value;
        if (outbound_keeps(&outbound, f) && http_write_field(out, f->name, value) != 0)
            return -1;
    }
    if (in->header.n && http_write_field(out, in->header, in->value) != 0)
        return -1;
    for (size_t i = 0; i < in->nsignature; i++)
        if (http_write_field(out, in->signature[i].name, in->signature[i].value) != 0)
            return -1;
    if (in->identity && http_write_field(out, SPAN("Accept-Encoding"), SPAN("identity")) != 0)
        return -1;
    if (in->ws_key.n && (http_write_field(out, SPAN("Sec-WebSocket-Key"), in->ws_key) != 0 ||
                         http_write_field(out, SPAN("Sec-WebSocket-Version"), SPAN("13")) != 0))
        return -1;
    if (http_write_field(out, SPAN("Connection"), in->ws_key.n ? SPAN("Upgrade") : SPAN("keep-alive")) != 0)
        return -1;
    return http_write_end(out, in->framing, in->length);
}
