/* Started sandboxes that are idle: at each step there is one of both, the sandbox or what it is restored from. */
#include "tests/unit/ledger/ledger_fix.h"

#include "proxy/ledger/store/idle/ops_idle.h"
#include "proxy/ledger/store/store_in.h"

static const char *why;

static struct wire_sandbox box(const char *owner)
{
    return (struct wire_sandbox){.name = SPAN("box"),
                                 .session = SPAN("work"),
                                 .owner = span_str(owner),
                                 .tenant = SPAN("acme"),
                                 .kind = SPAN("started"),
                                 .generation = 1,
                                 .egress = {10, 2048},
                                 .egress_epoch = 1};
}

static void commit(void)
{
    assert_int_equal(store_commit(fix), 0);
}

static void runs(void)
{
    struct wire_sandbox b = box("uid 7");
    b.egress_epoch = 0;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    const struct store_token key = {.kind = SPAN("key"), .name = SPAN("one"), .tenant = SPAN("acme")},
                             open = {.kind = SPAN("access"),
                                     .scope = SPAN("box"),
                                     .name = SPAN("one"),
                                     .tenant = SPAN("acme"),
                                     .note = SPAN("{\"a\":1}"),
                                     .has_hash = true,
                                     .hash = fix_digest(1)};
    assert_int_equal(store_token_put(fix, &key, &why), 0);
    assert_int_equal(store_token_put(fix, &open, &why), 0);
    assert_null(why);
    commit();
}

static const char *idles(uint64_t generation)
{
    const struct store_idle i = {.name = SPAN("box"),
                                 .generation = generation,
                                 .checkpoint = SPAN("ck-one"),
                                 .box = SPAN("what it is"),
                                 .cpu_percent = 50,
                                 .left_ms = 1000,
                                 .strict = true};
    assert_int_equal(store_sandbox_idle(fix, &i, &why), 0);
    commit();
    return why;
}

static const char *wakes(void)
{
    struct wire_sandbox b = box("uid 7");
    assert_int_equal(store_sandbox_wake(fix, &b, &why), 0);
    commit();
    return why;
}

static const char *awake(uint64_t generation)
{
    assert_int_equal(store_sandbox_awake(fix, SPAN("box"), generation, &why), 0);
    commit();
    return why;
}

static bool is(const char *kind, int generation, int rows)
{
    char sql[160];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM sandbox WHERE name='box' AND kind='%s' AND generation=%d",
                   kind, generation);
    return fix_count(sql) == 1 && fix_count("SELECT count(*) FROM idle") == rows;
}

static void what_it_was_given_ends_and_it_stays_what_it_was(void **state)
{
    runs();
    assert_non_null(idles(2)); /* of another generation */
    assert_true(is("started", 1, 0));
    assert_null(idles(1));
    assert_true(is("idle", 2, 1));
    assert_int_equal(fix_count("SELECT count(*) FROM token WHERE scope='box' AND hash IS NULL AND note<>''"), 1);
    struct wire_sandbox other = box("uid 8");
    assert_int_equal(store_sandbox_put(fix, &other, &why), 0); /* nobody begins it anew */
    assert_non_null(why);
    assert_int_equal(store_sandbox_ended(fix, SPAN("box"), 1), 0); /* what stood still of it ends */
    assert_int_equal(store_sandboxes_run(fix, NULL, 0), 0);
    commit();
    assert_true(is("idle", 2, 1));
    assert_null(wakes());
    assert_true(is("started", 3, 1));
    assert_non_null(wakes());                                  /* once */
    assert_int_equal(store_sandbox_put(fix, &other, &why), 0); /* nor while its files are restored */
    assert_non_null(why);
    assert_true(is("started", 3, 1));
    assert_non_null(awake(2));
    assert_null(awake(3));
    assert_true(is("started", 3, 0));
    assert_int_equal(fix_count("SELECT count(*) FROM sandbox WHERE restored=1 AND egress_epoch=1 AND session='work' "
                               "AND owner='uid 7' AND tenant='acme' AND egress_requests=10"),
                     1);
    assert_int_equal(store_sandbox_ended(fix, SPAN("box"), 3), 0);
    commit();
    assert_true(is("ended", 4, 0));
    assert_int_equal(fix_count("SELECT count(*) FROM token WHERE scope='box'"), 0);
}

