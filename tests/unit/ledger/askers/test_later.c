/* What the gateway sends itself once it is approved, as the store keeps it. */
#include "tests/kit.h"
#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;
static const uint64_t own = (uint64_t)XID_LATER << XID_FRONT_SHIFT; /* an exchange that the gateway began itself */

static void put(const char *name, struct span kind)
{
    struct wire_sandbox b = {.name = span_str(name), .session = SPAN("s1"), .tenant = SPAN("acme"), .kind = kind};
    const char *why;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    assert_int_equal(store_commit(fix), 0);
}

static int setup(void **state)
{
    if (fix_setup(state) != 0)
        return -1;
    put("s1", SPAN("run"));
    return 0;
}
#define WITH_SANDBOX(f) cmocka_unit_test_setup_teardown(f, setup, fix_teardown)

static struct wire_ticket_state hold(unsigned join, const struct wire_later *l, struct span body)
{
    static struct wire_ticket t;
    struct wire_ticket_state st;
    struct store_bytes kept = {.head = SPAN_NONE};
    struct wire_over over;
    fix_ticket(&t, "s1", join, join);
    t.later = *l;
    assert_int_equal(store_ticket_open(fix, &t, &fix_limits, body, &st, &kept, &over), 0);
    assert_int_equal(store_commit(fix), 0);
    return st;
}

/* 1: the judge is told of this one now. */
static int due(const struct id *id)
{
    static struct wire_review w;
    struct wire_later l;
    struct store_bytes request = {.head = SPAN_NONE};
    struct id next;
    dynbuf_init(&request.body, 64 * 1024);
    int got = store_later_next(fix, &next);
    if (got == 1) {
        assert_true(id_eq(&next, id));
        assert_int_equal(store_later(fix, &next, &w, &l, &request), 1);
        assert_true(l.asked && request.head.n > 0);
    }
    dynbuf_free(&request.body);
    assert_int_equal(store_commit(fix), 0);
    return got;
}

static struct store_asked asked(const struct id *id, const char *session, bool answer, size_t *n)
{
    struct store_asked said;
    struct store_bytes kept = {.head = SPAN_NONE};
    dynbuf_init(&kept.body, ANSWER_KEPT_MAX + 1);
    assert_int_equal(store_asked(fix, id, span_str(session), answer, &said, &kept), 0);
    *n = kept.body.n;
    dynbuf_free(&kept.body);
    assert_int_equal(store_commit(fix), 0);
    return said;
}

