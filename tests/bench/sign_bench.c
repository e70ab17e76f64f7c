/* Signing a request anew, and verifying before that what a sandbox signed with its lease's pair; beside each what
 * cannot be done without: nanoseconds of CPU time for one (tests/bench/credentials.py). The body is 1 KiB, and the
 * keys of the day are kept. sign_bench N    prints "sign must both must": sign  the body hashed and signer_sign;
 * must: SHA-256 of the body and of the canonical request, and one HMAC-SHA-256 over the string to sign both  the same
 * behind what judge and keeper do for the pair: its Authorization taken apart, the canonical request made of the
 * fields it names, lease_verify; must: a canonical request and an HMAC more */
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/crypto/seal.h"
#include "proxy/keeper/lease/verify.h"
#include "proxy/keeper/signer/signer.h"

enum { BODY = 1024, STRING_TO_SIGN = 141 };
#define NOW 1800000000

static const struct credential credential = {
    .name = SPAN("aws"), .sign = SIGN_AWS4, .region = SPAN("eu-central-1"), .service = SPAN("dynamodb")};
static const struct http_field sent[] = {{SPAN("Host"), SPAN("dynamodb.eu-central-1.amazonaws.com")},
                                         {SPAN("Content-Type"), SPAN("application/x-amz-json-1.0")},
                                         {SPAN("X-Amz-Date"), SPAN("20270115T080000Z")},
                                         {SPAN("X-Amz-Target"), SPAN("DynamoDB_20120810.PutItem")}};

/* What a sandbox sent, and who looks at it. */
struct pair {
    struct signer *keys;
    struct secret *root;
    struct id lease;
    struct dynbuf authorization;
};

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void payload_of(struct span body, char hex[2 * DIGEST_BYTES + 1])
{
    struct digest d;
    digest_of(body, &d);
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
}

