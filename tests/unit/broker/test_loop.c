/* The turn as a machine: what it does at each event, and in whose stead. */
#include "broker/loop/loop.h"
#include "tests/kit.h"

static struct agent loop;
static struct loop_actions out;
static struct loop_asked asked[TURN_CALLS_MAX + 1];
static enum call_end ends[TURN_CALLS_MAX];

static struct loop_found fresh(void)
{
    return (struct loop_found){.epoch = 1,
                               .now_ms = 1000,
                               .started_ms = 1000,
                               .budget = {10, 1000, 1000, 60000, 3},
                               .asked = asked,
                               .end = ends};
}

static int setup(void **state)
{
    memset(asked, 0, sizeof(asked));
    memset(ends, 0, sizeof(ends));
    for (unsigned i = 0; i <= TURN_CALLS_MAX; i++)
        agent_call_digest(SPAN("shell"), span_of(&i, sizeof(i)), &asked[i].what);
    return 0;
}

static void hear(struct loop_event e)
{
    if (e.now_ms == 0)
        e.now_ms = 2000;
    if (!agent_hear(&loop, &e, &out))
        fail_msg("%s did not wait for %d", agent_state_name(loop.state), e.heard);
}

static void deaf(struct loop_event e)
{
    struct agent before = loop;
    assert_false(agent_hear(&loop, &e, &out));
    assert_int_equal(out.n, 0);
    assert_memory_equal(&before, &loop, sizeof(loop));
}

static void does(enum loop_do what)
{
    assert_int_equal(out.n, 1);
    assert_int_equal(out.a[0].what, what);
}

static void begin(const struct loop_found *f)
{
    agent_begin(&loop, f, &out);
}

/* A turn that is new, asking the model. */
static void thinking(void)
{
    const struct loop_found f = fresh();
    begin(&f);
    does(DO_BEGIN);
    hear((struct loop_event){.heard = HEARD_BEGUN, .attempts = 1});
    does(DO_THINK);
}

static void answer(size_t n, uint64_t tokens)
{
    hear((struct loop_event){.heard = HEARD_ANSWER, .asked = asked, .n = n, .used = {0, tokens, 1}});
    does(DO_PLAN);
    assert_int_equal(out.a[0].n, n);
    hear((struct loop_event){.heard = HEARD_PLANNED});
}

static void settled(uint64_t ord)
{
    hear((struct loop_event){.heard = HEARD_SETTLED, .ord = ord});
}

static void finishes(enum turn_end end)
{
    does(DO_FINISH);
    assert_int_equal(out.a[0].turn, end);
    hear((struct loop_event){.heard = HEARD_ENDED});
    assert_int_equal(loop.state, LOOP_OVER);
}

/* A turn whose worker was lost with these calls written down. */
static void taken_over(size_t n)
{
    struct loop_found f = fresh();
    f.epoch = 2;
    f.planned = true;
    f.n = n;
    begin(&f);
    does(DO_REVOKE);
}

/* Calls that only read: none waits for another. */
static void all_read(void)
{
    for (unsigned i = 0; i <= TURN_CALLS_MAX; i++)
        asked[i].class = CALL_READ;
}

static void a_turn_from_its_begin_to_its_end(void **state)
{
    all_read();
    thinking();
    answer(2, 5);
    assert_int_equal(out.n, 2);
    assert_true(out.a[0].what == DO_RUN && out.a[1].what == DO_RUN && out.a[1].ord == 1);
    deaf((struct loop_event){.heard = HEARD_SETTLED, .ord = 0});
    deaf((struct loop_event){.heard = HEARD_DONE, .ord = 2, .end = CALL_DONE});
    hear((struct loop_event){.heard = HEARD_DONE, .ord = 1, .end = CALL_DONE});
    does(DO_SETTLE);
    assert_true(out.a[0].ord == 1 && out.a[0].end == CALL_DONE);
    deaf((struct loop_event){.heard = HEARD_DONE, .ord = 1, .end = CALL_ERROR}); /* said twice */
    settled(1);
    assert_int_equal(out.n, 0);
    hear((struct loop_event){.heard = HEARD_DONE, .ord = 0, .end = CALL_ERROR});
    settled(0);
    does(DO_CHECKPOINT);
    assert_false(out.a[0].rewind);
    hear((struct loop_event){.heard = HEARD_STEP});
    does(DO_BEGIN);
    assert_int_equal(out.a[0].step, 2);
    hear((struct loop_event){.heard = HEARD_BEGUN, .attempts = 1});
    answer(0, 5);
    does(DO_CHECKPOINT);
    hear((struct loop_event){.heard = HEARD_STEP});
    finishes(END_COMPLETED);
    deaf((struct loop_event){.heard = HEARD_CANCEL});
}