static void it_is_due_once_it_is_approved_and_again(void **state)
{
    const struct wire_later yes = {.asked = true, .lease = {{7}}, .narrowed = SPAN("layers")}, no = {.asked = false};
    struct wire_ticket_state st = hold(1, &yes, no_body), other = hold(2, &no, no_body);
    assert_int_equal(due(&st.ticket), 0); /* nobody has approved it */
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(fix_decide(&other.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(due(&st.ticket), 1);
    assert_int_equal(due(&st.ticket), 0); /* told a moment ago; and the other one waits for its client */
    fix_time(STORE_LATER_MS);
    assert_int_equal(due(&st.ticket), 1);
    fix_time(STORE_LATER_MS);
    assert_int_equal(due(&st.ticket), 0); /* ever less often: its body is opened each time */
    fix_time(STORE_LATER_MS);
    assert_int_equal(due(&st.ticket), 1);
    assert_int_equal(store_judge_came(fix), 0); /* who was told may have ended */
    assert_int_equal(due(&st.ticket), 1);
    assert_int_equal(store_freeze(fix, true, SPAN("uid 0"), SPAN("?")), 0);
    assert_int_equal(store_freeze(fix, false, SPAN("uid 0"), SPAN_NONE), 0);
    assert_int_equal(due(&st.ticket), 1); /* nor is a thaw waited out */
    fix_reopen();
    assert_int_equal(store_judge_came(fix), 0);
    assert_int_equal(due(&st.ticket), 1);
    assert_true(fix_claim(&st.ticket, 5, NULL));
    fix_time(STORE_LATER_MS);
    assert_int_equal(due(&st.ticket), 0); /* on its way */
}

static void what_was_not_sent_is_approved_as_before_and_tried_again(void **state)
{
    const struct wire_later yes = {.asked = true};
    struct wire_ticket_state st = hold(1, &yes, SPAN("the body"));
    size_t n;
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(fix_claim(&st.ticket, own + i, NULL));
        fix_outcome(&st.ticket, own + i, OUTCOME_NOT_SENT, false, no_body);
        struct store_asked said = asked(&st.ticket, "s1", false, &n);
        assert_int_equal(said.state.state, TICKET_APPROVED);
        assert_true(said.tries == i + 1);
        fix_time((STORE_LATER_MS << i) - 1);
        assert_int_equal(due(&st.ticket), 0); /* later each time */
        fix_time(1);
        assert_int_equal(due(&st.ticket), 1);
    }
    assert_true(fix_claim(&st.ticket, 20, NULL));
    fix_outcome(&st.ticket, 20, OUTCOME_ANSWERED, false, SPAN("done"));
    assert_int_equal(asked(&st.ticket, "s1", false, &n).state.state, TICKET_DONE);
    assert_int_equal(fix_count("SELECT count(*) FROM later"), 0);
    (void)fix_chain();
}

static void what_may_have_been_sent_is_not_tried_again(void **state)
{
    const struct wire_later yes = {.asked = true};
    struct wire_ticket_state st = hold(1, &yes, no_body);
    size_t n;
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, own, NULL));
    assert_int_equal(store_sent(fix, own), 0);
    fix_outcome(&st.ticket, own, OUTCOME_NOT_SENT, false, no_body); /* against the mark that its first byte left */
    assert_int_equal(asked(&st.ticket, "s1", false, &n).state.state, TICKET_UNKNOWN);
    st = hold(2, &yes, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, own + 1, NULL));
    assert_int_equal(store_judge_came(fix), 0); /* its forerunner had it */
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(asked(&st.ticket, "s1", false, &n).state.state, TICKET_UNKNOWN);
    assert_int_equal(due(&st.ticket), 0);
    const struct wire_later no = {.asked = false};
    st = hold(3, &no, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 12, NULL));
    fix_outcome(&st.ticket, 12, OUTCOME_NOT_SENT, false, no_body); /* its client is told, and decides */
    assert_int_equal(asked(&st.ticket, "s1", false, &n).state.state, TICKET_FAILED);
}

