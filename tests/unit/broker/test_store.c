/* What every backend of the broker's store has to do. */
#include "tests/unit/broker/store_fix.h"

static struct bstore_chat asked(const char *tenant, const char *key, const char *request)
{
    struct bstore_chat c = {.tenant = span_str(tenant), .key = span_str(key), .body = SPAN("{}")};
    digest_of(span_str(request), &c.request);
    return c;
}

/* --- asked for ------------------------------------------------------------------------ */

static void a_key_is_one_turn(void **state)
{
    struct bstore_chatted first, again;
    struct bstore_chat c = asked("acme", "k1", "the request");
    fix_ok(bstore_chat(fix, &c, &first));
    assert_int_equal(bstore_chat(fix, &c, &again), BS_AGAIN);
    assert_memory_equal(&first, &again, sizeof(first));
    c = asked("acme", "k1", "another request");
    assert_int_equal(bstore_chat(fix, &c, &again), BS_CONFLICT);
    c = asked("other", "k1", "another request"); /* its own keys */
    fix_ok(bstore_chat(fix, &c, &again));
    assert_false(id_eq(&first.turn, &again.turn));
    fix_now += BSTORE_KEY_AGE_MAX - 1;
    fix_ok(bstore_sweep(fix));
    c = asked("acme", "k1", "the request");
    assert_int_equal(bstore_chat(fix, &c, &again), BS_AGAIN);
    fix_now += 1;
    fix_ok(bstore_sweep(fix));
    fix_ok(bstore_chat(fix, &c, &again)); /* forgotten by now */
    assert_false(id_eq(&first.turn, &again.turn));
}

static void nothing_of_another_tenant(void **state)
{
    struct bstore_chatted mine = fix_chat("acme", NULL);
    struct bstore_chat c = asked("other", "", "x");
    struct bstore_turn_row row;
    struct bstore_log log;
    struct bstore_messages messages;
    struct bstore_chatted out;
    struct claim claim = fix_claim(1);
    const struct bstore_event e = {SPAN("text"), SPAN("{}")};
    uint64_t seq;
    c.conversation = mine.conversation;
    assert_int_equal(bstore_chat(fix, &c, &out), BS_NONE);
    assert_int_equal(bstore_turn(fix, SPAN("other"), &mine.turn, &fix_arena, &row), BS_NONE);
    assert_int_equal(bstore_events(fix, SPAN("other"), &mine.conversation, 0, 0, &fix_arena, &log), BS_NONE);
    assert_int_equal(bstore_messages(fix, SPAN("other"), &mine.conversation, 0, &fix_arena, &messages), BS_NONE);
    assert_int_equal(bstore_cancel(fix, SPAN("other"), &mine.turn), BS_NONE);
    assert_int_equal(bstore_cancel(fix, SPAN_NONE, &mine.turn), BS_NONE);
    memcpy(claim.tenant, "otte", 4); /* a claim is one of its tenant, too */
    assert_int_equal(bstore_extend(fix, &claim), BS_FENCED);
    assert_int_equal(bstore_log(fix, &claim, &e, 1, &seq), BS_FENCED);
    assert_int_equal(fix_events("acme", &mine.conversation, "text"), 0);
}

static void a_neighbour_is_served_beside_a_full_queue(void **state)
{
    struct bstore_chat c = asked("greedy", "", "x");
    struct bstore_chatted out, neighbour;
    struct claim got[2];
    for (unsigned i = 0; i < BSTORE_TURNS_EACH; i++)
        fix_chat("greedy", NULL);
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FULL);
    fix_claim(1);
    fix_now += 10;
    neighbour = fix_chat("small", NULL); /* last, and next */
    got[0] = fix_claim(2);
    assert_true(id_eq(&got[0].turn, &neighbour.turn));
    fix_chat("small", NULL);
    got[1] = fix_claim(3);
    assert_int_equal(got[1].tenant_n, 6); /* and the other one after that */
    fix_ok(bstore_finish(fix, &got[0], END_COMPLETED, SPAN_NONE));
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FULL); /* its own are as many as they were */
    fix_ok(bstore_finish(fix, &got[1], END_COMPLETED, SPAN_NONE));
    fix_ok(bstore_chat(fix, &c, &out));
}

