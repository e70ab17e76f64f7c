/* proxy/keeper/signer: what a request is signed with, and that each part of the signature is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "common/sign/sign.h"
#include "proxy/keeper/signer/hmac.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const struct credential s3 = {
    .name = SPAN("keys"), .sign = SIGN_AWS4, .region = SPAN("us-east-1"), .service = SPAN("s3")};
static const struct signer_place place = {SPAN("https"), SPAN("examplebucket.s3.amazonaws.com"), 443};
static struct err e;

static struct wire_sign get_object(void)
{
    struct wire_sign w = {
        .method = SPAN("GET"), .path = SPAN("/test.txt"), .query = SPAN(""), .payload = SPAN(EMPTY), .nfields = 2};
    w.field[0] = (struct http_field){SPAN("range"), SPAN("bytes=0-9")};
    w.field[1] = (struct http_field){SPAN("x-amz-content-sha256"), SPAN(EMPTY)};
    return w;
}

static struct span field(const struct signature *s, const char *name)
{
    for (size_t i = 0; i < s->nfields; i++)
        if (span_eq(s->field[i].name, span_str(name)))
            return secret_bytes(s->field[i].value);
    return SPAN_NONE;
}

/* "GET Object" of the Amazon S3 API reference, as its documentation has it; twice, the second time with a kept key.
 */
static void the_example_of_s3(void **state)
{
    struct signer *signer = signer_new();
    struct signature s;
    struct wire_sign w = get_object();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(signer_sign(signer, &s3,
                                     SPAN("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), &w,
                                     &place, 1369353600, &s, &e),
                         0);
        assert_true(span_eq(field(&s, "X-Amz-Date"), SPAN("20130524T000000Z")));
        assert_true(
            span_eq(field(&s, "Authorization"),
                    SPAN("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                         "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
                         "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")));
        assert_int_equal(s.nfields, 2);
        signature_clear(&s);
    }
    signer_free(&signer);
}

static struct span signed_with(struct signer *signer, const struct credential *c, struct span value, int64_t now,
                               const struct signer_place *at, struct signature *s)
{
    struct wire_sign w = get_object();
    assert_int_equal(signer_sign(signer, c, value, &w, at, now, s, &e), 0);
    return field(s, "Authorization");
}

/* Keys are kept by all that makes them: another secret, day, region or service is another key, and many of them at
 * once are still right. */
static void kept_keys_are_not_mistaken(void **state)
{
    struct signer *signer = signer_new(), *fresh;
    struct credential c[SIGNER_KEYS + 3];
    char service[SIGNER_KEYS + 3][8];
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < SIGNER_KEYS + 3; i++) {
            struct signature a, b;
            snprintf(service[i], sizeof(service[i]), "s%zu", i);
            c[i] = s3;
            c[i].service = span_str(service[i]);
            fresh = signer_new();
            assert_true(span_eq(signed_with(signer, &c[i], SPAN("AKIA:secret-01"), 1369353600, &place, &a),
                                signed_with(fresh, &c[i], SPAN("AKIA:secret-01"), 1369353600, &place, &b)));
            signature_clear(&b);
            assert_false(span_eq(field(&a, "Authorization"),
                                 signed_with(signer, &c[i], SPAN("AKIA:secret-02"), 1369353600, &place, &b)));
            signature_clear(&b);
            assert_false(span_eq(field(&a, "Authorization"),
                                 signed_with(signer, &c[i], SPAN("AKIA:secret-01"), 1369353600 + 86400, &place, &b)));
            signature_clear(&a);
            signature_clear(&b);
            signer_free(&fresh);
        }
    signer_free(&signer);
}

