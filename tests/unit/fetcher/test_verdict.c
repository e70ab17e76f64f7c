/* What a gate's program printed: a yes only where it is beyond doubt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "common/arena.h"
#include "proxy/fetcher/job/gates/verdict.h"

static enum gate_said read_it(struct span printed, char reason[512])
{
    struct arena a;
    struct err e = {{0}};
    struct span words;
    arena_init(&a, 1024 * 1024);
    enum gate_said said = verdict_read(printed, &a, &words, &e);
    assert_true((said == GATE_FAILED) == (e.text[0] != '\0'));
    assert_true(words.n < 512 || said == GATE_FAILED);
    if (said != GATE_FAILED) {
        if (words.n)
            memcpy(reason, words.p, words.n);
        reason[words.n] = '\0';
    }
    arena_free(&a);
    return said;
}

static void each_decision_with_its_words(void **state)
{
    char reason[512];
    assert_int_equal(read_it(SPAN("{\"decision\":\"allow\"}"), reason), GATE_ALLOW);
    assert_string_equal(reason, "");
    assert_int_equal(read_it(SPAN("{\"decision\":\"deny\",\"reason\":\"a virus\"}\n"), reason), GATE_DENY);
    assert_string_equal(reason, "a virus");
    assert_int_equal(read_it(SPAN("{\"reason\":\"\",\"decision\":\"abstain\"}"), reason), GATE_ABSTAIN);
}

static void anything_else_is_no_yes(void **state)
{
    static const struct span bad[] = {SPAN(""),
                                      SPAN("allow"),
                                      SPAN("\"allow\""),
                                      SPAN("[{\"decision\":\"allow\"}]"),
                                      SPAN("{}"),
                                      SPAN("{\"reason\":\"fine\"}"),
                                      SPAN("{\"decision\":\"Allow\"}"),
                                      SPAN("{\"decision\":\"allow \"}"),
                                      SPAN("{\"decision\":true}"),
                                      SPAN("{\"decision\":null}"),
                                      SPAN("{\"decision\":\"deny\",\"decision\":\"allow\"}"),
                                      SPAN("{\"decision\":\"allow\"} {\"decision\":\"deny\"}"),
                                      SPAN("{\"decision\":\"allow\",\"more\":\"x\"}"),
                                      SPAN("{\"decision\":\"allow\",\"reason\":1}"),
                                      SPAN("{\"decision\":\"allow\",\"reason\":\"two\\nlines\"}"),
                                      SPAN("{\"decision\":\"allow\",\"reason\":\"\\u0085\"}"),
                                      SPAN("{\"decision\":\"allow\",\"reason\":\"\\u001b[2J\"}"),
                                      SPAN("{\"decision\":\"allow\"")};
    char reason[512];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(read_it(bad[i], reason), GATE_FAILED);
}

static void long_ones_are_no_yes(void **state)
{
    static char text[VERDICT_OUT_MAX + 64];
    char reason[512];
    for (size_t i = 0; i < 2; i++) {
        static const char head[] = "{\"decision\":\"allow\",\"reason\":\"", end[] = "\"}";
        size_t n = sizeof(head) - 1, words = VERDICT_WORDS_MAX + i;
        memcpy(text, head, n);
        memset(text + n, 'x', words);
        memcpy(text + n + words, end, 2);
        assert_int_equal(read_it(span_of(text, n + words + 2), reason), i == 0 ? GATE_ALLOW : GATE_FAILED);
    }
    static const char yes[] = "{\"decision\":\"allow\"}";
    memset(text, ' ', sizeof(text));
    memcpy(text, yes, sizeof(yes) - 1);
    assert_int_equal(read_it(span_of(text, VERDICT_OUT_MAX), reason), GATE_ALLOW);
    assert_int_equal(read_it(span_of(text, VERDICT_OUT_MAX + 1), reason), GATE_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_decision_with_its_words),
                                       cmocka_unit_test(anything_else_is_no_yes),
                                       cmocka_unit_test(long_ones_are_no_yes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
