/* Reading a store that somebody else writes, by who may not write to it.
 *
 * Such a reader cannot take a lock to look again: where it comes upon the head of the log just as the writer changes
 * it, SQLite tells it that the log must first be made whole by somebody else (SQLITE_READONLY_RECOVERY,
 * walIndexReadHdr of 3.40). In a moment that is no longer so, and so it is asked again, a bounded number of times;
 * who hears it then reads a store whose writer is gone. */
#ifndef COMMON_SQLITE_READ_H
#define COMMON_SQLITE_READ_H

#include <sqlite3.h>

#include "common/err.h"

/* As sqlite3_prepare_v2 with all of sql. */
int db_read_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **q) MUSTCHECK;
/* As sqlite3_step. */
int db_read_step(sqlite3_stmt *q) MUSTCHECK;

#endif