static void a_token_and_a_port_are_signed(void **state)
{
    struct signer *signer = signer_new();
    struct signature s, other;
    struct signer_place elsewhere = {SPAN("https"), SPAN("examplebucket.s3.amazonaws.com"), 8443};
    struct span a = signed_with(signer, &s3, SPAN("AKIA:secret-01:token-0123"), 1369353600, &place, &s);
    assert_true(span_eq(field(&s, "X-Amz-Security-Token"), SPAN("token-0123")));
    assert_true(span_find(a, SPAN(";x-amz-date;x-amz-security-token,")) < a.n);
    assert_false(
        span_eq(a, signed_with(signer, &s3, SPAN("AKIA:secret-01:token-0123"), 1369353600, &elsewhere, &other)));
    signature_clear(&s);
    signature_clear(&other);
    struct credential tc3 = {.name = SPAN("keys"), .sign = SIGN_TC3, .service = SPAN("tcb")};
    a = signed_with(signer, &tc3, SPAN("AKID:secret-01:token-0123"), 1551113065, &place, &s);
    assert_true(span_eq(field(&s, "X-TC-Timestamp"), SPAN("1551113065")));
    assert_true(span_eq(field(&s, "X-TC-Token"), SPAN("token-0123")));
    assert_true(
        span_starts(a, SPAN("TC3-HMAC-SHA256 Credential=AKID/2019-02-25/tcb/tc3_request, SignedHeaders=host;")));
    signature_clear(&s);
    signer_free(&signer);
}

static void the_payload_is_told_where_it_is_asked(void **state)
{
    struct signer *signer = signer_new();
    struct wire_sign w = get_object();
    struct signature s;
    w.nfields = 1;
    w.tell_payload = true;
    assert_int_equal(signer_sign(signer, &s3, SPAN("AKIA:secret-01"), &w, &place, 1, &s, &e), 0);
    assert_true(span_eq(field(&s, "X-Amz-Content-Sha256"), SPAN(EMPTY)));
    signature_clear(&s);
    signer_free(&signer);
}

/* Each signature follows from the one before, and stands where the judge said. */
static void chunks_follow_each_other(void **state)
{
    uint8_t chunks[3 * WIRE_CHUNK] = {0};
    struct signer *signer = signer_new();
    struct wire_sign w = get_object();
    struct signature s;
    struct sign_scope scope;
    uint8_t key[SIGN_KEY];
    char next[SIGN_TEXT + 1], last[SIGN_TEXT + 1] = {0};
    for (size_t i = 0; i < 3; i++) {
        chunks[i * WIRE_CHUNK + 7] = (uint8_t)(10 + i);
        memset(chunks + i * WIRE_CHUNK + 8, (int)i + 1, DIGEST_BYTES);
    }
    w.chunks = span_of(chunks, sizeof(chunks));
    w.trailer = true;
    assert_int_equal(signer_sign(signer, &s3, SPAN("AKIA:secret-01"), &w, &place, 1369353600, &s, &e), 0);
    struct span authorization = field(&s, "Authorization");
    memcpy(last, authorization.p + authorization.n - SIGN_TEXT, SIGN_TEXT);
    assert_int_equal(sign_scope_at(SIGN_AWS4, 1369353600, s3.region, s3.service, &scope), 0);
    assert_int_equal(sign_key(&scope, SPAN("secret-01"), key), 0);
    assert_int_equal(s.chunks.n, 3 * WIRE_CHUNK_SIGNED);
    for (size_t i = 0; i < 3; i++) {
        struct digest d;
        memset(d.b, (int)i + 1, DIGEST_BYTES);
        assert_int_equal((i == 2 ? sign_trailer : sign_chunk)(&scope, key, last, &d, next), 0);
        assert_int_equal(s.chunks.p[i * WIRE_CHUNK_SIGNED + 7], 10 + i);
        assert_memory_equal(s.chunks.p + i * WIRE_CHUNK_SIGNED + 8, next, SIGN_TEXT);
        memcpy(last, next, sizeof(last));
    }
    signature_clear(&s);
    signer_free(&signer);
}

