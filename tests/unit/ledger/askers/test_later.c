/* What the gateway sends itself once it is approved, as the store keeps it. */
#include "tests/kit.h"
#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;

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
    assert_int_equal(store_judge_came(fix), 0); /* who was told may have ended */
    assert_int_equal(due(&st.ticket), 1);
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
        assert_true(fix_claim(&st.ticket, 10 + i, NULL));
        fix_outcome(&st.ticket, 10 + i, OUTCOME_NOT_SENT, false, no_body);
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
    assert_true(fix_claim(&st.ticket, 10, NULL));
    assert_int_equal(store_sent(fix, 10), 0);
    fix_outcome(&st.ticket, 10, OUTCOME_NOT_SENT, false, no_body); /* against the mark that its first byte left */
    assert_int_equal(asked(&st.ticket, "s1", false, &n).state.state, TICKET_UNKNOWN);
    st = hold(2, &yes, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 11, NULL));
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

static void its_time_is_that_of_its_ticket(void **state)
{
    const struct wire_later yes = {.asked = true};
    struct wire_ticket_state st = hold(1, &yes, no_body);
    size_t n;
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 10, NULL));
    fix_time(STORE_EXPIRES_MS);
    fix_outcome(&st.ticket, 10, OUTCOME_NOT_SENT, false, no_body);
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
        FRESH(it_is_due_once_it_is_approved_and_again),
        FRESH(what_was_not_sent_is_approved_as_before_and_tried_again),
        FRESH(what_may_have_been_sent_is_not_tried_again),
        FRESH(its_time_is_that_of_its_ticket),
        FRESH(its_answer_is_had_as_often_as_one_likes_for_its_time_by_its_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
