/* What is done behind a call of which nobody knows the end, and with an answer of which only that is written down. */
#include "tests/kit.h"

#include "broker/loop/loop.h"

static struct agent loop;
static struct loop_actions out;
static struct loop_asked asked[TURN_CALLS_MAX];
static enum call_end ends[TURN_CALLS_MAX];

static void hear(struct loop_event e)
{
    e.now_ms = 2000;
    if (!agent_hear(&loop, &e, &out))
        fail_msg("%s did not wait for %d", agent_state_name(loop.state), e.heard);
}

static void does(enum loop_do what, uint64_t ord)
{
    assert_int_equal(out.n, 1);
    assert_int_equal(out.a[0].what, what);
    assert_int_equal(out.a[0].ord, ord);
}

/* A turn whose worker was lost with these calls written down; the one before can send no more. */
static void taken_over(size_t n, bool cut)
{
    const struct loop_found f = {.epoch = 2,
                                 .now_ms = 1000,
                                 .started_ms = 1000,
                                 .planned = true,
                                 .cut = cut,
                                 .budget = {10, 0, 0, 0, 3},
                                 .asked = asked,
                                 .end = ends,
                                 .n = n};
    agent_begin(&loop, &f, &out);
    does(DO_REVOKE, 0);
    hear((struct loop_event){.heard = HEARD_REVOKED});
}

static void known(uint64_t ord, enum known what)
{
    does(DO_ASK, ord);
    hear((struct loop_event){.heard = HEARD_KNOWN, .ord = ord, .known = what});
}

static void settles(uint64_t ord, enum call_end end)
{
    does(DO_SETTLE, ord);
    assert_int_equal(out.a[0].end, end);
    hear((struct loop_event){.heard = HEARD_SETTLED, .ord = ord});
}

static int setup(void **state)
{
    memset(asked, 0, sizeof(asked));
    memset(ends, 0, sizeof(ends));
    return 0;
}

/* Nobody knows what it left; what only reads may look. */
static void what_changes_something_is_not_run(void **state)
{
    asked[1].class = CALL_READ;
    asked[2].class = CALL_IDEMPOTENT;
    taken_over(4, false);
    known(0, KNOWN_SENT);
    settles(0, CALL_UNKNOWN);
    known(1, KNOWN_NOTHING);
    does(DO_RUN, 1);
    hear((struct loop_event){.heard = HEARD_DONE, .ord = 1, .end = CALL_DONE});
    settles(1, CALL_DONE);
    known(2, KNOWN_NOT_SENT);
    settles(2, CALL_NOT_RUN);
    known(3, KNOWN_NOT_SENT);
    settles(3, CALL_NOT_RUN);
    does(DO_CHECKPOINT, 0);
    assert_true(out.a[0].rewind);
}

/* Nor is what another worker may have sent repeated there: that it was not run would not be true. */
static void what_may_have_been_sent_is_not_repeated(void **state)
{
    asked[1].class = CALL_IDEMPOTENT;
    ends[0] = CALL_UNKNOWN;
    taken_over(2, false);
    known(1, KNOWN_NOTHING);
    settles(1, CALL_UNKNOWN);
}

/* The same calls behind one that failed, and that is known. */
static void behind_an_error_all_are_run(void **state)
{
    ends[0] = CALL_ERROR;
    taken_over(2, false);
    known(1, KNOWN_NOT_SENT);
    does(DO_RUN, 1);
}

/* It had no calls, and only its checkpoint is missing. */
static void an_answer_that_stopped_is_none_that_is_complete(void **state)
{
    static const enum turn_end want[] = {END_COMPLETED, END_CUT};
    for (unsigned i = 0; i < 2; i++) {
        taken_over(0, i == 1);
        does(DO_CHECKPOINT, 0);
        hear((struct loop_event){.heard = HEARD_STEP});
        does(DO_FINISH, 0);
        assert_int_equal(out.a[0].turn, want[i]);
    }
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {T(what_changes_something_is_not_run),
                                       T(what_may_have_been_sent_is_not_repeated), T(behind_an_error_all_are_run),
                                       T(an_answer_that_stopped_is_none_that_is_complete)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
