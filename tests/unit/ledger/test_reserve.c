/* What limits count: all or none, for a window, given back only when nothing left; over restarts, in one batch. */
#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;
static struct wire_ticket asked;

static struct wire_limit requests(uint64_t max, uint64_t window_ms)
{
    return (struct wire_limit){
        .rule = SPAN("refunds"), .measure = SPAN("requests"), .max = max, .window_ms = window_ms, .amount = 1};
}

static struct wire_limit money(uint64_t amount, uint64_t max)
{
    return (struct wire_limit){
        .rule = SPAN("refunds"), .measure = SPAN("json:/amount"), .max = max, .window_ms = 60000, .amount = amount};
}

/* An allowed request without a commit: true, it may be sent. */
static bool ask_of(const char *sandbox, uint64_t xid, const struct wire_limits *l)
{
    bool ok;
    static const struct digest none;
    fix_ticket(&asked, sandbox, 1, 1);
    assert_int_equal(store_intent(fix, xid, &asked.record, &none, l, &ok, &fix_over), 0);
    assert_int_equal(ok, fix_over.n == 0);
    return ok;
}

static bool ask(uint64_t xid, struct wire_limit l)
{
    struct wire_limits all = {.n = 1, .limit = {l}};
    return ask_of("s1", xid, &all);
}

static void commit(void)
{
    assert_int_equal(store_commit(fix), 0);
}

static int64_t rows(void)
{
    return fix_count("SELECT count(*) FROM reserved");
}

static void the_limit_and_one_past_it(void **state)
{
    for (unsigned i = 1; i <= 3; i++)
        assert_true(ask(i, requests(3, 1000)));
    assert_false(ask(4, requests(3, 1000))); /* of the same turn: nothing is committed yet */
    commit();
    assert_int_equal(rows(), 3);
    assert_int_equal(fix_count("SELECT count(*) FROM effect"), 3); /* no trace of the fourth */
    assert_false(ask(4, requests(3, 1000)));
    assert_true(fix_over.n == 1 && fix_over.past[0] && fix_over.room_ms == T0 + 1000);
    assert_true(ask(4, requests(4, 1000))); /* the same xid may ask again, of a rule with more room */
    commit();
}

static void the_window_slides_exactly(void **state)
{
    assert_true(ask(1, requests(2, 1000)));
    commit();
    fix_time(400);
    assert_true(ask(2, requests(2, 1000)));
    commit();
    fix_time(599);
    assert_false(ask(3, requests(2, 1000)));
    assert_true(fix_over.room_ms == T0 + 1000);
    commit();
    fix_time(1);
    assert_true(ask(3, requests(2, 1000)));
    assert_false(ask(4, requests(2, 1000)));
    assert_true(fix_over.room_ms == T0 + 1400);
    commit();
    /* A longer window sees what the shorter one has let go of. */
    assert_false(ask(4, requests(3, 2000)));
    commit();
}

static void a_clock_set_back_frees_nothing(void **state)
{
    assert_true(ask(1, requests(1, 1000)));
    commit();
    store_clock(fix, T0 - 3600000, fix_boot);
    assert_false(ask(2, requests(1, 1000)));
    commit();
}

static void all_or_none(void **state)
{
    struct wire_limits l = {.n = 2, .limit = {requests(10, 1000), money(60, 100)}};
    assert_true(ask_of("s1", 1, &l));
    assert_false(ask_of("s1", 2, &l));
    assert_true(!fix_over.past[0] && fix_over.past[1] && fix_over.n == 2);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM reserved WHERE measure='requests'"), 1);
    l.limit[1].amount = 40;
    assert_true(ask_of("s1", 3, &l)); /* to the last cent */
    commit();
    l.limit[1].amount = 0; /* takes nothing, and the rest is counted all the same */
    assert_true(ask_of("s1", 4, &l));
    commit();
    assert_int_equal(fix_count("SELECT sum(amount) FROM reserved WHERE measure='json:/amount'"), 100);
    assert_int_equal(fix_count("SELECT sum(amount) FROM reserved WHERE measure='requests'"), 3);
}

static void two_windows_of_a_measure_are_one_use(void **state)
{
    struct wire_limits l = {.n = 2, .limit = {requests(2, 1000), requests(3, 60000)}};
    assert_true(ask_of("s1", 1, &l));
    assert_true(ask_of("s1", 2, &l));
    assert_false(ask_of("s1", 3, &l));
    assert_true(fix_over.past[0] && !fix_over.past[1]);
    commit();
    assert_int_equal(rows(), 2);
    fix_time(1000);
    assert_true(ask_of("s1", 3, &l));
    assert_false(ask_of("s1", 4, &l));
    assert_true(!fix_over.past[0] && fix_over.past[1]);
    assert_true(fix_over.room_ms == T0 + 60000);
    commit();
}