static void values_that_sign_nothing(void **state)
{
    static const char *const bad[] = {"",
                                      "AKIA",
                                      "AKIA:",
                                      "AKIA:short",
                                      ":secret-01",
                                      "AK IA:secret-01",
                                      "AK/IA:secret-01",
                                      "AKIA:secret-01:",
                                      "AKIA:secret-01:short"};
    struct signer_pair pair;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(signer_parts(&s3, span_str(bad[i]), &pair, &e), -1);
        assert_true(bad[i][0] == '\0' || strstr(e.text, "secret-01") == NULL);
    }
    assert_int_equal(signer_parts(&s3, SPAN("AKIA:secret-01"), &pair, &e), 0);
    assert_int_equal(pair.token.n, 0);
    assert_int_equal(signer_parts(&s3, SPAN("AKIA:secret-01:token=:01"), &pair, &e), 0);
    assert_true(span_eq(pair.token, SPAN("token=:01")));
}

/* ---- with a template of the policy's ---- */

static const struct {
    struct span name, format;
} fields[] = {{SPAN("Authorization"), SPAN("HMAC {id}:{signature}")},
              {SPAN("Date"), SPAN("{date}")},
              {SPAN("X-Pass"), SPAN("{token}")}};
static size_t nfields = 3;

bool policy_signed_field(const struct policy *p, const struct credential *c, size_t i, struct span *name,
                         struct span *format)
{
    if (i >= nfields)
        return false;
    *name = fields[i % 3].name;
    *format = fields[i % 3].format;
    return true;
}

static struct credential with_template(const char *sign, enum sign_secret secret)
{
    return (struct credential){.name = SPAN("hook"),
                               .sign = SIGN_HMAC,
                               .hmac = {.sign = span_str(sign), .encoding = SIGN_HEX, .secret = secret}};
}

static int sign_post(const struct credential *c, struct span value, struct signature *s)
{
    struct wire_sign w = {.method = SPAN("POST"),
                          .path = SPAN("/v1/x"),
                          .query = SPAN("?b=2&a=1"),
                          .payload = SPAN("{\"a\":1}"),
                          .nfields = 1};
    w.field[0] = (struct http_field){SPAN("header.content-type"), SPAN("text/plain")};
    return hmac_sign(NULL, c, value, &w, &place, 1795424523456, s, &e);
}

static void a_template_is_signed(void **state)
{
    struct credential c =
        with_template("{method}\n{target}\n{date}\n{header.content-type}\n{body}", SIGN_ID_KEY_TOKEN);
    struct signature s;
    assert_int_equal(sign_post(&c, SPAN("me:key-canary-1:pass-canary"), &s), 0);
    assert_int_equal(s.nfields, 3);
    assert_true(span_eq(field(&s, "Authorization"),
                        SPAN("HMAC me:bb447b3e5f48f49a5022282d238740a28057022ab7a005c6a6a5b4eeb0f65461")));
    assert_true(span_eq(field(&s, "Date"), SPAN("Mon, 23 Nov 2026 09:02:03 GMT")));
    assert_true(span_eq(field(&s, "X-Pass"), SPAN("pass-canary")));
    signature_clear(&s);
    c.hmac.hash = SIGN_SHA512;
    c.hmac.encoding = SIGN_BASE64;
    c.hmac.key = SIGN_BASE64;
    assert_int_equal(sign_post(&c, SPAN("me:a2V5LWNhbmFyeS0x:pass-canary"), &s), 0);
    assert_true(span_eq(
        field(&s, "Authorization"),
        SPAN("HMAC me:Jk9wA1xP/8FQCiqr56zdra/viNucWzKk8fbSy+v7DI14nptRGlelCgJ+TvTTVg9mw1h3TivW1RkBB46JnhXn2Q==")));
    signature_clear(&s);
}