static void a_conversation_has_so_many_waiting(void **state)
{
    struct bstore_chatted first = fix_chat("acme", NULL), out;
    struct bstore_chat c = asked("acme", "", "x");
    for (unsigned i = 1; i < BSTORE_TALK_MAX; i++)
        fix_chat("acme", &first.conversation);
    c.conversation = first.conversation;
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FULL);
    fix_chat("acme", NULL); /* another one goes on */
    struct claim claim = fix_claim(1);
    fix_ok(bstore_finish(fix, &claim, END_COMPLETED, SPAN_NONE));
    fix_ok(bstore_chat(fix, &c, &out));
}

/* As if it had so many: what is counted is a number of its row. */
static void a_tenant_at_its_counts(void **state)
{
    char sql[128];
    struct bstore_chatted first = fix_chat("acme", NULL), out;
    struct bstore_chat c = asked("acme", "", "x");
    snprintf(sql, sizeof(sql), "UPDATE tenant SET conversations=%d,keys=%d", BSTORE_CONVERSATIONS_EACH - 1,
             BSTORE_KEYS_EACH - 1);
    fix_exec(sql);
    c.key = SPAN("the last key");
    fix_ok(bstore_chat(fix, &c, &out)); /* the last conversation, too */
    c.key = SPAN_NONE;
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FULL);
    c.conversation = first.conversation;
    fix_ok(bstore_chat(fix, &c, &out)); /* in one that is there */
    c.key = SPAN("one key more");
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FULL);
    c = asked("other", "its own key", "x");
    fix_ok(bstore_chat(fix, &c, &out));
    fix_now += BSTORE_KEY_AGE_MAX; /* and once keys are forgotten, there is room again */
    fix_ok(bstore_sweep(fix));
    c = asked("acme", "one key more", "x");
    c.conversation = first.conversation;
    fix_ok(bstore_chat(fix, &c, &out));
}

static void what_is_over_a_bound_is_refused(void **state)
{
    static char big[BSTORE_BODY_MAX + 1];
    struct bstore_chat c = asked("acme", "", "x");
    struct bstore_chatted out;
    struct id worker = fix_id(1);
    struct claim claim;
    struct bstore_event e = {SPAN("text"), span_of(big, BSTORE_EVENT_MAX + 1)};
    struct bstore_settled how = {CALL_DONE, span_of(big, BSTORE_BODY_MAX + 1), SPAN_NONE};
    struct bstore_call call = {SPAN("t"), span_of(big, BSTORE_BODY_MAX + 1), CALL_READ};
    struct bstore_plan plan = {SPAN_NONE, {0, 0, 0}, &call, 1, {.input = 0}};
    struct bstore_settle settle = {.checkpoint = {.effect_log = span_of(big, BSTORE_BODY_MAX + 1)}};
    uint64_t n;
    memset(big, 'x', sizeof(big));
    c.body = span_of(big, sizeof(big));
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FULL);
    c.body.n--;
    fix_ok(bstore_chat(fix, &c, &out));
    c.tenant = span_of(big, BSTORE_NAME_MAX + 1);
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FULL);
    c = asked("acme", "", "x");
    c.key = span_of(big, BSTORE_KEY_MAX + 1);
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FULL);
    c = asked("acme", "", "x");
    c.budget.steps = TURN_STEPS_MAX + 1;
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FULL);
    assert_int_equal(bstore_claim(fix, &worker, BSTORE_CLAIM_MAX + 1, &claim), BS_FULL);
    claim = fix_claim(1);
    assert_int_equal(bstore_log(fix, &claim, &e, 1, &n), BS_FULL);
    e.body.n--;
    fix_ok(bstore_log(fix, &claim, &e, 1, &n));
    fix_ok(bstore_step(fix, &claim, 1, SPAN("model"), &n));
    assert_int_equal(bstore_plan(fix, &claim, 1, &plan), BS_FULL);
    call.args.n--;
    plan.n = TURN_CALLS_MAX + 1;
    assert_int_equal(bstore_plan(fix, &claim, 1, &plan), BS_FULL);
    plan.n = 1;
    fix_ok(bstore_plan(fix, &claim, 1, &plan));
    assert_int_equal(bstore_call(fix, &claim, 1, 0, &how), BS_FULL);
    how.result.n--;
    fix_ok(bstore_call(fix, &claim, 1, 0, &how));
    assert_int_equal(bstore_settle(fix, &claim, 1, &settle), BS_FULL);
    settle.checkpoint.effect_log.n--;
    fix_ok(bstore_settle(fix, &claim, 1, &settle));
}

