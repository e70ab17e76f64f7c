/* The keeper's CA and its leafs, judged by OpenSSL as a client would. C28, C29. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <time.h>

#include "proxy/keeper/mint.h"

static int64_t now;
static uint8_t spki[CA_SPKI];

static int a_key(void **state)
{
    EVP_PKEY *k = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    uint8_t *to = spki;
    now = time(NULL);
    int n = i2d_PUBKEY(k, &to);
    EVP_PKEY_free(k);
    return n == CA_SPKI ? 0 : -1;
}

static X509 *parse(struct span der)
{
    const uint8_t *p = der.p;
    X509 *x = d2i_X509(NULL, &p, (long)der.n);
    assert_non_null(x);
    assert_ptr_equal(p, der.p + der.n);
    return x;
}

static bool verifies(X509 *leaf, X509 *ca, int64_t at)
{
    X509_STORE *s = X509_STORE_new();
    X509_STORE_CTX *c = X509_STORE_CTX_new();
    assert_int_equal(X509_STORE_add_cert(s, ca), 1);
    assert_int_equal(X509_STORE_CTX_init(c, s, leaf, NULL), 1);
    X509_STORE_CTX_set_purpose(c, X509_PURPOSE_SSL_SERVER);
    X509_STORE_CTX_set_flags(c, X509_V_FLAG_X509_STRICT);
    X509_STORE_CTX_set_time(c, 0, (time_t)at);
    bool ok = X509_verify_cert(c) == 1;
    X509_STORE_CTX_free(c);
    X509_STORE_free(s);
    return ok;
}

static X509 *mint_one(struct ca *ca, struct span host)
{
    struct dynbuf out;
    int64_t until;
    dynbuf_init(&out, CA_DER_MAX);
    assert_int_equal(ca_mint(ca, host, span_of(spki, sizeof(spki)), now, &out, &until), 0);
    X509 *x = parse(dynbuf_span(&out));
    dynbuf_free(&out);
    return x;
}

static void a_leaf_is_good_for_its_host_only(void **state)
{
    static const struct {
        const char *host, *ip;
    } cases[] = {
        {"api.example.com", NULL},        {"localhost", NULL},
        {"xn--bcher-kva.example", NULL},  {"192.0.2.7", "192.0.2.7"},
        {"[2001:db8::1]", "2001:db8::1"},
    };
    struct err e;
    struct ca *ca = ca_new(now, &e);
    X509 *root = parse(ca_der(ca));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        X509 *x = mint_one(ca, span_str(cases[i].host));
        assert_true(verifies(x, root, now));
        assert_true(verifies(x, root, now - 3000)); /* a client whose clock is slow */
        assert_false(verifies(x, root, now + 31 * 86400));
        if (cases[i].ip) {
            assert_int_equal(X509_check_ip_asc(x, cases[i].ip, 0), 1);
            assert_int_equal(X509_check_ip_asc(x, "192.0.2.8", 0), 0);
        } else {
            assert_int_equal(X509_check_host(x, cases[i].host, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL), 1);
            assert_int_equal(X509_check_host(x, "other.example", 0, 0, NULL), 0);
        }
        assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(x)), 0);
        assert_int_equal(X509_get_extended_key_usage(x), XKU_SSL_SERVER);
        assert_int_equal(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE);
        assert_int_equal(X509_check_ca(x), 0);
        assert_non_null(X509_get0_subject_key_id(x));
        assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(x), X509_get0_subject_key_id(root)), 0);
        EVP_PKEY *k = X509_get_pubkey(x);
        assert_non_null(k);
        EVP_PKEY_free(k);
        X509_free(x);
    }
    X509_free(root);
    ca_free(&ca);
}

