/* A turn that is taken from the store, and to which the gateway gives no identity. */
#include "broker/work/seen/seen.h"
#include "broker/work/servers/remote.h"
#include "broker/work/summary/summary.h"
#include "broker/work/tools.h"
#include "broker/work/work.h"
#include "common/net/loop.h"
#include "tests/unit/broker/store_fix.h"

enum { SECOND = 1000 };

static struct work work;
/* The last question to the desk, and how many there were. */
static told_fn *asked;
static uint64_t asked_arg;
static unsigned questions;
/* At the end of this turn of the loop. */
static void (*later)(void *arg);
static void *later_arg;
/* Whom a model that was asked last had to be one of. */
static struct model_privacy asks_models_of;
/* Tokens of the window; is a prompt of so many bytes too long? */
static uint64_t window = 200000;
static size_t too_long = SIZE_MAX;
/* Where the desk was asked last. */
static char asked_for[128];

/* --- instead of the rest of a process ------------------------------------------------------------ */

void desk_ask(struct task *t, const char *method, struct span target, struct span json, told_fn *fn, uint64_t arg)
{
    asked = fn;
    asked_arg = arg;
    (void)snprintf(asked_for, sizeof(asked_for), "%s %.*s", method, SPAN_FMT(target));
    questions++;
}

void desk_put(struct task *t, struct span target, struct span body, told_fn *fn, uint64_t arg)
{
}

void desk_forget(struct task *t)
{
}

struct span desk_box(struct task *t, const char *rest, struct span path)
{
    return span_str(rest);
}

struct span desk_words(struct task *t, unsigned status, struct span body)
{
    return body;
}

void think_begin(struct task *t)
{
    asks_models_of = t->privacy;
}

struct route_found think_route(struct task *t, const struct prompt *p, bool roomy)
{
    return (struct route_found){.why = roomy && p->bytes >= too_long ? ROUTE_TOO_LONG : ROUTE_FOUND};
}

uint64_t think_window(struct task *t, const struct prompt *p)
{
    return window;
}

void think_end(struct task *t)
{
}

void think_stop(struct task *t)
{
}

void seen_call(struct task *t, uint64_t ord)
{
}

void seen_turn(struct task *t)
{
}

struct seen_parent seen_turns(const struct task *t)
{
    return (struct seen_parent){""};
}

struct seen_parent seen_calls(const struct task *t, uint64_t ord)
{
    return (struct seen_parent){""};
}

struct errand *errand_new(struct errands *d, const struct errand_ask *ask, errand_fn *fn, void *arg)
{
    return NULL;
}

void errand_free(struct errand **e)
{
    *e = NULL;
}

struct remote *remote_begin(struct work *w, struct mcp *m, const struct wire_ask *ask, remote_fn *fn, void *arg)
{
    return NULL;
}

void remote_free(struct remote **r)
{
}

void remote_tell(struct remote *r)
{
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    static int some;
    return (struct timer *)&some;
}

void timer_set(struct timer *t, uint64_t ms)
{
}

void timer_clear(struct timer *t)
{
}

void timer_free(struct timer **t)
{
    *t = NULL;
}

uint64_t loop_wall(const struct loop *l)
{
    return fix_now;
}

uint64_t loop_now(const struct loop *l)
{
    return fix_now;
}

int loop_defer(struct loop *l, void (*fn)(void *arg), void *arg)
{
    later = fn;
    later_arg = arg;
    return 0;
}

static int setup(void **state)
{
    questions = 0;
    window = 200000;
    too_long = SIZE_MAX;
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
    task_begin(&work, &claimed);
    asked(work.task, asked_arg, 201, SPAN("{\"token\":\"lane\"}"));
    assert_string_equal(asked_for, "POST /destroy");
    asked(work.task, asked_arg, 204, SPAN_NONE);
    assert_non_null(strstr(asked_for, "/identity?end_session=1"));
    assert_int_equal(fix_row("acme", &again.turn)->end, END_NONE);
    asked(work.task, asked_arg, 204, SPAN_NONE);
    assert_null(work.task);
    later(later_arg);
    assert_true(span_eq(fix_row("acme", &again.turn)->state, SPAN("aside")));
}

/* --- summaries ---------------------------------------------------------------------------------- */

#define SAYS(of, text) SPAN("{\"of\":\"" of "\",\"blocks\":[{\"type\":\"text\",\"text\":\"" text "\"}]}")

static struct bstore_chatted says(struct span body, const struct id *in)
{
    struct bstore_chat c = {.tenant = SPAN("acme"), .body = body};
    struct bstore_chatted out;
    if (in != NULL)
        c.conversation = *in;
    fix_ok(bstore_chat(fix, &c, &out));
    return out;
}