/* Half a signature is none: what the judge did not give, a secret without the part that is named, a fifth field. */
static void what_is_missing_is_not_signed(void **state)
{
    static const char *const bad[] = {"{header.x-other}", "{body_sha256}", "{sorted_query}", "{what}"};
    struct signature s;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct credential c = with_template(bad[i], SIGN_ID_KEY_TOKEN);
        assert_int_equal(sign_post(&c, SPAN("me:key-canary-1:pass-canary"), &s), -1);
        signature_clear(&s);
    }
    struct credential c = with_template("{method}", SIGN_ID_KEY_TOKEN);
    assert_int_equal(sign_post(&c, SPAN("me:key-canary-1"), &s), -1);
    assert_non_null(strstr(e.text, "ID:KEY:TOKEN"));
    signature_clear(&s);
    for (nfields = 0; nfields < 6; nfields++) {
        assert_int_equal(sign_post(&c, SPAN("me:key-canary-1:pass-canary"), &s),
                         nfields == 0 || nfields > SIGNER_FIELDS ? -1 : 0);
        signature_clear(&s);
    }
    nfields = 3;
}

static void keys_of_templates(void **state)
{
    static const struct {
        enum sign_secret secret;
        enum sign_coding key;
        const char *value;
        int rc;
    } row[] = {{SIGN_KEY_ALONE, SIGN_AS_TEXT, "a:key:of:its:own", 0},
               {SIGN_KEY_ALONE, SIGN_AS_TEXT, "short", -1},
               {SIGN_KEY_ALONE, SIGN_BASE64, "a2V5LWNhbmFyeS0x", 0},
               {SIGN_KEY_ALONE, SIGN_BASE64, "key-canary-1", -1},
               {SIGN_KEY_ALONE, SIGN_BASE64, "c2hvcnQh", -1}, /* 6 bytes */
               {SIGN_KEY_ALONE, SIGN_HEX, "00112233445566aF", 0},
               {SIGN_KEY_ALONE, SIGN_HEX, "00112233445566a", -1},
               {SIGN_ID_KEY, SIGN_AS_TEXT, "key-canary-1", -1},
               {SIGN_ID_KEY, SIGN_AS_TEXT, "me:key-canary-1", 0},
               {SIGN_ID_KEY, SIGN_BASE64, "me:a2V5LWNhbmFyeS0x", 0},
               {SIGN_ID_KEY, SIGN_BASE64, "me:key-canary-1", -1},
               {SIGN_ID_KEY_TOKEN, SIGN_AS_TEXT, "me:key-canary-1", -1},
               {SIGN_ID_KEY_TOKEN, SIGN_AS_TEXT, "me:key-canary-1:pass-canary", 0}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct credential c = with_template("{method}", row[i].secret);
        struct signer_pair pair;
        c.hmac.key = row[i].key;
        assert_int_equal(signer_parts(&c, span_str(row[i].value), &pair, &e), row[i].rc);
        assert_true(row[i].rc == 0 || strstr(e.text, "canary") == NULL);
        struct secret *raw = row[i].rc == 0 ? signer_key_bytes(&c, pair.key) : NULL;
        assert_true((raw != NULL) == (row[i].rc == 0 && row[i].key != SIGN_AS_TEXT));
        if (row[i].key == SIGN_BASE64 && raw != NULL)
            assert_true(span_eq(secret_bytes(raw), SPAN("key-canary-1")));
        secret_free(&raw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_template_is_signed),
                                       cmocka_unit_test(what_is_missing_is_not_signed),
                                       cmocka_unit_test(keys_of_templates),
                                       cmocka_unit_test(the_example_of_s3),
                                       cmocka_unit_test(kept_keys_are_not_mistaken),
                                       cmocka_unit_test(a_token_and_a_port_are_signed),
                                       cmocka_unit_test(the_payload_is_told_where_it_is_asked),
                                       cmocka_unit_test(chunks_follow_each_other),
                                       cmocka_unit_test(values_that_sign_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
