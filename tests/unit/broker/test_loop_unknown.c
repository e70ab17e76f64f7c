/* What is done behind a call of which nobody knows the end, with an answer of which only that is written down, and
 * with a summary of older messages. */
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

/* --- summaries ---------------------------------------------------------------------------------- */

static void begun(bool summary)
{
    does(DO_BEGIN, 0);
    hear((struct loop_event){.heard = HEARD_BEGUN, .attempts = 1, .summary = summary});
    does(DO_THINK, 0);
}

static void answered(size_t n)
{
    hear((struct loop_event){.heard = HEARD_ANSWER, .asked = asked, .n = n, .used = {.tokens = 10}});
}

static void settled_so(void)
{
    hear((struct loop_event){.heard = HEARD_PLANNED});
    for (; out.n == 1 && out.a[0].what == DO_RUN;) {
        uint64_t ord = out.a[0].ord;
        hear((struct loop_event){.heard = HEARD_DONE, .ord = ord, .end = CALL_DONE});
        settles(ord, CALL_DONE);
    }
    does(DO_CHECKPOINT, 0);
}

static void fresh(struct budget budget)
{
    const struct loop_found f = {.epoch = 1, .now_ms = 1000, .started_ms = 1000, .budget = budget};
    agent_begin(&loop, &f, &out);
}

/* It is begun once more as one; it is a step, and the turn goes on behind it, as it would have without. */
static void a_summary_is_a_step_of_its_own(void **state)
{
    fresh((struct budget){10, 0, 0, 0, 3});
    begun(false);
    hear((struct loop_event){.heard = HEARD_LONG});
    begun(true);
    answered(0);
    does(DO_PLAN, 0);
    settled_so();
    assert_int_equal(loop.wanted, END_NONE);
    hear((struct loop_event){.heard = HEARD_STEP});
    assert_true(loop.step == 2 && loop.used.steps == 1 && loop.used.tokens == 10);
    begun(false);
    answered(0);
    settled_so();
    hear((struct loop_event){.heard = HEARD_STEP});
    does(DO_FINISH, 0);
    assert_int_equal(out.a[0].turn, END_COMPLETED);
}

/* What was wasted by then counts, once: in the price of what comes at last. */
static void no_step_is_begun_once_more_past_a_budget(void **state)
{
    for (uint64_t wasted = 9; wasted <= 10; wasted++) {
        fresh((struct budget){10, 10, 0, 0, 3});
        begun(true);
        hear((struct loop_event){.heard = HEARD_LONG, .used = {.tokens = wasted}});
        assert_int_equal(loop.used.tokens, 0);
        does(wasted < 10 ? DO_BEGIN : DO_FINISH, 0);
    }
    assert_int_equal(out.a[0].turn, END_TOKENS);
}

/* Written down, and its worker lost: it is settled, and is no end. */
static void a_summary_that_is_taken_over_is_no_answer(void **state)
{
    const struct loop_found f = {
        .epoch = 2, .planned = true, .summary = true, .now_ms = 1000, .started_ms = 1000, .budget = {10, 0, 0, 0, 3}};
    agent_begin(&loop, &f, &out);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    does(DO_CHECKPOINT, 0);
    hear((struct loop_event){.heard = HEARD_STEP});
    begun(false);
}

/* Nor does it end what the model does again and again; a checkpoint of it keeps what that was. */
static void the_same_calls_are_the_same_over_a_summary(void **state)
{
    struct dynbuf kept;
    fresh((struct budget){10, 0, 0, 0, 2});
    begun(false);
    answered(1);
    settled_so();
    hear((struct loop_event){.heard = HEARD_STEP});
    begun(true);
    answered(0);
    settled_so();
    dynbuf_init(&kept, LOOP_KEPT_MAX);
    agent_save(&loop, &kept);
    for (int other = 0; other < 2; other++) { /* the same worker, and another one */
        const struct loop_found f = {.epoch = 1,
                                     .settled = 2,
                                     .now_ms = 1000,
                                     .started_ms = 1000,
                                     .used = {.steps = 2},
                                     .budget = {10, 0, 0, 0, 2},
                                     .kept = dynbuf_span(&kept)};
        if (other)
            agent_begin(&loop, &f, &out);
        else
            hear((struct loop_event){.heard = HEARD_STEP});
        begun(false);
        answered(1);
        assert_int_equal(loop.wanted, END_SAME_CALLS);
    }
    dynbuf_free(&kept);
}

static void a_budget_counts_a_summary(void **state)
{
    fresh((struct budget){10, 10, 0, 0, 3});
    begun(true);
    answered(0);
    settled_so();
    hear((struct loop_event){.heard = HEARD_STEP});
    does(DO_FINISH, 0);
    assert_int_equal(out.a[0].turn, END_TOKENS);
    fresh((struct budget){10, 0, 0, 0, 3});
    begun(true);
    answered(1); /* nothing that it asks for is run */
    does(DO_FINISH, 0);
    assert_int_equal(out.a[0].turn, END_BAD_MODEL);
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {T(what_changes_something_is_not_run),
                                       T(what_may_have_been_sent_is_not_repeated),
                                       T(behind_an_error_all_are_run),
                                       T(an_answer_that_stopped_is_none_that_is_complete),
                                       T(a_summary_is_a_step_of_its_own),
                                       T(no_step_is_begun_once_more_past_a_budget),
                                       T(a_summary_that_is_taken_over_is_no_answer),
                                       T(the_same_calls_are_the_same_over_a_summary),
                                       T(a_budget_counts_a_summary)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
