/* Grants: what one fits, that its uses are the effects and no more of them, whenever who writes dies (E2, E23, E40).
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "proxy/ledger/store/grants/grants.h"
#include "tests/unit/ledger/ledger_fix.h"

enum { MINUTE = 60 * 1000 };
static unsigned joins;
static uint64_t xids;

static void put_sandbox(const char *name, const char *tenant)
{
    struct wire_sandbox b = {.name = span_str(name),
                             .tenant = span_str(tenant),
                             .kind = SPAN("token"),
                             .has_token = true,
                             .token_hash = fix_digest((unsigned)name[1] + 7000)};
    const char *why;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    assert_int_equal(store_commit(fix), 0);
}

static int setup(void **state)
{
    if (fix_setup(state) != 0)
        return -1;
    joins = 0;
    xids = 100;
    fix_shape = (struct wire_shape){fix_digest(31), SPAN("{\"path\":\"/x\"}"), 10, 60 * MINUTE};
    put_sandbox("s1", "acme");
    put_sandbox("s2", "acme");
    return 0;
}
#define FRESH_GRANTS(f) cmocka_unit_test_setup_teardown(f, setup, fix_teardown)

static struct wire_ticket_state hold(const char *sandbox)
{
    joins++;
    return fix_hold(sandbox, joins, joins, SPAN_NONE);
}

static enum decided give_with(const struct id *ticket, uint32_t uses, uint64_t for_ms)
{
    fix_grant = (struct store_grant){uses, for_ms};
    enum decided got = fix_decide(ticket, DECIDE_APPROVE, NULL);
    fix_grant = no_grant;
    return got;
}

/* The first of a shape, approved by a person with so many more. */
static void give(uint32_t uses, uint64_t for_ms)
{
    struct wire_ticket_state first = hold("s1");
    assert_false(first.granted);
    assert_int_equal(give_with(&first.ticket, uses, for_ms), DECIDED_DONE);
    assert_true(fix_claim(&first.ticket, ++xids, NULL));
    fix_outcome(&first.ticket, xids, OUTCOME_ANSWERED, true, SPAN_NONE);
}

static int64_t effects_by_grant(void)
{
    return fix_count("SELECT count(*) FROM effect e JOIN ticket t ON t.id=e.ticket WHERE t.grant_id IS NOT NULL");
}

static struct id grant_id(void)
{
    sqlite3 *c = NULL;
    sqlite3_stmt *q = NULL;
    struct id id;
    assert_int_equal(sqlite3_open_v2(fix_path, &c, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(c, "SELECT id FROM grants ORDER BY created_ms LIMIT 1", -1, &q, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_int_equal(id_parse(span_of(sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0)), &id), 0);
    sqlite3_finalize(q);
    sqlite3_close(c);
    return id;
}

static void so_many_and_no_more(void **state)
{
    uint8_t left;
    give(3, 10 * MINUTE);
    unsigned told = fix_told[TICKET_PENDING];
    for (int i = 0; i < 3; i++) {
        struct wire_ticket_state t = hold("s1");
        assert_int_equal(t.state, TICKET_PENDING);
        assert_true(t.granted);
        assert_true(fix_claim(&t.ticket, ++xids, NULL));
        assert_false(fix_claim(&t.ticket, ++xids, &left)); /* and each of them once */
        assert_int_equal(left, TICKET_EXECUTING);
    }
    assert_int_equal(fix_told[TICKET_PENDING], told); /* nobody was asked */
    struct wire_ticket_state past = hold("s1");
    assert_false(past.granted);
    assert_int_equal(fix_told[TICKET_PENDING], told + 1);
    assert_false(fix_claim(&past.ticket, ++xids, &left));
    assert_int_equal(left, TICKET_PENDING);
    assert_int_equal(effects_by_grant(), 3);
    assert_int_equal(fix_count("SELECT count(*) FROM grants WHERE uses=3 AND state='used'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='ticket-decided' AND json LIKE "
                               "'%\"by\":\"ann\",\"channel\":\"grant\"%\"grant\":\"%'"),
                     3);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='intent' AND json LIKE '%\"grant\":\"%'"), 3);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE decided_channel='grant' AND decided_by='ann'"), 3);
}

static void two_at_once_for_the_last(void **state)
{
    uint8_t left;
    give(1, 10 * MINUTE);
    struct wire_ticket_state a = hold("s1"), b = hold("s1");
    assert_true(a.granted && b.granted);
    unsigned told = fix_told[TICKET_PENDING];
    assert_true(fix_claim(&b.ticket, ++xids, NULL));
    assert_false(fix_claim(&a.ticket, ++xids, &left));
    assert_int_equal(left, TICKET_PENDING);
    assert_int_equal(fix_told[TICKET_PENDING], told + 1); /* now a person is asked */
    assert_int_equal(effects_by_grant(), 1);
    assert_int_equal(fix_decide(&a.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&a.ticket, ++xids, NULL));
}

