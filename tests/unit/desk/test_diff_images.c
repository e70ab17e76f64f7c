/* Diffs of images: is what was found one, and is all of it there. */
#include "tests/kit.h"

#include <stdio.h>
#include <stdlib.h>

#include "web-approval/diffs/diffs.h"

#define DIG   "\"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""
#define LAYER "{\"how\":\"A\",\"digest\":" DIG ",\"type\":\"t\",\"size\":1}"
#define PUSHED(facts, nfacts, parts, nparts)                                                                         \
    "{\"version\":1,\"image\":{\"state\":\"first\",\"kind\":\"image\",\"name\":\"a\",\"reference\":\"1\","           \
    "\"new\":" DIG ",\"facts\":[" facts "],\"facts_total\":" nfacts ",\"parts\":[" parts "],\"parts_total\":" nparts \
    "}}"
#define SAYS(more) "{\"in\":\"run\",\"name\":\"Cmd\",\"how\":\"A\",\"new\":\"x\"" more "}"

static void what_is_shown_of_an_image(void **state)
{
    static const struct {
        const char *json;
        int is;
        bool complete;
    } rows[] = {
        {PUSHED("", "0", LAYER, "1"), 1, true},
        {PUSHED(SAYS(""), "1", "", "0"), 1, true},
        {PUSHED(SAYS(""), "2", LAYER, "1"), 1, false},
        {PUSHED(SAYS(",\"cut\":true"), "1", LAYER, "1"), 1, false},
        {PUSHED("", "0", LAYER, "2"), 1, false},
        {PUSHED("", "0", "{\"how\":\"A\"}", "1"), -1, false},
        {"{\"version\":1,\"error\":\"bad-manifest\"}", 0, false},
    };
    const char *why;
    bool again;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int is = diff_result(span_str(rows[i].json), DIFF_OF_IMAGE, 0, &why, &again);
        if (is != rows[i].is || (why == NULL) != rows[i].complete)
            fail_msg("row %zu: %d, %s", i, is, why ? why : "complete");
    }
    assert_int_equal(diff_result(SPAN(PUSHED("", "0", LAYER, "1")), DIFF_OF_PACKAGE, 0, &why, &again), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shown_of_an_image),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
