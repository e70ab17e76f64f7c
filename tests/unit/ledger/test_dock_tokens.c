/* Who may speak to the dock: keys, what each opens one sandbox with, and how both end. */
#include "tests/unit/ledger/ledger_fix.h"

#include "proxy/ledger/store/store_in.h"

static const char *why;

static void box(const char *name, const char *tenant)
{
    const struct wire_sandbox b = {.name = span_str(name),
                                   .session = span_str(name),
                                   .owner = SPAN("uid 0"),
                                   .tenant = span_str(tenant),
                                   .kind = SPAN("started"),
                                   .generation = 1};
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
}

static const char *put(const char *scope, const char *name, const char *tenant, unsigned hash, const char *note)
{
    struct store_token t = {.kind = *scope ? SPAN("access") : SPAN("key"),
                            .scope = span_str(scope),
                            .name = span_str(name),
                            .tenant = span_str(tenant),
                            .note = span_str(note),
                            .has_hash = true,
                            .hash = fix_digest(hash)};
    assert_int_equal(store_token_put(fix, &t, &why), 0);
    return why;
}

static void commit(void)
{
    assert_int_equal(store_commit(fix), 0);
}

static void a_key_is_issued_once_and_taken_back(void **state)
{
    assert_null(put("", "one", "acme", 1, ""));
    assert_string_equal(put("", "one", "globex", 2, ""),
                        "a key of this name was issued already; choose another name, or remove that one");
    assert_non_null(put("", "", "acme", 3, ""));
    assert_non_null(put("", "a b", "acme", 3, ""));
    assert_non_null(put("", "two", "", 3, ""));
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM token"), 1);
    assert_int_equal(store_key_remove(fix, SPAN("none"), &why), 0);
    assert_string_equal(why, "there is no such key");
    assert_int_equal(store_key_remove(fix, SPAN("one"), &why), 0);
    assert_null(why);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM token"), 0);
    assert_null(put("", "one", "globex", 2, ""));
}

static void a_sandbox_is_opened_by_keys_of_its_tenant_alone(void **state)
{
    box("sb", "acme");
    assert_null(put("", "one", "acme", 1, ""));
    assert_null(put("sb", "one", "acme", 11, "{}"));
    assert_string_equal(put("sb", "one", "globex", 12, ""), "no sandbox of this name and tenant runs");
    assert_string_equal(put("none", "one", "acme", 12, ""), "no sandbox of this name and tenant runs");
    assert_string_equal(put("sb", "two", "acme", 12, ""), "there is no key of this name any more");
    /* Said again it is what it is now, and what was to be known of it stays. */
    assert_null(put("sb", "one", "acme", 13, ""));
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM token WHERE kind='access' AND note='{}'"), 1);
}

static void what_opens_a_sandbox_ends_with_it_and_with_its_key(void **state)
{
    box("sb", "acme");
    box("other", "acme");
    assert_null(put("", "one", "acme", 1, ""));
    assert_null(put("", "two", "acme", 2, ""));
    assert_null(put("sb", "one", "acme", 11, "{}"));
    assert_null(put("sb", "two", "acme", 12, ""));
    assert_null(put("other", "one", "acme", 13, ""));
    assert_int_equal(store_key_remove(fix, SPAN("one"), &why), 0);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM token WHERE hash IS NOT NULL AND name='one'"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM token WHERE scope='sb' AND note='{}'"), 1);
    assert_int_equal(store_sandbox_ended(fix, SPAN("sb"), 1), 0);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM token WHERE scope='sb'"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM token WHERE scope='other'"), 1);
    assert_int_equal(store_sandbox_remove(fix, SPAN("other"), false, &why), 0);
    commit();
    assert_int_equal(fix_count("SELECT count(*) FROM token"), 1); /* the key that is left */
}

static void there_are_so_many_keys_and_so_many_open_one_sandbox(void **state)
{
    char name[16];
    box("sb", "acme");
    for (unsigned i = 0; i < 256; i++) {
        (void)snprintf(name, sizeof(name), "k%u", i);
        assert_null(put("", name, "acme", 1000 + i, ""));
        if (i < 64)
            assert_null(put("sb", name, "acme", 2000 + i, ""));
        else
            assert_string_equal(put("sb", name, "acme", 2000 + i, ""), "as many keys open this sandbox as may");
    }
    assert_string_equal(put("", "more", "acme", 3000, ""), "as many keys as there may be; remove one");
    commit();
}

static void of_so_many_sandboxes_the_one_that_ended_first_makes_room(void **state)
{
    char name[16];
    box("first", "acme");
    fix_time(1000);
    box("second", "acme");
    for (unsigned i = 2; i < STORE_SANDBOXES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "b%u", i);
        box(name, "acme");
    }
    const struct wire_sandbox more = {
        .name = SPAN("more"), .owner = SPAN("o"), .tenant = SPAN("acme"), .kind = SPAN("started"), .generation = 1};
    assert_int_equal(store_sandbox_put(fix, &more, &why), 0);
    assert_string_equal(why, "there are too many sandboxes; remove one");
    assert_int_equal(store_sandbox_ended(fix, SPAN("second"), 1), 0);
    fix_time(1000);
    assert_int_equal(store_sandbox_ended(fix, SPAN("first"), 1), 0);
    struct wire_ticket_state kept = fix_hold("first", 1, 1, SPAN_NONE), gone = fix_hold("second", 1, 1, SPAN_NONE);
    assert_int_equal(store_sandbox_put(fix, &more, &why), 0);
    assert_null(why);
    commit();
    assert_int_equal(fix_decide(&kept.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(fix_decide(&gone.ticket, DECIDE_APPROVE, NULL), DECIDED_NOT_PENDING); /* nor what it left */
    assert_int_equal(fix_count("SELECT count(*) FROM sandbox WHERE name='second'"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM sandbox WHERE name='first'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM sandbox"), STORE_SANDBOXES_MAX);
}

static void nobody_is_called_as_who_takes_checkpoints_elsewhere(void **state)
{
    static const char *const kinds[] = {"token", "run", "started"};
    struct wire_sandbox b = {
        .name = SPAN("checkpoint-store"), .owner = SPAN("o"), .tenant = SPAN("default"), .generation = 1};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        b.kind = span_str(kinds[i]);
        assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
        assert_non_null(strstr(why, "choose another name"));
    }
    b.kind = SPAN("channel"); /* the parent's word */
    assert_int_equal(store_sandbox_put(fix, &b, &why), 0);
    assert_null(why);
    commit();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(nobody_is_called_as_who_takes_checkpoints_elsewhere),
        FRESH(a_key_is_issued_once_and_taken_back),
        FRESH(a_sandbox_is_opened_by_keys_of_its_tenant_alone),
        FRESH(what_opens_a_sandbox_ends_with_it_and_with_its_key),
        FRESH(there_are_so_many_keys_and_so_many_open_one_sandbox),
        FRESH(of_so_many_sandboxes_the_one_that_ended_first_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