/* All that binds one is tried: the request is held for a person, and an earlier one that was said to be granted is
 * not let go. */
enum change {
    SHAPE,
    NO_SHAPE,
    TERMS,
    POLICY,
    SANDBOX,
    TENANT,
    GENERATION,
    REMOVED,
    REVOKED,
    LATE,
    LATE_BOOT,
    BACK,
    KERNEL,
    CHANGES
};

static void change(enum change c)
{
    struct id id = grant_id();
    const char *why;
    switch (c) {
    case SHAPE: fix_shape.digest = fix_digest(32); break;
    case NO_SHAPE: fix_shape = (struct wire_shape){.uses = 0}; break;
    case TERMS: fix_terms = fix_digest(43); break;
    case POLICY: fix_policy = fix_digest(998); break;
    case SANDBOX: break;
    case TENANT: assert_int_equal(fix_sql("UPDATE sandbox SET tenant='other'"), SQLITE_OK); break;
    case GENERATION: put_sandbox("s1", "acme"); break;
    case REMOVED:
        assert_int_equal(store_sandbox_remove(fix, SPAN("s1"), false, &why), 0);
        assert_int_equal(store_commit(fix), 0);
        put_sandbox("s1", "acme");
        break;
    case REVOKED:
        assert_int_equal(store_grant_revoke(fix, &id, SPAN("bob"), SPAN("enough"), &why), 0);
        assert_null(why);
        assert_int_equal(store_commit(fix), 0);
        assert_int_equal(store_grant_revoke(fix, &id, SPAN("bob"), SPAN("enough"), &why), 0);
        assert_non_null(why);
        assert_int_equal(store_commit(fix), 0);
        break;
    case LATE:
        fix_wall += 10 * MINUTE;
        store_clock(fix, fix_wall, fix_boot);
        break;
    case LATE_BOOT:
        fix_boot += 10 * MINUTE;
        store_clock(fix, fix_wall, fix_boot);
        break;
    case BACK:
        fix_wall -= MINUTE;
        store_clock(fix, fix_wall, fix_boot);
        break;
    case KERNEL:
        fix_config.kernel_boot = SPAN("kernel2");
        fix_reopen();
        break;
    case CHANGES: break;
    }
}

static void what_it_is_bound_to(void **state)
{
    uint8_t left;
    fix_teardown(NULL);
    for (int i = 0; i <= CHANGES; i++) {
        setup(NULL);
        give(5, 10 * MINUTE);
        struct wire_ticket_state early = hold("s1");
        assert_true(early.granted);
        change((enum change)i);
        struct wire_ticket_state t = hold(i == SANDBOX ? "s2" : "s1");
        if (t.granted != (i == CHANGES))
            fail_msg("change %d", i);
        assert_int_equal(fix_claim(&t.ticket, ++xids, NULL), i == CHANGES);
        bool of_request = i == SHAPE || i == NO_SHAPE || i == SANDBOX || i == CHANGES;
        bool went = fix_claim(&early.ticket, ++xids, &left);
        if (went != of_request)
            fail_msg("change %d of what was said to be granted", i);
        assert_int_equal(effects_by_grant(), i == CHANGES ? 2 : of_request);
        fix_teardown(NULL);
    }
    setup(NULL);
}

static void nothing_wider_is_given(void **state)
{
    static const struct {
        uint32_t uses;
        uint64_t for_ms;
    } bad[] = {{11, MINUTE}, {UINT32_MAX, MINUTE}, {1, 60 * MINUTE + 1}, {1, UINT64_MAX}, {1, 0}};
    struct wire_ticket_state t = hold("s1");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(give_with(&t.ticket, bad[i].uses, bad[i].for_ms), DECIDED_NO_GRANT);
    fix_grant = (struct store_grant){1, MINUTE};
    assert_int_equal(fix_decide(&t.ticket, DECIDE_DENY, NULL), DECIDED_NO_GRANT);
    fix_grant = no_grant;
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='pending'"), 1); /* and nothing was decided */
    assert_int_equal(give_with(&t.ticket, 10, 60 * MINUTE), DECIDED_DONE);
    fix_shape = (struct wire_shape){.uses = 0};
    t = hold("s1");
    assert_int_equal(give_with(&t.ticket, 1, MINUTE), DECIDED_NO_GRANT);
    assert_int_equal(fix_count("SELECT count(*) FROM grants"), 1);
}

/* Each sandbox has its own share of them. */
static void so_many_of_a_sandbox(void **state)
{
    struct wire_ticket_state t;
    for (unsigned i = 0; i < STORE_GRANTS_MAX; i++) {
        fix_shape.digest = fix_digest(500 + i);
        t = hold("s1");
        assert_int_equal(give_with(&t.ticket, 1, MINUTE), DECIDED_DONE);
        assert_true(fix_claim(&t.ticket, ++xids, NULL));
    }
    fix_shape.digest = fix_digest(499);
    t = hold("s1");
    assert_int_equal(give_with(&t.ticket, 1, MINUTE), DECIDED_NO_GRANT);
    t = hold("s2");
    assert_int_equal(give_with(&t.ticket, 1, MINUTE), DECIDED_DONE);
}

