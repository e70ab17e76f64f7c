#include "common/sqlite/read.h"

enum { TRIES = 100 };

static bool comes_upon_a_change(sqlite3 *db, int rc)
{
    return (rc & 0xff) == SQLITE_READONLY && sqlite3_extended_errcode(db) == SQLITE_READONLY_RECOVERY;
}

int db_read_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **q)
{
    int rc = SQLITE_ERROR;

    for (int i = 0; i < TRIES; i++) {
        rc = sqlite3_prepare_v2(db, sql, -1, q, NULL);
        if (!comes_upon_a_change(db, rc))
            break;
    }
    return rc;
}

int db_read_step(sqlite3_stmt *q)
{
    int rc = SQLITE_ERROR;

    for (int i = 0; i < TRIES; i++) {
        rc = sqlite3_step(q);
        if (!comes_upon_a_change(sqlite3_db_handle(q), rc))
            break;
        (void)sqlite3_reset(q); /* it says the same once more */
    }
    return rc;
}
