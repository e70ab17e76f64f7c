#include "proxy/judge/tickets/digest.h"

#include "common/sign/claim.h"
#include "proxy/judge/tickets/prefer.h"
#include "proxy/judge/tickets/retry.h"
#include "proxy/outbound.h"

/* Fields that honest clients vary from one try to the next. What is not in the table counts for both: an unknown
 * field may change what the request does. What an approval sends are the bytes first held, whatever a retry says. */
enum { IN_NEITHER = 0, IN_DIGEST_ONLY, IN_BOTH };
static const struct {
    struct span name;
    bool prefix;
    int where;
} varying[] = {
    {SPAN("user-agent"), false, IN_NEITHER},
    {SPAN("accept"), false, IN_NEITHER},
    {SPAN("accept-"), true, IN_NEITHER},
    {SPAN("cache-control"), false, IN_NEITHER},
    {SPAN("pragma"), false, IN_NEITHER},
    {SPAN("priority"), false, IN_NEITHER},
    {SPAN("dnt"), false, IN_NEITHER},
    {SPAN("sec-websocket-protocol"), false, IN_BOTH},
    {SPAN("sec-"), true, IN_NEITHER},
    {SPAN("date"), false, IN_NEITHER},
    {SPAN("x-amz-date"), false, IN_NEITHER},
    {SPAN("amz-sdk-"), true, IN_NEITHER},
    {SPAN("x-stainless-"), true, IN_NEITHER},
    {SPAN("traceparent"), false, IN_NEITHER},
    {SPAN("tracestate"), false, IN_NEITHER},
    {SPAN("baggage"), false, IN_NEITHER},
    {SPAN("sentry-trace"), false, IN_NEITHER},
    {SPAN("b3"), false, IN_NEITHER},
    {SPAN("x-b3-"), true, IN_NEITHER},
    {SPAN("x-datadog-"), true, IN_NEITHER},
    {SPAN("x-amzn-trace-id"), false, IN_NEITHER},
    {SPAN("x-cloud-trace-context"), false, IN_NEITHER},
    {SPAN("x-request-id"), false, IN_NEITHER},
    {SPAN("x-correlation-id"), false, IN_NEITHER},
    {SPAN("kubectl-session"), false, IN_DIGEST_ONLY},   /* one kubectl, one session */
    {SPAN("x-goog-api-client"), false, IN_DIGEST_ONLY}, /* says of each call which it is */
    {SPAN("x-ms-date"), false, IN_DIGEST_ONLY},
    {SPAN("x-tc-timestamp"), false, IN_DIGEST_ONLY},
    {SPAN("x-ms-client-request-id"), false, IN_DIGEST_ONLY},
    {SPAN("idempotency-key"), false, IN_DIGEST_ONLY},
    {SPAN("x-idempotency-key"), false, IN_DIGEST_ONLY},
    {SPAN("x-goog-gcs-idempotency-token"), false, IN_DIGEST_ONLY},
    {SPAN("repeatability-"), true, IN_DIGEST_ONLY}, /* the same of OASIS */
    {SPAN("content-md5"), false, IN_DIGEST_ONLY},   /* of the body, which counts itself */
    {SPAN("digest"), false, IN_DIGEST_ONLY},
    {SPAN("content-digest"), false, IN_DIGEST_ONLY},
    {SPAN("x-amz-content-sha256"), false, IN_DIGEST_ONLY},
};

