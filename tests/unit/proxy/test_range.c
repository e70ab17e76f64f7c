/* One range of a searched answer: D7, D46. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

#include "proxy/carrier/range.h"
#include "tests/kit.h"

static struct wire_request with(const char *range, const char *if_range)
{
    struct wire_request r = {.method = SPAN("GET")};
    if (range != NULL)
        r.field[r.nfields++] = (struct http_field){SPAN("RANGE"), span_str(range)};
    if (if_range != NULL)
        r.field[r.nfields++] = (struct http_field){SPAN("If-Range"), span_str(if_range)};
    return r;
}

static void what_is_asked(void **state)
{
    static const struct {
        const char *range, *if_range;
        enum range_asked is;
        const char *wide; /* by 100 */
    } rows[] = {
        {NULL, NULL, RANGE_NONE, NULL},
        {NULL, "W/\"a\"", RANGE_NONE, NULL},
        {"bytes=0-0", NULL, RANGE_ONE, "bytes=0-100"},
        {"Bytes=100-199", "\"a\"", RANGE_ONE, "bytes=0-299"},
        {"bytes=101-101", NULL, RANGE_ONE, "bytes=1-201"},
        {"bytes=500-", "Sun, 01 Jan 2023 00:00:00 GMT", RANGE_ONE, "bytes=400-"},
        {"bytes=0-", NULL, RANGE_ONE, "bytes=0-"},
        {"bytes=-500", NULL, RANGE_ONE, "bytes=-600"},
        {"bytes=-0", NULL, RANGE_ONE, "bytes=-100"},
        {"bytes=0-9223372036854775807", NULL, RANGE_ONE, "bytes=0-9223372036854775907"},
        {"bytes=0-9223372036854775808", NULL, RANGE_BAD, NULL},
        {"bytes=0-0,2-2", NULL, RANGE_BAD, NULL},
        {"bytes=-1,0-", NULL, RANGE_BAD, NULL},
        {"bytes=0-0,", NULL, RANGE_BAD, NULL},
        {"bytes= 0-0", NULL, RANGE_BAD, NULL},
        {"bytes=2-1", NULL, RANGE_BAD, NULL},
        {"bytes=-", NULL, RANGE_BAD, NULL},
        {"bytes=0", NULL, RANGE_BAD, NULL},
        {"bytes=+0-1", NULL, RANGE_BAD, NULL},
        {"bytes=0x1-2", NULL, RANGE_BAD, NULL},
        {"bytes", NULL, RANGE_BAD, NULL},
        {"", NULL, RANGE_BAD, NULL},
        {"lines=1-2", NULL, RANGE_BAD, NULL},
        {"bytes=0-1", "W/\"a\"", RANGE_BAD, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_request r = with(rows[i].range, rows[i].if_range);
        struct range asked, wide;
        char text[RANGE_TEXT];
        if (range_of(&r, &asked) != rows[i].is)
            fail_msg("%s", rows[i].range);
        if (rows[i].is != RANGE_ONE)
            continue;
        wide = range_wider(&asked, 100);
        range_text(&wide, text);
        assert_string_equal(text, rows[i].wide);
    }
    struct wire_request twice = with("bytes=0-1", NULL);
    twice.field[twice.nfields++] = (struct http_field){SPAN("Range"), SPAN("bytes=0-1")};
    struct range asked;
    assert_int_equal(range_of(&twice, &asked), RANGE_BAD);
    assert_true(span_eq(range_written(&twice), SPAN("bytes=0-1")));
    twice.method = SPAN("HEAD"); /* none of whose bytes there is anything to search */
    assert_int_equal(range_of(&twice, &asked), RANGE_NONE);
    assert_int_equal(range_written(&twice).n, 0);
}

/* What a server that does as RFC 9110 says makes of this range: first and last byte; false: 416. */
static bool serve(const struct range *r, uint64_t size, uint64_t *first, uint64_t *last)
{
    *first = r->suffix ? (r->from < size ? size - r->from : 0) : r->from;
    *last = r->suffix || r->to >= size ? size - 1 : r->to;
    return *first < size && !(r->suffix && r->from == 0);
}

/* Every range of small representations, asked wider by several lengths: what is handed on is what the server would
 * have given for the range itself, and reaches the whole margin on both sides or the representation's end. */
static void what_is_handed_on(void **state)
{
    for (uint64_t size = 1; size <= 9; size++)
        for (uint64_t more = 0; more <= 12; more += 3)
            for (uint64_t from = 0; from <= 11; from++)
                for (uint64_t to = 0; to <= 13; to++) {
                    struct range asked = {to == 12, from, to >= 12 ? UINT64_MAX : to}, wide;
                    struct range_part p;
                    uint64_t first, last, wide_first, wide_last;
                    char text[RANGE_TEXT], want[RANGE_TEXT];
                    if (from > asked.to)
                        continue;
                    wide = range_wider(&asked, more);
                    bool there = serve(&asked, size, &first, &last);
                    if (!serve(&wide, size, &wide_first, &wide_last))
                        continue; /* the server's own 416 is handed on */
                    snprintf(text, sizeof(text), "bytes %d-%d/%d", (int)wide_first, (int)wide_last, (int)size);
                    enum range_fit fit = range_fit(&asked, &wide, span_str(text), &p);
                    assert_int_equal(fit, there ? RANGE_PART : RANGE_PAST);
                    assert_int_equal(p.came, wide_last - wide_first + 1);
                    if (!there) {
                        snprintf(want, sizeof(want), "bytes */%d", (int)size);
                        assert_string_equal(p.text, want);
                        assert_int_equal(p.give, 0);
                        continue;
                    }
                    snprintf(want, sizeof(want), "bytes %d-%d/%d", (int)first, (int)last, (int)size);
                    assert_string_equal(p.text, want);
                    assert_int_equal(wide_first + p.skip, first);
                    assert_int_equal(p.give, last - first + 1);
                    assert_true(wide_first == 0 || first - wide_first >= more);
                    assert_true(wide_last == size - 1 || wide_last - last >= more);
                }
}

static void what_is_not_the_range(void **state)
{
    static const char *const rows[] = {"bytes 1-199/1000",
                                       "bytes 0-198/1000",
                                       "bytes 0-200/1000",
                                       "bytes 0-149/*",
                                       "bytes 0-199/150",
                                       "bytes 0-199",
                                       "bytes */1000",
                                       "lines 0-199/1000",
                                       "bytes 199-0/1000",
                                       "bytes=0-199/1000",
                                       "",
                                       "bytes 0-199/-1"};
    const struct range asked = {false, 50, 99}, open = {false, 50, UINT64_MAX};
    struct range wide = range_wider(&asked, 100), wide_open = range_wider(&open, 100);
    struct range_part p;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (range_fit(&asked, &wide, span_str(rows[i]), &p) != RANGE_WRONG)
            fail_msg("%s", rows[i]);
    assert_int_equal(range_fit(&asked, &wide, SPAN("bytes 0-199/*"), &p), RANGE_PART);
    assert_string_equal(p.text, "bytes 50-99/*");
    assert_int_equal(range_fit(&open, &wide_open, SPAN("bytes 0-199/*"), &p), RANGE_WRONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked),
        cmocka_unit_test(what_is_handed_on),
        cmocka_unit_test(what_is_not_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