/* --- the order of calls ---------------------------------------------------------------------- */

static void begins(enum loop_do what, size_t from, size_t n)
{
    assert_int_equal(out.n, n);
    for (size_t i = 0; i < n; i++)
        assert_true(out.a[i].what == what && out.a[i].ord == from + i);
}

static void done(uint64_t ord)
{
    hear((struct loop_event){.heard = HEARD_DONE, .ord = ord, .end = CALL_DONE});
    does(DO_SETTLE);
    settled(ord);
}

/* Read, read, write, read, command, as the first of them runs. */
static void five_calls(void)
{
    all_read();
    asked[2].class = CALL_IDEMPOTENT;
    asked[4].class = CALL_UNSAFE;
}

/* A call finds what those before it leave: two edits of one file, a script that is written and run. */
static void what_changes_something_waits_for_those_before_it(void **state)
{
    five_calls();
    thinking();
    answer(5, 1);
    begins(DO_RUN, 0, 2);
    done(1);
    assert_int_equal(out.n, 0);
    hear((struct loop_event){.heard = HEARD_DONE, .ord = 0, .end = CALL_DONE});
    does(DO_SETTLE);
    settled(0);
    begins(DO_RUN, 2, 1);
    hear((struct loop_event){.heard = HEARD_DONE, .ord = 2, .end = CALL_DONE});
    does(DO_SETTLE); /* it is over, but its end is not written down yet */
    settled(2);
    begins(DO_RUN, 3, 1);
    done(3);
    begins(DO_RUN, 4, 1);
    done(4);
    does(DO_CHECKPOINT);
}

static void who_takes_it_over_keeps_the_order(void **state)
{
    five_calls();
    ends[1] = CALL_DONE;
    taken_over(5);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    begins(DO_ASK, 0, 1);
    hear((struct loop_event){.heard = HEARD_KNOWN, .ord = 0, .known = KNOWN_ANSWERED, .end = CALL_DONE});
    settled(0);
    begins(DO_ASK, 2, 1);
    hear((struct loop_event){.heard = HEARD_KNOWN, .ord = 2, .known = KNOWN_NOTHING});
    does(DO_RUN); /* again, and nothing that stands behind it has changed anything yet */
    done(2);
    begins(DO_ASK, 3, 1);
}

static void what_waits_for_its_turn_is_not_run_once_it_is_cancelled(void **state)
{
    five_calls();
    thinking();
    answer(5, 1);
    hear((struct loop_event){.heard = HEARD_CANCEL});
    assert_int_equal(out.n, 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(out.a[i].what, i < 2 ? DO_ABORT : DO_SETTLE);
        assert_true(i < 2 || out.a[i].end == CALL_NOT_RUN);
    }
}

/* --- what is known of a call, by its class ------------------------------------------------- */

