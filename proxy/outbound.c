#include "proxy/outbound.h"

/* Hop-by-hop by its own name; what a client's Connection field named was removed by the front. */
static bool hop_by_hop(struct span name)
{
    static const struct http_head none;
    return http_is_hop_by_hop(&none, name);
}

/* Never from a client, whatever is injected. The front removed these already. */
static bool never(struct span name)
{
    return http_is_framing(name) || hop_by_hop(name) || http_is_forwarding(name) || span_ieq(name, SPAN("expect")) ||
           http_name_begins(name, SPAN("proxy-")) || http_name_begins(name, SPAN("countersign-"));
}

/* A sandbox's own credential beside the one that is injected would say whose account it is (C40). */
bool outbound_is_credential(struct span name)
{
    static const struct span names[] = {SPAN("authorization"),
                                        SPAN("cookie"),
                                        SPAN("x-api-key"),
                                        SPAN("api-key"),
                                        SPAN("apikey"),
                                        SPAN("x-auth-token"),
                                        SPAN("x-access-token"),
                                        SPAN("x-goog-api-key"),
                                        SPAN("x-vault-token"),
                                        SPAN("private-token"),
                                        SPAN("job-token"),
                                        SPAN("deploy-token"),
                                        SPAN("x-amz-security-token"),
                                        SPAN("x-tc-token")};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (http_name_same(name, names[i]))
            return true;
    return false;
}

/* When a client signed, which means nothing without its signature. */
static bool of_a_signature(struct span name)
{
    return http_name_same(name, SPAN("x-amz-date")) || http_name_same(name, SPAN("x-tc-timestamp")) ||
           http_name_same(name, SPAN("x-tc-content-sha256"));
}

static bool is_upgrade(const struct http_field *f)
{
    return span_ieq(f->name, SPAN("upgrade")) && span_eq(f->value, SPAN("websocket"));
}

bool outbound_is_upgrade(const struct wire_request *r)
{
    for (size_t i = 0; i < r->nfields; i++)
        if (is_upgrade(&r->field[i]))
            return true;
    return false;
}

static bool is_slot(const struct outbound *l, struct span name)
{
    bool found = l->nslots > OUTBOUND_SLOTS_MAX;
    for (size_t i = 0; i < l->nslots && !found; i++)
        found = http_name_same(name, l->slot[i]);
    return found;
}

bool outbound_keeps(const struct outbound *l, const struct http_field *f)
{
    struct span name = f->name;
    if (is_upgrade(f))
        return true;
    if (never(name) || (l->secrets && http_name_same(name, SPAN("accept-encoding"))))
        return false;
    if (!l->beside)
        return true;
    return !is_slot(l, name) && !outbound_is_credential(name) && !of_a_signature(name) &&
           (l->ranges || (!http_name_same(name, SPAN("range")) && !http_name_same(name, SPAN("if-range"))));
}

struct outbound outbound_of(const struct wire_request *r, bool beside, struct span slot, bool secrets)
{
    bool ranges = span_eq(r->method, SPAN("GET")) || span_eq(r->method, SPAN("HEAD"));
    return (struct outbound){
        .beside = beside, .slot = {slot}, .nslots = slot.n > 0, .secrets = secrets, .ranges = ranges};
}

void outbound_add_slot(struct outbound *l, struct span name)
{
    if (l->nslots < OUTBOUND_SLOTS_MAX)
        l->slot[l->nslots] = name;
    if (l->nslots <= OUTBOUND_SLOTS_MAX)
        l->nslots++;
}

void outbound_apply(const struct outbound *l, struct wire_request *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->nfields; i++)
        if (outbound_keeps(l, &r->field[i]))
            r->field[kept++] = r->field[i];
    /* With no room left the carrier says it all the same; only the ticket is silent about it. */
    if (l->secrets && kept < HTTP_FIELDS_MAX)
        r->field[kept++] = (struct http_field){SPAN("Accept-Encoding"), SPAN("identity")};
    r->nfields = kept;
}

void outbound_mask(struct span name, struct span value, struct dynbuf *out)
{
    struct span scheme, rest;
    struct digest d;
    char hex[2 * DIGEST_BYTES + 1];
    digest_of(value, &d);
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
    if (http_name_same(name, SPAN("authorization")) && span_cut(value, ' ', &scheme, &rest) && scheme.n <= 20 &&
        http_is_token(scheme))
        dynbuf_addf(out, "%.*s, ", SPAN_FMT(scheme));
    dynbuf_addf(out, "%zu bytes, SHA-256 %.12s", value.n, hex);
}

bool outbound_slot_ok(struct span header)
{
    return http_is_token(header) && !never(header) && !http_name_same(header, SPAN("accept-encoding"));
}