static int sign(struct signer *s, const char *payload)
{
    static const struct signer_place place = {SPAN("https"), SPAN("dynamodb.eu-central-1.amazonaws.com"), 443};
    struct signature out;
    struct err e;
    const struct wire_sign w = {.method = SPAN("POST"),
                                .path = SPAN("/"),
                                .payload = span_of(payload, 2 * DIGEST_BYTES),
                                .tell_payload = true,
                                .field = {{SPAN("content-type"), SPAN("application/x-amz-json-1.0")},
                                          {SPAN("x-amz-target"), SPAN("DynamoDB_20120810.PutItem")}},
                                .nfields = 2};
    int rc = signer_sign(s, &credential, SPAN("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), &w,
                         &place, NOW, &out, &e);
    signature_clear(&out);
    return rc;
}

/* claim: NULL takes all fields. */
static struct sign_request *canonical_of(struct arena *a, const struct sign_claim *claim, const char *payload,
                                         struct dynbuf *path)
{
    struct sign_request *r = arena_alloc(a, sizeof(*r));
    if (r == NULL || sign_canonical_path(SPAN("/"), SIGN_PATH_TWICE, path) != 0)
        return NULL;
    r->method = SPAN("POST");
    r->path = dynbuf_span(path);
    r->payload = span_of(payload, 2 * DIGEST_BYTES);
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
        if ((claim == NULL || sign_claims(claim, sent[i].name)) &&
            sign_add_field(r, a, sent[i].name, sent[i].value) != 0)
            return NULL;
    return r;
}

/* As an SDK in a sandbox does it, with both halves of its lease. */
static int pair_new(struct pair *p, const char *payload)
{
    struct secret *master = seal_key_new();
    struct lease_texts made;
    struct sign_scope scope;
    struct dynbuf path;
    struct arena a;
    uint8_t key[SIGN_KEY];
    char signature[SIGN_TEXT + 1];
    *p = (struct pair){.keys = signer_new(), .root = lease_root(master), .lease = {{1}}};
    dynbuf_init(&p->authorization, 4096);
    dynbuf_init(&path, 4096);
    arena_init(&a, 1 << 16);
    const struct sign_request *r = canonical_of(&a, NULL, payload, &path);
    int bad = p->keys == NULL || p->root == NULL || r == NULL ||
              lease_derive(p->root, &p->lease, LEASE_AWS, &made) != 0 ||
              sign_scope_at(SIGN_AWS4, NOW, credential.region, credential.service, &scope) != 0 ||
              !span_eq(span_str(scope.stamp), sent[2].value) ||
              sign_key(&scope, span_of(made.secret, made.nsecret), key) != 0 ||
              sign_request(&scope, key, r, signature) != 0 ||
              sign_authorization(&scope, span_of(made.text, made.ntext), r, signature, &p->authorization) != 0;
    arena_free(&a);
    dynbuf_free(&path);
    secret_free(&master);
    return bad ? -1 : 0;
}

static void pair_free(struct pair *p)
{
    signer_free(&p->keys);
    secret_free(&p->root);
    dynbuf_free(&p->authorization);
}

static int verify(const struct pair *p, const char *payload)
{
    struct wire_signed w = {.lease = p->lease, .format = LEASE_AWS, .scheme = SIGN_AWS4, .stamp = sent[2].value};
    struct sign_claim claim;
    struct dynbuf path;
    struct arena a;
    int rc = -1;
    dynbuf_init(&path, 4096);
    arena_init(&a, 1 << 16);
    const struct sign_request *r = NULL;
    if (sign_claim_read(dynbuf_span(&p->authorization), &claim) == 0)
        r = canonical_of(&a, &claim, payload, &path);
    if (r != NULL) {
        w.region = claim.region;
        w.service = claim.service;
        w.signature = claim.signature;
        sign_canonical(r, &w.canonical);
        rc = lease_verify(p->keys, p->root, &w) == VERIFIED_RIGHT ? 0 : -1;
    }
    arena_free(&a);
    dynbuf_free(&path);
    return rc;
}

/* signatures: how many canonical requests are hashed, and HMACs made. */
static int must(struct span body, int signatures)
{
    static const uint8_t key[DIGEST_BYTES] = {1}, canonical[400], to_sign[STRING_TO_SIGN];
    uint8_t out[DIGEST_BYTES];
    struct digest d;
    unsigned n = 0;
    int rc = 0;
    digest_of(body, &d);
    for (int i = 0; i < signatures && rc == 0; i++) {
        digest_of(span_of(canonical, sizeof(canonical)), &d);
        rc = HMAC(EVP_sha256(), key, sizeof(key), to_sign, sizeof(to_sign), out, &n) != NULL ? 0 : -1;
    }
    return rc;
}

/* One of each column, n times; its nanoseconds, or less than zero. */
static double column(int which, struct signer *s, const struct pair *p, struct span body, unsigned long n)
{
    char payload[2 * DIGEST_BYTES + 1];
    int rc = 0;
    double began = cpu_ns();
    for (unsigned long i = 0; i < n && rc == 0; i++) {
        if (which % 2) {
            rc = must(body, which == 1 ? 1 : 2);
            continue;
        }
        payload_of(body, payload);
        rc = which == 2 ? verify(p, payload) : 0;
        if (rc == 0)
            rc = sign(s, payload);
    }
    return rc == 0 ? (cpu_ns() - began) / (double)n : -1;
}

int main(int argc, char **argv)
{
    static uint8_t bytes[BODY];
    struct span body = span_of(bytes, sizeof(bytes));
    unsigned long n = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    char payload[2 * DIGEST_BYTES + 1];
    struct signer *s = signer_new();
    struct pair p;
    double ns[4];
    payload_of(body, payload);
    bool good = pair_new(&p, payload) == 0 && n > 0 && s != NULL && verify(&p, payload) == 0 && sign(s, payload) == 0;
    for (int i = 0; i < 4 && good; i++)
        good = (ns[i] = column(i, s, &p, body, n)) >= 0;
    if (good)
        printf("%.0f %.0f %.0f %.0f\n", ns[0], ns[1], ns[2], ns[3]);
    pair_free(&p);
    signer_free(&s);
    return good ? 0 : 1;
}