static const struct known_row {
    enum call_class class;
    enum known known;
    enum loop_do does;
    enum call_end end;
} known_rows[] = {
    {CALL_READ, KNOWN_NOT_SENT, DO_RUN, 0},
    {CALL_IDEMPOTENT, KNOWN_NOT_SENT, DO_RUN, 0},
    {CALL_RECONCILABLE, KNOWN_NOT_SENT, DO_RUN, 0},
    {CALL_UNSAFE, KNOWN_NOT_SENT, DO_RUN, 0},
    {CALL_READ, KNOWN_ANSWERED, DO_SETTLE, CALL_DONE},
    {CALL_IDEMPOTENT, KNOWN_ANSWERED, DO_SETTLE, CALL_DONE},
    {CALL_RECONCILABLE, KNOWN_ANSWERED, DO_SETTLE, CALL_DONE},
    {CALL_UNSAFE, KNOWN_ANSWERED, DO_SETTLE, CALL_DONE},
    {CALL_READ, KNOWN_GOING, DO_WAIT, 0},
    {CALL_UNSAFE, KNOWN_GOING, DO_WAIT, 0},
    {CALL_READ, KNOWN_SENT, DO_RUN, 0},
    {CALL_IDEMPOTENT, KNOWN_SENT, DO_RUN, 0},
    {CALL_RECONCILABLE, KNOWN_SENT, DO_LOOK, 0},
    {CALL_UNSAFE, KNOWN_SENT, DO_SETTLE, CALL_UNKNOWN},
    {CALL_READ, KNOWN_NOTHING, DO_RUN, 0},
    {CALL_IDEMPOTENT, KNOWN_NOTHING, DO_RUN, 0},
    {CALL_RECONCILABLE, KNOWN_NOTHING, DO_LOOK, 0},
    {CALL_UNSAFE, KNOWN_NOTHING, DO_SETTLE, CALL_UNKNOWN},
    {CALL_UNSAFE, (enum known)99, DO_SETTLE, CALL_UNKNOWN},
    {(enum call_class)99, KNOWN_SENT, DO_SETTLE, CALL_UNKNOWN},
};

static void each_class_by_what_is_known(void **state)
{
    for (size_t i = 0; i < sizeof(known_rows) / sizeof(known_rows[0]); i++) {
        const struct known_row *r = &known_rows[i];
        asked[0].class = r->class;
        taken_over(1);
        hear((struct loop_event){.heard = HEARD_REVOKED});
        does(DO_ASK);
        hear((struct loop_event){.heard = HEARD_KNOWN, .known = r->known, .end = CALL_DONE});
        does(r->does);
        assert_int_equal(out.a[0].end, r->end);
        if (r->does != DO_SETTLE)
            continue;
        settled(0);
        does(DO_CHECKPOINT);
        assert_int_equal(out.a[0].rewind, r->end == CALL_UNKNOWN);
    }
}

static void what_was_looked_at_is_not_looked_at_again(void **state)
{
    static const enum known seen[] = {KNOWN_NOT_SENT, KNOWN_ANSWERED, KNOWN_SENT, KNOWN_NOTHING, KNOWN_GOING};
    static const enum loop_do then[] = {DO_RUN, DO_SETTLE, DO_SETTLE, DO_SETTLE, DO_SETTLE};
    static const enum call_end as[] = {CALL_OPEN, CALL_DONE, CALL_UNKNOWN, CALL_UNKNOWN, CALL_UNKNOWN};
    for (size_t i = 0; i < 5; i++) {
        asked[0].class = CALL_RECONCILABLE;
        taken_over(1);
        hear((struct loop_event){.heard = HEARD_REVOKED});
        hear((struct loop_event){.heard = HEARD_KNOWN, .known = KNOWN_SENT});
        does(DO_LOOK);
        hear((struct loop_event){.heard = HEARD_LOOKED, .known = seen[i], .end = CALL_DONE});
        does(then[i]);
        assert_int_equal(out.a[0].end, as[i]);
    }
}

static void the_lane_before_is_ended_first(void **state)
{
    struct loop_found f = fresh();
    all_read();
    taken_over(3);
    deaf((struct loop_event){.heard = HEARD_KNOWN, .known = KNOWN_NOT_SENT});
    hear((struct loop_event){.heard = HEARD_REVOKED});
    assert_int_equal(out.n, 3);
    f.epoch = 2; /* a step without calls: the model is asked again, after that too */
    f.attempts = 1;
    begin(&f);
    does(DO_REVOKE);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    does(DO_BEGIN);
}

static void results_that_came_are_kept(void **state)
{
    ends[0] = CALL_DONE;
    ends[2] = CALL_ERROR;
    taken_over(3);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    does(DO_ASK);
    assert_int_equal(out.a[0].ord, 1);
    hear((struct loop_event){.heard = HEARD_KNOWN, .ord = 1, .known = KNOWN_SENT});
    settled(1);
    does(DO_CHECKPOINT);
    assert_true(out.a[0].rewind);
    ends[1] = CALL_DONE; /* all of them: only the checkpoint was missing */
    taken_over(3);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    does(DO_CHECKPOINT);
}

