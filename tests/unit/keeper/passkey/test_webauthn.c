/* What a passkey says, read strictly: of CBOR the canonical part, of flags who is there, of keys three kinds. That
 * real ones are taken is seen in tests/e2e/approvals/test_passkeys.py. Covers E26. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "proxy/keeper/passkey/cbor.h"
#include "proxy/keeper/passkey/webauthn.h"

static const struct webauthn_site site = {SPAN("https://approve.example"), SPAN("approve.example")};
static EVP_PKEY *key;
static uint8_t spki[256];
static size_t nspki;

static int setup(void **state)
{
    uint8_t *at = spki;
    key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    nspki = key ? (size_t)i2d_PUBKEY(key, &at) : 0;
    return nspki == 91 ? 0 : -1;
}

static int teardown(void **state)
{
    EVP_PKEY_free(key);
    return 0;
}

static void only_the_canonical_part_of_cbor_is_read(void **state)
{
    static const struct {
        struct span text;
        bool good;
    } rows[] = {
        {SPAN("\x00"), true},
        {SPAN("\x17"), true},
        {SPAN("\x18\x18"), true},
        {SPAN("\x18\x17"), false},     /* not the shortest form */
        {SPAN("\x19\x00\xff"), false}, /* nor this */
        {SPAN("\x1b\x00\x00\x00\x00\xff\xff\xff\xff"), false},
        {SPAN("\x43"
              "abc"),
         true},
        {SPAN("\x44"
              "abc"),
         false}, /* cut short */
        {SPAN("\x5f\x41"
              "a\xff"),
         false}, /* of no definite length */
        {SPAN("\xa1\x61"
              "a\x01"),
         true},
        {SPAN("\xa1\x61"
              "a"),
         false},
        {SPAN("\x9a\xff\xff\xff\xff"), false}, /* more than there can be */
        {SPAN("\x81\x81\x81\x81\x00"), true},
        {SPAN("\x81\x81\x81\x81\x81\x00"), false}, /* too deep */
        {SPAN("\xf5"), true},
        {SPAN("\xf9\x3c\x00"), false}, /* a float */
        {SPAN("\xc0\x00"), false},     /* a tag */
        {SPAN(""), false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span rest = rows[i].text;
        bool good = cbor_skip(&rest) == 0 && rest.n == 0;
        if (good != rows[i].good)
            fail_msg("row %zu", i);
    }
}

struct said {
    const char *type, *origin, *more;
    uint8_t flags, challenge;
    const char *rp;
};

/* The signature of one whose parts may be wrong. */
static int check(const struct said *s, bool broken)
{
    static const struct digest asked = {{7}};
    const char *text = s->challenge == 7 ? "BwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                                         : "CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    char json[512];
    uint8_t data[37] = {0}, over[37 + DIGEST_BYTES], signature[128];
    struct digest rp, hash;
    size_t nsignature = sizeof(signature);
    uint32_t count = 0;
    struct err e = {{0}};
    snprintf(json, sizeof(json), "{\"type\":\"%s\",\"challenge\":\"%s\",\"origin\":\"%s\"%s}", s->type, text,
             s->origin, s->more);
    digest_of(span_str(s->rp), &rp);
    memcpy(data, rp.b, DIGEST_BYTES);
    data[32] = s->flags;
    data[36] = 9;
    digest_of(span_str(json), &hash);
    memcpy(over, data, 37);
    memcpy(over + 37, hash.b, DIGEST_BYTES);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(c, signature, &nsignature, over, sizeof(over)), 1);
    EVP_MD_CTX_free(c);
    signature[nsignature - 1] ^= broken;
    const struct webauthn_signed w = {span_str(json), span_of(data, 37), span_of(signature, nsignature)};
    int bad = webauthn_signed_by(&site, &asked, &w, span_of(spki, nspki), &count, &e);
    assert_true(bad != 0 || count == 9);
    return bad;
}

static void what_was_signed_is_about_this_and_nothing_else(void **state)
{
    static const struct said good = {"webauthn.get", "https://approve.example", "", 0x05, 7, "approve.example"};
    assert_int_equal(check(&good, false), 0);
    assert_int_equal(check(&good, true), -1);
    struct said s = good;
#define WRONG(member, value)                                                                                         \
    s = good;                                                                                                        \
    s.member = value;                                                                                                \
    assert_int_equal(check(&s, false), -1)
    WRONG(type, "webauthn.create");
    WRONG(type, "payment.get");
    WRONG(origin, "https://approve.example:8443");
    WRONG(origin, "http://approve.example");
    WRONG(origin, "https://approve.example.evil");
    WRONG(more, ",\"crossOrigin\":true");
    WRONG(more, ",\"topOrigin\":\"https://evil.example\"");
    WRONG(more, ",\"type\":\"webauthn.get\"");
    WRONG(flags, 0x01); /* nobody was asked who is there */
    WRONG(flags, 0x04); /* nobody touched it */
    WRONG(flags, 0x15); /* backed up, and cannot be */
    WRONG(flags, 0x45); /* a new key in it */
    WRONG(flags, 0x85); /* extensions, and none are there */
    WRONG(challenge, 8);
    WRONG(rp, "evil.example");
    s = good;
    s.more = ",\"crossOrigin\":false,\"other\":1";
    assert_int_equal(check(&s, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_canonical_part_of_cbor_is_read),
        cmocka_unit_test_setup_teardown(what_was_signed_is_about_this_and_nothing_else, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
