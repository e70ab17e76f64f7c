/* A change of state is one that the table has. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "common/log.h"
#include "common/state.h"

enum door { DOOR_NONE = 0, DOOR_SHUT, DOOR_OPEN };

static void only_what_the_table_has(void **state)
{
    static const struct state_row rows[] = {
        [DOOR_NONE] = {"none", STATE(DOOR_SHUT)},
        [DOOR_SHUT] = {"shut", STATE(DOOR_OPEN)},
        [DOOR_OPEN] = {"open", STATE(DOOR_OPEN) | STATE(DOOR_SHUT)},
    };
    const struct state_kind doors = {"door", sizeof(rows) / sizeof(rows[0]), rows};
    static const bool may[5][5] = {[DOOR_NONE] = {[DOOR_SHUT] = true},
                                   [DOOR_SHUT] = {[DOOR_OPEN] = true},
                                   [DOOR_OPEN] = {[DOOR_SHUT] = true, [DOOR_OPEN] = true}};
    (void)state;
    log_init("test", LOG_DEBUG);
    for (unsigned from = 0; from < 5; from++) /* also states that there are none of */
        for (unsigned to = 0; to < 5; to++)
            assert_int_equal(state_may(&doors, 1, from, to), may[from][to]);
    assert_false(state_may(&doors, 1, DOOR_OPEN, 40));
    assert_false(state_may(&doors, 1, 40, DOOR_OPEN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_the_table_has)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
