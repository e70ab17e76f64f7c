#include "proxy/judge/leases/proof.h"

#include <stdio.h>

#include "common/lease/narrowed.h"
#include "common/sign/aws_chunked.h"
#include "common/sign/canonical.h"
#include "proxy/judge/evaluation/signing.h"
#include "proxy/judge/post.h"

enum { ARENA_MAX = 512 * 1024 };

/* As the client wrote it, to whom its port is the usual one or not. */
static int add_host(struct sign_request *r, struct arena *a, const struct wire_request *q)
{
    char host[HTTP_HOST_MAX + 8];
    unsigned usual = span_eq(q->scheme, SPAN("https")) ? 443 : 80;
    int n = q->port == usual ? snprintf(host, sizeof(host), "%.*s", SPAN_FMT(q->host))
                             : snprintf(host, sizeof(host), "%.*s:%u", SPAN_FMT(q->host), (unsigned)q->port);
    return n > 0 && (size_t)n < sizeof(host) ? sign_add_field(r, a, SPAN("host"), span_of(host, (size_t)n)) : -1;
}

static int add_length(struct sign_request *r, struct arena *a, const struct exchange *x)
{
    char length[24];
    uint64_t body = x->upload == UPLOAD_NONE ? 0 : x->declared;
    int n = snprintf(length, sizeof(length), "%llu", (unsigned long long)body);
    return n > 0 && body != UINT64_MAX ? sign_add_field(r, a, SPAN("content-length"), span_of(length, (size_t)n))
                                       : -1;
}

/* Tencent's are signed in lower case. */
static struct span as_signed(enum sign_scheme scheme, struct span value, struct arena *a)
{
    uint8_t *to = scheme == SIGN_TC3 && value.n ? arena_alloc(a, value.n) : NULL;
    for (size_t i = 0; to != NULL && i < value.n; i++)
        to[i] = value.p[i] >= 'A' && value.p[i] <= 'Z' ? (uint8_t)(value.p[i] + 32) : value.p[i];
    return to ? span_of(to, value.n) : value;
}

/* Every field of this name. -1: there is none, or no memory. */
static int add_named(struct sign_request *r, struct arena *a, const struct exchange *x, enum sign_scheme scheme,
                     struct span name)
{
    int rc = -1;
    if (span_eq(name, SPAN("host")))
        return add_host(r, a, &x->request);
    if (span_eq(name, SPAN("content-length")))
        return add_length(r, a, x);
    for (size_t i = 0; i < x->request.nfields; i++) {
        const struct http_field *f = &x->request.field[i];
        if (span_ieq(f->name, name) && (rc = sign_add_field(r, a, name, as_signed(scheme, f->value, a))) != 0)
            return -1;
    }
    return rc;
}

/* What the services themselves insist on: Host, and of Amazon's every field of its own. */
static bool covers(const struct exchange *x, const struct sign_claim *claim)
{
    bool good = sign_claims(claim, SPAN("host"));
    for (size_t i = 0; i < x->request.nfields; i++) {
        struct span name = x->request.field[i].name;
        bool must = claim->scheme == SIGN_TC3 ? span_ieq(name, SPAN("content-type"))
                                              : span_ieq(span_first(name, 6), SPAN("x-amz-"));
        good = good && (!must || sign_claims(claim, name));
    }
    return good;
}

static const char *take_time(const struct exchange *x, const struct sign_claim *claim, struct sign_scope *scope)
{
    bool tc3 = claim->scheme == SIGN_TC3;
    struct span name = tc3 ? SPAN("X-TC-Timestamp") : SPAN("X-Amz-Date"), stamp = SPAN_NONE;
    int64_t now = (int64_t)(x->judge->ports.wall(x->judge->ports.arg) / 1000), at = -1;
    size_t n = 0;
    for (size_t i = 0; i < x->request.nfields; i++)
        if (span_ieq(x->request.field[i].name, name)) {
            stamp = x->request.field[i].value;
            n++;
        }
    if (n == 1 && sign_scope_of(claim->scheme, stamp, claim->region, claim->service, scope) == 0)
        at = sign_scope_time(scope);
    if (at < 0 || !span_eq(claim->day, span_str(scope->day)))
        return tc3 ? "It says no time at which it was signed (X-TC-Timestamp), or another day than its Credential. "
                   : "It says no time at which it was signed (X-Amz-Date), or another day than its Credential. ";
    if (at > now + (tc3 ? PROOF_TC3_S : PROOF_AWS_S) || at < now - (tc3 ? PROOF_TC3_S : PROOF_AWS_S))
        return tc3 ? "It was signed more than 5 minutes from now by the gateway's clock. "
                   : "It was signed more than 15 minutes from now by the gateway's clock. ";
    return NULL;
}

static const char *take_names(const struct exchange *x, const struct sign_claim *claim, struct sign_request *r,
                              struct arena *a)
{
    struct span rest = claim->names, one;
    if (!covers(x, claim))
        return "Its signature does not cover Host and the fields that this service wants signed. ";
    for (bool more = true; more;) {
        more = span_cut(rest, ';', &one, &rest);
        if (add_named(r, a, x, claim->scheme, one) != 0)
            return "Its signature covers a field that is not there, or is no part of what a gateway passes on. ";
    }
    return NULL;
}

