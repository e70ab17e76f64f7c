/* A turn that is taken from the store, and to which the gateway gives no identity. */
#include "broker/work/prompt.h"
#include "tests/unit/broker/brought/alone.h"

/* Whom a model that was asked last had to be one of. */
static struct model_privacy asks_models_of;

void think_begin(struct task *t)
{
    asks_models_of = t->privacy;
}

struct route_found think_route(struct task *t, const struct prompt *p, bool roomy)
{
    return (struct route_found){.why = ROUTE_FOUND};
}

uint64_t think_window(struct task *t, const struct prompt *p)
{
    return 200000;
}

void think_end(struct task *t)
{
}

void think_stop(struct task *t)
{
}

static int setup(void **state)
{
    questions = 0;
    if (fix_setup(state) != 0)
        return -1;
    work = (struct work){.store = fix};
    return 0;
}

/* A worker takes the turn, asks for its identity, hears this, and has no other question. */
static void taken(unsigned status, const char *words)
{
    struct claim c = fix_claim(1);
    unsigned before = questions;
    later = NULL;
    task_begin(&work, &c);
    assert_int_equal(questions, before + 1);
    asked(work.task, asked_arg, status, span_str(words));
    assert_int_equal(questions, before + 1);
    assert_null(work.task);
    assert_non_null(later);
    later(later_arg);
}

static bool waits(void)
{
    struct id id = fix_id(2);
    struct claim c;
    return bstore_claim(fix, &id, CLAIM_MS, &c) == BS_NONE;
}

static struct bstore_chatted chat(uint64_t wall_ms)
{
    const struct bstore_chat in = {
        .tenant = SPAN("acme"), .body = SPAN("{\"text\":\"hello\"}"), .budget = {10, 0, 0, wall_ms, 3}};
    struct bstore_chatted out;
    fix_ok(bstore_chat(fix, &in, &out));
    return out;
}

/* Its first step has a command of which nobody has written down how it ended. */
static void command_open(const struct claim *c)
{
    const struct bstore_call call = {SPAN("run_command"), SPAN("{\"command\":\"make\"}"), CALL_UNSAFE};
    const struct bstore_plan plan = {SPAN("[\"answer\"]"), {0, 10, 3}, &call, 1, {.input = 0}};
    uint64_t attempts;
    fix_ok(bstore_step(fix, c, 1, SPAN("model"), &attempts));
    fix_ok(bstore_plan(fix, c, 1, &plan));
}

/* Whose operator has taken the last key back: it does not go round for ever. */
static void refused_for_good_it_ends(void **state)
{
    static const unsigned status[] = {401, 403, 409};
    for (size_t i = 0; i < 3; i++) {
        struct bstore_chatted c = chat(0);
        taken(status[i], "there is no key");
        const struct bstore_turn_row *row = fix_row("acme", &c.turn);
        assert_int_equal(row->end, END_REFUSED);
        assert_true(span_eq(row->why, SPAN("there is no key")));
        assert_int_equal(fix_events("acme", &c.conversation, "turn.retry"), 0);
    }
}

/* Nobody is asked what became of a call whose lane may not have ended. */
static void what_is_open_then_is_not_known(void **state)
{
    struct bstore_chatted c = chat(0);
    struct claim before = fix_claim(3);
    struct bstore_turn t;
    command_open(&before);
    fix_now += 2 * CLAIM_MS;
    taken(401, "there is no key");
    assert_int_equal(fix_row("acme", &c.turn)->end, END_REFUSED);
    assert_int_equal(bstore_load(fix, &before, &fix_arena, &t), BS_FENCED);
}

static void what_cannot_be_had_now_is_asked_for_later_each_time(void **state)
{
    static const unsigned wait_s[] = {1, 2, 4, 8, 16, 30, 30, 30};
    struct bstore_chatted c = chat(0);
    for (size_t i = 0; i < sizeof(wait_s) / sizeof(wait_s[0]); i++) {
        taken(503, "the gateway cannot be asked");
        assert_int_equal(fix_row("acme", &c.turn)->end, END_NONE);
        fix_now += wait_s[i] * SECOND - 1;
        assert_true(waits());
        fix_now++;
    }
    assert_int_equal(fix_events("acme", &c.conversation, "turn.retry"), 1);
    for (size_t i = 0; i < 40; i++) {
        taken(503, "the gateway cannot be asked");
        fix_now += 30 * SECOND;
    }
    assert_in_range(fix_events("acme", &c.conversation, "turn.retry"), 3, 4);
}