static void whose_use_is_counted(void **state)
{
    struct wire_limits l = {.n = 1, .limit = {requests(1, 1000)}};
    assert_true(ask_of("s1", 1, &l));
    assert_false(ask_of("s1", 2, &l));
    assert_true(ask_of("s2", 3, &l));
    l.limit[0].per = WIRE_PER_SESSION; /* named like the sandbox here; another count all the same */
    assert_true(ask_of("s1", 4, &l));
    assert_false(ask_of("s1", 5, &l));
    l.limit[0].per = WIRE_PER_ALL;
    assert_true(ask_of("s1", 6, &l));
    assert_false(ask_of("s2", 7, &l));
    l.limit[0].rule = SPAN("others");
    assert_true(ask_of("s2", 8, &l));
    commit();
}

static void what_cannot_be_counted_is_past(void **state)
{
    static const uint64_t top = 1ull << 53;
    struct wire_limit l = money(1, 1000000);
    l.uncountable = true;
    assert_false(ask(1, l));
    assert_true(fix_over.room_ms == 0); /* waiting does not help */
    assert_false(ask(2, money(101, 100)));
    assert_true(fix_over.room_ms == 0);
    assert_false(ask(3, money(UINT64_MAX, UINT64_MAX)));
    assert_false(ask(4, requests(0, 1000)));
    for (unsigned i = 0; i < 3; i++)
        assert_true(ask(10 + i, money(top, UINT64_MAX))); /* far past what one count of the database can hold */
    commit();
    assert_int_equal(fix_sql("INSERT INTO reserved(who,rule,measure,at_ms,amount,boot,xid) WITH RECURSIVE"
                             " n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<1100) SELECT 'sandbox:s1',"
                             "'refunds','json:/amount',1800000000000,9007199254740992,'boot1',1000+i FROM n"),
                     SQLITE_OK);
    assert_false(ask(20, money(1, top)));
    assert_true(ask(21, money(1, UINT64_MAX)));
    commit();
}

static void only_what_was_not_sent_is_given_back(void **state)
{
    static const enum outcome kept[] = {OUTCOME_ANSWERED, OUTCOME_UNKNOWN};
    for (unsigned i = 0; i < 2; i++) {
        assert_true(ask(1 + i, requests(9, 1000)));
        commit();
        fix_outcome(NULL, 1 + i, kept[i], true, no_body);
        assert_int_equal(rows(), 1 + i);
    }
    assert_true(ask(3, requests(9, 1000)));
    commit();
    fix_outcome(NULL, 3, OUTCOME_NOT_SENT, true, no_body);
    assert_int_equal(rows(), 2);
    fix_outcome(NULL, 1, OUTCOME_NOT_SENT, true, no_body); /* it was answered, whoever says otherwise */
    assert_int_equal(rows(), 2);
    fix_outcome(NULL, 2, OUTCOME_NOT_SENT, true, no_body); /* a late word of what nobody knew */
    assert_int_equal(rows(), 1);
    assert_true(ask(4, requests(9, 1000)));
    assert_int_equal(store_sent(fix, 4), 0);
    commit();
    fix_outcome(NULL, 4, OUTCOME_NOT_SENT, true, no_body); /* against the mark of its first byte: not known */
    assert_int_equal(rows(), 2);
}

static void reads_are_counted_too(void **state)
{
    bool ok;
    static const struct digest none;
    struct wire_limits l = {.n = 1, .limit = {requests(1, 1000)}};
    store_close(&fix);
    fix_config.audit_reads = false;
    fix_open();
    fix_ticket(&asked, "s1", 1, 1);
    asked.record.effect = SPAN("read");
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(store_intent(fix, i, &asked.record, &none, &l, &ok, &fix_over), 0);
        assert_true(ok);
        struct store_outcome o = {.xid = i, .record = asked.record, .outcome = OUTCOME_NOT_SENT};
        assert_int_equal(store_outcome(fix, &o), 0);
        commit();
        assert_int_equal(rows(), 0);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='result'"), 2);
    assert_int_equal(fix_count("SELECT count(*) FROM effect WHERE state='not-sent'"), 2);
}

static void a_turn_that_fails_reserves_nothing(void **state)
{
    assert_true(ask(1, requests(1, 1000)));
    store_fail(fix, "for the test");
    assert_int_equal(store_commit(fix), -1);
    assert_int_equal(rows(), 0);
    assert_true(ask(1, requests(1, 1000)));
    commit();
}

