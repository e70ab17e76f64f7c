/* proxy/keeper/value.h: what a value becomes in its slot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "proxy/keeper/value.h"

static struct err e;

/* D15, D26: as each slot carries it, and what it cannot carry. */
static void each_slot_carries_it_in_its_own_way(void **state)
{
    static const struct {
        enum slot_kind slot;
        const char *format, *value, *is; /* is NULL: refused */
    } rows[] = {
        {SLOT_QUERY, "", "a-b.c_d~e+f/g=h&i%j k", "a-b.c_d~e%2Bf%2Fg%3Dh%26i%25j%20k"},
        {SLOT_QUERY, "tok {}", "abcdefgh", "tok%20abcdefgh"},
        {SLOT_FORM, "", "ab+cd\"e&f", "ab%2Bcd%22e%26f"},
        {SLOT_PATH, "", "12:Ab/c%d\"e", "12:Ab/c%25d%22e"},
        {SLOT_PATH, "", "abcdefg?h", NULL},
        {SLOT_PATH, "", "abcdefg#h", NULL},
        {SLOT_JSON, "", "a\"b\\c/d<e", "a\\\"b\\\\c/d<e"},
        {SLOT_JSON, "Bearer {}", "abcdefgh", "Bearer abcdefgh"},
        {SLOT_JSON, "", "abcdefg\xc3\xa9", NULL},
        {SLOT_COOKIE, "sid={}", "abc/def=g", "sid=abc/def=g"},
        {SLOT_COOKIE, "sid={}", "abcdefg;h", NULL},
        {SLOT_COOKIE, "sid={}", "abcdefg h", NULL},
        {SLOT_COOKIE, "sid={}", "abcdefg\"h", NULL},
        {SLOT_COOKIE, "sid={}", "abcdefg,h", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct credential c = {.slot = rows[i].slot, .format = span_str(rows[i].format)};
        struct secret *s = value_render(&c, span_str(rows[i].value), &e);
        assert_int_equal(s != NULL, rows[i].is != NULL);
        if (s != NULL && !span_eq(secret_bytes(s), span_str(rows[i].is)))
            fail_msg("row %zu: %.*s", i, SPAN_FMT(secret_bytes(s)));
        assert_int_equal(value_header(&c).n > 0, c.slot == SLOT_COOKIE);
        secret_free(&s);
    }
    /* As a URL carries it, it fits beside every target that has a slot for it. */
    static char many[HTTP_TARGET_MAX - SLOT_TARGET_MAX + 1];
    const struct credential c = {.slot = SLOT_QUERY, .format = SPAN("{}")};
    memset(many, '+', sizeof(many));
    const size_t most = (HTTP_TARGET_MAX - SLOT_TARGET_MAX) / 3 - c.format.n;
    for (size_t extra = 0; extra < 2; extra++) {
        struct secret *s = value_render(&c, span_of(many, most + extra), &e);
        assert_int_equal(s != NULL, extra == 0);
        secret_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_slot_carries_it_in_its_own_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
