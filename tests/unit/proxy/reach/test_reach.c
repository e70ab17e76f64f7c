/* What a sandbox may reach of what the policy lets it: names, addresses, and which of them wins. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "proxy/reach/reach.h"

static void which_names(void **state)
{
    static const struct {
        const char *text, *host;
        enum reach_said said;
    } row[] = {
        {"", "any.test", REACH_YES},
        {"+n api.test\n", "api.test", REACH_YES},
        {"+n api.test\n", "API.test.", REACH_YES},
        {"+n api.test\n", "x.api.test", REACH_NO},
        {"+n api.test\n", "xapi.test", REACH_NO},
        {"+n *.api.test\n", "x.y.api.test", REACH_YES},
        {"+n *.api.test\n", "api.test", REACH_NO},
        {"+n *.api.test\n", ".api.test", REACH_NO},
        {"+n *.api.test\n", "xapi.test", REACH_NO},
        {"-n api.test\n", "other.test", REACH_YES},
        {"-n api.test\n", "api.test.", REACH_NO},
        {"+n api.test\n-n api.test\n", "api.test", REACH_NO}, /* what is denied wins, wherever it stands */
        {"-n *.test\n+n api.test\n", "api.test", REACH_NO},
        {"-a 10.0.0.0/8\n", "api.test", REACH_BY_ADDRESS},
        {"-a 10.0.0.0/8\n-n api.test\n", "api.test", REACH_NO},
        {"+n api.test\n+a 10.0.0.0/8\n", "other.test", REACH_BY_ADDRESS},
        {"+n api.test", "api.test", REACH_NO}, /* none that is understood whole */
        {"+x api.test\n", "api.test", REACH_NO},
        {"=n api.test\n", "api.test", REACH_NO},
        {"+n api.test\nnonsense\n", "api.test", REACH_NO},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (reach_by_name(span_str(row[i].text), span_str(row[i].host)) != row[i].said)
            fail_msg("row %zu: %s", i, row[i].text);
}

/* The address that is asked about is named as its range is. */
static bool same(struct span range, const void *arg)
{
    return span_eq(range, span_str(arg));
}

static void which_addresses(void **state)
{
    static const struct {
        const char *text, *host, *address;
        bool may;
    } row[] = {
        {"-a A\n", "x.test", "B", true},
        {"-a A\n", "x.test", "A", false},
        {"+a A\n", "x.test", "A", true},
        {"+a A\n", "x.test", "B", false},
        {"+n x.test\n+a A\n", "x.test", "B", true},
        {"+n x.test\n-a A\n", "x.test", "A", false},
        {"+n x.test\n-a A\n", "y.test", "B", false},
        {"+a A\n-n x.test\n", "x.test", "A", false},
        {"+a A\n-a A\n", "x.test", "A", false},
        {"+a A\n?\n", "x.test", "A", false},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (reach_by_address(span_str(row[i].text), span_str(row[i].host), same, row[i].address) != row[i].may)
            fail_msg("row %zu: %s", i, row[i].text);
}

static void what_is_a_text_of_rules(void **state)
{
    static const char *const names[] = {"a", "a-b.c_d.test", "*.test", "1.2.3.x"};
    static const char *const none[] = {"",    "*",    "*.",    ".a",  "a.",  "a..b", "A",
                                       "a b", "a\nb", "*.*.a", "a.*", "a:1", "a/b"};
    char text[(REACH_RULES_MAX + 1) * 8] = "", *at = text;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_true(reach_name_ok(span_str(names[i])));
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(reach_name_ok(span_str(none[i])));
    assert_true(reach_ok(SPAN_NONE));
    for (size_t i = 0; i < REACH_RULES_MAX; i++, at += 5)
        memcpy(at, "-n a\n", 5);
    assert_true(reach_ok(span_of(text, (size_t)(at - text))));
    memcpy(at, "-n a\n", 5);
    assert_false(reach_ok(span_of(text, (size_t)(at - text) + 5)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_names),
        cmocka_unit_test(which_addresses),
        cmocka_unit_test(what_is_a_text_of_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
