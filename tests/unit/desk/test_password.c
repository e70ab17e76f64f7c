/* What is kept of a password, and how often one may be tried. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "web-approval/people/password.h"

static void kept_and_compared(void **state)
{
    char kept[PASSWORD_KEPT] = "", again[PASSWORD_KEPT] = "";
    assert_int_equal(password_make(SPAN("nine more"), kept), -1);
    assert_int_equal(password_make(SPAN("correct horse"), kept), 0);
    assert_int_equal(password_make(SPAN("correct horse"), again), 0);
    assert_string_not_equal(kept, again);
    assert_null(strstr(kept, "horse"));
    assert_true(password_is(SPAN("correct horse"), span_str(kept)));
    assert_false(password_is(SPAN("correct horsf"), span_str(kept)));
    assert_false(password_is(SPAN(""), span_str(kept)));
    assert_false(password_is(SPAN("correct horse"), SPAN_NONE));
}

static void a_name_waits_longer_each_time(void **state)
{
    static struct attempts a;
    uint64_t now = 60000, pause = ATTEMPT_PAUSE_MS;
    memset(&a, 0, sizeof(a));
    for (unsigned i = 0; i < ATTEMPT_FREE; i++) {
        assert_true(attempts_may(&a, SPAN("ann"), now));
        attempts_over(&a, SPAN("ann"), false, now);
    }
    for (unsigned i = 0; i < 12; i++) {
        assert_false(attempts_may(&a, SPAN("ann"), now + pause - 1));
        assert_true(attempts_may(&a, SPAN("bob"), now + pause - 1));
        now += pause;
        assert_true(attempts_may(&a, SPAN("ann"), now));
        attempts_over(&a, SPAN("ann"), false, now);
        pause = 2 * pause < ATTEMPT_PAUSE_MOST_MS ? 2 * pause : ATTEMPT_PAUSE_MOST_MS;
    }
    now += pause;
    attempts_over(&a, SPAN("ann"), true, now);
    for (unsigned i = 0; i < ATTEMPT_FREE - 1; i++)
        attempts_over(&a, SPAN("ann"), false, now);
    assert_true(attempts_may(&a, SPAN("ann"), now));
}

static void all_names_together_have_so_many_a_minute(void **state)
{
    static struct attempts a, known;
    char name[16];
    memset(&a, 0, sizeof(a));
    memset(&known, 0, sizeof(known));
    for (unsigned i = 0; i < ATTEMPT_ALL; i++) {
        int n = snprintf(name, sizeof(name), "n%u", i);
        assert_true(attempts_may(&a, span_of(name, (size_t)n), 120000));
    }
    assert_false(attempts_may(&a, SPAN("ann"), 120000 + 59999));
    assert_true(attempts_may(&known, SPAN("ann's browser"), 120000 + 59999));
    assert_true(attempts_may(&a, SPAN("ann"), 120000 + 60000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_and_compared),
        cmocka_unit_test(a_name_waits_longer_each_time),
        cmocka_unit_test(all_names_together_have_so_many_a_minute),
    };
    return cmocka_run_group_tests_name("password", tests, NULL, NULL);
}