/* The sandbox's own credential, if one leaves, says in whose name: it counts always. */
static bool counts(struct span name, bool join)
{
    if (outbound_is_credential(name))
        return true;
    for (size_t i = 0; i < sizeof(varying) / sizeof(varying[0]); i++) {
        struct span n = varying[i].name;
        if (varying[i].prefix ? span_ieq(span_first(name, n.n), n) : span_ieq(name, n))
            return varying[i].where == IN_BOTH || (!join && varying[i].where == IN_DIGEST_ONLY);
    }
    return true;
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

static int compare(struct span a, struct span b)
{
    for (size_t i = 0; i < a.n && i < b.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return lower(a.p[i]) - lower(b.p[i]);
    return a.n < b.n ? -1 : a.n > b.n;
}

/* Insertion sort: stable, so that two fields of one name keep the order that gives them their meaning. */
static size_t sorted(const struct wire_request *r, const struct retry *join, const struct http_field **out)
{
    size_t n = 0;
    for (size_t i = 0; i < r->nfields; i++) {
        bool told = join && ((join->without_type && span_ieq(r->field[i].name, SPAN("content-type"))) ||
                             prefer_is_ours(&r->field[i]));
        if (told || !counts(r->field[i].name, join != NULL))
            continue;
        size_t at = n++;
        for (; at > 0 && compare(out[at - 1]->name, r->field[i].name) > 0; at--)
            out[at] = out[at - 1];
        out[at] = &r->field[i];
    }
    return n;
}

static void add_lower(struct digest_ctx *d, struct span name)
{
    uint8_t text[256];
    size_t n = name.n < sizeof(text) ? name.n : 0; /* too long a name is taken as it is: never equal by accident */
    for (size_t i = 0; i < n; i++)
        text[i] = lower(name.p[i]);
    digest_add_field(d, n ? span_of(text, n) : name);
}

static void number(struct digest_ctx *d, uint64_t v)
{
    uint8_t raw[8];
    for (int i = 0; i < 8; i++)
        raw[i] = (uint8_t)(v >> (56 - 8 * i));
    digest_add_field(d, span_of(raw, sizeof(raw)));
}

/* A client that signs with a key of its own signs each try anew: by which key, for what and what of the request it
 * signs is the same each time, the day and the signature are not. Behind "(signed)" stands what is no field's name.
 */
static void add_value(struct digest_ctx *d, const struct http_field *f, bool join)
{
    struct sign_claim c;
    if (!join || !span_ieq(f->name, SPAN("authorization")) || sign_claim_read(f->value, &c) != 0) {
        digest_add_field(d, f->value);
        return;
    }
    digest_add_field(d, SPAN("(signed)"));
    number(d, c.scheme);
    digest_add_field(d, c.id);
    digest_add_field(d, c.region);
    digest_add_field(d, c.service);
    digest_add_field(d, c.names);
}

/* join: what a retry repeats of it; NULL: the digest. */
static struct digest_ctx *begin(const struct digest_input *in, struct span title, const struct retry *join)
{
    const struct wire_request *r = in->request;
    const struct http_field *field[HTTP_FIELDS_MAX];
    size_t n = sorted(r, join, field);
    struct digest_ctx *d = digest_begin();
    digest_add_field(d, title);
    digest_add_field(d, in->session);
    digest_add_field(d, in->credential);
    digest_add_field(d, r->method);
    digest_add_field(d, r->scheme);
    digest_add_field(d, r->host);
    number(d, r->port);
    digest_add_field(d, join ? join->path : r->path);
    number(d, join ? join->has_query : r->has_query);
    digest_add_field(d, join ? join->query : r->query);
    number(d, n);
    for (size_t i = 0; i < n; i++) {
        add_lower(d, field[i]->name);
        add_value(d, field[i], join != NULL);
    }
    return d;
}

void request_digest(const struct digest_input *in, struct digest *out)
{
    struct digest_ctx *d = begin(in, SPAN("countersign request 1"), NULL);
    number(d, 0);
    digest_add_field(d, in->body);
    digest_end(d, out);
}

/* Where something else says already what of its body a retry repeats, all the rest counts. */
void request_join_key(const struct digest_input *in, struct digest *out)
{
    const struct wire_request *r = in->request;
    struct retry t = {.path = r->path, .query = r->query, .has_query = r->has_query};
    if (!in->has_join_body)
        retry_of(r, in->body, &t);
    struct digest_ctx *d = begin(in, SPAN("countersign join 1"), &t);
    digest_add_field(d, in->rule);
    digest_add_field(d, in->op);
    digest_add_field(d, in->approve_by);
    number(d, in->has_join_body ? 1 : t.row ? 1 + t.row : 0);
    digest_add_field(d, in->has_join_body ? in->join_body
                        : t.has_body      ? span_of(t.body.b, sizeof(t.body.b))
                                          : in->body);
    digest_end(d, out);
}

void request_shape(const struct digest_input *in, const struct shape_input *s, struct digest *out)
{
    struct retry t = {.path = s->path, .query = s->query, .has_query = in->request->has_query};
    struct digest_ctx *d = begin(in, SPAN("countersign shape 1"), &t);
    digest_add_field(d, in->rule);
    digest_add_field(d, in->op);
    digest_add_field(d, s->resource);
    digest_add_field(d, s->effect);
    digest_add_field(d, s->body);
    digest_end(d, out);
}
