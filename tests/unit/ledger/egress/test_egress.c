/* How much is used of what sandboxes and tenants may send, on disk. */
#include "proxy/ledger/store/egress/ops_egress.h"
#include "tests/unit/ledger/ledger_fix.h"

static struct wire_egress rows[8];
static size_t nrows;
static struct wire_sandbox seen;

static void keep(void *arg, const struct wire_egress *e)
{
    assert_true(nrows < 8);
    rows[nrows] = *e;
    rows[nrows++].name = SPAN_NONE; /* it is the store's */
}

static void all(void)
{
    nrows = 0;
    assert_int_equal(store_egress(fix, keep, NULL), 0);
}

static void see(void *arg, const struct wire_sandbox *b)
{
    seen = *b;
}

static void put(unsigned whose, const char *name, uint64_t epoch, uint64_t requests, uint64_t bytes)
{
    const struct wire_egress e = {
        .whose = (uint8_t)whose, .name = span_str(name), .epoch = epoch, .used = {requests, bytes}};
    assert_int_equal(store_egress_put(fix, &e), 0);
    assert_int_equal(store_commit(fix), 0);
}

static void start(uint64_t requests, bool goes_on)
{
    const struct wire_sandbox b = {.name = SPAN("box"),
                                   .session = SPAN("box"),
                                   .kind = SPAN("started"),
                                   .tenant = SPAN("acme"),
                                   .egress = {requests, 4096},
                                   .egress_epoch = goes_on,
                                   .reach = goes_on ? SPAN_NONE : SPAN("+n api.test\n")};
    const char *why;
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(store_sandboxes(fix, see, NULL), 0);
}

static void a_count_is_of_one_start(void **state)
{
    put(EGRESS_SANDBOX, "box", 1, 5, 5); /* of none that there is: nothing */
    all();
    assert_int_equal(nrows, 0);
    start(7, false);
    assert_true(seen.egress[EGRESS_REQUESTS] == 7 && seen.egress[EGRESS_BYTES] == 4096);
    assert_int_equal(seen.egress_epoch, seen.generation);
    uint64_t first = seen.egress_epoch;
    put(EGRESS_SANDBOX, "box", first, 3, 100);
    start(7, true); /* it goes on after a pause */
    assert_int_equal(seen.egress_epoch, first);
    assert_true(seen.reach.n > 0); /* and what it may reach is as before */
    assert_int_equal(seen.generation, first + 1);
    put(EGRESS_SANDBOX, "box", first, 4, 120);
    fix_reopen();
    all();
    assert_int_equal(nrows, 1);
    assert_true(rows[0].epoch == first && rows[0].used[EGRESS_REQUESTS] == 4 && rows[0].used[EGRESS_BYTES] == 120);
    start(2, false); /* another one of its name */
    assert_int_equal(seen.egress_epoch, first + 2);
    put(EGRESS_SANDBOX, "box", first, 9, 9); /* said of the one before: nothing */
    all();
    assert_true(nrows == 1 && rows[0].used[EGRESS_REQUESTS] == 4);
    put(EGRESS_SANDBOX, "box", first + 2, 1, 1);
    all();
    assert_true(nrows == 1 && rows[0].epoch == first + 2 && rows[0].used[EGRESS_REQUESTS] == 1);
}

static void a_tenants_outlives_its_sandboxes(void **state)
{
    const char *why;
    start(7, false);
    put(EGRESS_SANDBOX, "box", seen.egress_epoch, 3, 100);
    put(EGRESS_TENANT, "acme", T0, 3, 100);
    assert_int_equal(store_sandbox_ended(fix, SPAN("box"), seen.generation), 0);
    all();
    assert_int_equal(nrows, 2); /* what an ended one used can be seen as long as its row is there */
    assert_int_equal(store_sandbox_remove(fix, SPAN("box"), true, &why), 0);
    all();
    assert_true(nrows == 1 && rows[0].whose == EGRESS_TENANT && rows[0].epoch == T0);
    put(EGRESS_TENANT, "acme", T0 + 1, 1, 1);
    all();
    assert_true(nrows == 1 && rows[0].epoch == T0 + 1 && rows[0].used[EGRESS_BYTES] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FRESH(a_count_is_of_one_start), FRESH(a_tenants_outlives_its_sandboxes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
