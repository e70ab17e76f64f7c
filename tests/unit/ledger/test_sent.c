/* The mark that a write's first byte left: one record with its outcome, or one of its own within the second; and what
 * is true of a write after a crash at any moment. F13. */
#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;

static void commit(void)
{
    assert_int_equal(store_commit(fix), 0);
}

static void intend(uint64_t xid)
{
    static struct wire_ticket t;
    bool ok;
    fix_ticket(&t, "s1", 1, 1);
    assert_int_equal(store_intent(fix, xid, &t.record, &t.join, &fix_limits, &ok, &fix_over), 0);
    assert_true(ok);
    commit();
}

static void mark(uint64_t xid)
{
    assert_int_equal(store_sent(fix, xid), 0);
}

static int64_t records(const char *kind)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM audit WHERE kind='%s'", kind);
    return fix_count(sql);
}

static int64_t effects(const char *state)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM effect WHERE state='%s'", state);
    return fix_count(sql);
}

static void a_mark_and_the_outcome_are_one_record(void **state)
{
    intend(1);
    fix_time(70);
    mark(1);
    commit();
    fix_time(5);
    fix_outcome(NULL, 1, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(records("sent"), 0);
    assert_int_equal(fix_count("SELECT sent_ms FROM effect WHERE state='answered'"), T0 + 70);
    assert_int_equal(
        fix_count("SELECT count(*) FROM audit WHERE kind='result' AND json->>'sent'='2027-01-15T08:00:00.070Z'"), 1);
    assert_int_equal(store_tick(fix), 0); /* it is gone with its outcome */
    commit();
    assert_int_equal(records("sent"), 0);
    assert_int_equal(fix_chain(), 3);
}

static void a_mark_without_an_outcome_is_written_within_the_second(void **state)
{
    intend(1);
    fix_time(70);
    mark(1);
    assert_int_equal(store_tick(fix), 0);
    commit();
    assert_int_equal(fix_count("SELECT sent_ms FROM effect WHERE state='sent'"), T0 + 70);
    assert_int_equal(records("sent"), 1);
    fix_time(5000);
    assert_int_equal(store_tick(fix), 0);
    fix_outcome(NULL, 1, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(records("sent"), 1);
    assert_int_equal(fix_count("SELECT sent_ms FROM effect WHERE state='answered'"), T0 + 70);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE json->>'kind'='result' AND json->>'sent' IS NULL"),
                     1);
}

static void more_marks_than_are_remembered_are_written_at_once(void **state)
{
    for (uint64_t xid = 1; xid <= STORE_SENT_MAX + 1; xid++) {
        intend(xid);
        mark(xid);
    }
    commit();
    assert_int_equal(effects("sent"), 1);
    assert_int_equal(store_tick(fix), 0);
    commit();
    assert_int_equal(effects("sent"), STORE_SENT_MAX + 1);
    assert_int_equal(records("sent"), STORE_SENT_MAX + 1);
}

/* Within one second, before any tick. */
static void a_mark_leaves_its_place_with_its_outcome(void **state)
{
    for (uint64_t xid = 1; xid <= STORE_SENT_MAX + 1; xid++) {
        intend(xid);
        mark(xid);
        if (xid <= STORE_SENT_MAX)
            fix_outcome(NULL, xid, OUTCOME_ANSWERED, true, no_body);
    }
    commit();
    assert_int_equal(effects("sent"), 0); /* the last one's is remembered, as the first one's was */
}

/* Both while it is remembered and when it is on disk. */
static void not_sent_is_not_believed_against_a_mark(void **state)
{
    intend(1);
    intend(2);
    mark(1);
    assert_int_equal(store_tick(fix), 0);
    mark(2);
    commit();
    assert_int_equal(effects("sent"), 1);
    assert_int_equal(effects("intent"), 1);
    fix_outcome(NULL, 1, OUTCOME_NOT_SENT, true, no_body);
    fix_outcome(NULL, 2, OUTCOME_NOT_SENT, true, no_body);
    assert_int_equal(effects("unknown"), 2);
    assert_int_equal(effects("not-sent"), 0);
}

/* The outcome is said again once the store is back; what was known of it is known still. */
static void a_turn_that_fails_forgets_no_mark(void **state)
{
    static struct wire_ticket t;
    intend(1);
    intend(2);
    mark(1);
    mark(2);
    fix_ticket(&t, "s1", 1, 1);
    struct store_outcome o = {.xid = 1, .record = t.record, .outcome = OUTCOME_ANSWERED, .status = 200};
    assert_int_equal(store_outcome(fix, &o), 0);
    assert_int_equal(store_tick(fix), 0);
    store_fail(fix, "for the test");
    assert_int_equal(store_commit(fix), -1);
    assert_int_equal(effects("intent"), 2);
    fix_outcome(NULL, 1, OUTCOME_NOT_SENT, false, no_body);
    assert_int_equal(effects("unknown"), 1);
    assert_int_equal(store_tick(fix), 0);
    commit();
    assert_int_equal(effects("sent"), 1);
    assert_int_equal(records("sent"), 1);
}

static void what_a_judge_that_died_had_marked_is_written_before_it_is_unknown(void **state)
{
    intend(1);
    mark(1);
    assert_int_equal(store_judge_came(fix), 0);
    commit();
    assert_int_equal(records("sent"), 1);
    assert_int_equal(effects("unknown"), 1);
    fix_outcome(NULL, 1, OUTCOME_ANSWERED, true, no_body); /* a late word */
    assert_int_equal(effects("answered"), 1);
}

/* Each moment in the life of a write at which the ledger may be killed, and what is true of the write from then on:
 * that it may have happened, until its outcome is on disk. */
static void f13_a_crash_at_any_moment_leaves_what_is_true(void **state)
{
    enum { INTENDED, MARKED, OTHERS_COMMITTED, TICKED, MARK_ON_DISK, OUTCOME_SAID, OUTCOME_ON_DISK, MOMENTS };
    char boot[MOMENTS][16];
    for (int at = 0; at < MOMENTS; at++) {
        static struct wire_ticket t;
        fix_ticket(&t, "s1", 1, 1);
        struct store_outcome o = {.xid = 1, .record = t.record, .outcome = OUTCOME_ANSWERED, .status = 200};
        intend(1);
        if (at >= MARKED)
            mark(1);
        if (at >= OTHERS_COMMITTED)
            intend(2);
        if (at == TICKED || at == MARK_ON_DISK)
            assert_int_equal(store_tick(fix), 0);
        if (at >= MARK_ON_DISK)
            commit();
        if (at >= OUTCOME_SAID)
            assert_int_equal(store_outcome(fix, &o), 0);
        if (at >= OUTCOME_ON_DISK)
            commit();
        int64_t answered = effects("answered");
        snprintf(boot[at], sizeof(boot[at]), "next%d", at);
        fix_config.boot = span_str(boot[at]);
        fix_reopen(); /* without a commit: as after a kill */
        assert_int_equal(effects("intent") + effects("sent") + effects("not-sent"), 0);
        assert_int_equal(effects("answered"), answered);
        assert_int_equal(answered, at == OUTCOME_ON_DISK);
        assert_int_equal(records("sent"), at >= MARK_ON_DISK);
        (void)fix_chain();
    }
    assert_int_equal(effects("unknown"), MOMENTS - 1 + MOMENTS - OTHERS_COMMITTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(a_mark_and_the_outcome_are_one_record),
        FRESH(a_mark_without_an_outcome_is_written_within_the_second),
        FRESH(more_marks_than_are_remembered_are_written_at_once),
        FRESH(a_mark_leaves_its_place_with_its_outcome),
        FRESH(not_sent_is_not_believed_against_a_mark),
        FRESH(a_turn_that_fails_forgets_no_mark),
        FRESH(what_a_judge_that_died_had_marked_is_written_before_it_is_unknown),
        FRESH(f13_a_crash_at_any_moment_leaves_what_is_true),
    };
    if (access("/dev/shm", W_OK) == 0)
        fix_base = "/dev/shm";
    return cmocka_run_group_tests_name("sent", tests, NULL, NULL);
}