static void cut_off_while_it_ran(void **state)
{
    asked[0].class = CALL_UNSAFE;
    thinking();
    answer(1, 1);
    for (unsigned i = 0; i < LOOP_RUNS_MAX - 1; i++) {
        hear((struct loop_event){.heard = HEARD_DONE, .end = CALL_UNKNOWN});
        does(DO_ASK); /* the gateway knows whether it left */
        hear((struct loop_event){.heard = HEARD_KNOWN, .known = KNOWN_NOT_SENT});
        does(DO_RUN);
    }
    hear((struct loop_event){.heard = HEARD_DONE, .end = CALL_UNKNOWN});
    hear((struct loop_event){.heard = HEARD_KNOWN, .known = KNOWN_NOT_SENT});
    does(DO_SETTLE); /* so often, and no more */
    assert_int_equal(out.a[0].end, CALL_NOT_RUN);
    asked[0].class = CALL_READ;
    thinking();
    answer(1, 1);
    for (unsigned i = 0; i < LOOP_RUNS_MAX - 1; i++) {
        hear((struct loop_event){.heard = HEARD_DONE, .end = CALL_UNKNOWN});
        hear((struct loop_event){.heard = HEARD_KNOWN, .known = KNOWN_SENT});
        does(DO_RUN);
    }
    hear((struct loop_event){.heard = HEARD_DONE, .end = CALL_UNKNOWN});
    hear((struct loop_event){.heard = HEARD_KNOWN, .known = KNOWN_SENT});
    does(DO_SETTLE);
    assert_int_equal(out.a[0].end, CALL_UNKNOWN);
}

/* --- ends ------------------------------------------------------------------------------------ */

static void each_budget_ends_it(void **state)
{
    static const enum turn_end want[] = {END_STEPS, END_TOKENS, END_COST, END_TIME};
    for (unsigned i = 0; i < 4; i++) {
        struct loop_found f = fresh();
        f.used = (struct used){i == 0 ? 10 : 9, i == 1 ? 1000 : 999, i == 2 ? 1000 : 999};
        f.now_ms = f.started_ms + (i == 3 ? 60000 : 59999);
        begin(&f);
        finishes(want[i]);
    }
    struct loop_found f = fresh();
    f.used = (struct used){9, 999, 999};
    f.now_ms += 59999;
    begin(&f); /* one less of each */
    does(DO_BEGIN);
    f.budget = (struct budget){10, 0, 0, 0, 3}; /* without a bound of these kinds */
    f.used = (struct used){9, 1 << 30, 1 << 30};
    f.now_ms += 1 << 30;
    begin(&f);
    does(DO_BEGIN);
    f.budget.steps = 0; /* of steps there is always one */
    begin(&f);
    finishes(END_STEPS);
}

/* What it has asked for is not run any more, and settled as such; the turn then ends so. */
static void not_run_and_over(size_t n, enum turn_end end)
{
    assert_int_equal(out.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(out.a[i].what, DO_SETTLE);
        assert_int_equal(out.a[i].end, CALL_NOT_RUN);
    }
    for (size_t i = 0; i < n; i++)
        settled(i);
    does(DO_CHECKPOINT);
    hear((struct loop_event){.heard = HEARD_STEP});
    finishes(end);
}

static void an_answer_over_budget_is_not_acted_on(void **state)
{
    thinking();
    answer(2, 1000);
    not_run_and_over(2, END_TOKENS);
    thinking();
    answer(0, 1000); /* the last word is one all the same */
    does(DO_CHECKPOINT);
    hear((struct loop_event){.heard = HEARD_STEP});
    finishes(END_COMPLETED);
    thinking();
    hear((struct loop_event){.heard = HEARD_ANSWER, .used = {.tokens = 5}, .cut = true});
    hear((struct loop_event){.heard = HEARD_PLANNED});
    hear((struct loop_event){.heard = HEARD_STEP});
    finishes(END_CUT); /* one that stopped is not called complete */
}

