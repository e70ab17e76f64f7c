/* What one sandbox and one tenant may take of the places for open tickets, and of their bytes: E22. */
#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;

static void e22_one_sandbox_cannot_use_up_what_is_there_for_all(void **state)
{
    char name[16];
    fix_config.open_max = 100;
    fix_config.pending_max = 60;
    fix_reopen();
    for (unsigned i = 0; i < 80; i++)
        (void)fix_hold("greedy", i, i, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 60);
    assert_int_equal(fix_hold("modest", 1, 1, no_body).state, TICKET_PENDING);
    for (unsigned i = 0; i < 80; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        (void)fix_hold(name, 1, 1, no_body);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 100);
    assert_int_equal(fix_hold("late", 1, 1, no_body).state, TICKET_NONE);
}

static void of_tenant(const char *name, const char *tenant)
{
    const char *why = NULL;
    struct digest hash;
    digest_of(span_str(name), &hash);
    struct wire_sandbox b = {.name = span_str(name),
                             .session = span_str(name),
                             .tenant = span_str(tenant),
                             .owner = SPAN("uid:0"),
                             .token_hash = hash,
                             .has_token = true};

    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
}

static void e22_one_tenant_cannot_use_up_what_is_there_for_all(void **state)
{
    char name[16];
    fix_config.open_max = 160;
    fix_config.pending_max = 20;
    fix_reopen();
    for (unsigned i = 0; i < 16; i++) {
        snprintf(name, sizeof(name), "greedy%u", i);
        of_tenant(name, "greedy");
        for (unsigned k = 0; i < 7 && k < 20; k++)
            (void)fix_hold(name, k, k, no_body);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 140); /* nobody is beside it */
    of_tenant("modest", "modest");
    assert_int_equal(fix_hold("greedy9", 1, 1, no_body).state, TICKET_NONE);
    for (unsigned k = 0; k < 20; k++)
        (void)fix_hold("modest", k, k, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE sandbox='modest'"), 10);
    assert_int_equal(fix_hold("greedy9", 1, 1, no_body).state, TICKET_NONE);
}

static void held_bytes_are_capped(void **state)
{
    static uint8_t big[1000];
    fix_config.sandbox_bytes = 2500;
    fix_reopen();
    assert_int_equal(fix_hold("s1", 1, 1, span_of(big, 1000)).state, TICKET_PENDING);
    assert_int_equal(fix_hold("s1", 2, 2, span_of(big, 1000)).state, TICKET_PENDING);
    assert_int_equal(fix_hold("s1", 3, 3, span_of(big, 501)).state, TICKET_NONE);
    assert_int_equal(fix_hold("s1", 4, 4, span_of(big, 500)).state, TICKET_PENDING);
    assert_int_equal(fix_hold("s2", 4, 4, span_of(big, 1000)).state, TICKET_PENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(e22_one_sandbox_cannot_use_up_what_is_there_for_all),
        FRESH(e22_one_tenant_cannot_use_up_what_is_there_for_all),
        FRESH(held_bytes_are_capped),
    };
    return cmocka_run_group_tests_name("shares", tests, NULL, NULL);
}
