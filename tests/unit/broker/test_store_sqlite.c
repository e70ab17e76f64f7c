/* What is SQLite's own of the broker's store: a full disk, and a file that is not one. */
#include "tests/unit/broker/store_fix.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/store/sqlite/schema_sql.h"

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
    fix_ok(bstore_queued(fix, SPAN("acme"), &t.conversation, &fix_arena, &m));
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

#define C(n) "000000000000000000000000" n "0"
/* clang-format off */
/* Of version 1: one conversation whose second turn waits behind all that was said, and one in which the turn that runs
 * has written more behind what waits. */
static const char of_version_1[] =
    "INSERT INTO tenant VALUES('acme',0,2,4,0);"
    "INSERT INTO conversation VALUES('acme','" C("1") "','coding',1,1,2,3,1,1,1,0),('acme','" C("2") "','coding',1,1,2,3,1,1,1,0);"
    "INSERT INTO turn(tenant,id,conversation,nth,state,ready_ms,created_ms,epoch,steps_max,tokens_max,cost_max,"
    "wall_max_ms,same_max) VALUES('acme','" C("a") "','" C("1") "',1,'queued',1,1,1,100,0,0,0,5),"
    "('acme','" C("b") "','" C("1") "',2,'queued',1,1,0,100,0,0,0,5),('acme','" C("c") "','" C("2") "',1,'queued',1,1,1,100,0,0,0,5),"
    "('acme','" C("d") "','" C("2") "',2,'queued',1,1,0,100,0,0,0,5);"
    "INSERT INTO message VALUES('acme','" C("1") "',1,'" C("a") "','user',x'31'),('acme','" C("1") "',2,'" C("a") "','assistant',x'32'),"
    "('acme','" C("1") "',3,'" C("b") "','user',x'33'),('acme','" C("2") "',1,'" C("c") "','user',x'34'),"
    "('acme','" C("2") "',2,'" C("d") "','user',x'35'),('acme','" C("2") "',3,'" C("c") "','assistant',x'36');";
/* clang-format on */

static size_t messages_of(const char *conversation, struct bstore_messages *m)
{
    struct id id;
    assert_int_equal(id_parse(span_str(conversation), &id), 0);
    fix_ok(bstore_messages(fix, SPAN("acme"), &id, 0, &fix_arena, m));
    return m->n;
}

static void one_of_version_1_goes_on(void **state)
{
    struct bstore_messages m;
    char sql[128];
    sqlite3 *c = NULL;
    bstore_close(&fix);
    assert_int_equal(unlink(fix_path), 0);
    assert_int_equal(sqlite3_open(fix_path, &c), SQLITE_OK);
    assert_int_equal(chmod(fix_path, 0600), 0);
    snprintf(sql, sizeof(sql), "PRAGMA journal_mode=WAL;PRAGMA user_version=1; PRAGMA application_id=%d",
             BSTORE_APPLICATION);
    assert_int_equal(sqlite3_exec(c, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(c, schema_sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(c, of_version_1, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(c);
    fix = fix_open();
    assert_int_equal(messages_of(C("1"), &m), 2); /* what waits, waits in its turn */
    assert_int_equal(messages_of(C("2"), &m), 3); /* no message's number is missing */
    for (unsigned i = 0; i < 2; i++) {
        struct claim one = fix_claim(i + 1), two;
        fix_ok(bstore_finish(fix, &one, END_COMPLETED, SPAN_NONE));
        two = fix_claim(i + 11);
        assert_true(id_eq(&one.conversation, &two.conversation) || i == 0);
        fix_ok(bstore_finish(fix, &two, END_COMPLETED, SPAN_NONE));
    }
    assert_int_equal(messages_of(C("1"), &m), 3);
    assert_true(m.message[2].seq == 3 && span_eq(m.message[2].body, SPAN("3")));
    assert_int_equal(messages_of(C("2"), &m), 4); /* it is asked where it is answered */
    assert_true(m.message[3].seq == 4 && span_eq(m.message[3].body, SPAN("5")));
}

#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(a_full_disk_changes_nothing), T(another_store_is_refused),
                                       T(one_of_version_1_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
