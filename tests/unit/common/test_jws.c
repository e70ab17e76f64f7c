/* common/crypto/jws: signatures that others verify, by the key that is published; and which keys are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "common/crypto/jws.h"
#include "common/id.h"

static struct err e;

/* PEM of a key; with a passphrase, if one is given. */
static size_t pem_of(EVP_PKEY *key, const char *passphrase, char *out, size_t room)
{
    char *text;
    BIO *b = BIO_new(BIO_s_mem());
    assert_non_null(key);
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(b, key, passphrase ? EVP_aes_128_cbc() : NULL, passphrase,
                                                   passphrase ? (int)strlen(passphrase) : 0, NULL, NULL),
                     1);
    size_t n = (size_t)BIO_get_mem_data(b, &text);
    assert_true(n < room);
    memcpy(out, text, n);
    BIO_free(b);
    return n;
}

static size_t unurl(struct span s, uint8_t out[1024])
{
    char text[1400];
    size_t n = s.n, got = 0;
    assert_true(n + 4 < sizeof(text));
    for (size_t i = 0; i < n; i++)
        text[i] = s.p[i] == '-' ? '+' : s.p[i] == '_' ? '/' : (char)s.p[i];
    while (n % 4)
        text[n++] = '=';
    assert_int_equal(base64_decode(span_of(text, n), out, &got), 0);
    return got;
}

/* r and s as two integers of DER. */
static size_t der_of(const uint8_t raw[64], uint8_t *out)
{
    uint8_t *p = out;
    ECDSA_SIG *s = ECDSA_SIG_new();
    assert_int_equal(ECDSA_SIG_set0(s, BN_bin2bn(raw, 32, NULL), BN_bin2bn(raw + 32, 32, NULL)), 1);
    int n = i2d_ECDSA_SIG(s, &p);
    ECDSA_SIG_free(s);
    assert_true(n > 0);
    return (size_t)n;
}

static void signs(EVP_PKEY *key, const char *alg)
{
    char pem[4096], want[128];
    uint8_t raw[1024], der[128];
    struct span head, claims, signature, rest;
    struct dynbuf out;
    struct jws_key *k = jws_key_new(span_of(pem, pem_of(key, NULL, pem, sizeof(pem))), &e);
    assert_non_null(k);
    for (int i = 0; i < 20; i++) { /* numbers that begin with zeros, too */
        dynbuf_init(&out, JWS_MAX);
        assert_int_equal(jws_sign(k, span_str(jws_kid(k)), SPAN("{\"iss\":\"me\"}"), &out), 0);
        assert_true(span_cut(dynbuf_span(&out), '.', &head, &rest) && span_cut(rest, '.', &claims, &signature));
        size_t n = unurl(head, raw);
        snprintf(want, sizeof(want), "{\"alg\":\"%s\",\"typ\":\"JWT\",\"kid\":\"%s\"}", alg, jws_kid(k));
        assert_true(span_eq(span_of(raw, n), span_str(want)));
        assert_true(span_eq(span_of(raw, unurl(claims, raw)), SPAN("{\"iss\":\"me\"}")));
        n = unurl(signature, raw);
        struct span given = span_of(raw, n);
        if (alg[0] == 'E') {
            assert_int_equal(n, 64);
            given = span_of(der, der_of(raw, der));
        }
        EVP_MD_CTX *c = EVP_MD_CTX_new();
        assert_int_equal(EVP_DigestVerifyInit(c, NULL, EVP_sha256(), NULL, key), 1);
        assert_int_equal(EVP_DigestVerify(c, given.p, given.n, out.p, head.n + 1 + claims.n), 1);
        EVP_MD_CTX_free(c);
        dynbuf_free(&out);
    }
    jws_key_free(&k);
    EVP_PKEY_free(key);
}

static void signatures_are_the_keys(void **state)
{
    signs(EVP_RSA_gen(2048), "RS256");
    signs(EVP_EC_gen("P-256"), "ES256");
}

static void a_public_key_holds_nothing_else(void **state)
{
    char pem[4096];
    EVP_PKEY *key = EVP_RSA_gen(2048);
    struct dynbuf out;
    struct jws_key *k = jws_key_new(span_of(pem, pem_of(key, NULL, pem, sizeof(pem))), &e);
    dynbuf_init(&out, JWS_MAX);
    assert_non_null(k);
    assert_int_equal(jws_public(k, &out), 0);
    assert_true(span_starts(dynbuf_span(&out), SPAN("{\"alg\":\"RS256\",\"use\":\"sig\",\"kid\":\"")));
    assert_true(span_find(dynbuf_span(&out), SPAN("\"e\":\"AQAB\",\"kty\":\"RSA\",\"n\":\"")) < out.n);
    assert_true(out.n < 512); /* one number of 256 bytes, and no second */
    dynbuf_free(&out);
    jws_key_free(&k);
    EVP_PKEY_free(key);
}

static void is_none(EVP_PKEY *key, const char *passphrase)
{
    char pem[8192];
    assert_null(jws_key_new(span_of(pem, pem_of(key, passphrase, pem, sizeof(pem))), &e));
    EVP_PKEY_free(key);
}

static void what_signs_neither_is_refused(void **state)
{
    is_none(EVP_RSA_gen(1024), NULL);
    is_none(EVP_EC_gen("P-384"), NULL);
    is_none(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), NULL);
    is_none(EVP_EC_gen("P-256"), "asks nobody");
    static const struct span bad[] = {SPAN(""), SPAN("canary"),
                                      SPAN("-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----\n"),
                                      SPAN("-----BEGIN PUBLIC KEY-----\nY2FuYXJ5\n-----END PUBLIC KEY-----\n")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(jws_key_new(bad[i], &e));
        assert_null(strstr(e.text, "canary"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_the_keys),
        cmocka_unit_test(a_public_key_holds_nothing_else),
        cmocka_unit_test(what_signs_neither_is_refused),
    };
    return cmocka_run_group_tests_name("jws", tests, NULL, NULL);
}