static void the_same_again_and_again(void **state)
{
    char kept[LOOP_KEPT_MAX];
    struct dynbuf b;
    struct loop_found f = fresh();
    thinking();
    for (unsigned i = 1; i < 3; i++) {
        answer(1, 1);
        does(DO_RUN);
        hear((struct loop_event){.heard = HEARD_DONE, .end = CALL_DONE});
        settled(0);
        dynbuf_init(&b, LOOP_KEPT_MAX);
        agent_save(&loop, &b);
        assert_true(dynbuf_ok(&b));
        memcpy(kept, b.p, b.n);
        f.kept = span_of(kept, b.n);
        dynbuf_free(&b);
        hear((struct loop_event){.heard = HEARD_STEP});
        hear((struct loop_event){.heard = HEARD_BEGUN, .attempts = 1});
    }
    answer(1, 1);
    not_run_and_over(1, END_SAME_CALLS);
    f.settled = 2; /* and so it is for who takes it over there, with the calls written down */
    f.epoch = 2;
    f.planned = true;
    f.n = 1;
    begin(&f);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    hear((struct loop_event){.heard = HEARD_KNOWN, .known = KNOWN_NOT_SENT});
    not_run_and_over(1, END_SAME_CALLS);
    f.planned = false; /* or before: something else begins anew */
    f.n = 0;
    begin(&f);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    hear((struct loop_event){.heard = HEARD_BEGUN, .attempts = 1});
    asked[0] = asked[1];
    answer(1, 1);
    does(DO_RUN);
    f.kept.n--; /* what cannot be read ends it, and what is open is settled first */
    f.planned = true;
    f.n = 1;
    begin(&f);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    hear((struct loop_event){.heard = HEARD_KNOWN, .known = KNOWN_NOT_SENT});
    not_run_and_over(1, END_STUCK);
}

/* The worker was lost between the last checkpoint and the end. */
static void only_its_end_is_missing(void **state)
{
    char kept[LOOP_KEPT_MAX];
    struct dynbuf b;
    struct loop_found f = fresh();
    thinking();
    answer(0, 1);
    does(DO_CHECKPOINT);
    dynbuf_init(&b, LOOP_KEPT_MAX);
    agent_save(&loop, &b);
    assert_true(dynbuf_ok(&b));
    memcpy(kept, b.p, b.n);
    f.kept = span_of(kept, b.n);
    dynbuf_free(&b);
    f.epoch = 2;
    f.settled = 1;
    begin(&f);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    finishes(END_COMPLETED); /* and the model is not asked once more */
    f.settled = 2;           /* another step's */
    begin(&f);
    hear((struct loop_event){.heard = HEARD_REVOKED});
    finishes(END_STUCK);
}

static void too_many_calls_at_once(void **state)
{
    all_read();
    thinking();
    answer(TURN_CALLS_MAX, 1);
    assert_int_equal(out.n, TURN_CALLS_MAX);
    thinking();
    hear((struct loop_event){.heard = HEARD_ANSWER, .asked = asked, .n = TURN_CALLS_MAX + 1});
    finishes(END_BAD_MODEL);
}

static void a_model_that_does_not_answer(void **state)
{
    struct loop_found f = fresh();
    thinking();
    hear((struct loop_event){.heard = HEARD_NO_ANSWER, .retry = true, .after_ms = 700});
    does(DO_GIVE_BACK);
    assert_int_equal(out.a[0].after_ms, 700);
    assert_int_equal(loop.state, LOOP_STOPPED);
    deaf((struct loop_event){.heard = HEARD_ANSWER});
    thinking();
    hear((struct loop_event){.heard = HEARD_NO_ANSWER});
    finishes(END_MODEL);
    thinking();
    hear((struct loop_event){.heard = HEARD_BUDGET});
    finishes(END_BUDGET);
    begin(&f);
    hear((struct loop_event){.heard = HEARD_BEGUN, .attempts = LOOP_ATTEMPTS_MAX});
    does(DO_THINK);
    hear((struct loop_event){.heard = HEARD_NO_ANSWER, .retry = true});
    finishes(END_MODEL);
    begin(&f);
    hear((struct loop_event){.heard = HEARD_BEGUN, .attempts = LOOP_ATTEMPTS_MAX + 1});
    finishes(END_MODEL);
}

