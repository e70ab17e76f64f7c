#include "proxy/canonical.h"

#include "proxy/outbound.h"

static bool is(struct span name, struct span lower)
{
    return name.n == lower.n && http_name_begins(name, lower);
}

bool canonical_never_leaves(struct span name)
{
    switch (name.n ? name.p[0] | 0x20 : 0) {
    case 'c': return http_name_begins(name, SPAN("countersign-"));
    case 'e': return is(name, SPAN("expect")) || is(name, SPAN("early-data"));
    case 'h': return is(name, SPAN("http2-settings"));
    case 'm': return is(name, SPAN("max-forwards"));
    case 'p': return http_name_begins(name, SPAN("proxy-"));
    case 'x': return http_name_begins(name, SPAN("x-http-method")) || is(name, SPAN("x-method-override"));
    default: return false;
    }
}

bool canonical_made_anew(struct span name)
{
    return http_name_begins(name, SPAN("sec-websocket-")) && !span_ieq(name, SPAN("sec-websocket-protocol"));
}

static bool is_ascii(struct span s)
{
    uint8_t any = 0;
    for (size_t i = 0; i < s.n; i++)
        any |= s.p[i];
    return any < 0x80;
}

bool canonical_credentials(const struct wire_request *r)
{
    for (size_t i = 0; i < r->nfields; i++)
        if (!is_ascii(r->field[i].value) && outbound_is_credential(r->field[i].name))
            return false;
    return true;
}

/* Visible characters, blanks between them, and whatever is above ASCII. */
static bool good_value(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
            return false;
    return span_trim(s).n == s.n;
}

static bool good_fields(const struct wire_request *r)
{
    static const struct http_head none = {.nfields = 0};
    size_t upgrades = 0;
    for (size_t i = 0; i < r->nfields; i++) {
        const struct http_field *f = &r->field[i];
        bool upgrade = span_ieq(f->name, SPAN("upgrade")) && span_eq(f->value, SPAN("websocket"));
        upgrades += upgrade;
        if (!http_is_token(f->name) || !good_value(f->value) || canonical_never_leaves(f->name) ||
            http_is_framing(f->name) || http_is_forwarding(f->name) ||
            (http_is_hop_by_hop(&none, f->name) && !upgrade))
            return false;
    }
    if (!canonical_credentials(r))
        return false;
    for (size_t i = 0; i < r->nfields && upgrades; i++)
        if (canonical_made_anew(r->field[i].name))
            return false;
    return upgrades <= 1;
}

bool canonical_host(struct span host)
{
    char is[HTTP_HOST_MAX + 1];
    size_t n = 0;
    return http_canonical_host(host, is, &n) == 0 && span_eq(host, span_of(is, n));
}

enum canonical canonical_request(const struct wire_request *r)
{
    struct dynbuf b;
    bool good = http_is_token(r->method) && r->port != 0 && (r->has_query || r->query.n == 0) &&
                (span_eq(r->scheme, SPAN("https")) || span_eq(r->scheme, SPAN("http"))) && canonical_host(r->host) &&
                good_fields(r);
    dynbuf_init(&b, 3 * (r->path.n + r->query.n)); /* what is not canonical may grow */
    good = good && http_canonical_path(r->path, true, &b) == 0 && span_eq(dynbuf_span(&b), r->path);
    good =
        good && http_canonical_query(r->query, &b) == 0 && span_eq(span_from(dynbuf_span(&b), r->path.n), r->query);
    bool memory = dynbuf_ok(&b);
    dynbuf_free(&b);
    return !memory ? CANONICAL_NO_MEMORY : good ? CANONICAL : CANONICAL_NOT;
}