/* The digests of the chunks, each with the signature that stands in the body. */
static int take_chunks(const struct exchange *x, const struct wire_sign *s, struct dynbuf *out)
{
    struct span body = body_bytes(x->body);
    for (struct span rest = s->chunks; rest.n; rest = span_from(rest, WIRE_CHUNK)) {
        struct msg_in m = msg_in(span_first(rest, 8));
        uint64_t at = msg_get_u64(&m);
        if (at > body.n || body.n - at < WIRE_CHUNK_TEXT)
            return -1;
        (void)dynbuf_add(out, span_of(rest.p + 8, DIGEST_BYTES));
        (void)dynbuf_add(out, span_of(body.p + at, WIRE_CHUNK_TEXT));
    }
    return dynbuf_ok(out) ? 0 : -1;
}

/* Where the body is here, it is what its SHA-256 says; else that is the upstream's to see. */
static bool body_fits(const struct exchange *x, const struct signing *s)
{
    struct digest d;
    char hex[2 * DIGEST_BYTES + 1];
    struct span said = s->w.payload;
    if (x->upload >= UPLOAD_TO_COME || said.p == (const uint8_t *)s->hex || aws_payload_of(said) != AWS_PAYLOAD_HASH)
        return true; /* in the second case it is not said, and was made of this body */
    digest_of(body_bytes(x->body), &d);
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
    return span_eq(said, span_of(hex, 2 * (size_t)DIGEST_BYTES));
}

static int ask(struct exchange *x, const struct wire_signed *w)
{
    wire_put_signed(post_begin(x->judge, ROLE_KEEPER, 0, M_LEASE_VERIFY, x->xid), w);
    return post_commit(x->judge, -1);
}

/* Its canonical request, with the fields that the client signed, to the keeper. */
static enum refuse_why ask_with(struct exchange *x, const struct sign_claim *claim, const struct sign_scope *scope,
                                const struct lease *l, struct arena *a)
{
    struct sign_request *r = arena_alloc(a, sizeof(*r));
    struct wire_signed w = {.lease = l->id, .format = l->format, .scheme = claim->scheme};
    struct signing s;
    struct dynbuf chunks;
    enum refuse_why why = REFUSE_SIGN;
    dynbuf_init(&chunks, (size_t)WIRE_CHUNKS_MAX * WIRE_CHUNK_SAID);
    if (signing_take(x, &s) != 0)
        goto out;
    why = REFUSE_INTERNAL;
    if (r == NULL)
        goto out;
    *r = (struct sign_request){.method = s.w.method, .path = s.w.path, .query = s.w.query, .payload = s.w.payload};
    why = REFUSE_LEASE_UNPROVEN;
    x->unproven = take_names(x, claim, r, a);
    if (x->unproven == NULL && !body_fits(x, &s))
        x->unproven = "Its body is another one than the SHA-256 says that it is signed with. ";
    if (x->unproven != NULL)
        goto out;
    sign_canonical(r, &w.canonical);
    w.stamp = span_str(scope->stamp);
    w.region = claim->region;
    w.service = claim->service;
    w.signature = claim->signature;
    w.trailer = s.w.trailer;
    why = REFUSE_INTERNAL;
    if (take_chunks(x, &s.w, &chunks) != 0)
        goto out;
    w.chunks = dynbuf_span(&chunks);
    why = ask(x, &w) == 0 ? REFUSE_COUNT : REFUSE_INTERNAL;
out:
    dynbuf_free(&chunks);
    signing_drop(&s);
    return why;
}

enum refuse_why proof_ask(struct exchange *x, const struct sign_claim *claim, const struct lease *l)
{
    struct credential c;
    struct sign_scope scope;
    struct arena a;
    if (x->now.d.credential < 0 || !policy_credential(x->now.image->policy, (size_t)x->now.d.credential, &c))
        return REFUSE_INTERNAL;
    x->unproven = claim->scheme != c.sign || !span_eq(claim->service, c.service)
                      ? "It is signed in another way, or for another service, than its credential is for. "
                      : take_time(x, claim, &scope);
    if (x->unproven != NULL)
        return REFUSE_LEASE_UNPROVEN;
    if (x->upload >= UPLOAD_TO_COME && signing_wants_body(x)) /* it was not read, since it is refused */
        return exchange_is_frozen(x) ? REFUSE_FROZEN : REFUSE_INTERNAL;
    arena_init(&a, ARENA_MAX);
    enum refuse_why why = ask_with(x, claim, &scope, l, &a);
    arena_free(&a);
    if (why == REFUSE_COUNT)
        exchange_proof(x, PROOF_ASKED);
    return why;
}

enum refuse_why proof_ask_narrowed(struct exchange *x, struct span text)
{
    struct lease_narrowed is;
    const struct lease *l = lease_narrowed_read(text, &is) == 0 ? lease_by_digest(x->judge->leases, &is.of) : NULL;
    if (l == NULL)
        return REFUSE_INTERNAL;
    struct dynbuf *b = post_begin(x->judge, ROLE_KEEPER, 0, M_LEASE_NARROWED, x->xid);
    msg_put_id(b, &l->id);
    msg_put_u8(b, (uint8_t)l->format);
    msg_put_span(b, is.layers);
    msg_put_digest(b, &is.mac);
    if (post_commit(x->judge, -1) != 0)
        return REFUSE_INTERNAL;
    exchange_proof(x, PROOF_ASKED);
    return REFUSE_COUNT;
}

void proof_found(struct exchange *x, enum wire_verified found)
{
    x->unproven = x->narrowed.n > 0 ? "The lease that it brings was changed after it was narrowed. "
                  : found == VERIFIED_CHUNK_WRONG
                      ? "Its body has a chunk whose signature was not made with the lease's key. "
                      : "Its signature was not made with the lease's key, over what came. ";
    exchange_proof(x, found == VERIFIED_RIGHT ? PROOF_GIVEN : PROOF_WRONG);
}
