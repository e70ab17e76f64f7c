/* Text on a screen: what stands there at once, and what does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "cli/verbs/watch/watch.h"

static struct lines l;

static void a_line_ends_where_the_screen_does(void **state)
{
    static const struct {
        const char *text;
        unsigned columns;
        size_t n, at[4];
    } rows[] = {
        {"", 10, 0, {0}},
        {"abc", 10, 1, {0, 3}},
        {"abc\n", 10, 1, {0, 4}},
        {"abc\n\nd", 10, 3, {0, 4, 5, 6}},
        {"abcdef", 3, 2, {0, 3, 6}},
        {"abc\ndef", 3, 2, {0, 4, 7}},
        {"a\xc3\xa4z", 3, 2, {0, 3, 4}},       /* it may be two cells wide */
        {"\xc3\xa4\xc3\xa4", 3, 2, {0, 2, 4}}, /* and is not cut in two */
        {"a\tb", 8, 3, {0, 1, 2, 3}},
        {"\xc3\xa4", 1, 1, {0, 2}}, /* wider than the screen: it stands alone */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lines_cut(span_of((const uint8_t *)rows[i].text, strlen(rows[i].text)), rows[i].columns, &l);
        assert_int_equal(l.n, rows[i].n);
        for (size_t j = 0; j <= l.n; j++)
            assert_int_equal(l.at[j], rows[i].at[j]);
    }
}

static void a_yes_wants_all_of_it_on_the_screen(void **state)
{
    char text[2 * LINES_MAX + 10];
    static const struct {
        size_t lines;
        unsigned rows, columns;
        bool fit;
    } rows[] = {{20, 20, 80, true}, {21, 20, 80, false}, {0, 20, 80, false},
                {5, 7, 80, false},  {5, 20, 39, false},  {5, 8, 40, true}};

    memset(text, '\n', sizeof(text));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lines_cut(span_of((const uint8_t *)text, rows[i].lines), rows[i].columns, &l);
        assert_true(lines_fit(&l, rows[i].rows, rows[i].columns) == rows[i].fit);
    }
    lines_cut(span_of((const uint8_t *)text, sizeof(text)), 80, &l);
    assert_int_equal(l.n, LINES_MAX);
    assert_true(l.cut && !lines_fit(&l, 1000000, 80));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_ends_where_the_screen_does),
        cmocka_unit_test(a_yes_wants_all_of_it_on_the_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
