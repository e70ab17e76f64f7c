/* Signing a request anew, and beside it what no signature can do without: nanoseconds of CPU time for one of each
 * (tests/bench/credentials.py). The body is 1 KiB, and the key of the day is kept.
 *   sign_bench N    prints "sign must": the body hashed and signer_sign; SHA-256 of the body and of the canonical
 *                   request, and one HMAC-SHA-256 over the string to sign */
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "proxy/keeper/signer/signer.h"

enum { BODY = 1024, STRING_TO_SIGN = 141 };

static const struct credential credential = {
    .name = SPAN("aws"), .sign = SIGN_AWS4, .region = SPAN("eu-central-1"), .service = SPAN("dynamodb")};

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int sign(struct signer *s, struct span body)
{
    static const struct signer_place place = {SPAN("https"), SPAN("dynamodb.eu-central-1.amazonaws.com"), 443};
    struct digest d;
    char hex[2 * DIGEST_BYTES + 1];
    struct signature out;
    struct err e;
    digest_of(body, &d);
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
    const struct wire_sign w = {.method = SPAN("POST"),
                                .path = SPAN("/"),
                                .payload = span_of(hex, 2 * DIGEST_BYTES),
                                .tell_payload = true,
                                .field = {{SPAN("content-type"), SPAN("application/x-amz-json-1.0")},
                                          {SPAN("x-amz-target"), SPAN("DynamoDB_20120810.PutItem")}},
                                .nfields = 2};
    int rc = signer_sign(s, &credential, SPAN("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), &w,
                         &place, 1800000000, &out, &e);
    signature_clear(&out);
    return rc;
}

static int must(struct span body, struct span canonical, struct span to_sign)
{
    static const uint8_t key[DIGEST_BYTES] = {1};
    uint8_t out[DIGEST_BYTES];
    struct digest d;
    unsigned n = 0;
    digest_of(body, &d);
    digest_of(canonical, &d);
    return HMAC(EVP_sha256(), key, sizeof(key), to_sign.p, to_sign.n, out, &n) != NULL ? 0 : -1;
}

int main(int argc, char **argv)
{
    static uint8_t body[BODY], canonical[400], to_sign[STRING_TO_SIGN];
    unsigned long n = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    struct signer *s = signer_new();
    int rc = n == 0 || s == NULL || sign(s, span_of(body, sizeof(body))) != 0;
    double began = cpu_ns();
    for (unsigned long i = 0; i < n && rc == 0; i++)
        rc = sign(s, span_of(body, sizeof(body)));
    double between = cpu_ns();
    for (unsigned long i = 0; i < n && rc == 0; i++)
        rc = must(span_of(body, sizeof(body)), span_of(canonical, sizeof(canonical)),
                  span_of(to_sign, sizeof(to_sign)));
    double ended = cpu_ns();
    signer_free(&s);
    if (rc == 0)
        printf("%.0f %.0f\n", (between - began) / (double)n, (ended - between) / (double)n);
    return rc == 0 ? 0 : 1;
}