/* Whoever was to restore it was killed, or could not: it is idle as before. */
static void one_that_ends_before_it_has_its_files_is_idle(void **state)
{
    runs();
    assert_null(idles(1));
    for (int i = 0; i < 2; i++) {
        assert_null(wakes());
        assert_true(is("started", 3 + 2 * i, 1));
        if (i == 0)
            assert_int_equal(store_sandbox_ended(fix, SPAN("box"), 3), 0);
        else
            assert_int_equal(store_sandboxes_run(fix, NULL, 0), 0); /* of a warden before */
        commit();
        assert_true(is("idle", 4 + 2 * i, 1));
    }
    assert_non_null(awake(3));
    assert_true(is("idle", 6, 1));
}

static void one_that_is_destroyed_has_ended_whatever_it_was(void **state)
{
    runs();
    assert_int_equal(store_sandbox_idle_over(fix, SPAN("box"), &why), 0); /* it is not idle */
    commit();
    assert_true(is("started", 1, 0));
    assert_null(idles(1));
    assert_null(wakes());
    assert_int_equal(store_sandbox_idle_over(fix, SPAN("box"), &why), 0);
    commit();
    assert_true(is("ended", 4, 0));
    assert_non_null(awake(3)); /* who restored it meanwhile is told */
    assert_int_equal(fix_count("SELECT count(*) FROM token WHERE scope='box'"), 0);
    struct wire_sandbox b = box("uid 8");
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    commit();
    assert_true(is("started", 4, 0));
}

/* E45: one that the warden starts, with the session of its name. */
static void starts(const char *tenant, uint64_t generation)
{
    const struct wire_sandbox b = {.name = SPAN("s1"),
                                   .session = SPAN("s1"),
                                   .owner = SPAN("uid 7"),
                                   .tenant = span_str(tenant),
                                   .kind = SPAN("started"),
                                   .generation = generation};
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
}

static struct id approved(void)
{
    struct wire_ticket_state t = fix_hold("s1", 1, 1, SPAN_NONE);
    if (t.state == TICKET_PENDING)
        assert_int_equal(fix_decide(&t.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    return t.ticket;
}

static void what_was_approved_for_it_is_not_the_next_ones_nor_another_tenants(void **state)
{
    starts("acme", 1);
    struct id a = approved();
    assert_int_equal(store_sandbox_ended(fix, SPAN("s1"), 1), 0);
    starts("acme", 2); /* the same one, begun anew */
    assert_true(fix_hold("s1", 1, 1, SPAN_NONE).state == TICKET_APPROVED);
    assert_int_equal(store_sandbox_ended(fix, SPAN("s1"), 2), 0);
    starts("globex", 3);
    struct id b = approved();
    assert_false(id_eq(&a, &b));
    struct wire_ticket_state denied = fix_hold("s1", 2, 2, SPAN_NONE);
    assert_int_equal(fix_decide(&denied.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
    assert_int_equal(store_sandbox_ended(fix, SPAN("s1"), 3), 0);
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), false, &why), 0);
    assert_null(why);
    struct wire_ticket_state late = fix_hold("s1", 3, 3, SPAN_NONE); /* it was asked for before, and comes after it */
    assert_int_equal(fix_decide(&late.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    starts("globex", 4);
    assert_int_equal(fix_hold("s1", 3, 3, SPAN_NONE).state, TICKET_PENDING);
    struct id c = approved();
    assert_false(id_eq(&b, &c));
    assert_int_equal(fix_hold("s1", 2, 2, SPAN_NONE).state, TICKET_PENDING);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='cancelled'"), 3);
    commit();
}

static void a_session_that_others_have_too_is_theirs(void **state)
{
    const struct wire_sandbox other = {.name = SPAN("s2"),
                                       .session = SPAN("s1"),
                                       .owner = SPAN("uid 7"),
                                       .tenant = SPAN("acme"),
                                       .kind = SPAN("run")};
    starts("acme", 1);
    assert_int_equal(store_sandbox_put(fix, &other, &why), 0);
    struct id a = approved();
    assert_int_equal(store_sandbox_ended(fix, SPAN("s1"), 1), 0);
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), false, &why), 0);
    starts("acme", 2);
    struct id b = approved();
    assert_true(id_eq(&a, &b));
    assert_int_equal(store_sandbox_ended(fix, SPAN("s1"), 2), 0);
    starts("globex", 3); /* but no other tenant's */
    b = approved();
    assert_false(id_eq(&a, &b));
    assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), true, &why), 0); /* somebody says so */
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='cancelled'"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(what_it_was_given_ends_and_it_stays_what_it_was),
        FRESH(one_that_ends_before_it_has_its_files_is_idle),
        FRESH(one_that_is_destroyed_has_ended_whatever_it_was),
        FRESH(what_was_approved_for_it_is_not_the_next_ones_nor_another_tenants),
        FRESH(a_session_that_others_have_too_is_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
