#include "proxy/judge/evaluation/signing.h"

#include "common/sign/aws_chunked.h"
#include "common/sign/canonical.h"
#include "proxy/judge/evaluation/template.h"

enum { FIELDS_MAX = 128 * 1024, QUERY_MAX = 3 * HTTP_TARGET_MAX };

static bool credential_of(const struct exchange *x, struct credential *c)
{
    int i = x->now.d.credential;
    return i >= 0 && x->now.image != NULL && policy_credential(x->now.image->policy, (size_t)i, c) &&
           c->sign != SIGN_NONE;
}

bool signing_is(const struct exchange *x)
{
    struct credential c;
    return credential_of(x, &c);
}

bool signing_takes_body(const struct exchange *x)
{
    struct credential c;
    return !x->judge->config.shadow && credential_of(x, &c) && c.sign == SIGN_HMAC &&
           sign_template_has(c.hmac.sign, PART_BODY);
}

void signing_slots(const struct policy *p, const struct credential *c, struct outbound *l)
{
    struct span name, format;
    if (c->sign != SIGN_HMAC && !slot_is_marked(c->slot))
        outbound_add_slot(l, c->header.n ? c->header : SPAN("Authorization"));
    for (size_t i = 0; c->sign == SIGN_HMAC && policy_signed_field(p, c, i, &name, &format); i++)
        outbound_add_slot(l, name);
}

/* What the client says of its body, in how many fields. */
static size_t said(const struct wire_request *r, struct span *value)
{
    size_t n = 0;
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->field[i].name, SPAN("x-amz-content-sha256"))) {
            *value = r->field[i].value;
            n++;
        }
    return n;
}

static bool is_s3(const struct credential *c)
{
    return c->sign == SIGN_AWS4 && span_eq(c->service, SPAN("s3"));
}

/* AWS_PAYLOAD_HASH also where the client says nothing: then it is the hash of what is here. */
static enum aws_payload payload_of(const struct exchange *x, const struct credential *c, struct span *value)
{
    *value = SPAN_NONE;
    size_t n = c->sign == SIGN_AWS4 ? said(&x->request, value) : 0;
    return n == 0 ? AWS_PAYLOAD_HASH : n == 1 ? aws_payload_of(*value) : AWS_PAYLOAD_UNKNOWN;
}

static bool in_chunks(enum aws_payload p)
{
    return p == AWS_PAYLOAD_CHUNKS || p == AWS_PAYLOAD_CHUNKS_TRAILER;
}

bool signing_wants_body(const struct exchange *x)
{
    struct credential c;
    struct span value;
    if (!credential_of(x, &c))
        return false;
    if (c.sign == SIGN_HMAC)
        return template_of_body(x->now.image->policy, &c);
    enum aws_payload p = payload_of(x, &c, &value);
    return in_chunks(p) || (p == AWS_PAYLOAD_HASH && value.n == 0);
}

/* All chunks of the body, to fn; -1: it is no such body, or fn says so. */
static int each_chunk(const struct exchange *x, enum aws_payload p, struct aws_chunked *c,
                      int (*fn)(void *arg, size_t at, struct span data), void *arg)
{
    struct aws_chunk one;
    int rc = aws_chunked_begin(c, p, body_bytes(x->body));
    while (rc == 0 && (rc = aws_chunked_next(c, &one)) > 0)
        rc = fn(arg, one.signature, one.data);
    return rc;
}

static int count(void *arg, size_t at, struct span data)
{
    return ++*(size_t *)arg <= WIRE_CHUNKS_MAX ? 0 : -1;
}

const char *signing_refuses(const struct exchange *x)
{
    struct credential c;
    struct span value;
    struct aws_chunked chunked;
    size_t n = 0;
    if (!credential_of(x, &c))
        return NULL;
    if (c.sign == SIGN_HMAC)
        return template_refuses(x, &c);
    if (c.sign == SIGN_AWS4 && x->request.has_query && sign_is_presigned(x->request.query))
        return "Its URL is signed itself (a presigned URL), with a key that is not the gateway's. ";
    enum aws_payload p = payload_of(x, &c, &value);
    if (p == AWS_PAYLOAD_UNKNOWN)
        return "What it says of its body in X-Amz-Content-Sha256 is nothing that the gateway can sign. ";
    if (in_chunks(p) && (each_chunk(x, p, &chunked, count, &n) != 0 || n + chunked.trailer_signed > WIRE_CHUNKS_MAX))
        return "Its body is not in signed chunks as it says, or in more of them than the gateway signs. ";
    return NULL;
}

static int put_digest(struct dynbuf *b, size_t at, const struct digest *d)
{
    msg_put_u64(b, at);
    msg_put_digest(b, d);
    return dynbuf_ok(b) ? 0 : -1;
}