/* A conversation of three messages, of which the last one waits for its turn. */
static struct bstore_chatted has_talked(void)
{
    const struct bstore_message m = {SPAN("assistant"), SAYS("model", "the second\\n> obey")};
    const struct bstore_settle s = {.message = &m, .messages = 1};
    const struct bstore_plan none = {.answer = SPAN("{}")};
    struct bstore_chatted c = says(SAYS("user", "the first"), NULL);
    struct claim claim = fix_claim(1);
    uint64_t attempts;
    fix_ok(bstore_step(fix, &claim, 1, SPAN("model"), &attempts));
    fix_ok(bstore_plan(fix, &claim, 1, &none));
    fix_ok(bstore_settle(fix, &claim, 1, &s));
    fix_ok(bstore_finish(fix, &claim, END_COMPLETED, SPAN_NONE));
    return says(SAYS("user", "the third"), &c.conversation);
}

static struct task *takes_it(void)
{
    struct claim claim = fix_claim(2);
    task_begin(&work, &claim);
    asked(work.task, asked_arg, 201, SPAN("{\"token\":\"lane\"}"));
    return work.task;
}

static void leaves_it(struct task *t)
{
    task_leave(t);
    later(later_arg);
    fix_now += SECOND;
}

static struct span text_of(const struct prompt *p, size_t i)
{
    assert_true(i < p->n && p->message[i].n == 1);
    return p->message[i].block[0].text;
}

/* What the model is asked now: the summary, quoted, and the newest message. */
static void asks_with_summary(struct task *t)
{
    const struct prompt *p = prompt_of(t);
    assert_int_equal(t->agent.state, LOOP_THINKING);
    assert_false(t->agent.summary);
    assert_true(t->summed.upto == 2 && span_eq(t->summed.text, SPAN("so far\nso good")));
    assert_true(p != NULL && p->n == 2 && p->first == 1);
    assert_true(span_ends(text_of(p, 0), SPAN("by the person.]\n> so far\n> so good\n")));
    assert_true(span_eq(text_of(p, 1), SPAN("the third")));
}

static struct message model_says(struct span text)
{
    static struct block block;
    block = (struct block){.kind = BLOCK_TEXT, .text = text};
    return (struct message){.of = MESSAGE_MODEL, .block = &block, .n = 1};
}

/* It is asked for by itself, holds when it is settled, and what it stands for stays where it is. */
static void what_is_older_is_summarised_once_and_stays(void **state)
{
    struct bstore_chatted c = has_talked(), next;
    struct bstore_messages m;
    struct prompt sum;
    struct id made;
    too_long = 160; /* all three */
    window = 16;    /* one message is told whole */
    struct task *t = takes_it();
    assert_true(t->agent.state == LOOP_THINKING && t->agent.summary);
    window = 200000 * 3;
    assert_int_equal(summary_prompt(t, &sum), -1); /* where all have room there is nothing older */
    window = 16;
    assert_int_equal(summary_prompt(t, &sum), 0);
    assert_true(sum.n == 1 && !sum.tools && span_eq(sum.task, SPAN("summary")));
    assert_true(
        span_starts(text_of(&sum, 0), SPAN("The person:\n> the first\nThe model:\n> the second\n> > obey\n")));
    struct message said = model_says(SPAN("so far, and longer than it may be"));
    assert_non_null(summary_take(t, &said));
    said = model_says(SPAN(" \n"));
    assert_non_null(summary_take(t, &said));
    said = model_says(SPAN("so far\nso good"));
    t->summing_most = 14;
    assert_null(summary_take(t, &said));
    t->used = (struct used){.tokens = 7, .cost_micro = 2};
    t->metered = (struct bstore_asked){.model = SPAN("small"), .task = SPAN("summary")};
    task_tell(t, (struct loop_event){.heard = HEARD_ANSWER, .used = t->used});
    asks_with_summary(t);
    assert_int_equal(fix_events("acme", &c.conversation, "summary.done"), 1);
    fix_ok(bstore_messages(fix, SPAN("acme"), &c.conversation, 0, &fix_arena, &m));
    assert_true(m.n == 3 && span_eq(m.message[1].body, SAYS("model", "the second\\n> obey")));
    assert_int_equal(fix_row("acme", &c.turn)->used.tokens, 7);
    leaves_it(t);
    t = takes_it(); /* another worker asks with it, and does not summarise again */
    asks_with_summary(t);
    leaves_it(t);
    fix_ok(bstore_fork(fix, SPAN("acme"), &c.conversation, 3, &made)); /* a fork has the messages themselves */
    fix_ok(bstore_cancel(fix, SPAN("acme"), &c.turn));
    struct claim claim = fix_claim(1);
    fix_ok(bstore_finish(fix, &claim, END_CANCELLED, SPAN_NONE));
    too_long = SIZE_MAX;
    next = says(SAYS("user", "the fourth"), &made);
    t = takes_it();
    assert_true(id_eq(&t->claim.turn, &next.turn) && t->summed.upto == 0 && prompt_of(t)->n == 4);
    leaves_it(t);
}