/* --- the claim ------------------------------------------------------------------------ */

static void one_worker_at_a_time(void **state)
{
    struct bstore_chatted first = fix_chat("acme", NULL), second;
    struct id worker = fix_id(2);
    struct claim other, c = fix_claim(1);
    assert_int_equal(bstore_claim(fix, &worker, CLAIM_MS, &other), BS_NONE);
    second = fix_chat("acme", &first.conversation); /* the next one of a conversation waits for the one before */
    assert_int_equal(bstore_claim(fix, &worker, CLAIM_MS, &other), BS_NONE);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    fix_ok(bstore_claim(fix, &worker, CLAIM_MS, &other));
    assert_true(id_eq(&other.turn, &second.turn));
    assert_true(id_eq(&other.conversation, &first.conversation));
}

static enum bstore_result every_change(const struct claim *c, unsigned which)
{
    const struct bstore_event e = {SPAN("text"), SPAN("{}")};
    const struct bstore_plan plan = {.answer = SPAN("a")};
    struct bstore_turn t;
    uint64_t n;
    bool cancelled;
    switch (which) {
    case 0: return bstore_extend(fix, c);
    case 1: return bstore_release(fix, c, 0);
    case 2: return bstore_load(fix, c, &fix_arena, &t);
    case 3: return bstore_step(fix, c, 2, SPAN("model"), &n);
    case 4: return bstore_plan(fix, c, 2, &plan);
    case 5: return bstore_class(fix, c, 1, 0, CALL_UNSAFE);
    case 6: return fix_call(c, 1, "late");
    case 7: return fix_settle(c, 1, "{}");
    case 8: return bstore_log(fix, c, &e, 1, &n);
    case 9: return bstore_finish(fix, c, END_COMPLETED, SPAN_NONE);
    case 10: return bstore_spent(fix, c, &(struct used){.tokens = 1}, &fix_asked);
    default: return bstore_cancelled(fix, c, &cancelled);
    }
}
enum { CHANGES = 12 };

static void a_late_worker_can_change_nothing(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct claim first = fix_claim(1), second, other;
    fix_plan(&first, 1, CALL_UNSAFE);
    fix_now += CLAIM_MS - 1;
    fix_ok(bstore_extend(fix, &first)); /* in time */
    fix_now += CLAIM_MS;
    for (unsigned i = 0; i < CHANGES; i++) /* nobody has taken it yet, and still it is too late */
        assert_int_equal(every_change(&first, i), BS_FENCED);
    second = fix_claim(1); /* the same worker, even */
    assert_true(second.epoch > first.epoch);
    for (unsigned i = 0; i < CHANGES; i++)
        assert_int_equal(every_change(&first, i), BS_FENCED);
    other = second;
    other.worker = fix_id(3);
    assert_int_equal(bstore_extend(fix, &other), BS_FENCED);
    other = second;
    other.conversation = fix_id(4);
    assert_int_equal(bstore_extend(fix, &other), BS_FENCED);
    fix_ok(fix_call(&second, 1, "mine"));
    fix_ok(fix_settle(&second, 1, "{}"));
    fix_ok(bstore_finish(fix, &second, END_COMPLETED, SPAN_NONE));
    for (unsigned i = 0; i < CHANGES; i++)
        assert_int_equal(every_change(&second, i), BS_FENCED);
    assert_int_equal(fix_events("acme", &t.conversation, "turn.done"), 1);
}

