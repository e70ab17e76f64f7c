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
    sql("INSERT INTO run(id,what,sandbox,nth,tenant,generation,command,state,began_ms,ended_ms,begin_seq,end_seq) "
        "VALUES ('aaaa1','command','box',1,'acme',4,'3.1','ended',10,20,1,7),"
        "('aaab2','command','box',2,'acme',4,'3.2','running',11,NULL,3,NULL),"
        "('bbbb3','end','other',1,'',1,'','ended',12,12,8,8)");
    sql("UPDATE run SET requests=70,refused=2,bytes_out=11,bytes_in=12 WHERE id='aaaa1'");
    sql("INSERT INTO run_effect VALUES ('aaaa1','b-2',1,'lease1'),('aaaa1','b-3',1,'lease1'),('aaaa1','b-5',0,''),"
        "('aaab2','b-9',1,'')");
    record(1, "run", NULL, "{\"seq\":1,\"sandbox\":\"box\"}");
    record(3, "run", NULL, "{\"seq\":3,\"sandbox\":\"box\"}");
    record(7, "run-end", NULL, "{\"seq\":7,\"sandbox\":\"box\",\"how\":\"exited\"}");
    record(8, "sandbox", NULL, "{\"seq\":8,\"sandbox\":\"other\"}");
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

static void what_a_command_sent_is_said_by_its_step(void **state)
{
    assert_int_equal(control("GET /api/v1/runs/aaaa1", ""), 200);
    assert_true(says("\"requests\":70,\"refused\":2,\"bytes_out\":11,\"bytes_in\":12"));
    assert_true(says("\"exchanges\":[\"b-2\",\"b-3\"],\"more\":true,\"leases\":[\"lease1\"]"));
    assert_int_equal(control("GET /api/v1/runs/aaab", ""), 200); /* goes on: that one may have left already */
    assert_true(says("\"requests\":0") && says("[\"b-9\"],\"more\":false,\"leases\":[]"));
    assert_int_equal(control("GET /api/v1/runs/aaa", ""), 409);
    assert_int_equal(control("GET /api/v1/runs/zzz", ""), 404);
    assert_int_equal(control("GET /api/v1/runs/bbbb3", ""), 200);
    assert_false(says("effects"));
    assert_int_equal(control("GET /api/v1/runs?effects=1", ""), 200);
    assert_true(says("\"b-3\"]") && says("[\"b-9\"]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_with_their_records),
        cmocka_unit_test(what_a_command_sent_is_said_by_its_step),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
