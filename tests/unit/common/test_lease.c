/* common/lease: every form is what its provider's look like, and one search finds each. */
#include "common/lease/lease.h"

#include <stdlib.h>

#include "tests/kit.h"

static const char tag[] = "AB2CD7";

static size_t make(enum lease_format f, uint8_t seed, char *out)
{
    uint8_t stream[LEASE_STREAM];
    for (size_t i = 0; i < sizeof(stream); i++)
        stream[i] = (uint8_t)(seed * 31 + i * 7);
    return lease_text(f, tag, stream, out);
}

static void forms(void **state)
{
    static const struct {
        const char *name, *prefix;
        size_t n;
    } known[] = {{"github", "ghp_", 40},  {"github-app", "ghs_", 40}, {"npm", "npm_", 40},
                 {"aws", "AKIA", 20},     {"tencent", "AKID", 36},    {"anthropic", "sk-ant-api03-", 108},
                 {"gitlab", "glpat-", 26}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char text[LEASE_TEXT_MAX];
        enum lease_format f = lease_format_named(span_str(known[i].name));
        assert_int_not_equal(f, LEASE_NONE);
        assert_int_equal(make(f, 1, text), known[i].n);
        assert_true(span_starts(span_of(text, known[i].n), span_str(known[i].prefix)));
    }
    assert_int_equal(lease_format_named(SPAN("gitHub")), LEASE_NONE);
    assert_int_equal(lease_format_named(SPAN_NONE), LEASE_NONE);
    assert_null(lease_format_name(LEASE_NONE));
    assert_true(lease_is_pair(LEASE_AWS) && lease_is_pair(LEASE_TENCENT) && !lease_is_pair(LEASE_GITHUB));
}

/* CRC-32 of "123456789" is cbf43926 (the check value of every catalogue): in base 62, six digits. */
static void checksum_is_the_usual_crc(void **state)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    char text[LEASE_TEXT_MAX];
    size_t n = make(LEASE_GITHUB, 3, text);
    uint32_t want = 0, c = UINT32_MAX;
    for (size_t i = n - 6; i < n; i++)
        want = want * 62 + (uint32_t)(strchr(digits, text[i]) - digits);
    for (size_t i = 4; i < n - 6; i++) {
        c ^= (uint8_t)text[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    assert_int_equal(~c, want);
}

static void each_is_found_and_read_whole(void **state)
{
    for (int f = LEASE_NONE + 1; f < LEASE_FORMAT_COUNT; f++) {
        char text[LEASE_TEXT_MAX], around[LEASE_TEXT_MAX + 40], other[LEASE_TEXT_MAX];
        size_t n = make((enum lease_format)f, 5, text);
        assert_in_range(n, 16, LEASE_TEXT_MAX);
        assert_int_equal(make((enum lease_format)f, 6, other), n);
        assert_memory_not_equal(text, other, n);
        memset(around, '"', sizeof(around));
        memcpy(around + 17, text, n);
        struct span s = span_of(around, n + 34);
        size_t at = span_find(s, span_str(tag));
        assert_true(at < s.n);
        assert_true(span_eq(lease_around(s, at), span_of(text, n)));
        assert_int_equal(lease_around(span_first(s, 16 + n), at).n, 0); /* one character is missing */
        assert_int_equal(lease_around(span_from(s, 18), at - 18).n, 0);
    }
    assert_int_equal(lease_around(SPAN("AB2CD7"), 0).n, 0);
}

static void tags(void **state)
{
    char out[LEASE_TAG + 1];
    lease_tag((const uint8_t *)"\0\0\0\0\0", out);
    assert_string_equal(out, "AAAAAA");
    lease_tag((const uint8_t *)"\xff\xff\xff\xff\xff", out);
    assert_string_equal(out, "777777");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(checksum_is_the_usual_crc),
                                       cmocka_unit_test(each_is_found_and_read_whole), cmocka_unit_test(tags)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
