/* Who waits for a decision, as the store keeps it: A34 E30. */
#include "tests/kit.h"
#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;

static void says(const struct id *id, bool waits, uint64_t ms)
{
    assert_int_equal(store_asker(fix, id, waits, ms), 0);
    assert_int_equal(store_commit(fix), 0);
}

static int64_t asker(const char *column)
{
    char sql[96];
    snprintf(sql, sizeof(sql), "SELECT %s FROM asker", column);
    return fix_count(sql);
}

static void a_client_waits_leaves_and_comes_back(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(asker("waits"), 1); /* who asked is there */
    says(&st.ticket, true, 50000);
    assert_int_equal(asker("until_ms"), T0 + 50000);
    fix_time(10000);
    says(&st.ticket, true, 1000); /* another one, for a shorter time */
    assert_int_equal(asker("until_ms"), T0 + 50000);
    assert_int_equal(asker("since_ms"), T0);
    fix_time(5000);
    says(&st.ticket, false, 0);
    assert_int_equal(asker("waits"), 0);
    assert_int_equal(asker("since_ms"), T0 + 15000);
    assert_int_equal(asker("until_ms"), 0);
    fix_time(5000);
    says(&st.ticket, false, 0); /* said twice: it stays since when */
    assert_int_equal(asker("since_ms"), T0 + 15000);
    says(&st.ticket, true, 50000);
    assert_int_equal(asker("waits"), 1);
    assert_int_equal(asker("since_ms"), T0 + 20000);
    covers("A34");
}

static void it_goes_with_the_end_of_its_ticket(void **state)
{
    static const enum decide ends[] = {DECIDE_DENY, DECIDE_CANCEL};
    for (unsigned i = 0; i < 2; i++) {
        struct wire_ticket_state st = fix_hold("s1", i, i, no_body);
        assert_int_equal(fix_decide(&st.ticket, ends[i], NULL), DECIDED_DONE);
        says(&st.ticket, true, 50000); /* too late */
        assert_int_equal(asker("count(*)"), 0);
    }
    struct wire_ticket_state st = fix_hold("s1", 5, 5, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(asker("waits"), 1); /* approved, it may still wait for a client */
    assert_true(fix_claim(&st.ticket, 5, NULL));
    fix_outcome(&st.ticket, 5, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(asker("count(*)"), 0);
    st = fix_hold("s1", 6, 6, no_body);
    fix_time(STORE_EXPIRES_MS);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(asker("count(*)"), 0);
}

static void after_a_restart_nobody_waits(void **state)
{
    (void)fix_hold("s1", 1, 1, no_body);
    fix_time(7000);
    fix_reopen();
    assert_int_equal(asker("waits"), 0);
    assert_int_equal(asker("since_ms"), T0 + 7000);
    (void)fix_hold("s1", 2, 2, no_body);
    assert_int_equal(asker("sum(waits)"), 1);
    assert_int_equal(store_judge_came(fix), 0); /* another judge: its forerunner's clients were refused */
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(asker("sum(waits)"), 0);
}

static void nobody_waits_for_what_is_not_there(void **state)
{
    struct id id = {{9}};
    says(&id, true, 1);
    says(&id, false, 0);
    assert_int_equal(asker("count(*)"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(a_client_waits_leaves_and_comes_back),
        FRESH(it_goes_with_the_end_of_its_ticket),
        FRESH(after_a_restart_nobody_waits),
        FRESH(nobody_waits_for_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