/* A denial that stands is no new ticket, whatever was granted since. */
static void it_lifts_no_denial(void **state)
{
    struct wire_ticket_state t = hold("s1");
    assert_int_equal(fix_decide(&t.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
    unsigned denied = joins;
    give(5, 10 * MINUTE);
    t = fix_hold("s1", denied, denied, SPAN_NONE);
    assert_int_equal(t.state, TICKET_DENIED);
    assert_false(t.granted);
}

/* What waits may be let go by a grant given since, when it is asked for again. */
static void who_waits_asks_again(void **state)
{
    struct wire_ticket_state t = hold("s1");
    unsigned waits = joins;
    give(5, 10 * MINUTE);
    t = fix_hold("s1", waits, waits, SPAN_NONE);
    assert_true(t.joined && t.granted);
    assert_true(fix_claim(&t.ticket, ++xids, NULL));
}

/* --- death at any moment --------------------------------------------------------- */

/* Use what there is, and die in the middle: of call `at`, before its commit or after. */
static void use_and_die(unsigned at, bool kept)
{
    struct store_claim c = {.credential = SPAN("demo"),
                            .host = SPAN("git.example"),
                            .port = 443,
                            .policy = fix_policy,
                            .rule = SPAN("push"),
                            .terms = fix_terms};
    for (unsigned i = 0;; i++) {
        struct wire_ticket_state t = hold("s1");
        struct store_bytes req = {.head = {NULL, 0}};
        struct digest d;
        uint8_t left;
        bool ok = false;
        if (!t.granted)
            _exit(3);
        c.xid = 5000 + i;
        c.ticket = t.ticket;
        dynbuf_init(&req.body, 1024);
        if (store_claim(fix, &c, &ok, &left, &d, &req) != 0 || !ok)
            _exit(4);
        if (i == at && !kept)
            kill(getpid(), SIGKILL);
        if (store_commit(fix) != 0)
            _exit(5);
        if (i == at)
            kill(getpid(), SIGKILL);
        dynbuf_free(&req.body);
    }
}

static void killed_at_any_moment(void **state)
{
    for (unsigned at = 0; at < 3; at++)
        for (int kept = 0; kept < 2; kept++) {
            int64_t uses = (int64_t)at + kept;
            fix_teardown(NULL);
            setup(NULL);
            give(4, 10 * MINUTE);
            store_close(&fix);
            pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                fix_open();
                use_and_die(at, kept);
            }
            int status;
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_true(WIFSIGNALED(status));
            fix_open();
            assert_int_equal(fix_count("SELECT uses FROM grants"), uses);
            assert_int_equal(effects_by_grant(), uses);
            int64_t more = 0;
            for (;; more++) {
                struct wire_ticket_state t = hold("s1");
                if (!t.granted)
                    break;
                assert_true(fix_claim(&t.ticket, ++xids, NULL));
            }
            assert_int_equal(more, 4 - uses);
        }
}

/* Whatever the order: so many effects as uses, and none past what was given. */
static void any_order(void **state)
{
    struct wire_ticket_state open[16];
    size_t n = 0;
    unsigned seed = 20261124;
    give(9, 10 * MINUTE);
    for (int i = 0; i < 400; i++) {
        unsigned what = (unsigned)rand_r(&seed) % 8;
        if (what < 3 && n < 16)
            open[n++] = hold("s1");
        else if (what < 6 && n > 0) {
            size_t at = (size_t)rand_r(&seed) % n;
            (void)fix_claim(&open[at].ticket, ++xids, NULL);
            open[at] = open[--n];
        } else if (what == 6)
            fix_time((uint64_t)rand_r(&seed) % 5000);
        else if (n > 0 && rand_r(&seed) % 8 == 0)
            fix_reopen();
        assert_int_equal(fix_count("SELECT uses FROM grants"), effects_by_grant());
        assert_true(effects_by_grant() <= 9);
    }
    assert_int_equal(effects_by_grant(), 9);
    assert_true(fix_chain() > 0);
}

static void it_is_forgotten_at_last(void **state)
{
    give(5, 10 * MINUTE);
    fix_time(11 * MINUTE);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM grants WHERE state='expired'"), 1);
    fix_time(STORE_GRANTS_AGE_MAX + 1);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM grants"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH_GRANTS(so_many_and_no_more),
        FRESH_GRANTS(two_at_once_for_the_last),
        FRESH_GRANTS(what_it_is_bound_to),
        FRESH_GRANTS(nothing_wider_is_given),
        FRESH_GRANTS(so_many_of_a_sandbox),
        FRESH_GRANTS(it_lifts_no_denial),
        FRESH_GRANTS(who_waits_asks_again),
        FRESH_GRANTS(killed_at_any_moment),
        FRESH_GRANTS(any_order),
        FRESH_GRANTS(it_is_forgotten_at_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
