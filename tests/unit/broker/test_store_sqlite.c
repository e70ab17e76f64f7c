/* What is SQLite's own of the broker's store: a full disk, and a file that is not one. */
#include "tests/unit/broker/store_fix.h"

#include <sqlite3.h>

static void a_full_disk_changes_nothing(void **state)
{
    static char big[BSTORE_BODY_MAX];
    struct bstore_chatted out, t = fix_chat("acme", NULL);
    struct bstore_chat c = {.tenant = SPAN("acme")};
    struct bstore_messages m;
    enum bstore_result r;
    bstore_close(&fix);
    fix_test.max_pages = 1000;
    fix = fix_open();
    memset(big, 'x', sizeof(big));
    c.conversation = t.conversation;
    c.body = span_of(big, sizeof(big));
    unsigned n = 1;
    while ((r = bstore_chat(fix, &c, &out)) == BS_OK)
        n++;
    assert_int_equal(r, BS_FAIL);
    assert_non_null(strstr(bstore_why(fix), "full"));
    fix_ok(bstore_messages(fix, SPAN("acme"), &t.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, n);
    assert_int_equal(fix_events("acme", &t.conversation, "turn.queued"), n);
    bstore_close(&fix);
    fix_test.max_pages = 0;
    fix = fix_open();
    fix_ok(bstore_chat(fix, &c, &out));
}

static void another_store_is_refused(void **state)
{
    struct err e;
    char sql[256];
    sqlite3 *c = NULL;
    bstore_close(&fix);
    assert_int_equal(sqlite3_open(fix_path, &c), SQLITE_OK);
    snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", BSTORE_SCHEMA + 1);
    assert_int_equal(sqlite3_exec(c, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_null(bstore_sqlite_open(fix_path, NULL, &e));
    assert_non_null(strstr(e.text, "schema version"));
    snprintf(sql, sizeof(sql), "PRAGMA user_version=%d; PRAGMA application_id=1", BSTORE_SCHEMA);
    assert_int_equal(sqlite3_exec(c, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_null(bstore_sqlite_open(fix_path, NULL, &e));
    assert_non_null(strstr(e.text, "not a store of this program"));
    sqlite3_close(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(a_full_disk_changes_nothing), T(another_store_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