static void meanwhile_it_can_be_cancelled_and_runs_out_of_time(void **state)
{
    struct bstore_chatted c = chat(0);
    taken(503, "the gateway cannot be asked");
    fix_ok(bstore_cancel(fix, SPAN("acme"), &c.turn));
    fix_now += SECOND;
    taken(503, "the gateway cannot be asked");
    assert_int_equal(fix_row("acme", &c.turn)->end, END_CANCELLED);
    c = chat(3 * SECOND);
    taken(503, "the gateway cannot be asked");
    fix_now += 3 * SECOND;
    taken(503, "the gateway cannot be asked");
    assert_int_equal(fix_row("acme", &c.turn)->end, END_TIME);
}

/* While a command may run that can be ended yet, it is tried a few times. */
static void what_it_began_may_be_ended_yet(void **state)
{
    struct bstore_chatted c = chat(0);
    struct claim before = fix_claim(3);
    unsigned tries = 0;
    command_open(&before);
    fix_ok(bstore_cancel(fix, SPAN("acme"), &c.turn));
    fix_now += 2 * CLAIM_MS;
    for (; tries < 10 && fix_row("acme", &c.turn)->end == END_NONE; tries++) {
        taken(503, "the gateway cannot be asked");
        fix_now += 30 * SECOND;
    }
    assert_int_equal(fix_row("acme", &c.turn)->end, END_CANCELLED);
    assert_int_equal(tries, 6);
}

/* Text of which each byte is six in JSON is shown all the same. */
static void readers_see_what_grows_large_in_an_event(void **state)
{
    struct bstore_chatted c = chat(0);
    struct claim claimed = fix_claim(1);
    struct dynbuf text;
    task_begin(&work, &claimed);
    struct task *t = work.task;
    dynbuf_init(&text, 16 * 1024);
    for (size_t i = 0; i < 16 * 1024; i++)
        assert_int_equal(dynbuf_add(&text, SPAN("\1")), 0);
    show_delta(t, "message.delta", 0, dynbuf_span(&text));
    assert_true(show_flush(t));
    assert_int_equal(fix_events("acme", &c.conversation, "message.delta"), 2);
    dynbuf_free(&text);
    task_leave(t);
    later(later_arg);
}

/* No model is asked before it is known which may see the conversation, and then one of these alone. */
static void models_are_those_that_may_see_the_conversation(void **state)
{
    static const char *const list[] = {"", "one", "one\ntwo"};
    for (size_t i = 0; i < 3; i++) {
        const struct bstore_chat in = {
            .tenant = SPAN("acme"), .body = SPAN("{\"text\":\"hello\"}"), .private = span_str(list[i])};
        struct bstore_chatted c;
        fix_ok(bstore_chat(fix, &in, &c));
        struct claim claimed = fix_claim(1);
        task_begin(&work, &claimed);
        struct task *t = work.task;
        assert_int_equal(t->privacy.who, WHO_NOBODY);
        asked(t, asked_arg, 201, SPAN("{\"token\":\"lane\"}"));
        assert_int_equal(t->agent.state, LOOP_THINKING);
        assert_int_equal(model_may_see(&asks_models_of, SPAN("one")), true);
        assert_int_equal(model_may_see(&asks_models_of, SPAN("two")), i != 1);
        assert_int_equal(model_may_see(&asks_models_of, SPAN("three")), i == 0);
        assert_int_equal(model_may_see(&asks_models_of, SPAN("one\ntwo")), i == 0);
        fix_ok(bstore_cancel(fix, SPAN("acme"), &c.turn));
        task_leave(t);
        later(later_arg);
        fix_now += SECOND;
        claimed = fix_claim(1);
        fix_ok(bstore_finish(fix, &claimed, END_CANCELLED, SPAN_NONE));
    }
}