static void a_restart_forgets_nothing(void **state)
{
    fix_limits = (struct wire_limits){.n = 1, .limit = {requests(3, 60000)}};
    assert_true(ask(1, requests(3, 60000)));
    commit();
    (void)fix_hold("s1", 1, 1, no_body);
    fix_config.boot = SPAN("boot2");
    fix_reopen();
    assert_true(ask(1, requests(3, 60000)));
    assert_false(ask(2, requests(3, 60000)));
    commit();
    /* The exchange of another boot with that number is not this one: only this boot's use is given back. */
    assert_int_equal(store_judge_came(fix), 0);
    fix_outcome(NULL, 1, OUTCOME_NOT_SENT, true, no_body);
    assert_int_equal(rows(), 2);
    assert_int_equal(fix_count("SELECT count(*) FROM reserved WHERE boot='boot1' AND xid=1"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM reserved WHERE boot='boot2'"), 0);
}

static void a_ticket_counts_while_it_is_open_and_then_from_its_claim(void **state)
{
    fix_limits = (struct wire_limits){.n = 1, .limit = {requests(1, 1000)}};
    struct wire_ticket_state a = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_over.n, 0);
    struct wire_ticket_state b = fix_hold("s1", 2, 2, no_body);
    assert_int_equal(a.state, TICKET_PENDING);
    assert_int_equal(b.state, TICKET_NONE);
    assert_true(span_eq(b.words, SPAN("over-limit")));
    assert_true(fix_over.n == 1 && fix_over.past[0] && fix_over.room_ms == 0); /* who knows when it is decided */
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='ticket-opened'"), 1);
    fix_time(5000); /* open, however long */
    assert_int_equal(fix_hold("s1", 2, 2, no_body).state, TICKET_NONE);
    assert_true(fix_hold("s1", 1, 1, no_body).joined); /* what it has it need not ask for again */
    assert_int_equal(fix_over.n, 0);
    assert_int_equal(fix_decide(&a.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    fix_time(5000);
    assert_int_equal(fix_hold("s1", 2, 2, no_body).state, TICKET_NONE);
    assert_true(fix_claim(&a.ticket, 7, NULL));
    fix_time(999);
    assert_int_equal(fix_hold("s1", 2, 2, no_body).state, TICKET_NONE);
    assert_true(fix_over.room_ms == T0 + 11000);
    fix_outcome(&a.ticket, 7, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(fix_hold("s1", 2, 2, no_body).state, TICKET_NONE);
    fix_time(1);
    assert_int_equal(fix_hold("s1", 2, 2, no_body).state, TICKET_PENDING);
}

static void a_ticket_that_ends_unsent_gives_back(void **state)
{
    fix_limits = (struct wire_limits){.n = 2, .limit = {requests(1, 60000), money(5, 5)}};
    static const enum decide words[] = {DECIDE_DENY, DECIDE_CANCEL};
    for (unsigned i = 0; i < 2; i++) {
        struct wire_ticket_state t = fix_hold("s1", 1 + i, 1 + i, no_body);
        assert_int_equal(t.state, TICKET_PENDING);
        assert_int_equal(rows(), 2);
        assert_int_equal(fix_decide(&t.ticket, words[i], NULL), DECIDED_DONE);
        assert_int_equal(rows(), 0);
    }
    (void)fix_hold("s1", 3, 3, no_body);
    fix_time(STORE_EXPIRES_MS);
    assert_int_equal(store_tick(fix), 0);
    commit();
    assert_int_equal(rows(), 0);
    struct wire_ticket_state t = fix_hold("s1", 4, 4, no_body);
    assert_int_equal(fix_decide(&t.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&t.ticket, 9, NULL));
    fix_outcome(&t.ticket, 9, OUTCOME_NOT_SENT, true, no_body);
    assert_int_equal(rows(), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='failed'"), 1);
    t = fix_hold("s1", 5, 5, no_body);
    assert_int_equal(fix_decide(&t.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&t.ticket, 10, NULL));
    assert_int_equal(store_judge_came(fix), 0); /* nobody knows what came of it */
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM reserved WHERE at_ms>0"), 2);
}

static void a_ticket_joined_by_more_limits_reserves_them(void **state)
{
    fix_limits = (struct wire_limits){.n = 1, .limit = {requests(2, 60000)}};
    (void)fix_hold("s1", 1, 1, no_body);
    fix_limits = (struct wire_limits){.n = 2, .limit = {requests(1, 60000), money(5, 5)}}; /* after a reload */
    assert_true(fix_hold("s1", 1, 1, no_body).joined);
    assert_int_equal(rows(), 2);
    fix_limits.limit[1].measure = SPAN("json:/other");
    fix_limits.limit[1].amount = 6;
    struct wire_ticket_state t = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(t.state, TICKET_NONE);
    assert_true(!fix_over.past[0] && fix_over.past[1]);
    assert_int_equal(rows(), 2);
}

/* E30: what was held past its limit joins its ticket, although there is room again. */
static void what_would_join_a_ticket_does_not_slip_through(void **state)
{
    struct wire_limits l = {.n = 1, .limit = {requests(100, 1000)}};
    struct wire_ticket_state t = fix_hold("s1", 1, 1, no_body);
    bool ok;
    for (unsigned step = 0; step < 3; step++) {
        fix_ticket(&asked, "s1", 1, 1);
        assert_int_equal(store_intent(fix, 50 + step, &asked.record, &asked.join, &l, &ok, &fix_over), 0);
        assert_true(!ok && fix_over.n == 1 && fix_over.past[0] && fix_over.room_ms == 0);
        commit();
        if (step == 0)
            assert_int_equal(fix_decide(&t.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
        if (step == 1)
            assert_true(fix_claim(&t.ticket, 7, NULL));
    }
    assert_true(ask(60, requests(100, 1000)));                          /* what can never be held does */
    fix_outcome(&t.ticket, 7, OUTCOME_ANSWERED, false, SPAN("answer")); /* nobody was there for it */
    fix_ticket(&asked, "s1", 1, 1);
    assert_int_equal(store_intent(fix, 61, &asked.record, &asked.join, &l, &ok, &fix_over), 0);
    assert_false(ok);
    assert_int_equal(fix_hold("s1", 1, 1, no_body).has_answer, true);
    assert_int_equal(store_intent(fix, 61, &asked.record, &asked.join, &l, &ok, &fix_over), 0);
    assert_true(ok);
    commit();
    t = fix_hold("s1", 2, 2, no_body);
    assert_int_equal(fix_decide(&t.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
    fix_ticket(&asked, "s1", 2, 2);
    assert_int_equal(store_intent(fix, 62, &asked.record, &asked.join, &l, &ok, &fix_over), 0);
    assert_false(ok); /* a person has just said no to it */
    fix_time(STORE_EXPIRES_MS);
    assert_int_equal(store_intent(fix, 62, &asked.record, &asked.join, &l, &ok, &fix_over), 0);
    assert_true(ok);
    commit();
}

/* The last one that is counted, and one past it. */
static void so_many_and_no_more_are_counted(void **state)
{
    assert_true(ask(1, money(1, 1000000)));
    commit();
    assert_int_equal(
        fix_sql("WITH RECURSIVE n(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM n WHERE x < 19990) INSERT INTO "
                "reserved SELECT who, rule, measure, at_ms, amount, ticket, boot, x FROM reserved, n"),
        0);
    for (unsigned i = 19991; i < 20000; i++)
        assert_true(ask(i, money(1, 1000000)));
    assert_true(ask(20000, money(1, 1000000)));
    assert_false(ask(20001, money(1, 1000000)));
    assert_true(fix_over.past[0] && fix_over.room_ms == 0);
    commit();
    assert_int_equal(rows(), 20000);
    fix_time(60000);
    assert_true(ask(20001, money(1, 1000000)));
    commit();
}

static void what_is_older_than_any_window_goes(void **state)
{
    const uint64_t days = 24ull * 3600 * 1000;
    fix_limits = (struct wire_limits){.n = 1, .limit = {requests(9, 31 * days)}};
    assert_true(ask(1, requests(9, 31 * days)));
    fix_ticket(&asked, "s1", 1, 1);
    asked.within_ms = STORE_EXPIRES_MAX_MS;
    struct wire_ticket_state st;
    struct store_bytes kept = {.head = SPAN_NONE};
    assert_int_equal(store_ticket_open(fix, &asked, &fix_limits, no_body, &st, &kept, &fix_over), 0);
    commit();
    fix_time(5 * days);
    assert_true(ask(2, requests(9, 31 * days)));
    commit();
    fix_wall += 26 * days; /* the boot clock stands: the ticket is not over */
    fix_boot += 60000;
    store_clock(fix, fix_wall, fix_boot);
    assert_int_equal(store_tick(fix), 0);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM reserved WHERE xid=1"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM reserved WHERE xid=2"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(the_limit_and_one_past_it),
        FRESH(the_window_slides_exactly),
        FRESH(a_clock_set_back_frees_nothing),
        FRESH(all_or_none),
        FRESH(two_windows_of_a_measure_are_one_use),
        FRESH(whose_use_is_counted),
        FRESH(what_cannot_be_counted_is_past),
        FRESH(only_what_was_not_sent_is_given_back),
        FRESH(reads_are_counted_too),
        FRESH(a_turn_that_fails_reserves_nothing),
        FRESH(a_restart_forgets_nothing),
        FRESH(a_ticket_counts_while_it_is_open_and_then_from_its_claim),
        FRESH(a_ticket_that_ends_unsent_gives_back),
        FRESH(a_ticket_joined_by_more_limits_reserves_them),
        FRESH(what_would_join_a_ticket_does_not_slip_through),
        FRESH(so_many_and_no_more_are_counted),
        FRESH(what_is_older_than_any_window_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
