/* What the gateway sends itself once it is approved, as the store keeps it. */
#include "tests/kit.h"
#include "proxy/ledger/store/askers/later.h"
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
    put("next", SPAN("run")); /* another one of its session does not stand in for it */
    assert_int_equal(fix_sql("UPDATE sandbox SET kind='ended' WHERE name='s1'"), SQLITE_OK);
    assert_int_equal(due(&st.ticket), 0);
    assert_int_equal(fix_sql("UPDATE sandbox SET kind='run',tenant='other' WHERE name='s1'"), SQLITE_OK);
    assert_int_equal(due(&st.ticket), 0);
    assert_int_equal(fix_sql("UPDATE sandbox SET tenant='acme',session='s2' WHERE name='s1'"), SQLITE_OK);
    assert_int_equal(due(&st.ticket), 0);
    assert_int_equal(fix_sql("UPDATE sandbox SET session='s1',frozen='why' WHERE name='s1'"), SQLITE_OK);
    assert_int_equal(due(&st.ticket), 0);
    assert_int_equal(fix_sql("UPDATE sandbox SET frozen=NULL"), SQLITE_OK);
    assert_int_equal(due(&st.ticket), 1);
    assert_true(fix_claim(&st.ticket, own, NULL));
    struct wire_ticket_state other = approved(2);
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), false, &why), 0);
    assert_null(why);
    assert_int_equal(not_sent(&st.ticket, own), TICKET_FAILED); /* it was removed while that was on its way */
    put("s1", SPAN("run"));
    fix_time(STORE_LATER_MS);
    assert_int_equal(due(&other.ticket), 0); /* approved still, for whoever of the session asks for it again */
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='approved'"), 1);
}

static void a_client_that_left_untold_is_no_end_of_it(void **state)
{
    for (int told = 0; told < 2; told++) {
        size_t n;
        struct wire_ticket_state st = approved((unsigned)told + 1);
        assert_true(fix_claim(&st.ticket, 10 + (uint64_t)told, NULL));
        struct store_outcome o = {
            .xid = 10 + (uint64_t)told, .ticket = st.ticket, .outcome = OUTCOME_NOT_SENT, .untold = !told};
        assert_int_equal(store_outcome(fix, &o), 0);
        assert_int_equal(store_commit(fix), 0);
        assert_int_equal(asked(&st.ticket, "s1", false, &n).state.state, told ? TICKET_FAILED : TICKET_APPROVED);
    }
}

static void so_many_are_sent_at_once(void **state)
{
    struct wire_ticket_state last = approved(LATER_SENT_EACH + 1);
    for (unsigned i = 0; i < LATER_SENT_EACH; i++) {
        struct wire_ticket_state st = approved(i + 1);
        assert_true(fix_claim(&st.ticket, own + i, NULL));
    }
    assert_int_equal(due(&last.ticket), 0);
    assert_int_equal(fix_sql("UPDATE ticket SET sandbox='s9' WHERE state='executing'"), SQLITE_OK);
    assert_int_equal(due(&last.ticket),
                     1); /* those are a neighbour's: it is told of at once, as if none had been there */
    assert_true(fix_claim(&last.ticket, 99, NULL));
    fix_outcome(&last.ticket, 99, OUTCOME_ANSWERED, true, no_body);
}

static void it_is_sent_with_the_lease_that_was_last_asked_with(void **state)
{
    const struct wire_later first = {.asked = true, .lease = {{7}}}, then = {.asked = true, .lease = {{8}}};
    static struct wire_review w;
    struct wire_later l;
    struct store_bytes request = {.head = SPAN_NONE};
    struct wire_ticket_state st = hold(1, &first, no_body);
    assert_true(hold(1, &then, no_body).joined);
    dynbuf_init(&request.body, 64 * 1024);
    assert_int_equal(store_later(fix, &st.ticket, &w, &l, &request), 1);
    assert_int_equal(l.lease.b[0], 8);
    dynbuf_free(&request.body);
    assert_int_equal(store_commit(fix), 0);
}

static void what_was_not_kept_is_not_promised(void **state)
{
    size_t n;
    struct wire_ticket_state st = approved(1);
    assert_true(fix_claim(&st.ticket, own, NULL));
    struct store_outcome o = {.xid = own, .ticket = st.ticket, .outcome = OUTCOME_ANSWERED, .status = 200};
    assert_int_equal(store_outcome(fix, &o), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM answer"), 1); /* it joins what asks for the same */
    struct store_asked said = asked(&st.ticket, "s1", false, &n);
    assert_true(said.state.state == TICKET_DONE && said.until_ms == 0);
}

static void the_next_session_of_a_name_has_nothing_of_the_one_before(void **state)
{
    const char *why;
    size_t n;
    struct wire_ticket_state st = approved(1), no = hold(2, &(struct wire_later){.asked = true}, no_body);
    assert_int_equal(fix_decide(&no.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, own, NULL));
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), true, &why), 0);
    put("s1", SPAN("run"));
    fix_outcome(&st.ticket, own, OUTCOME_ANSWERED, false, SPAN("the answer")); /* after the end of its session */
    assert_false(asked(&st.ticket, "s1", true, &n).known);
    assert_int_equal(n, 0);
    assert_false(asked(&no.ticket, "s1", false, &n).known);
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
        WITH_SANDBOX(a_client_that_left_untold_is_no_end_of_it),
        WITH_SANDBOX(so_many_are_sent_at_once),
        WITH_SANDBOX(it_is_sent_with_the_lease_that_was_last_asked_with),
        WITH_SANDBOX(what_was_not_kept_is_not_promised),
        WITH_SANDBOX(the_next_session_of_a_name_has_nothing_of_the_one_before),
        WITH_SANDBOX(what_limits_count_of_it_is_of_when_it_is_sent),
        WITH_SANDBOX(its_time_is_that_of_its_ticket),
        WITH_SANDBOX(its_answer_is_had_as_often_as_one_likes_for_its_time_by_its_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