/* Where there is no room for all that is to be done, none of it is left out: another worker begins anew. */
static void what_has_no_room_is_not_left_out(void **state)
{
    struct bstore_chatted c = chat(0);
    struct claim claimed = fix_claim(1);
    task_begin(&work, &claimed);
    struct task *t = work.task;
    asked(t, asked_arg, 201, SPAN("{\"token\":\"lane\"}"));
    assert_int_equal(t->agent.state, LOOP_THINKING);
    t->pumping = true;
    t->ntodo = WORK_TODO_MAX;
    task_tell(t, (struct loop_event){.heard = HEARD_NO_ANSWER, .retry = true, .after_ms = 1});
    assert_null(work.task);
    later(later_arg);
    assert_int_equal(fix_row("acme", &c.turn)->end, END_NONE);
    fix_now += SECOND;
    assert_false(waits());
}

/* An answer without calls was written down, and stopped in the middle; then the worker was lost. */
static void an_answer_that_stopped_is_not_called_complete(void **state)
{
    const struct bstore_plan plan = {
        .answer =
            SPAN("{\"of\":\"assistant\",\"blocks\":[{\"type\":\"text\",\"text\":\"and\"}],\"stopped\":\"length\"}")};
    struct bstore_chatted c = chat(0);
    struct claim before = fix_claim(3);
    uint64_t attempts;
    fix_ok(bstore_step(fix, &before, 1, SPAN("model"), &attempts));
    fix_ok(bstore_plan(fix, &before, 1, &plan));
    fix_now += 2 * CLAIM_MS;
    struct claim claimed = fix_claim(1);
    task_begin(&work, &claimed);
    asked(work.task, asked_arg, 201, SPAN("{\"token\":\"lane\"}"));
    asked(work.task, asked_arg, 204, SPAN_NONE); /* its identity has ended */
    assert_null(work.task);
    later(later_arg);
    assert_int_equal(fix_row("acme", &c.turn)->end, END_CUT);
    assert_true(span_eq(fix_row("acme", &c.turn)->why, SPAN("the answer stopped: length")));
}

/* A live replay that ended two workers: its third one asks no model and begins no step. */
static void what_ended_workers_is_only_cleaned_up_behind(void **state)
{
    struct bstore_chatted c = chat(0), again;
    struct claim claimed = fix_claim(1);
    fix_ok(bstore_finish(fix, &claimed, END_COMPLETED, SPAN_NONE));
    const struct bstore_live in = {.tenant = SPAN("acme"), .turn = c.turn, .model = SPAN("one")};
    fix_ok(bstore_live(fix, &in, &again));
    for (unsigned i = 1; i <= 2; i++) {
        claimed = fix_claim(i);
        fix_now += 2 * CLAIM_MS;
    }
    claimed = fix_claim(3);
    turns_seen = 0;
    task_begin(&work, &claimed);
    asked(work.task, asked_arg, 201, SPAN("{\"token\":\"lane\"}"));
    assert_string_equal(asked_for, "POST /destroy");
    asked(work.task, asked_arg, 204, SPAN_NONE);
    assert_non_null(strstr(asked_for, "/identity?end_session=1"));
    assert_int_equal(fix_row("acme", &again.turn)->end, END_NONE);
    assert_int_equal(turns_seen, 0);
    asked(work.task, asked_arg, 204, SPAN_NONE);
    assert_null(work.task);
    later(later_arg);
    assert_true(span_eq(fix_row("acme", &again.turn)->state, SPAN("aside")));
    assert_int_equal(turns_seen, 1); /* its end is counted, as that of any other */
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(refused_for_good_it_ends),
                                       T(what_is_open_then_is_not_known),
                                       T(what_cannot_be_had_now_is_asked_for_later_each_time),
                                       T(meanwhile_it_can_be_cancelled_and_runs_out_of_time),
                                       T(what_it_began_may_be_ended_yet),
                                       T(readers_see_what_grows_large_in_an_event),
                                       T(models_are_those_that_may_see_the_conversation),
                                       T(what_has_no_room_is_not_left_out),
                                       T(an_answer_that_stopped_is_not_called_complete),
                                       T(what_ended_workers_is_only_cleaned_up_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
