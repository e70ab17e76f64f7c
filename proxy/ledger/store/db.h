/* SQLite, as the ledger uses it: one connection, one transaction a turn, every
 * statement prepared once. The first failure dooms the transaction: from then on
 * every step fails until db_rollback, so that nothing of a broken turn is kept. */
#ifndef PROXY_LEDGER_STORE_DB_H
#define PROXY_LEDGER_STORE_DB_H

#include <sqlite3.h>

#include "common/err.h"
#include "common/id.h"
#include "proxy/ledger/store/sql.h"

enum db_result { DB_FAIL = 0, DB_ROW, DB_DONE };
enum { DB_SCHEMA = 7, DB_APPLICATION = 0x43736c67 /* "Cslg" */, DB_WAL_MAX = 64 * 1024 * 1024 };

struct db {
    sqlite3 *sqlite;
    sqlite3_stmt *stmt[SQL_COUNT];
    bool open_tx, doomed;
    struct err why; /* of the first failure */
};

/* Opens, or makes, the store; one of an earlier version is brought to this one. Refused with words: a link or another
 * kind of file, a store of another program or version, a damaged one, one somebody else holds. max_pages: 0, or a
 * limit for tests of a full disk. *fresh: it was made just now. */
int db_open(struct db *d, const char *path, unsigned max_pages, bool *fresh, struct err *e) MUSTCHECK;
void db_close(struct db *d);

/* Begin the turn's transaction if there is none yet. */
int db_begin(struct db *d) MUSTCHECK;
/* Nothing to do is success. After -1 nothing of the turn is kept. */
int db_commit(struct db *d) MUSTCHECK;
void db_rollback(struct db *d);
/* Something that was found wrong above: the turn fails. Returns -1. */
int db_doom(struct db *d, const char *why);

/* The statement, reset and without parameters; NULL (and doomed) when it cannot be had. */
sqlite3_stmt *db_stmt(struct db *d, enum sql_id id) MUSTCHECK;
void db_text(sqlite3_stmt *s, int at, struct span v);
void db_text_or_null(sqlite3_stmt *s, int at, struct span v);
void db_blob(sqlite3_stmt *s, int at, struct span v);
void db_int(sqlite3_stmt *s, int at, uint64_t v);
enum db_result db_step(struct db *d, sqlite3_stmt *s) MUSTCHECK;
/* Step to the end; 0, or -1. */
int db_run(struct db *d, sqlite3_stmt *s) MUSTCHECK;
/* Rows the last statement changed. */
int db_changes(const struct db *d);

/* Columns of the current row; spans live until the next step or db_stmt of the same id. */
struct span db_col(sqlite3_stmt *s, int at);
uint64_t db_col_int(sqlite3_stmt *s, int at);
bool db_col_null(sqlite3_stmt *s, int at);
bool db_col_digest(sqlite3_stmt *s, int at, struct digest *d);

#endif