static struct wire_ticket_state approved(unsigned join)
{
    const struct wire_later yes = {.asked = true};
    struct wire_ticket_state st = hold(join, &yes, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    return st;
}

static enum ticket_state not_sent(const struct id *ticket, uint64_t xid)
{
    size_t n;
    fix_outcome(ticket, xid, OUTCOME_NOT_SENT, false, no_body);
    return asked(ticket, "s1", false, &n).state.state;
}

static void who_waited_was_told_and_a_grant_is_asked_each_time(void **state)
{
    struct wire_ticket_state st = approved(1);
    assert_true(fix_claim(&st.ticket, 10, NULL)); /* by the client's own connection */
    assert_int_equal(not_sent(&st.ticket, 10), TICKET_FAILED);
    st = approved(2);
    assert_int_equal(fix_sql("UPDATE ticket SET decided_channel='grant' WHERE state='approved'"), SQLITE_OK);
    assert_true(fix_claim(&st.ticket, own, NULL));
    assert_int_equal(not_sent(&st.ticket, own), TICKET_FAILED);
    assert_int_equal(fix_count("SELECT count(*) FROM later"), 0);
}

static void nothing_is_sent_for_what_has_ended(void **state)
{
    const char *why;
    struct wire_ticket_state st = approved(1);
    assert_int_equal(fix_sql("UPDATE sandbox SET kind='ended'"), SQLITE_OK);
    assert_int_equal(due(&st.ticket), 0);
    put("of-another-tenant", SPAN("run"));
    assert_int_equal(fix_sql("UPDATE sandbox SET tenant='other' WHERE kind='run'"), SQLITE_OK);
    assert_int_equal(due(&st.ticket), 0);
    put("next", SPAN("run"));
    assert_int_equal(fix_sql("UPDATE sandbox SET frozen='why' WHERE name='next'"), SQLITE_OK);
    assert_int_equal(due(&st.ticket), 0);
    assert_int_equal(fix_sql("UPDATE sandbox SET frozen=NULL"), SQLITE_OK);
    assert_int_equal(due(&st.ticket), 1); /* the session has a sandbox again */
    assert_true(fix_claim(&st.ticket, own, NULL));
    assert_int_equal(store_sandbox_remove(fix, SPAN("next"), true, &why), 0);
    assert_null(why);
    assert_int_equal(not_sent(&st.ticket, own), TICKET_FAILED); /* its session ended while it was on its way */
}

static void what_limits_count_of_it_is_of_when_it_is_sent(void **state)
{
    fix_limits = (struct wire_limits){
        .n = 1,
        .limit = {{.rule = SPAN("r"), .measure = SPAN("requests"), .max = 3, .window_ms = 1000, .amount = 1}}};
    struct wire_ticket_state st = approved(1);
    assert_true(fix_claim(&st.ticket, own, NULL));
    assert_int_equal(fix_count("SELECT count(*) FROM reserved WHERE at_ms>0"), 1);
    assert_int_equal(not_sent(&st.ticket, own), TICKET_APPROVED);
    assert_int_equal(fix_count("SELECT count(*) FROM reserved WHERE at_ms=0"), 1);
    fix_time(STORE_LATER_MS);
    assert_true(fix_claim(&st.ticket, own + 1, NULL));
    assert_int_equal(fix_count("SELECT count(*) FROM reserved WHERE at_ms=(SELECT max(claimed_ms) FROM ticket)"), 1);
}

static void its_time_is_that_of_its_ticket(void **state)
{
    const struct wire_later yes = {.asked = true};
    struct wire_ticket_state st = hold(1, &yes, no_body);
    size_t n;
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, own, NULL));
    fix_time(STORE_EXPIRES_MS);
    fix_outcome(&st.ticket, own, OUTCOME_NOT_SENT, false, no_body);
    assert_int_equal(asked(&st.ticket, "s1", false, &n).state.state, TICKET_FAILED);
    st = hold(2, &yes, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    fix_time(STORE_EXPIRES_MS);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(due(&st.ticket), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM later"), 0);
}

static void its_answer_is_had_as_often_as_one_likes_for_its_time_by_its_session(void **state)
{
    const struct wire_later yes = {.asked = true};
    struct wire_ticket_state st = hold(1, &yes, no_body);
    size_t n;
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 10, NULL));
    fix_outcome(&st.ticket, 10, OUTCOME_ANSWERED, false, SPAN("the answer"));
    assert_false(asked(&st.ticket, "another", true, &n).known);
    assert_int_equal(n, 0);
    assert_true(asked(&st.ticket, "s1", false, &n).until_ms > 0);
    for (int i = 0; i < 2; i++) {
        assert_true(asked(&st.ticket, "s1", true, &n).state.has_answer);
        assert_int_equal(n, sizeof("the answer") - 1);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='answer-collected'"), 1);
    struct wire_ticket_state again = hold(1, &yes, no_body); /* it was had: another one */
    assert_false(again.joined);
    fix_time(STORE_ANSWER_MS);
    struct store_asked said = asked(&st.ticket, "s1", true, &n);
    assert_true(said.known && !said.state.has_answer && said.until_ms == 0 && n == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SANDBOX(it_is_due_once_it_is_approved_and_again),
        WITH_SANDBOX(what_was_not_sent_is_approved_as_before_and_tried_again),
        WITH_SANDBOX(what_may_have_been_sent_is_not_tried_again),
        WITH_SANDBOX(who_waited_was_told_and_a_grant_is_asked_each_time),
        WITH_SANDBOX(nothing_is_sent_for_what_has_ended),
        WITH_SANDBOX(what_limits_count_of_it_is_of_when_it_is_sent),
        WITH_SANDBOX(its_time_is_that_of_its_ticket),
        WITH_SANDBOX(its_answer_is_had_as_often_as_one_likes_for_its_time_by_its_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