static void a_claim_goes_by_the_stores_clock(void **state)
{
    struct id worker = fix_id(2);
    struct claim c, other;
    fix_chat("acme", NULL);
    c = fix_claim(1);
    fix_now += CLAIM_MS - 1;
    assert_int_equal(bstore_claim(fix, &worker, CLAIM_MS, &other), BS_NONE);
    fix_now += 1;
    fix_ok(bstore_claim(fix, &worker, CLAIM_MS, &other));
    assert_true(id_eq(&c.turn, &other.turn));
    assert_int_equal(fix_load(&other).lost, 1);
}

static void two_workers_at_one_step_and_it_is_set_aside(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL), next = fix_chat("acme", &t.conversation);
    struct claim c;
    fix_claim(1);
    fix_now += CLAIM_MS;
    c = fix_claim(2);
    fix_plan(&c, 1, CALL_UNSAFE);
    fix_now += CLAIM_MS;
    c = fix_claim(3);
    assert_true(id_eq(&c.turn, &next.turn)); /* what waits behind it goes on */
    const struct bstore_turn_row *row = fix_row("acme", &t.turn);
    assert_true(span_eq(row->state, SPAN("aside")));
    assert_int_equal(row->end, END_SET_ASIDE);
    assert_int_equal(fix_events("acme", &t.conversation, "turn.done"), 1);
    assert_int_equal(bstore_cancel(fix, SPAN("acme"), &t.turn), BS_NONE);
}

static bool told(const struct bstore_read_message *m, const char *words)
{
    return span_find(m->body, span_str(words)) < m->body.n;
}

