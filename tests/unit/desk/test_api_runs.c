/* What ran, as the desk shows it: rows with their records, and what left meanwhile. */
#include "tests/unit/desk/started_world.h"

#include <sqlite3.h>
#include <stdio.h>

static sqlite3 *writer;

static void sql(const char *text)
{
    char *why = NULL;
    if (sqlite3_exec(writer, text, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
}

static void record(unsigned seq, const char *kind, const char *exchange, const char *json)
{
    char *text = sqlite3_mprintf("INSERT INTO audit VALUES (%u, %u, %Q, %Q, NULL, %Q, zeroblob(32))", seq, seq, kind,
                                 exchange, json);
    sql(text);
    sqlite3_free(text);
}

static int setup(void **state)
{
    int rc = group_setup(state);
    if (rc != 0 || sqlite3_open(world_db(), &writer) != SQLITE_OK)
        return -1;
    sql("INSERT INTO run VALUES ('aaaa1','command','box',1,'acme',4,'3.1','ended',10,20,1,7),"
        "('aaab2','command','box',2,'acme',4,'3.2','running',11,NULL,3,NULL),"
        "('bbbb3','end','other',1,'',1,'','ended',12,12,8,8)");
    record(1, "run", NULL, "{\"seq\":1,\"sandbox\":\"box\"}");
    record(2, "intent", "b-2", "{\"sandbox\":\"box\"}");
    record(3, "run", NULL, "{\"seq\":3,\"sandbox\":\"box\"}");
    record(4, "intent", "b-4", "{\"sandbox\":\"neighbour\"}");
    record(5, "denied", "b-5", "{\"sandbox\":\"box\"}");
    record(6, "result", "b-2", "{\"sandbox\":\"box\"}");
    record(7, "run-end", NULL, "{\"seq\":7,\"sandbox\":\"box\",\"how\":\"exited\"}");
    record(8, "sandbox", NULL, "{\"seq\":8,\"sandbox\":\"other\"}");
    record(9, "intent", "b-9", "{\"sandbox\":\"box\"}");
    return 0;
}

static int teardown(void **state)
{
    (void)sqlite3_close(writer);
    return group_teardown(state);
}

static void rows_come_with_their_records(void **state)
{
    assert_int_equal(control("GET /api/v1/runs", ""), 200);
    assert_true(says("\"id\":\"aaaa1\"") && says("\"id\":\"aaab2\"") && says("\"id\":\"bbbb3\""));
    assert_true(says("\"begin\":\"{\\\"seq\\\":1,") && says("\\\"how\\\":\\\"exited\\\""));
    assert_int_equal(control("GET /api/v1/runs?sandbox=other", ""), 200);
    assert_true(says("bbbb3") && !says("aaaa1"));
    assert_int_equal(control("GET /api/v1/runs?after=1&limit=1", ""), 200);
    assert_true(says("aaab2") && !says("aaaa1") && !says("bbbb3"));
    assert_int_equal(control("GET /api/v1/runs?before=8&limit=1&newest=1", ""), 200);
    assert_true(says("aaab2") && !says("aaaa1") && !says("bbbb3"));
    assert_int_equal(control("GET /api/v1/runs?limit=51", ""), 400);
    assert_int_equal(control("GET /api/v1/runs?newest=2", ""), 400);
    assert_int_equal(control("GET /api/v1/runs?sandbox=a&sandbox=b", ""), 400);
    assert_int_equal(docked("acme", "", "GET /api/v1/runs", ""), 404); /* for operators */
}

static void what_left_is_attributed_by_sandbox_and_time(void **state)
{
    assert_int_equal(control("GET /api/v1/runs/aaaa1", ""), 200);
    assert_true(says("\"count\":1") && says("\"refused\":1") && says("[\"b-2\"]") && says("by sandbox and time"));
    assert_int_equal(control("GET /api/v1/runs/aaab", ""), 200); /* goes on */
    assert_true(says("\"count\":1") && says("[\"b-9\"]") && says("\"refused\":1"));
    assert_int_equal(control("GET /api/v1/runs/aaa", ""), 409);
    assert_int_equal(control("GET /api/v1/runs/zzz", ""), 404);
    assert_int_equal(control("GET /api/v1/runs/bbbb3", ""), 200);
    assert_false(says("effects"));
    assert_int_equal(control("GET /api/v1/runs?effects=1", ""), 200);
    assert_true(says("[\"b-2\"]") && says("[\"b-9\"]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_with_their_records),
        cmocka_unit_test(what_left_is_attributed_by_sandbox_and_time),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
