/* What the user of an agent's own client takes back (proxy/judge/tickets/elicit.h): E1, E21. */
#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;
static struct span why; /* as its user said there */

static struct wire_ticket_state take_back(const char *sandbox, unsigned join)
{
    static struct wire_ticket t;
    struct wire_ticket_state st;
    struct store_bytes kept = {.head = {NULL, 0}};
    dynbuf_init(&kept.body, ANSWER_KEPT_MAX + 1);
    fix_ticket(&t, sandbox, join, 900 + join); /* as a retry has it: another digest */
    t.take_back = true;
    t.agent_reason = why;
    assert_int_equal(store_ticket_open(fix, &t, &fix_limits, no_body, &st, &kept, &fix_over), 0);
    dynbuf_free(&kept.body);
    assert_int_equal(store_commit(fix), 0);
    return st;
}

/* In the agent's own client its user may end what is open of their own session, and open nothing by it. */
static void e1_its_client_takes_back_what_it_asked(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(take_back("s2", 1).state, TICKET_CANCELLED); /* another session's is none of theirs */
    assert_int_equal(take_back("s1", 2).state, TICKET_CANCELLED); /* nor is there any */
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='pending'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 1);
    struct wire_ticket_state over = take_back("s1", 1);
    assert_true(over.state == TICKET_CANCELLED && id_eq(&over.ticket, &st.ticket));
    assert_true(span_eq(over.by, SPAN("its own client")) && over.words.n > 0);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_NOT_PENDING);
    assert_true(span_eq(over.words, SPAN("its user declined it there")));
    st = fix_hold("s1", 3, 3, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    why = SPAN("wrong bill");
    over = take_back("s1", 3);
    assert_true(span_eq(over.words, SPAN("its user declined it there, and said: wrong bill")));
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE agent_reason='wrong bill'"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE decided_reason="
                               "'its user declined it in the agent''s own client, and said: wrong bill'"),
                     1);
    assert_int_equal(take_back("s1", 3).state, TICKET_CANCELLED);
    assert_false(fix_claim(&st.ticket, 7, NULL));
    st = fix_hold("s1", 4, 4, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 8, NULL));
    assert_int_equal(take_back("s1", 4).state, TICKET_EXECUTING); /* it leaves, and that is what is said */
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='executing'"), 1);
    fix_outcome(&st.ticket, 8, OUTCOME_ANSWERED, false, SPAN("answer body"));
    assert_int_equal(take_back("s1", 4).state, TICKET_DONE); /* as is what was carried out, and nobody was told */
}

/* Asking and taking back is no way past the bound on what one sandbox may ask people. */
static void e21_what_is_taken_back_keeps_its_place(void **state)
{
    fix_config.pending_max = 5;
    fix_reopen();
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(fix_hold("s1", i, i, no_body).state, TICKET_PENDING);
        assert_int_equal(take_back("s1", i).state, TICKET_CANCELLED);
    }
    assert_int_equal(fix_hold("s1", 500, 500, no_body).state, TICKET_NONE);
    fix_time(60 * 60 * 1000);
    assert_int_equal(fix_hold("s1", 501, 501, no_body).state, TICKET_PENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(e1_its_client_takes_back_what_it_asked),
        FRESH(e21_what_is_taken_back_keeps_its_place),
    };
    return cmocka_run_group_tests_name("taken back", tests, NULL, NULL);
}
