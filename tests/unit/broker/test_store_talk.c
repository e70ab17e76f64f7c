/* Conversations as a list, forks, workers that ended, and the hint that something changed: of every backend. */
#include "tests/unit/broker/health/waiting.h"
#include "tests/unit/broker/store_fix.h"

#include <poll.h>

/* One turn of a conversation, with a call and its result, to its end. */
static void talk(const struct bstore_chatted *c)
{
    struct claim claim = fix_claim(1);
    const struct bstore_message m[] = {{SPAN("assistant"), SPAN("{\"n\":1}")}, {SPAN("results"), SPAN("{\"n\":2}")}};
    const struct bstore_settle s = {.message = m, .messages = 2};
    fix_plan(&claim, 1, CALL_READ);
    fix_ok(fix_call(&claim, 1, "result"));
    fix_ok(bstore_settle(fix, &claim, 1, &s));
    fix_ok(bstore_finish(fix, &claim, END_COMPLETED, SPAN_NONE));
    assert_true(id_eq(&claim.turn, &c->turn));
}

static void a_list_has_its_tenants_alone_and_goes_on_where_it_ended(void **state)
{
    struct bstore_conversations all;
    struct id none = {{0}};
    for (unsigned i = 0; i < BSTORE_READ_MAX + 2; i++) {
        struct bstore_chatted c = fix_chat("acme", NULL);
        fix_ok(bstore_cancel(fix, SPAN("acme"), &c.turn));
    }
    struct bstore_chatted other = fix_chat("other", NULL);
    fix_ok(bstore_conversations(fix, SPAN("acme"), &none, &fix_arena, &all));
    assert_int_equal(all.n, BSTORE_READ_MAX);
    struct id last = all.row[all.n - 1].id;
    assert_false(all.row[0].busy);
    fix_ok(bstore_conversations(fix, SPAN("acme"), &last, &fix_arena, &all));
    assert_int_equal(all.n, 2);
    fix_ok(bstore_conversations(fix, SPAN("other"), &none, &fix_arena, &all));
    assert_int_equal(all.n, 1);
    assert_true(id_eq(&all.row[0].id, &other.conversation) && all.row[0].busy);
    assert_int_equal(all.row[0].messages, 0); /* it waits */
    assert_int_equal(bstore_conversations(fix, SPAN_NONE, &none, &fix_arena, &all), BS_NONE);
}

static void those_of_late_are_the_newest_with_what_each_began_with(void **state)
{
    struct bstore_conversations all;
    const struct id none = {{0}};
    struct id id[BSTORE_LATELY_MAX + 2];
    for (unsigned i = 0; i < BSTORE_LATELY_MAX + 2; i++) {
        struct bstore_chatted c = fix_chat("acme", NULL);
        id[i] = c.conversation;
        fix_ok(bstore_cancel(fix, SPAN("acme"), &c.turn));
    }
    struct bstore_chatted last = fix_chat("acme", &id[0]), other = fix_chat("other", NULL);
    fix_ok(bstore_lately(fix, SPAN("acme"), &none, &fix_arena, &all));
    assert_int_equal(all.n, BSTORE_LATELY_MAX);
    for (size_t i = 1; i < all.n; i++)
        assert_true(all.row[i - 1].changed_ms >= all.row[i].changed_ms);
    fix_ok(bstore_lately(fix, SPAN("acme"), &id[0], &fix_arena, &all));
    assert_true(all.n == 1 && all.row[0].busy && all.row[0].turns == 2 && all.row[0].first.n == 0);
    (void)fix_claim(1); /* what it was asked is its first message from now on */
    fix_ok(bstore_lately(fix, SPAN("acme"), &id[0], &fix_arena, &all));
    assert_true(all.row[0].messages == 1 && all.row[0].first.n > 0);
    assert_true(id_eq(&all.row[0].id, &last.conversation));
    assert_int_equal(bstore_lately(fix, SPAN("other"), &id[0], &fix_arena, &all), BS_NONE);
    assert_int_equal(bstore_lately(fix, SPAN_NONE, &none, &fix_arena, &all), BS_NONE);
    fix_ok(bstore_lately(fix, SPAN("other"), &none, &fix_arena, &all));
    assert_true(all.n == 1 && id_eq(&all.row[0].id, &other.conversation));
}