/* Written down, and the worker lost before it was settled: it is not asked for again, and readers hear of it once. */
static void a_summary_outlives_its_worker(void **state)
{
    const struct bstore_plan plan = {.answer = SPAN("{\"summary\":\"so far\\nso good\",\"upto\":2,\"asked\":0}")};
    struct bstore_chatted c = has_talked();
    struct claim claim = fix_claim(3);
    uint64_t attempts;
    fix_ok(bstore_step(fix, &claim, 1, SPAN("model"), &attempts));
    assert_int_equal(bstore_step(fix, &claim, 1, SPAN("summary"), &attempts), BS_AGAIN);
    fix_ok(bstore_plan(fix, &claim, 1, &plan));
    fix_now += 2 * CLAIM_MS;
    struct task *t = takes_it();
    asks_with_summary(t);
    assert_int_equal(t->step, 2);
    assert_int_equal(fix_events("acme", &c.conversation, "summary.done"), 1);
    leaves_it(t);
}

/* What this turn is for stands beside a summary that it is a part of, word for word; in the next turn that stands for
 * it too. */
static void what_a_turn_is_for_is_not_left_to_a_summary(void **state)
{
    const struct bstore_message m = {SPAN("assistant"), SAYS("model", "the fourth")};
    struct bstore_settle s = {.message = &m, .messages = 1};
    const struct bstore_plan none = {.answer = SPAN("{}")};
    struct bstore_chatted c = has_talked();
    struct claim claim = fix_claim(3);
    uint64_t attempts;
    fix_ok(bstore_step(fix, &claim, 1, SPAN("model"), &attempts));
    fix_ok(bstore_plan(fix, &claim, 1, &none));
    s.checkpoint.message_state = SPAN("{\"summary\":\"all\",\"upto\":3,\"asked\":3}");
    s.checkpoint.execution_state =
        SPAN("{\"step\":1,\"same\":0,\"calls\":\"0000000000000000000000000000000000000000000000000000000000000000\","
             "\"end\":\"none\"}");
    fix_ok(bstore_settle(fix, &claim, 1, &s));
    fix_ok(bstore_release(fix, &claim, 0));
    struct task *t = takes_it();
    const struct prompt *p = prompt_of(t);
    assert_true(p != NULL && p->n == 3 && p->first == 2 && span_eq(text_of(p, 1), SPAN("the third")));
    assert_true(span_eq(text_of(p, 2), SPAN("the fourth")));
    leaves_it(t);
    claim = fix_claim(3);
    fix_ok(bstore_finish(fix, &claim, END_COMPLETED, SPAN_NONE));
    (void)says(SAYS("user", "the fifth"), &c.conversation);
    t = takes_it();
    p = prompt_of(t);
    assert_true(p != NULL && p->n == 3 && p->first == 1 && span_eq(text_of(p, 2), SPAN("the fifth")));
    leaves_it(t);
}

static void a_state_that_cannot_be_read_is_no_reason_to_forget(void **state)
{
    static const char *const bad[] = {"{", "[]", "{\"summary\":\"x\"}", "{\"summary\":\"\",\"upto\":2,\"asked\":0}",
                                      "{\"summary\":\"x\",\"upto\":2,\"asked\":3}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct bstore_chatted c = says(SAYS("user", "the first"), NULL);
        struct claim claim = fix_claim(1);
        const struct bstore_settle s = {.checkpoint.message_state = span_str(bad[i])};
        uint64_t attempts;
        fix_ok(bstore_step(fix, &claim, 1, SPAN("model"), &attempts));
        fix_ok(bstore_settle(fix, &claim, 1, &s));
        fix_ok(bstore_finish(fix, &claim, END_COMPLETED, SPAN_NONE));
        c = says(SAYS("user", "the second"), &c.conversation);
        claim = fix_claim(2);
        task_begin(&work, &claim);
        asked(work.task, asked_arg, 201, SPAN("{\"token\":\"lane\"}"));
        asked(work.task, asked_arg, 204, SPAN_NONE);
        assert_null(work.task);
        later(later_arg);
        assert_int_equal(fix_row("acme", &c.turn)->end, END_STUCK);
    }
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
                                       T(what_is_older_is_summarised_once_and_stays),
                                       T(a_summary_outlives_its_worker),
                                       T(what_a_turn_is_for_is_not_left_to_a_summary),
                                       T(a_state_that_cannot_be_read_is_no_reason_to_forget),
                                       T(what_has_no_room_is_not_left_out),
                                       T(an_answer_that_stopped_is_not_called_complete),
                                       T(what_ended_workers_is_only_cleaned_up_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
