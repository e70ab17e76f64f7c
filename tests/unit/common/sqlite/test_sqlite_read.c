/* Who may only read a store hears nothing of its writer's changes but what they change, however many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sqlite/read.h"

enum { READS = 30000 }; /* one in about a thousand comes upon a change */

static char dir[] = "/tmp/cs-sqlite-read-XXXXXX", file[64];

static int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static void __attribute__((noreturn)) write_on(int up)
{
    sqlite3 *db = NULL;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || sqlite3_open(file, &db) != SQLITE_OK ||
        run(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; CREATE TABLE t(a)") != SQLITE_OK ||
        run(db, "INSERT INTO t VALUES(1)") != SQLITE_OK || write(up, "u", 1) != 1)
        _exit(1);
    for (;;)
        (void)run(db, "UPDATE t SET a=a+1");
}

static void a_change_is_come_upon_and_nothing_is_heard_of_it(void **state)
{
    char uri[128], byte;
    sqlite3 *db = NULL;
    int up[2];

    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof(file), "%s/t.db", dir);
    assert_int_equal(pipe(up), 0);
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0)
        write_on(up[1]);
    close(up[1]);
    assert_int_equal(read(up[0], &byte, 1), 1);
    (void)snprintf(uri, sizeof(uri), "file:%s?mode=ro&readonly_shm=1", file);
    assert_int_equal(sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 300000);
    for (unsigned i = 0; i < READS; i++) {
        sqlite3_stmt *q = NULL;
        assert_int_equal(db_read_prepare(db, "SELECT a FROM t", &q), SQLITE_OK);
        assert_int_equal(db_read_step(q), SQLITE_ROW);
        assert_int_equal(db_read_step(q), SQLITE_DONE);
        assert_int_equal(sqlite3_finalize(q), SQLITE_OK);
    }
    (void)sqlite3_close(db);
    assert_int_equal(kill(writer, SIGKILL), 0);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    close(up[0]);
    for (const char *const *end = (const char *const[]){"", "-wal", "-shm", NULL}; *end; end++) {
        (void)snprintf(uri, sizeof(uri), "%s%s", file, *end);
        (void)unlink(uri);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_change_is_come_upon_and_nothing_is_heard_of_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
