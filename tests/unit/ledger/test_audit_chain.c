/* Each record's hash, computed anew from what the database holds (fix_chain): code that wrote it wrong could read it
 * wrong, too. */
#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;

static void each_hash_covers_the_one_before_and_its_own_text(void **state)
{
    struct wire_ticket_state t = fix_hold("s1", 1, 1, SPAN("the body"));
    assert_int_equal(fix_decide(&t.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&t.ticket, 7, NULL));
    fix_outcome(&t.ticket, 7, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='intent' AND ticket IS NOT NULL"), 1);
    fix_reopen(); /* the chain goes on */
    (void)fix_hold("s2", 2, 2, no_body);
    assert_true(fix_chain() >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FRESH(each_hash_covers_the_one_before_and_its_own_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