static void c28_hostile_names_and_keys_are_refused(void **state)
{
    static const struct span hosts[] = {
        SPAN(""),
        SPAN("*.example.com"),
        SPAN("a*.example.com"),
        SPAN("exa\0mple.com"),
        SPAN("a\"b.example"),
        SPAN("a\nb.example"),
        SPAN("a.example/CN=b"),
        SPAN("a.example,DNS:b.example"),
        SPAN("A.example"),
        SPAN("a.example."),
        SPAN("a..example"),
        SPAN("-a.example"),
        SPAN("0x7f.1"),
        SPAN("127.1"),
        SPAN("[::1"),
        SPAN("::1"),
        SPAN("[::1]x"),
        SPAN("[fe80::1%eth0]"),
        SPAN("a b.example"),
        SPAN("b\xc3\xbc.example"),
        SPAN("a.example:443"),
        SPAN("1.2.3.4.5"),
        SPAN("[]"),
        SPAN("."),
    };
    struct err e;
    struct ca *ca = ca_new(now, &e);
    struct dynbuf out;
    int64_t until;
    char longest[300];
    dynbuf_init(&out, CA_DER_MAX);
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        if (ca_mint(ca, hosts[i], span_of(spki, sizeof(spki)), now, &out, &until) == 0)
            fail_msg("minted for case %zu", i);
    memset(longest, 'a', sizeof(longest));
    for (size_t i = 63; i < sizeof(longest); i += 64)
        longest[i] = '.';
    assert_int_equal(ca_mint(ca, span_of(longest, 253), span_of(spki, sizeof(spki)), now, &out, &until), 0);
    assert_int_equal(ca_mint(ca, span_of(longest, 254), span_of(spki, sizeof(spki)), now, &out, &until), -1);
    assert_int_equal(ca_mint(ca, span_of(longest, 63), span_of(spki, sizeof(spki)), now, &out, &until), 0);
    for (size_t i = 0; i < sizeof(spki); i++) { /* another curve, a compressed point, a point beside the curve */
        uint8_t bad[CA_SPKI];
        memcpy(bad, spki, sizeof(bad));
        bad[i] ^= 1;
        assert_int_equal(ca_mint(ca, SPAN("a.example"), span_of(bad, sizeof(bad)), now, &out, &until), -1);
    }
    assert_int_equal(ca_mint(ca, SPAN("a.example"), span_of(spki, CA_SPKI - 1), now, &out, &until), -1);
    dynbuf_free(&out);
    ca_free(&ca);
}

static void c28_serials_differ_and_are_positive(void **state)
{
    struct err e;
    struct ca *ca = ca_new(now, &e);
    X509 *a = mint_one(ca, SPAN("a.example")), *b = mint_one(ca, SPAN("a.example"));
    assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(a), X509_get0_serialNumber(b)), 0);
    BIGNUM *n = ASN1_INTEGER_to_BN(X509_get0_serialNumber(a), NULL);
    assert_false(BN_is_negative(n));
    assert_int_equal(BN_num_bytes(n), 16);
    BN_free(n);
    X509_free(a);
    X509_free(b);
    ca_free(&ca);
}

static void c28_the_cache_is_capped_and_the_rate_too(void **state)
{
    struct err e;
    struct span leaf, host;
    char name[32];
    uint64_t ms = 1000;
    struct ca *ca = ca_new(now, &e);
    struct mint *m = mint_new(ca);
    struct span key = span_of(spki, sizeof(spki));
    for (int i = 0; i < MINT_CACHE + 10; i++) {
        host = span_of(name, (size_t)snprintf(name, sizeof(name), "h%d.example", i));
        assert_int_equal(mint_leaf(m, host, key, now, ms += 1000, &leaf), MINT_OK);
    }
    assert_int_equal(mint_cached(m), MINT_CACHE);
    ms += 60000;
    int made = 0;
    for (int i = 0; i < 2 * MINT_BURST; i++) {
        host = span_of(name, (size_t)snprintf(name, sizeof(name), "f%d.example", i));
        made += mint_leaf(m, host, key, now, ms, &leaf) == MINT_OK;
    }
    assert_int_equal(made, MINT_BURST);
    /* What is cached is still given. */
    assert_int_equal(mint_leaf(m, SPAN("f0.example"), key, now, ms, &leaf), MINT_OK);
    assert_int_equal(mint_leaf(m, SPAN("*.example"), key, now, ms += 60000, &leaf), MINT_REFUSED);
    mint_free(&m);
    ca_free(&ca);
}