static void a_fork_begins_as_the_other_did_and_cuts_no_call_from_its_result(void **state)
{
    struct bstore_chatted c = fix_chat("acme", NULL), again;
    struct bstore_messages messages;
    struct id made;
    talk(&c);
    assert_int_equal(bstore_fork(fix, SPAN("acme"), &c.conversation, 2, &made), BS_CONFLICT);
    assert_int_equal(bstore_fork(fix, SPAN("acme"), &c.conversation, 4, &made), BS_CONFLICT);
    assert_int_equal(bstore_fork(fix, SPAN("acme"), &c.conversation, 0, &made), BS_CONFLICT);
    assert_int_equal(bstore_fork(fix, SPAN("other"), &c.conversation, 1, &made), BS_NONE);
    fix_ok(bstore_fork(fix, SPAN("acme"), &c.conversation, 3, &made));
    again = fix_chat("acme", &made);
    (void)fix_claim(1);
    fix_ok(bstore_messages(fix, SPAN("acme"), &made, 0, &fix_arena, &messages));
    assert_int_equal(messages.n, 4);
    assert_true(span_eq(messages.message[2].role, SPAN("results")));
    assert_int_equal(messages.message[3].seq, 4);
    assert_true(id_eq(&again.conversation, &made));
    fix_ok(bstore_messages(fix, SPAN("acme"), &c.conversation, 0, &fix_arena, &messages));
    assert_int_equal(messages.n, 3); /* the first one is as it was */
}

/* So many messages of a turn of this conversation, each with so many bytes. */
static void say_much(const struct bstore_chatted *c, uint64_t steps, size_t each, size_t bytes)
{
    static char big[BSTORE_BODY_MAX];
    struct bstore_message m[BSTORE_MESSAGES_MAX];
    struct claim claim = fix_claim(1);
    uint64_t attempts;
    assert_true(id_eq(&claim.turn, &c->turn));
    for (size_t i = 0; i < each; i++)
        m[i] = (struct bstore_message){SPAN("assistant"), span_of(big, bytes)};
    const struct bstore_settle s = {.message = m, .messages = each};
    for (uint64_t n = 1; n <= steps; n++) {
        fix_ok(bstore_step(fix, &claim, n, SPAN("model"), &attempts));
        fix_ok(bstore_settle(fix, &claim, n, &s));
    }
    fix_ok(bstore_finish(fix, &claim, END_COMPLETED, SPAN_NONE));
}

static void a_fork_copies_so_much_and_no_more(void **state)
{
    enum { STEPS = BSTORE_FORK_MAX / BSTORE_MESSAGES_MAX + 1 };
    struct bstore_chatted many = fix_chat("acme", NULL), large, other;
    struct id made;
    say_much(&many, STEPS, BSTORE_MESSAGES_MAX, 1);
    fix_ok(bstore_fork(fix, SPAN("acme"), &many.conversation, BSTORE_FORK_MAX, &made));
    assert_int_equal(bstore_fork(fix, SPAN("acme"), &many.conversation, BSTORE_FORK_MAX + 1, &made), BS_FULL);
    large = fix_chat("acme", NULL);
    say_much(&large, 33, 1, BSTORE_BODY_MAX);
    fix_ok(bstore_fork(fix, SPAN("acme"), &large.conversation, 32, &made));
    assert_int_equal(bstore_fork(fix, SPAN("acme"), &large.conversation, 33, &made), BS_FULL);
    other = fix_chat("other", NULL);
    say_much(&other, 1, 1, 1);
    fix_ok(bstore_fork(fix, SPAN("other"), &other.conversation, 2, &made));
}

/* What is asked while a turn runs is not in that turn's prompt: it is in the history from when its own turn begins.
 */
