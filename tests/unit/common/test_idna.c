/* A-labels on the wire (C19): our own check against libidn2's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <idn2.h>

#include "common/http/uri.h"
#include "common/text/idna.h"

static const char *const good[] = {
    "xn--bcher-kva", "XN--BCHER-KVA", "xn--strae-oqa", "xn--fa-hia",     "xn--p1ai",     "xn--80ak6aa92e",
    "xn--fiqs8s",    "xn--wgbh1c",    "xn--j6w193g",   "xn--mgbaam7a8h", "xn--3e0b707e", "xn--1lq90ic7fzpc",
};
static const char *const bad[] = {
    "xn--",         /* nothing */
    "xn---",        /* only a delimiter */
    "xn--github-",  /* ASCII alone, as if encoded */
    "xn--a",        /* cut short: one digit gives U+0080 */
    "xn--bcher-kv", /* cut short */
    "xn--bcher-kva0",
    "xn--99999999999999", /* too large a number */
    "xn--a-ecp.ru",       /* not a label */
    "xn--ls8h",           /* a symbol */
    "xn--i-7iq",          /* a heart */
    "xn--ithub-dq33a",    /* a full-width g */
    "xn--a-0hc\x01",
    "xn--www-",
    "xn--ab-g1t",  /* U+200B in the middle */
    "xn--0ca24w-", /* ends in the delimiter: not what encoding gives */
    "xn--zca-",
};

static bool alabel_ok(const char *s)
{
    return idna_alabel_ok(span_str(s));
}

static void test_listed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!alabel_ok(good[i]))
            fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (alabel_ok(bad[i]))
            fail_msg("%s is taken", bad[i]);
    assert_false(alabel_ok("bucher"));
}

/* Next of a fixed sequence: the same labels in every run. */
static uint32_t next(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* Names of scripts that people use: what libidn2 makes of them passes here. */
static void test_made_by_library(void **state)
{
    static const uint32_t from[][2] = {{'a', 'z'},       {0xdf, 0xf6},     {0x103, 0x103},    {0x3b1, 0x3c1},
                                       {0x430, 0x44f},   {0x5d0, 0x5ea},   {0x905, 0x939},    {0x3041, 0x3096},
                                       {0x4e00, 0x9fa5}, {0xac00, 0xd7a3}, {0x20000, 0x2a6d6}};
    uint32_t seed = 1;
    size_t made = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint32_t u[16] = {0};
        size_t n = 1 + next(&seed, 12), script = next(&seed, sizeof(from) / sizeof(from[0]));
        for (size_t i = 0; i < n; i++) {
            size_t s = next(&seed, 4) ? script : next(&seed, sizeof(from) / sizeof(from[0]));
            u[i] = from[s][0] + next(&seed, from[s][1] - from[s][0] + 1);
        }
        char *a = NULL, *text = NULL;
        if (idn2_to_ascii_4z(u, &a, IDN2_NO_TR46 | IDN2_NFC_INPUT) == IDN2_OK && idna_is_alabel(span_str(a))) {
            made++;
            if (!alabel_ok(a))
                fail_msg("%s is one of libidn2's", a);
            /* One byte off is another name or none, never the same one in another spelling. */
            size_t at = 4 + next(&seed, (uint32_t)strlen(a) - 4);
            a[at] = (char)(a[at] == 'q' ? 'w' : 'q');
            if (alabel_ok(a) && idn2_to_unicode_8z8z(a, &text, IDN2_NO_TR46) == IDN2_OK) {
                uint8_t *back = NULL;
                if (idn2_lookup_u8((const uint8_t *)text, &back, IDN2_NO_TR46) == IDN2_OK)
                    assert_string_equal((char *)back, a);
                idn2_free(back);
            }
        }
        idn2_free(text);
        idn2_free(a);
    }
    assert_true(made > 5000);
}

/* Any bytes behind the prefix: what ours takes, libidn2 takes for the same, or refuses by its tables alone. */
static void test_any_bytes(void **state)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    uint32_t seed = 2;
    size_t taken = 0;
    (void)state;
    for (int round = 0; round < 200000; round++) {
        char a[72] = "xn--", *text = NULL;
        size_t n = 4 + 1 + next(&seed, round % 64 ? 9 : 62);
        for (size_t i = 4; i < n; i++)
            a[i] = set[next(&seed, sizeof(set) - 1)];
        bool ours = alabel_ok(a);
        taken += ours;
        int rc = idn2_to_unicode_8z8z(a, &text, IDN2_NO_TR46);
        uint8_t *back = NULL;
        if (ours && (rc == IDN2_PUNYCODE_BAD_INPUT || rc == IDN2_PUNYCODE_OVERFLOW ||
                     rc == IDN2_PUNYCODE_BIG_OUTPUT || rc == IDN2_ENCODING_ERROR))
            fail_msg("%s is no punycode for libidn2: %s", a, idn2_strerror(rc));
        if (rc == IDN2_OK && idn2_lookup_u8((const uint8_t *)text, &back, IDN2_NO_TR46) == IDN2_OK &&
            strcmp((char *)back, a) != 0 && ours)
            fail_msg("%s is %s for libidn2", a, back);
        idn2_free(back);
        idn2_free(text);
    }
    assert_true(taken > 100);
}

static void test_hosts(void **state)
{
    char to[HTTP_HOST_MAX + 1];
    size_t n;
    (void)state;
    assert_int_equal(http_canonical_host(SPAN("www.XN--bcher-kva.example"), to, &n), 0);
    assert_string_equal(to, "www.xn--bcher-kva.example");
    assert_int_equal(http_canonical_host(SPAN("xn--github-.com"), to, &n), -1);
    assert_int_equal(http_canonical_host(SPAN("api.xn--a.example"), to, &n), -1);
    assert_int_equal(http_canonical_host(SPAN("b\xc3\xbc"
                                              "cher.example"),
                                         to, &n),
                     -1);
    assert_int_equal(http_canonical_host(SPAN("r3---sn-a5m.example"), to, &n), 0);
}

static void test_spelled(void **state)
{
    static const char *const rows[][2] = {
        {"xn--pypal-4ve.test", "p\\u{430}ypal.test"},
        {"api.XN--PYPAL-4VE", "api.p\\u{430}ypal"},
        {"xn--.test", "xn--.test"},
        {"xn--pypal-.test.", "xn--pypal-.test."},
        {"plain.test", "plain.test"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dynbuf b;
        dynbuf_init(&b, 256);
        idna_spell(&b, span_str(rows[i][0]));
        if (!span_eq(dynbuf_span(&b), span_str(rows[i][1])))
            fail_msg("%s: %.*s", rows[i][0], SPAN_FMT(dynbuf_span(&b)));
        dynbuf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_listed), cmocka_unit_test(test_made_by_library),
                                       cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_hosts),
                                       cmocka_unit_test(test_spelled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