static void a_leaf_is_made_anew_before_it_ends(void **state)
{
    struct err e;
    struct span leaf;
    struct ca *ca = ca_new(now, &e);
    struct mint *m = mint_new(ca);
    struct span key = span_of(spki, sizeof(spki));
    assert_int_equal(mint_leaf(m, SPAN("a.example"), key, now, 0, &leaf), MINT_OK);
    X509 *first = parse(leaf);
    assert_int_equal(mint_leaf(m, SPAN("a.example"), key, now + 86400, 0, &leaf), MINT_OK);
    X509 *same = parse(leaf);
    assert_int_equal(X509_cmp(first, same), 0);
    int64_t late[] = {now + 29 * 86400 + 1, now - 86400 * 40};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mint_leaf(m, SPAN("a.example"), key, late[i], 0, &leaf), MINT_OK);
        X509 *other = parse(leaf);
        assert_int_not_equal(X509_cmp(first, other), 0);
        X509_free(other);
    }
    /* Never past the CA; after it, not at all. */
    int64_t end = now + (int64_t)(CA_YEARS * 365 + 2) * 86400;
    assert_int_equal(mint_leaf(m, SPAN("b.example"), key, end - 10, 0, &leaf), MINT_OK);
    X509 *last = parse(leaf), *root = parse(ca_der(ca));
    assert_int_equal(ASN1_TIME_compare(X509_get0_notAfter(last), X509_get0_notAfter(root)), 0);
    assert_int_equal(mint_leaf(m, SPAN("c.example"), key, end, 0, &leaf), MINT_REFUSED);
    X509 *all[] = {first, same, last, root};
    for (int i = 0; i < 4; i++)
        X509_free(all[i]);
    mint_free(&m);
    ca_free(&ca);
}

static void c29_a_ca_is_loaded_only_with_its_own_key(void **state)
{
    struct err e;
    struct ca *ca = ca_new(now, &e), *other = ca_new(now, &e);
    struct secret *key = ca_key_der(ca), *wrong = ca_key_der(other);
    struct dynbuf pem, again;
    dynbuf_init(&pem, CA_PEM_MAX);
    dynbuf_init(&again, CA_PEM_MAX);
    assert_int_equal(ca_pem(ca, &pem), 0);
    struct ca *back = ca_load(key, dynbuf_span(&pem), now, &e);
    assert_non_null(back);
    assert_true(span_eq(ca_der(back), ca_der(ca)));
    assert_int_equal(ca_pem(back, &again), 0);
    assert_true(span_eq(dynbuf_span(&pem), dynbuf_span(&again)));
    assert_null(ca_load(wrong, dynbuf_span(&pem), now, &e));
    assert_null(ca_load(NULL, dynbuf_span(&pem), now, &e));
    assert_null(ca_load(key, SPAN("-----BEGIN CERTIFICATE-----\n"), now, &e));
    assert_null(ca_load(key, dynbuf_span(&pem), now + (int64_t)CA_YEARS * 366 * 86400, &e));
    assert_null(ca_load(key, dynbuf_span(&pem), now - 2 * 86400, &e));
    dynbuf_free(&pem);
    dynbuf_free(&again);
    secret_free(&key);
    secret_free(&wrong);
    ca_free(&ca);
    ca_free(&other);
    ca_free(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_is_good_for_its_host_only),
        cmocka_unit_test(c28_hostile_names_and_keys_are_refused),
        cmocka_unit_test(c28_serials_differ_and_are_positive),
        cmocka_unit_test(c28_the_cache_is_capped_and_the_rate_too),
        cmocka_unit_test(a_leaf_is_made_anew_before_it_ends),
        cmocka_unit_test(c29_a_ca_is_loaded_only_with_its_own_key),
    };
    return cmocka_run_group_tests_name("mint", tests, a_key, NULL);
}