static void what_is_asked_meanwhile_waits_for_its_own_turn(void **state)
{
    struct bstore_chatted one = fix_chat("acme", NULL), two, three;
    struct bstore_messages m;
    struct claim c = fix_claim(1);
    two = fix_chat("acme", &one.conversation);
    three = fix_chat("acme", &one.conversation);
    fix_ok(bstore_messages(fix, SPAN("acme"), &one.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 1);
    fix_ok(bstore_queued(fix, SPAN("acme"), &one.conversation, &fix_arena, &m)); /* it is shown */
    assert_int_equal(m.n, 2);
    assert_true(id_eq(&m.message[0].turn, &two.turn) && id_eq(&m.message[1].turn, &three.turn));
    assert_true(span_eq(m.message[1].body, SPAN("{\"text\":\"hello\"}")));
    fix_ok(bstore_queued(fix, SPAN("other"), &one.conversation, &fix_arena, &m));
    assert_int_equal(m.n, 0);
    fix_plan(&c, 1, CALL_READ);
    fix_ok(fix_call(&c, 1, "result"));
    fix_ok(fix_settle(&c, 1, "{}"));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    fix_ok(bstore_cancel(fix, SPAN("acme"), &two.turn)); /* before it began: nobody is asked it */
    c = fix_claim(2);
    assert_true(id_eq(&c.turn, &three.turn));
    fix_ok(bstore_messages(fix, SPAN("acme"), &one.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 4);
    assert_true(id_eq(&m.message[0].turn, &one.turn) && id_eq(&m.message[3].turn, &three.turn));
    assert_true(span_eq(m.message[3].role, SPAN("user")) && m.message[3].seq == 4);
    fix_ok(bstore_queued(fix, SPAN("acme"), &one.conversation, &fix_arena, &m));
    assert_int_equal(m.n, 0);
    fix_ok(bstore_release(fix, &c, 0)); /* taken once more: it is said once */
    c = fix_claim(3);
    fix_ok(bstore_messages(fix, SPAN("acme"), &one.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 4);
}

static void a_worker_that_ended_loses_its_claims_at_once_and_no_other_does(void **state)
{
    struct bstore_chatted one = fix_chat("acme", NULL), two = fix_chat("other", NULL);
    struct claim first = fix_claim(1), second = fix_claim(2), taken;
    struct id w1 = fix_id(1), w3 = fix_id(3);
    assert_int_equal(bstore_claim(fix, &w3, CLAIM_MS, &taken), BS_NONE);
    fix_ok(bstore_ended(fix, &w1));
    assert_int_equal(bstore_extend(fix, &first), BS_FENCED);
    fix_ok(bstore_extend(fix, &second));
    fix_ok(bstore_claim(fix, &w3, CLAIM_MS, &taken));
    assert_true(id_eq(&taken.turn, &first.turn));
    assert_int_equal(taken.epoch, first.epoch + 1);
    assert_int_equal(fix_load(&taken).lost, 1); /* it counts as lost, as one that was silent does */
    assert_true(id_eq(&first.turn, &one.turn) || id_eq(&first.turn, &two.turn));
}

/* However much a tenant asks for, and however old it is: somebody else's turn finds a worker. */
static void a_tenant_that_has_its_share_waits_and_its_neighbour_does_not(void **state)
{
    struct claim c[3], more;
    struct id w4 = fix_id(4);
    for (int i = 0; i < 4; i++)
        (void)fix_chat("acme", NULL);
    fix->share = 2;
    c[0] = fix_claim(1);
    c[1] = fix_claim(2);
    assert_int_equal(bstore_claim(fix, &w4, CLAIM_MS, &more), BS_NONE);
    struct bstore_chatted other = fix_chat("other", NULL);
    c[2] = fix_claim(3);
    assert_true(id_eq(&c[2].turn, &other.turn));
    assert_int_equal(bstore_claim(fix, &w4, CLAIM_MS, &more), BS_NONE);
    fix_ok(bstore_finish(fix, &c[0], END_COMPLETED, SPAN_NONE));
    fix_ok(bstore_claim(fix, &w4, CLAIM_MS, &more));
    /* One whose worker is lost is not counted: it is the one to be taken. */
    fix_now += CLAIM_MS / 2;
    fix_ok(bstore_extend(fix, &more));
    fix_now += CLAIM_MS / 2 + 1;
    struct claim again = fix_claim(1);
    assert_true(id_eq(&again.turn, &c[1].turn) || id_eq(&again.turn, &c[2].turn));
    fix->share = 0;
}

/* Where several gateways have one store, whose record has a call is said with it. */
static void what_another_gateway_planned_is_said_to_be(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    snprintf(fix->home, sizeof(fix->home), "0000000000000000000000000g");
    struct claim c = fix_claim(1);
    fix_plan(&c, 1, CALL_UNSAFE);
    assert_false(fix_load(&c).elsewhere);
    snprintf(fix->home, sizeof(fix->home), "0000000000000000000000001g");
    assert_true(fix_load(&c).elsewhere);
    assert_true(id_eq(&t.turn, &c.turn));
    fix->home[0] = '\0';
}

static void what_somebody_else_writes_is_hinted_at(void **state)
{
    struct bstore *mine = fix_open();
    uint64_t before = bstore_pulse(mine);
    assert_int_equal(bstore_pulse(mine), before);
    (void)fix_chat("acme", NULL);
    /* At once from a file; over a connection it comes when it comes. */
    while (fix_postgres && bstore_pulse(mine) == before)
        (void)poll(NULL, 0, 1);
    assert_int_not_equal(bstore_pulse(mine), before);
    bstore_close(&mine);
}

/* --- recordings ----------------------------------------------------------------------------- */

static struct bstore_recorded recorded_of(const char *tenant, const struct id *turn)
{
    struct bstore_recorded r;
    arena_free(&fix_arena);
    fix_ok(bstore_recorded(fix, span_str(tenant), turn, &fix_arena, &r));
    return r;
}

static void what_a_turn_heard_is_its_tenants_and_goes_with_its_steps(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct bstore_recorded r;
    struct bstore_turns all;
    struct claim c = fix_claim(1), stale = c;
    fix_ok(bstore_record(fix, &c, SPAN("one\n")));
    fix_plan(&c, 1, CALL_READ);
    const struct bstore_settle s = {.record = SPAN("two\n")};
    assert_int_equal(bstore_settle(fix, &c, 1, &s), BS_CONFLICT); /* its call is open, and nothing is kept */
    fix_ok(fix_call(&c, 1, "done"));
    fix_ok(bstore_settle(fix, &c, 1, &s));
    stale.epoch--;
    assert_int_equal(bstore_record(fix, &stale, SPAN("of a worker before\n")), BS_FENCED);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    r = recorded_of("acme", &t.turn);
    assert_int_equal(r.n, 2);
    assert_true(span_eq(r.part[0], SPAN("one\n")) && span_eq(r.part[1], SPAN("two\n")) && !r.cut);
    assert_true(r.end == END_COMPLETED && r.used.steps == 1 && r.used.tokens == 10 && r.budget.steps > 0);
    assert_int_equal(bstore_recorded(fix, SPAN("other"), &t.turn, &fix_arena, &r), BS_NONE);
    struct bstore_chatted later = fix_chat("acme", &t.conversation);
    fix_ok(bstore_turns(fix, SPAN("acme"), &t.conversation, 0, &fix_arena, &all));
    assert_int_equal(all.n, 2);
    assert_true(id_eq(&all.row[0].id, &t.turn) && all.row[0].recorded && all.row[0].end == END_COMPLETED);
    assert_true(id_eq(&all.row[1].id, &later.turn) && !all.row[1].recorded && all.row[1].end == END_NONE);
    fix_ok(bstore_turns(fix, SPAN("acme"), &t.conversation, all.row[0].nth, &fix_arena, &all));
    assert_int_equal(all.n, 1);
    assert_int_equal(bstore_turns(fix, SPAN("other"), &t.conversation, 0, &fix_arena, &all), BS_NONE);
}

static void a_turn_is_asked_once_more_with_what_its_calls_gave(void **state)
{
    const struct bstore_call call = {SPAN("shell"), SPAN("{\"command\":\"make\"}"), CALL_READ},
                             other = {SPAN("shell"), SPAN("{}"), CALL_READ};
    struct bstore_chatted t = fix_chat("acme", NULL), again;
    struct bstore_replayed r;
    struct bstore_messages m;
    struct claim c = fix_claim(1);
    assert_int_equal(bstore_replay(fix, SPAN("acme"), &t.turn, &again), BS_CONFLICT); /* it has not ended */
    fix_plan(&c, 1, CALL_READ);
    fix_ok(fix_call(&c, 1, "made"));
    fix_ok(fix_settle(&c, 1, ""));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    t = fix_chat("acme", &t.conversation);
    c = fix_claim(1);
    assert_false(fix_load(&c).replays);
    fix_plan(&c, 1, CALL_READ);
    fix_ok(fix_call(&c, 1, "made again"));
    fix_ok(fix_settle(&c, 1, ""));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    assert_int_equal(bstore_replay(fix, SPAN("other"), &t.turn, &again), BS_NONE);
    fix_ok(bstore_replay(fix, SPAN("acme"), &t.turn, &again));
    assert_false(id_eq(&again.conversation, &t.conversation));
    fix_ok(bstore_messages(fix, SPAN("acme"), &again.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 3); /* what stood before its own, and none of what came of it */
    c = fix_claim(1);
    assert_true(id_eq(&c.turn, &again.turn) && fix_load(&c).replays);
    fix_plan(&c, 1, CALL_READ);
    fix_ok(bstore_replayed(fix, &c, 1, 0, &call, &fix_arena, &r));
    assert_true(r.end == CALL_DONE && span_eq(r.result, SPAN("made again")));
    fix_ok(bstore_replayed(fix, &c, 1, 0, &other, &fix_arena, &r)); /* it was not called so then */
    assert_int_equal(r.end, CALL_OPEN);
    fix_ok(bstore_replayed(fix, &c, 2, 0, &call, &fix_arena, &r)); /* nor twice */
    assert_int_equal(r.end, CALL_OPEN);
    fix_ok(fix_call(&c, 1, "made again"));
    fix_ok(fix_settle(&c, 1, ""));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    assert_int_equal(bstore_replay(fix, SPAN("acme"), &again.turn, &t), BS_CONFLICT); /* of a replay there is none */
}

static enum bstore_result live_with(struct bstore_live in, struct bstore_chatted *out)
{
    in.tenant = in.tenant.n > 0 ? in.tenant : SPAN("acme");
    in.model = in.model.n > 0 ? in.model : SPAN("other one");
    return bstore_live(fix, &in, out);
}

/* Its own calls are run: it is no replay to its worker, but for the model. */
static void a_turn_is_done_once_more_live_in_a_conversation_of_its_own(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL), again, same;
    struct bstore_turn_row row;
    struct bstore_messages m;
    struct bstore_conversations all;
    struct claim c = fix_claim(1);
    assert_int_equal(live_with((struct bstore_live){.turn = t.turn}, &again), BS_CONFLICT); /* it has not ended */
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    const struct bstore_live in = {.turn = t.turn, .key = SPAN("k"), .cost_most = 7, .wall_ms = 9};
    assert_int_equal(live_with((struct bstore_live){.turn = t.turn, .tenant = SPAN("other")}, &again), BS_NONE);
    fix_ok(live_with(in, &again));
    assert_int_equal(live_with(in, &same), BS_AGAIN);
    assert_true(id_eq(&same.turn, &again.turn));
    const struct bstore_live otherwise = {.turn = t.turn, .key = SPAN("k"), .request = {{1}}};
    assert_int_equal(live_with(otherwise, &same), BS_CONFLICT);
    c = fix_claim(1);
    assert_true(id_eq(&c.turn, &again.turn) && !id_eq(&c.conversation, &t.conversation));
    struct bstore_turn found = fix_load(&c);
    assert_true(!found.replays && span_eq(found.live, SPAN("other one")));
    assert_true(found.budget.cost_micro == 7 && found.budget.wall_ms == 9);
    assert_int_equal(found.checkpoint.filesystem_state_ref.n, 0);
    fix_ok(bstore_messages(fix, SPAN("acme"), &again.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 1);
    fix_ok(bstore_turn(fix, SPAN("acme"), &again.turn, &fix_arena, &row));
    assert_true(row.replays.n == ID_TEXT + 1 + 9 && span_eq(span_from(row.replays, ID_TEXT), SPAN(" other one")));
    fix_ok(bstore_conversations(fix, SPAN("acme"), &(struct id){{0}}, &fix_arena, &all));
    assert_int_equal(all.n, 2);
    for (size_t i = 0; i < all.n; i++)
        assert_int_equal(all.row[i].replay, id_eq(&all.row[i].id, &again.conversation));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    assert_int_equal(live_with((struct bstore_live){.turn = again.turn}, &t),
                     BS_CONFLICT); /* of a replay there is none */
}

/* Nor on files of which it is only not known whether there were any. */
static void no_live_replay_goes_on_other_files(void **state)
{
    struct bstore_chatted t = fix_chat("acme", NULL), second, third, again;
    struct claim c = fix_claim(1);
    uint64_t attempts;
    fix_ok(bstore_step(fix, &c, 1, SPAN("model"), &attempts)); /* cancelled in the middle of its step */
    fix_ok(bstore_finish(fix, &c, END_CANCELLED, SPAN_NONE));
    second = fix_chat("acme", &t.conversation);
    c = fix_claim(1);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    assert_int_equal(live_with((struct bstore_live){.turn = second.turn}, &again), BS_LOST);
    fix_ok(live_with((struct bstore_live){.turn = t.turn}, &again));
    c = fix_claim(1);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    t = fix_chat("acme", NULL);
    c = fix_claim(1);
    fix_plan(&c, 1, CALL_READ);
    fix_ok(fix_call(&c, 1, "made"));
    fix_ok(fix_settle(&c, 1, "")); /* its checkpoint names files */
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    third = fix_chat("acme", &t.conversation);
    c = fix_claim(1);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    assert_int_equal(live_with((struct bstore_live){.turn = third.turn}, &again), BS_LOST);
    fix_ok(live_with((struct bstore_live){.turn = t.turn}, &again));
}

/* Whose worker was lost after its sandbox had started, and of which no checkpoint names it. */
static void no_live_replay_goes_on_files_that_no_checkpoint_names(void **state)
{
    const struct bstore_message m[] = {{SPAN("assistant"), SPAN("[\"answer\"]")}, {SPAN("tool"), SPAN("{}")}};
    const struct bstore_settle s = {
        .checkpoint = {SPAN("{}"), SPAN_NONE, SPAN_NONE, SPAN_NONE}, .message = m, .messages = 2};
    for (int called = 0; called < 2; called++) {
        struct bstore_chatted t = fix_chat("acme", NULL), second, again;
        struct claim c = fix_claim(1);
        const struct bstore_call call = {called ? SPAN("write_file") : SPAN("broken-call"), SPAN("{}"), CALL_READ};
        const struct bstore_plan plan = {SPAN("[\"answer\"]"), {0, 10, 3}, &call, 1, {.input = 0}};
        uint64_t attempts;
        fix_ok(bstore_step(fix, &c, 1, SPAN("model"), &attempts));
        fix_ok(bstore_plan(fix, &c, 1, &plan));
        fix_ok(fix_call(&c, 1, "written"));
        fix_ok(bstore_settle(fix, &c, 1, &s));
        fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
        second = fix_chat("acme", &t.conversation);
        c = fix_claim(1);
        fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
        assert_int_equal(live_with((struct bstore_live){.turn = second.turn}, &again), called ? BS_LOST : BS_OK);
        if (!called) {
            c = fix_claim(1);
            fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
        }
    }
}

/* Said when it begins, and what is made of it is as private: no model is ever added. */
static void which_models_may_see_a_conversation_stays(void **state)
{
    static char big[BSTORE_PRIVATE_MAX + 1];
    struct bstore_chat in = {
        .tenant = SPAN("acme"), .body = SPAN("{\"of\":\"user\"}"), .private = SPAN("one\nt\xc3\xbc")};
    struct bstore_conversations all;
    const struct id none = {{0}};
    struct bstore_chatted t, again;
    struct id made;
    fix_ok(bstore_chat(fix, &in, &t));
    in.conversation = t.conversation;
    assert_int_equal(bstore_chat(fix, &in, &again), BS_CONFLICT);
    in.private = SPAN("one");
    assert_int_equal(bstore_chat(fix, &in, &again), BS_CONFLICT);
    in = (struct bstore_chat){.tenant = SPAN("acme"), .body = SPAN("{}"), .private = span_of(big, sizeof(big))};
    assert_int_equal(bstore_chat(fix, &in, &again), BS_FULL);
    struct claim c = fix_claim(1);
    assert_true(span_eq(fix_load(&c).private, SPAN("one\nt\xc3\xbc")));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    fix_ok(bstore_fork(fix, SPAN("acme"), &t.conversation, 1, &made));
    fix_ok(bstore_replay(fix, SPAN("acme"), &t.turn, &again));
    c = fix_claim(1);
    assert_true(span_eq(fix_load(&c).private, SPAN("one\nt\xc3\xbc")));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    const struct span not_listed[] = {SPAN("two"), SPAN("on"), SPAN("one\nt\xc3\xbc")};
    for (size_t i = 0; i < sizeof(not_listed) / sizeof(not_listed[0]); i++)
        assert_int_equal(live_with((struct bstore_live){.turn = t.turn, .model = not_listed[i]}, &again), BS_PRIVATE);
    fix_ok(live_with((struct bstore_live){.turn = t.turn, .model = SPAN("one")}, &again));
    fix_ok(bstore_conversations(fix, SPAN("acme"), &none, &fix_arena, &all));
    assert_int_equal(all.n, 4); /* with the fork, and two replays */
    for (size_t i = 0; i < all.n; i++)
        assert_true(span_eq(all.row[i].private, SPAN("one\nt\xc3\xbc")));
    fix_ok(bstore_lately(fix, SPAN("acme"), &made, &fix_arena, &all));
    assert_true(span_eq(all.row[0].private, SPAN("one\nt\xc3\xbc")));
    t = fix_chat("acme", NULL);
    fix_ok(bstore_lately(fix, SPAN("acme"), &t.conversation, &fix_arena, &all));
    assert_int_equal(all.row[0].private.n, 0);
}

/* Nor does anybody approve its writes as who asked the turn that was recorded. */
static void a_replay_is_not_asked_by_who_asked_then(void **state)
{
    const struct bstore_chat in = {.tenant = SPAN("acme"),
                                   .body = SPAN("{\"of\":\"user\",\"n\":1.50,\"by\":\"ann\"}")};
    struct bstore_chatted t, again;
    struct bstore_messages m;
    fix_ok(bstore_chat(fix, &in, &t));
    struct claim c = fix_claim(1);
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    fix_ok(live_with((struct bstore_live){.turn = t.turn}, &again));
    c = fix_claim(1);
    fix_ok(bstore_messages(fix, SPAN("acme"), &again.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 1);
    assert_true(span_eq(m.message[0].body, SPAN("{\"of\":\"user\",\"n\":1.50}")));
}

/* It has a sandbox and an identity at the gateway, which somebody has to end: and that is tried once. */
static void a_live_replay_that_ends_workers_is_taken_once_more_to_be_ended(void **state)
{
    for (int lost = 0; lost < 2; lost++) {
        struct bstore_chatted t = fix_chat("acme", NULL), again;
        struct id id = fix_id(4);
        struct claim c = fix_claim(1);
        fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
        fix_ok(live_with((struct bstore_live){.turn = t.turn}, &again));
        c = fix_claim(1);
        fix_now += CLAIM_MS;
        c = fix_claim(2);
        fix_plan(&c, 1, CALL_UNSAFE);
        fix_now += CLAIM_MS;
        c = fix_claim(3);
        assert_true(id_eq(&c.turn, &again.turn));
        assert_int_equal(fix_load(&c).lost, BSTORE_LOST_MAX);
        if (lost) {
            fix_now += CLAIM_MS;
            assert_int_equal(bstore_claim(fix, &id, CLAIM_MS, &c), BS_NONE);
        } else {
            fix_ok(bstore_finish(fix, &c, END_SET_ASIDE, SPAN_NONE)); /* whatever is open */
        }
        assert_true(span_eq(fix_row("acme", &again.turn)->state, SPAN("aside")));
        assert_int_equal(fix_events("acme", &again.conversation, "turn.done"), 1);
    }
}

static struct id record_much(const char *tenant, size_t bytes)
{
    static char big[BSTORE_PART_MAX];
    struct bstore_chatted t = fix_chat(tenant, NULL);
    struct claim c = fix_claim(1);
    memset(big, 'x', sizeof(big));
    for (size_t n = 0; n < bytes; n += sizeof(big))
        fix_ok(bstore_record(fix, &c, span_of(big, sizeof(big))));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    return t.turn;
}

static void a_recording_over_its_bound_says_so_and_its_turn_goes_on(void **state)
{
    struct id whole = record_much("acme", BSTORE_RECORD_MAX), cut = record_much("acme", BSTORE_RECORD_MAX + 1);
    struct bstore_recorded r = recorded_of("acme", &whole);
    assert_true(r.n == BSTORE_RECORD_MAX / BSTORE_PART_MAX && !r.cut);
    r = recorded_of("acme", &cut);
    assert_true(r.n == BSTORE_RECORD_MAX / BSTORE_PART_MAX && r.cut);
    static char large[BSTORE_PART_MAX + 1];
    struct bstore_chatted t = fix_chat("acme", NULL);
    struct claim c = fix_claim(1);
    fix_ok(bstore_record(fix, &c, span_of(large, sizeof(large))));
    fix_ok(bstore_record(fix, &c, SPAN("after it\n"))); /* behind a gap nothing is of worth */
    r = recorded_of("acme", &t.turn);
    assert_true(r.n == 0 && r.cut);
}

static void a_tenants_recordings_cost_its_own_oldest_alone(void **state)
{
    struct id neighbour = record_much("other", BSTORE_PART_MAX), first = record_much("acme", BSTORE_RECORD_MAX),
              second = record_much("acme", BSTORE_RECORD_MAX), last = first;
    for (unsigned i = 2; i <= BSTORE_RECORDED_EACH / BSTORE_RECORD_MAX; i++)
        last = record_much("acme", BSTORE_RECORD_MAX);
    assert_int_equal(recorded_of("acme", &first).n, 0);
    assert_int_equal(recorded_of("acme", &second).n, BSTORE_RECORD_MAX / BSTORE_PART_MAX);
    assert_int_equal(recorded_of("acme", &last).n, BSTORE_RECORD_MAX / BSTORE_PART_MAX);
    assert_int_equal(recorded_of("other", &neighbour).n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_list_has_its_tenants_alone_and_goes_on_where_it_ended, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(those_of_late_are_the_newest_with_what_each_began_with, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(a_fork_begins_as_the_other_did_and_cuts_no_call_from_its_result, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(a_fork_copies_so_much_and_no_more, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(what_is_asked_meanwhile_waits_for_its_own_turn, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(a_worker_that_ended_loses_its_claims_at_once_and_no_other_does, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(a_tenant_that_has_its_share_waits_and_its_neighbour_does_not, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(what_nobody_takes_is_counted_once_somebody_could_have, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(what_another_gateway_planned_is_said_to_be, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(what_somebody_else_writes_is_hinted_at, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(what_a_turn_heard_is_its_tenants_and_goes_with_its_steps, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(a_turn_is_asked_once_more_with_what_its_calls_gave, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(a_turn_is_done_once_more_live_in_a_conversation_of_its_own, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(no_live_replay_goes_on_other_files, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(which_models_may_see_a_conversation_stays, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(a_replay_is_not_asked_by_who_asked_then, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(a_live_replay_that_ends_workers_is_taken_once_more_to_be_ended, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(no_live_replay_goes_on_files_that_no_checkpoint_names, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(a_recording_over_its_bound_says_so_and_its_turn_goes_on, fix_setup,
                                        fix_teardown),
        cmocka_unit_test_setup_teardown(a_tenants_recordings_cost_its_own_oldest_alone, fix_setup, fix_teardown),
    };
    return FIX_MAIN(tests);
}