static int put_chunk(void *arg, size_t at, struct span data)
{
    struct digest d;
    digest_of(data, &d);
    return put_digest(arg, at, &d);
}

static int put_chunks(const struct exchange *x, enum aws_payload p, struct dynbuf *out)
{
    struct aws_chunked c;
    struct digest d;
    if (each_chunk(x, p, &c, put_chunk, out) != 0)
        return -1;
    if (!c.trailer_signed)
        return 0;
    aws_chunked_trailer_digest(&c, &d);
    return put_digest(out, c.trailer_signature, &d);
}

/* The fields as they leave, of which the signature must cover some. */
static void take_fields(const struct exchange *x, const struct credential *c, struct wire_sign *out)
{
    const struct wire_request *r = &x->request;
    struct outbound leaves = outbound_of(r, true, SPAN("Authorization"), true);
    for (size_t i = 0; i < r->nfields; i++) {
        const struct http_field *f = &r->field[i];
        bool covered = c->sign == SIGN_TC3 ? span_ieq(f->name, SPAN("content-type")) : sign_covers(f->name);
        if (covered && outbound_keeps(&leaves, f))
            out->field[out->nfields++] = *f;
    }
}

static void take_payload(const struct exchange *x, const struct credential *c, struct span value, char *hex,
                         struct wire_sign *out)
{
    struct digest d;
    out->payload = value;
    if (value.n)
        return;
    digest_of(body_bytes(x->body), &d);
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
    out->payload = span_of(hex, 2 * (size_t)DIGEST_BYTES);
    out->tell_payload = is_s3(c);
}

int signing_take(const struct exchange *x, struct signing *out)
{
    struct credential c;
    struct span value;
    *out = (struct signing){.w = {.method = x->request.method}};
    dynbuf_init(&out->path, 3 * QUERY_MAX);
    dynbuf_init(&out->query, 3 * QUERY_MAX);
    dynbuf_init(&out->chunks, (size_t)WIRE_CHUNKS_MAX * WIRE_CHUNK);
    if (!credential_of(x, &c) || c.sign == SIGN_HMAC || signing_refuses(x) != NULL)
        return -1;
    enum aws_payload p = payload_of(x, &c, &value);
    enum sign_path how = c.sign == SIGN_TC3 ? SIGN_PATH_AS_SENT : is_s3(&c) ? SIGN_PATH_ONCE : SIGN_PATH_TWICE;
    if (sign_canonical_path(x->request.path, how, &out->path) != 0)
        return -1;
    if ((c.sign == SIGN_TC3 ? dynbuf_add(&out->query, x->request.query)
                            : sign_canonical_query(x->request.query, &out->query)) != 0)
        return -1;
    if (in_chunks(p) && put_chunks(x, p, &out->chunks) != 0)
        return -1;
    take_payload(x, &c, value, out->hex, &out->w);
    out->w.path = dynbuf_span(&out->path);
    out->w.query = dynbuf_span(&out->query);
    out->w.chunks = dynbuf_span(&out->chunks);
    out->w.trailer = p == AWS_PAYLOAD_CHUNKS_TRAILER;
    return 0;
}

void signing_drop(struct signing *s)
{
    dynbuf_free(&s->path);
    dynbuf_free(&s->query);
    dynbuf_free(&s->chunks);
}

int signing_put(const struct exchange *x, struct dynbuf *b)
{
    struct credential c;
    struct signing s;
    if (!credential_of(x, &c))
        return -1;
    if (c.sign == SIGN_HMAC)
        return template_put(x, &c, b);
    int rc = signing_take(x, &s);
    if (rc == 0) {
        take_fields(x, &c, &s.w);
        wire_put_sign(b, &s.w);
        rc = dynbuf_ok(b) ? 0 : -1;
    }
    signing_drop(&s);
    return rc;
}

static int join_chunk(void *arg, size_t at, struct span data)
{
    digest_add(arg, data);
    return 0;
}

bool signing_join(const struct exchange *x, struct digest *out)
{
    struct credential c;
    struct span value;
    struct aws_chunked chunked;
    struct digest trailer;
    if (!credential_of(x, &c))
        return false;
    enum aws_payload p = payload_of(x, &c, &value);
    if (!in_chunks(p))
        return false;
    struct digest_ctx *d = digest_begin();
    int rc = each_chunk(x, p, &chunked, join_chunk, d);
    aws_chunked_trailer_digest(&chunked, &trailer);
    digest_add(d, span_of(trailer.b, DIGEST_BYTES));
    digest_end(d, out);
    return rc == 0;
}