/* The model of the next turn is told what the calls were that nobody saw the end of, and what the others said. */
static void what_was_set_aside_is_told_to_the_next_turn(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    const struct bstore_call call[] = {{SPAN("shell"), SPAN("{\"command\":\"make\"}"), CALL_UNSAFE},
                                       {SPAN("shell"), SPAN("{\"command\":\"send\"}"), CALL_UNSAFE}};
    const struct bstore_plan plan = {SPAN("[\"answer\"]"), {0, 10, 3}, call, 2, {.input = 0}};
    struct bstore_messages m;
    uint64_t attempts;
    struct claim c = fix_claim(1);
    (void)fix_chat("acme", &t.conversation);
    fix_ok(bstore_step(fix, &c, 1, SPAN("model"), &attempts));
    fix_ok(bstore_plan(fix, &c, 1, &plan));
    fix_ok(fix_call(&c, 1, "it was made"));
    fix_now += CLAIM_MS;
    c = fix_claim(2);
    fix_now += CLAIM_MS;
    c = fix_claim(3);
    fix_ok(bstore_messages(fix, SPAN("acme"), &t.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 3);
    assert_true(span_eq(m.message[1].role, SPAN("recalled")) && id_eq(&m.message[1].turn, &t.turn));
    assert_true(told(&m.message[1], "confirm the state") && told(&m.message[1], "outcome: done\\n> it was made"));
    assert_true(told(&m.message[1], "send") && told(&m.message[1], "outcome: unknown\\nThis call was cut off"));
    assert_true(span_starts(m.message[1].body,
                            SPAN("{\"of\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"The last step")));
}

static void a_step_that_settles_counts_anew(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct claim c;
    for (uint64_t n = 1; n < 6; n++) { /* a worker lost at each step, as when a machine is restarted often */
        c = fix_claim((unsigned)n);
        fix_plan(&c, n, CALL_READ);
        fix_now += CLAIM_MS;
        c = fix_claim((unsigned)n + 10);
        fix_ok(fix_call(&c, n, "ok"));
        fix_ok(fix_settle(&c, n, "{}"));
        fix_ok(bstore_release(fix, &c, 0));
    }
    c = fix_claim(99);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    assert_int_equal(fix_row("acme", &t.turn)->end, END_COMPLETED);
}

static void given_back_is_not_lost(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct id worker = fix_id(9);
    struct claim c;
    for (unsigned i = 0; i < 5; i++) {
        c = fix_claim(i + 1);
        fix_ok(bstore_release(fix, &c, 500));
        assert_int_equal(bstore_extend(fix, &c), BS_FENCED);
        fix_now += 499;
        assert_int_equal(bstore_claim(fix, &worker, CLAIM_MS, &c), BS_NONE);
        fix_now += 1;
    }
    c = fix_claim(1);
    fix_ok(bstore_release(fix, &c, 300000));
    fix_ok(bstore_cancel(fix, SPAN("acme"), &t.turn)); /* nor is a wait sat out for what is to end */
    c = fix_claim(1);
    assert_true(id_eq(&c.turn, &t.turn));
    assert_int_equal(c.epoch, 7);
    assert_int_equal(fix_load(&c).lost, 0);
}

static void cancelled_before_and_while_it_runs(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct claim c;
    bool cancelled;
    fix_ok(bstore_cancel(fix, SPAN("acme"), &t.turn));
    assert_int_equal(fix_row("acme", &t.turn)->end, END_CANCELLED);
    assert_int_equal(fix_events("acme", &t.conversation, "turn.done"), 1);
    assert_int_equal(bstore_cancel(fix, SPAN("acme"), &t.turn), BS_NONE);
    t = fix_chat("acme", &t.conversation);
    c = fix_claim(1);
    fix_ok(bstore_cancelled(fix, &c, &cancelled));
    assert_false(cancelled);
    fix_ok(bstore_cancel(fix, SPAN("acme"), &t.turn));
    fix_ok(bstore_cancelled(fix, &c, &cancelled));
    assert_true(cancelled && fix_load(&c).cancelled);
    assert_true(span_eq(fix_row("acme", &t.turn)->state, SPAN("running"))); /* whoever runs it ends it */
}

/* --- steps ------------------------------------------------------------------------------ */

static void a_turn_is_loaded_as_it_was_left(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct bstore_messages m;
    struct claim c = fix_claim(1);
    fix_plan(&c, 1, CALL_IDEMPOTENT);
    fix_ok(fix_call(&c, 1, "made"));
    fix_ok(fix_settle(&c, 1, "{\"next\":2}"));
    fix_plan(&c, 2, CALL_UNSAFE);
    fix_reopen();
    fix_now += CLAIM_MS;
    c = fix_claim(2);
    struct bstore_turn l = fix_load(&c);
    assert_true(span_eq(l.checkpoint.message_state, SPAN("{\"messages\":3}")));
    assert_true(span_eq(l.checkpoint.filesystem_state_ref, SPAN("snap-1")));
    assert_true(span_eq(l.checkpoint.execution_state, SPAN("{\"next\":2}")));
    assert_true(span_eq(l.checkpoint.effect_log, SPAN("[\"boot-7\"]")));
    assert_int_equal(l.settled, 1);
    assert_int_equal(l.used.steps, 1);
    assert_int_equal(l.used.tokens, 20);
    assert_int_equal(l.used.cost_micro, 6);
    assert_int_equal(l.open, 2);
    assert_true(l.planned && l.calls == 1 && l.lost == 1);
    assert_int_equal(l.call[0].settled.end, CALL_OPEN);
    assert_int_equal(l.call[0].call.class, CALL_UNSAFE);
    assert_true(span_eq(l.answer, SPAN("[\"answer\"]")));
    fix_ok(bstore_messages(fix, SPAN("acme"), &t.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 3); /* the person's, the answer, the result */
    assert_true(span_eq(m.message[0].role, SPAN("user")) && m.message[2].seq == 3);
    /* a later turn goes on from the messages and files, not from this turn's own state */
    fix_ok(fix_call(&c, 2, "x"));
    fix_ok(fix_settle(&c, 2, "{}"));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    fix_chat("acme", &t.conversation);
    c = fix_claim(3);
    l = fix_load(&c);
    assert_true(span_eq(l.checkpoint.filesystem_state_ref, SPAN("snap-1")));
    assert_int_equal(l.checkpoint.execution_state.n, 0);
    assert_int_equal(l.settled, 0);
}

static void a_key_is_read_back_and_stays(void **state)
{
    struct digest key;
    struct claim c;
    struct bstore_turn l;
    fix_chat("acme", NULL);
    c = fix_claim(1);
    fix_plan(&c, 1, CALL_READ);
    l = fix_load(&c);
    key = l.call[0].key;
    const struct bstore_call same = {SPAN("shell"), SPAN("{\"command\":\"make\"}"), CALL_UNSAFE};
    const struct bstore_call other = {SPAN("shell"), SPAN("{\"command\":\"rm\"}"), CALL_READ};
    struct bstore_plan plan = {SPAN("[\"answer\"]"), {0, 10, 3}, &same, 1, {.input = 0}};
    assert_int_equal(bstore_plan(fix, &c, 1, &plan), BS_AGAIN);
    assert_int_equal(fix_load(&c).used.tokens, 10); /* counted once */
    fix_ok(bstore_spent(fix, &c, &(struct used){.tokens = 7, .cost_micro = 2},
                        &fix_asked)); /* of answers that are not kept, each */
    fix_ok(bstore_spent(fix, &c, &(struct used){.tokens = 7, .cost_micro = 2}, &fix_asked));
    assert_true(fix_load(&c).used.tokens == 24 && fix_load(&c).used.cost_micro == 7);
    assert_int_equal(bstore_spent(fix, &c, &(struct used){.tokens = BSTORE_SPENT_MAX + 1}, &fix_asked), BS_FULL);
    plan.n = 0;
    assert_int_equal(bstore_plan(fix, &c, 1, &plan), BS_CONFLICT);
    plan = (struct bstore_plan){SPAN("[\"answer\"]"), {0, 0, 0}, &other, 1, {.input = 0}};
    assert_int_equal(bstore_plan(fix, &c, 1, &plan), BS_CONFLICT);
    plan = (struct bstore_plan){SPAN("[\"another\"]"), {0, 0, 0}, &same, 1, {.input = 0}};
    assert_int_equal(bstore_plan(fix, &c, 1, &plan), BS_CONFLICT);
    l = fix_load(&c);
    assert_memory_equal(key.b, l.call[0].key.b, DIGEST_BYTES);
    assert_int_equal(l.calls, 1);
}

static void a_class_only_becomes_stricter(void **state)
{
    struct claim c;
    fix_chat("acme", NULL);
    c = fix_claim(1);
    fix_plan(&c, 1, CALL_IDEMPOTENT);
    fix_ok(bstore_class(fix, &c, 1, 0, CALL_READ));
    assert_int_equal(fix_load(&c).call[0].call.class, CALL_IDEMPOTENT);
    fix_ok(bstore_class(fix, &c, 1, 0, CALL_UNSAFE));
    fix_ok(bstore_class(fix, &c, 1, 0, CALL_RECONCILABLE));
    assert_int_equal(fix_load(&c).call[0].call.class, CALL_UNSAFE);
    assert_int_equal(bstore_class(fix, &c, 1, 1, CALL_UNSAFE), BS_NONE);
}

static void the_first_settlement_stays(void **state)
{
    const struct bstore_settled unknown = {.end = CALL_UNKNOWN};
    const struct bstore_settled open = {.end = CALL_OPEN};
    struct claim c;
    fix_chat("acme", NULL);
    c = fix_claim(1);
    fix_plan(&c, 1, CALL_READ);
    assert_int_equal(bstore_call(fix, &c, 1, 0, &open), BS_CONFLICT);
    assert_int_equal(fix_settle(&c, 1, "{}"), BS_CONFLICT); /* a call is open */
    assert_int_equal(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE), BS_CONFLICT);
    fix_ok(fix_call(&c, 1, "the first"));
    assert_int_equal(fix_call(&c, 1, "the first"), BS_AGAIN);
    assert_int_equal(fix_call(&c, 1, "another"), BS_CONFLICT);
    assert_int_equal(bstore_call(fix, &c, 1, 0, &unknown), BS_CONFLICT);
    assert_int_equal(bstore_call(fix, &c, 1, 1, &unknown), BS_NONE);
    assert_true(span_eq(fix_load(&c).call[0].settled.result, SPAN("the first")));
    assert_true(span_eq(fix_load(&c).call[0].settled.effect, SPAN("boot-7")));
    fix_ok(fix_settle(&c, 1, "{}"));
    assert_int_equal(fix_settle(&c, 1, "{}"), BS_CONFLICT); /* once */
}

static void steps_come_one_after_the_other(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    const struct bstore_settle bad = {.phase = SPAN("dreaming")};
    struct claim c = fix_claim(1);
    uint64_t n;
    assert_int_equal(bstore_step(fix, &c, 2, SPAN("model"), &n), BS_CONFLICT);
    assert_int_equal(fix_settle(&c, 1, "{}"), BS_CONFLICT);
    fix_ok(bstore_step(fix, &c, 1, SPAN("model"), &n));
    assert_int_equal(n, 1);
    assert_int_equal(bstore_step(fix, &c, 1, SPAN("model"), &n), BS_AGAIN);
    assert_int_equal(n, 2);
    assert_int_equal(fix_events("acme", &t.conversation, "turn.attempt_superseded"), 1);
    assert_int_equal(bstore_settle(fix, &c, 1, &bad), BS_CONFLICT);
    fix_ok(fix_settle(&c, 1, "{}"));
    assert_int_equal(bstore_step(fix, &c, 1, SPAN("model"), &n), BS_CONFLICT);
    fix_plan(&c, 2, CALL_READ);
    assert_int_equal(bstore_step(fix, &c, 2, SPAN("model"), &n), BS_CONFLICT); /* it has its calls */
}

/* --- the log ------------------------------------------------------------------------------ */

static void what_a_reader_asks_for(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    const struct bstore_event e[] = {{SPAN("text"), SPAN("1")}, {SPAN("text"), SPAN("2")}, {SPAN("text"), SPAN("3")}};
    struct bstore_log log;
    struct claim c = fix_claim(1);
    uint64_t seq;
    fix_ok(bstore_log(fix, &c, e, 3, &seq));
    assert_int_equal(seq, t.log_seq + 4);
    fix_ok(bstore_events(fix, SPAN("acme"), &t.conversation, t.log_epoch, t.log_seq, &fix_arena, &log));
    assert_int_equal(log.n, 4);
    assert_true(log.busy && span_eq(log.event[0].type, SPAN("turn.queued")));
    assert_int_equal(log.event[3].seq, seq);
    assert_int_equal(log.event[3].turn_epoch, c.epoch);
    fix_ok(bstore_events(fix, SPAN("acme"), &t.conversation, 1, seq, &fix_arena, &log));
    assert_int_equal(log.n, 0);
    assert_int_equal(bstore_events(fix, SPAN("acme"), &t.conversation, 1, seq + 1, &fix_arena, &log), BS_LOST);
    assert_int_equal(bstore_events(fix, SPAN("acme"), &t.conversation, 2, seq, &fix_arena, &log), BS_LOST);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN("why \"so\"")));
    fix_ok(bstore_events(fix, SPAN("acme"), &t.conversation, 1, seq, &fix_arena, &log));
    assert_false(log.busy);
    assert_true(span_find(log.event[0].body, SPAN("\"end\":\"completed\"")) < log.event[0].body.n);
    assert_true(span_find(log.event[0].body, SPAN("why \\\"so\\\"")) < log.event[0].body.n);
}

static void a_log_over_its_bound_forgets_and_says_so(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL), neighbour = fix_chat("other", NULL);
    struct bstore_event e[BSTORE_EVENTS_MAX];
    struct bstore_log log;
    struct claim c = fix_claim(1), d = fix_claim(2);
    uint64_t seq = 0;
    const struct claim *mine = c.tenant_n == 4 ? &c : &d, *other = c.tenant_n == 4 ? &d : &c;
    for (size_t i = 0; i < BSTORE_EVENTS_MAX; i++)
        e[i] = (struct bstore_event){SPAN("text"), SPAN("{}")};
    fix_ok(bstore_log(fix, other, e, 1, &seq));
    while (seq + BSTORE_EVENTS_MAX <= BSTORE_LOG_MAX)
        fix_ok(bstore_log(fix, mine, e, BSTORE_EVENTS_MAX, &seq));
    fix_ok(bstore_events(fix, SPAN("acme"), &t.conversation, 1, 0, &fix_arena, &log));
    assert_int_equal(log.first, 1);
    fix_ok(bstore_log(fix, mine, e, BSTORE_EVENTS_MAX, &seq));
    assert_int_equal(bstore_events(fix, SPAN("acme"), &t.conversation, 1, 1, &fix_arena, &log), BS_LOST);
    fix_ok(bstore_events(fix, SPAN("acme"), &t.conversation, 0, 0, &fix_arena, &log));
    assert_true(log.first > 1 && log.event[0].seq == log.first && log.next == seq + 1);
    fix_ok(bstore_events(fix, SPAN("other"), &neighbour.conversation, 1, 0, &fix_arena, &log));
    assert_int_equal(log.n, 2);
}

static void so_many_bytes_of_a_log(void **state)
{
    static char big[BSTORE_EVENT_MAX];
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct bstore_event e[64];
    struct bstore_log log;
    struct claim c = fix_claim(1);
    uint64_t seq;
    memset(big, 'x', sizeof(big));
    for (size_t i = 0; i < 64; i++)
        e[i] = (struct bstore_event){SPAN("text"), span_of(big, sizeof(big))};
    for (unsigned i = 0; i < BSTORE_LOG_BYTES_MAX / (64 * BSTORE_EVENT_MAX); i++)
        fix_ok(bstore_log(fix, &c, e, 64, &seq));
    fix_ok(bstore_events(fix, SPAN("acme"), &t.conversation, 0, 0, &fix_arena, &log));
    assert_true(log.first > 1);                                        /* the first event is beside what fills it */
    assert_int_equal(log.n * BSTORE_EVENT_MAX, BSTORE_READ_BYTES_MAX); /* and one answer has so much of it */
    arena_free(&fix_arena);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_key_is_one_turn),
        T(nothing_of_another_tenant),
        T(a_neighbour_is_served_beside_a_full_queue),
        T(a_conversation_has_so_many_waiting),
        T(a_tenant_at_its_counts),
        T(what_is_over_a_bound_is_refused),
        T(one_worker_at_a_time),
        T(a_late_worker_can_change_nothing),
        T(a_claim_goes_by_the_stores_clock),
        T(two_workers_at_one_step_and_it_is_set_aside),
        T(what_was_set_aside_is_told_to_the_next_turn),
        T(a_step_that_settles_counts_anew),
        T(given_back_is_not_lost),
        T(cancelled_before_and_while_it_runs),
        T(a_turn_is_loaded_as_it_was_left),
        T(a_key_is_read_back_and_stays),
        T(a_class_only_becomes_stricter),
        T(the_first_settlement_stays),
        T(steps_come_one_after_the_other),
        T(what_a_reader_asks_for),
        T(a_log_over_its_bound_forgets_and_says_so),
        T(so_many_bytes_of_a_log),
    };
    return FIX_MAIN(tests);
}