static void cancelled_wherever_it_is(void **state)
{
    struct loop_found f = fresh();
    f.cancelled = true;
    begin(&f);
    finishes(END_CANCELLED);
    f.cancelled = false;
    begin(&f);
    hear((struct loop_event){.heard = HEARD_CANCEL});
    assert_int_equal(out.n, 0);
    hear((struct loop_event){.heard = HEARD_BEGUN, .attempts = 1});
    finishes(END_CANCELLED);
    thinking();
    hear((struct loop_event){.heard = HEARD_CANCEL});
    assert_int_equal(out.n, 2);
    assert_true(out.a[0].what == DO_NOT_THINK && out.a[1].turn == END_CANCELLED);
    thinking();
    hear((struct loop_event){.heard = HEARD_ANSWER, .asked = asked, .n = 1});
    hear((struct loop_event){.heard = HEARD_CANCEL});
    hear((struct loop_event){.heard = HEARD_PLANNED});
    not_run_and_over(1, END_CANCELLED);
}

static void cancelled_or_out_of_time_while_calls_run(void **state)
{
    all_read();
    for (unsigned i = 0; i < 2; i++) {
        thinking();
        answer(2, 1);
        hear((struct loop_event){.heard = HEARD_DONE, .ord = 1, .end = CALL_DONE});
        hear((struct loop_event){.heard = HEARD_TICK, .now_ms = 60999});
        assert_int_equal(out.n, 0);
        if (i)
            hear((struct loop_event){.heard = HEARD_TICK, .now_ms = 61000});
        else
            hear((struct loop_event){.heard = HEARD_CANCEL});
        does(DO_ABORT);
        assert_int_equal(out.a[0].ord, 0);
        hear((struct loop_event){.heard = HEARD_TICK, .now_ms = 99000});
        assert_int_equal(out.n, 0); /* told once */
        hear((struct loop_event){.heard = HEARD_DONE, .ord = 0, .end = CALL_UNKNOWN});
        does(DO_ASK);
        hear((struct loop_event){.heard = HEARD_KNOWN, .ord = 0, .known = KNOWN_SENT});
        does(DO_SETTLE); /* even a read is not sent again now; and what was sent is not called not run */
        assert_int_equal(out.a[0].end, CALL_UNKNOWN);
        settled(0);
        settled(1);
        does(DO_CHECKPOINT);
        hear((struct loop_event){.heard = HEARD_STEP});
        finishes(i ? END_TIME : END_CANCELLED);
    }
}

static void who_lost_the_claim_does_nothing_more(void **state)
{
    static const enum loop_heard why[] = {HEARD_FENCED, HEARD_FAILED};
    for (unsigned i = 0; i < 2; i++) {
        thinking();
        answer(2, 1);
        hear((struct loop_event){.heard = why[i]});
        assert_int_equal(out.n, 0);
        assert_int_equal(loop.state, LOOP_STOPPED);
        deaf((struct loop_event){.heard = HEARD_DONE, .end = CALL_DONE});
        deaf((struct loop_event){.heard = HEARD_CANCEL});
    }
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_turn_from_its_begin_to_its_end),
        T(what_changes_something_waits_for_those_before_it),
        T(who_takes_it_over_keeps_the_order),
        T(what_waits_for_its_turn_is_not_run_once_it_is_cancelled),
        T(each_class_by_what_is_known),
        T(what_was_looked_at_is_not_looked_at_again),
        T(the_lane_before_is_ended_first),
        T(results_that_came_are_kept),
        T(cut_off_while_it_ran),
        T(each_budget_ends_it),
        T(an_answer_over_budget_is_not_acted_on),
        T(the_same_again_and_again),
        T(only_its_end_is_missing),
        T(too_many_calls_at_once),
        T(a_model_that_does_not_answer),
        T(cancelled_wherever_it_is),
        T(cancelled_or_out_of_time_while_calls_run),
        T(who_lost_the_claim_does_nothing_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
