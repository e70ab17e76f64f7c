/* A turn whose conversation is longer than a window: what is older is summarised, once, and stays. */
#include "broker/work/summary/summary.h"
#include "tests/unit/broker/summary/talk.h"

/* Tokens of the window; is a prompt of so many bytes too long? */
static uint64_t window = 200000;
static size_t too_long = SIZE_MAX;

void think_begin(struct task *t)
{
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

/* --- summaries ---------------------------------------------------------------------------------- */

static struct bstore_chatted has_talked(void)
{
    return has_said(SAYS("user", "the first"), SAYS("user", "the third"));
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
    assert_true(span_ends(text_of(p, 0), SPAN("person has set.]\n> so far\n> so good\n")));
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
    assert_int_equal(summary_prompt(t, &sum), 0); /* what else is told may have taken the room that they would have */
    assert_int_equal(t->summing.upto, 2);
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

static void begins(const struct claim *c, struct span kind)
{
    uint64_t attempts;
    fix_ok(bstore_step(fix, c, 1, kind, &attempts));
}

/* What it may come to stands in the step's kind while it is asked: the word stays. */
static void a_summary_that_was_asked_is_one_for_who_takes_it_over(void **state)
{
    const struct bstore_plan plan = {.answer = SPAN("{\"summary\":\"so far\\nso good\",\"upto\":2,\"asked\":0}")};
    struct budgets budgets;
    assert_int_equal(budgets_read(SPAN("acme day 1000 -\n"), &budgets), 0);
    (void)has_talked();
    fix->budgets = &budgets;
    struct claim claim = fix_claim(3);
    begins(&claim, SUMMARY_KIND);
    fix_ok(bstore_ask(fix, &claim, 1, SUMMARY_KIND, &(struct used){.tokens = 20, .cost_micro = 3}));
    assert_true(span_eq(fix_load(&claim).kind, SPAN("summary 20 3")));
    fix_ok(bstore_plan(fix, &claim, 1, &plan));
    fix_now += 2 * CLAIM_MS;
    struct task *t = takes_it();
    asks_with_summary(t);
    leaves_it(t);
    fix->budgets = NULL;
}

/* A broker of an earlier version took a summary over, and asked for an answer in its step. */
static void what_is_no_summary_is_an_answer(void **state)
{
    const struct bstore_plan plan = {.answer = SAYS("model", "the fourth")};
    struct bstore_messages m;
    struct bstore_chatted c = has_talked();
    struct claim claim = fix_claim(3);
    begins(&claim, SUMMARY_KIND);
    fix_ok(bstore_plan(fix, &claim, 1, &plan));
    fix_now += 2 * CLAIM_MS;
    (void)takes_it();
    asked(work.task, asked_arg, 204, SPAN_NONE); /* its identity has ended */
    later(later_arg);
    assert_int_equal(fix_row("acme", &c.turn)->end, END_COMPLETED);
    fix_ok(bstore_messages(fix, SPAN("acme"), &c.conversation, 0, &fix_arena, &m));
    assert_true(m.n == 4 && span_eq(m.message[3].body, plan.answer));
    assert_int_equal(fix_events("acme", &c.conversation, "summary.done"), 0);
    /* nor is one that asks for calls */
    const struct bstore_found_call none = {.settled.end = CALL_OPEN};
    struct bstore_turn f = {.kind = SUMMARY_KIND,
                            .planned = true,
                            .answer = SPAN("{\"summary\":\"x\",\"upto\":2,\"asked\":0}"),
                            .call = (struct bstore_found_call[]){none}};
    assert_true(summary_found(&f));
    f.calls = 1;
    assert_false(summary_found(&f));
}

/* Who knows nothing of summaries can settle what it leaves: as a message that says nothing. */
static void what_a_summary_leaves_can_be_read_as_a_message(void **state)
{
    struct message said = model_says(SPAN("so far")), is;
    struct err e;
    (void)has_talked();
    struct task *t = takes_it();
    t->summing = (struct summed){.upto = 2};
    t->summing_most = 6;
    assert_null(summary_take(t, &said));
    assert_int_equal(message_get(json_parse(t->answer, &fix_arena), &fix_arena, &is, &e), 0);
    assert_true(is.of == MESSAGE_MODEL && is.n == 0);
    leaves_it(t);
}

/* Whoever only settles what is open, because nobody may go on, keeps what there is. */
static void a_turn_that_is_refused_keeps_the_summary(void **state)
{
    const struct bstore_message m = {SPAN("assistant"), SAYS("model", "the fourth")};
    const struct bstore_call call = {SPAN("run_command"), SPAN("{\"command\":\"make\"}"), CALL_UNSAFE};
    const struct bstore_plan plan = {
        .answer = SPAN("{\"of\":\"model\",\"blocks\":[{\"type\":\"call\",\"id\":\"a\",\"name\":\"run_command\","
                       "\"input\":{\"command\":\"make\"}}]}"),
        .call = &call,
        .n = 1};
    const struct bstore_settle s = {
        .message = &m,
        .messages = 1,
        .checkpoint = {.message_state = SPAN("{\"summary\":\"so far\\nso good\",\"upto\":2,\"asked\":0}"),
                       .execution_state = SPAN("{\"step\":1,\"same\":0,\"calls\":"
                                               "\"0000000000000000000000000000000000000000000000000000000000000000\","
                                               "\"end\":\"none\"}")}};
    struct bstore_chatted c = has_talked();
    struct claim claim = fix_claim(3);
    uint64_t attempts;
    begins(&claim, MODEL_KIND);
    fix_ok(bstore_settle(fix, &claim, 1, &s));
    fix_ok(bstore_step(fix, &claim, 2, MODEL_KIND, &attempts));
    fix_ok(bstore_plan(fix, &claim, 2, &plan));
    fix_now += 2 * CLAIM_MS;
    claim = fix_claim(2);
    task_begin(&work, &claim);
    asked(work.task, asked_arg, 401, SPAN("there is no key"));
    assert_null(work.task);
    later(later_arg);
    assert_int_equal(fix_row("acme", &c.turn)->end, END_REFUSED);
    assert_true(span_eq(fix_row("acme", &c.turn)->why, SPAN("there is no key")));
    (void)says(SAYS("user", "the fifth"), &c.conversation);
    struct task *t = takes_it();
    assert_true(t->summed.upto == 2 && span_eq(t->summed.text, SPAN("so far\nso good")));
    leaves_it(t);
}

static bool has(struct span text, const char *part)
{
    return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

/* In a smaller window than it was made for. What is cut is said to be. */
static void what_stands_for_the_rest_has_room_in_a_smaller_window(void **state)
{
    static char ask[4096], sum[6000], body[4200], kept[6200];
    const struct bstore_message m = {SPAN("assistant"), SAYS("model", "the fourth")};
    struct prompt p;
    memset(ask, 'b', sizeof(ask) - 1);
    memset(sum, 's', sizeof(sum) - 1);
    memcpy(ask + sizeof(ask) - 4, "end", 3);
    memcpy(sum + sizeof(sum) - 4, "end", 3);
    snprintf(body, sizeof(body), "{\"of\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"%s\"}]}", ask);
    snprintf(kept, sizeof(kept), "{\"summary\":\"%s\",\"upto\":3,\"asked\":3}", sum);
    (void)has_said(SAYS("user", "the first"), span_str(body));
    struct claim claim = fix_claim(3);
    const struct bstore_settle s = {
        .message = &m,
        .messages = 1,
        .checkpoint = {.message_state = span_str(kept),
                       .execution_state = SPAN("{\"step\":1,\"same\":0,\"calls\":"
                                               "\"0000000000000000000000000000000000000000000000000000000000000000\","
                                               "\"end\":\"none\"}")}};
    begins(&claim, MODEL_KIND);
    fix_ok(bstore_settle(fix, &claim, 1, &s));
    fix_ok(bstore_release(fix, &claim, 0));
    window = 4000; /* a quarter of it for the summary, an eighth for what was asked */
    struct task *t = takes_it();
    const struct prompt *all = prompt_of(t);
    assert_true(all != NULL && all->n == 3 && all->first == 2);
    assert_true(span_ends(text_of(all, 0), SPAN("send\n")) &&
                has(text_of(all, 0), "2999 of 5999 bytes are left out here]\n> s"));
    assert_true(span_ends(text_of(all, 1), SPAN("bend")) &&
                has(text_of(all, 1), "b\n[2595 of 4095 bytes are left out here]\nb"));
    assert_in_range(all->bytes, 4500, 5200);
    window = 16;
    assert_int_equal(summary_prompt(t, &p), -1); /* the newest message alone is left */
    window = 4000;
    t->summed = (struct summed){.upto = 0};
    t->prompt = NULL;
    window = 16;
    assert_int_equal(summary_prompt(t, &p), 0);
    assert_true(t->summing.upto == 3 && t->summing.asked == 3); /* however long it is */
    t->summed = (struct summed){.text = span_str(sum), .upto = 1};
    t->prompt = NULL;
    assert_int_equal(summary_prompt(t, &p), 0);
    assert_true(has(text_of(&p, 0), " of 5999 bytes are left out here]\n"));
    leaves_it(t);
}

/* It is in the store: the next worker has it. */
static void a_summary_that_does_not_hold_is_not_gone_on_without(void **state)
{
    struct bstore_chatted c = has_talked();
    too_long = 160;
    window = 16;
    struct task *t = takes_it();
    assert_true(t->agent.summary);
    t->answer = SPAN("{}");
    task_tell(t, (struct loop_event){.heard = HEARD_ANSWER});
    assert_null(work.task);
    later(later_arg);
    assert_int_equal(fix_row("acme", &c.turn)->end, END_NONE);
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
    const struct CMUnitTest tests[] = {T(what_is_older_is_summarised_once_and_stays),
                                       T(a_summary_outlives_its_worker),
                                       T(a_turn_that_is_refused_keeps_the_summary),
                                       T(what_stands_for_the_rest_has_room_in_a_smaller_window),
                                       T(a_summary_that_does_not_hold_is_not_gone_on_without),
                                       T(a_summary_that_was_asked_is_one_for_who_takes_it_over),
                                       T(what_is_no_summary_is_an_answer),
                                       T(what_a_summary_leaves_can_be_read_as_a_message),
                                       T(what_a_turn_is_for_is_not_left_to_a_summary),
                                       T(a_state_that_cannot_be_read_is_no_reason_to_forget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
