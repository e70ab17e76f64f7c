/* SQLite, as a store of ours uses it: one connection, one transaction a turn, every
 * statement prepared once. The first failure dooms the transaction: from then on
 * every step fails until db_rollback, so that nothing of a broken turn is kept. */
#ifndef COMMON_SQLITE_DB_H
#define COMMON_SQLITE_DB_H

#include <sqlite3.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/id.h"

enum db_result { DB_FAIL = 0, DB_ROW, DB_DONE };
enum { DB_STATEMENTS_MAX = 256 };

/* Which program's store it is. A statement goes by its row in this table. */
struct db_kind {
    int application;           /* PRAGMA application_id */
    unsigned versions;         /* of its schema; the last is what is made */
    const char *const *schema; /* what each has more than the one before it */
    const char *tables;        /* the names of all versions, a space before and after each */
    const unsigned *count;     /* of these there are so many in each version */
    const struct db_statement {
        const char *name, *text;
    } * statement;
    unsigned statements; /* at most DB_STATEMENTS_MAX */
    unsigned busy_ms;    /* how long to wait for another process that writes */
    unsigned wal_max;    /* bytes that the log is cut to */
    mode_t mode;         /* of its file */
    /* Stores of this program that are refused all the same, with words after "the store PATH "; the last has none. */
    const struct db_other {
        int application;
        const char *words;
    } * other;
    bool alone; /* nobody else may have it open, before and after; one of an earlier version is refused */
};

struct db {
    const struct db_kind *kind;
    sqlite3 *sqlite;
    sqlite3_stmt *stmt[DB_STATEMENTS_MAX];
    int application; /* as its file says; it stays when the store is refused, 0 where it was not seen */
    bool open_tx, doomed;
    struct err why; /* of the first failure */
    /* For tests, or NULL: called with a statement's name before it runs, and with BEGIN, COMMIT and COMMITTED. */
    void (*at)(void *arg, const char *point);
    void *at_arg;
};

/* Opens, or makes, the store; one of an earlier version is brought to this one. Refused with words: a link or another
 * kind of file, a store of another program or version, a damaged one, one somebody else holds. max_pages: 0, or a
 * limit for tests of a full disk. *fresh: it was made just now. */
int db_open(struct db *d, const struct db_kind *kind, const char *path, unsigned max_pages, bool *fresh,
            struct err *e) MUSTCHECK;
void db_close(struct db *d);

/* Begin the turn's transaction if there is none yet. */
int db_begin(struct db *d) MUSTCHECK;
/* The same for what only reads: others may write meanwhile, and it sees nothing of that. */
int db_begin_read(struct db *d) MUSTCHECK;
/* Nothing to do is success. After -1 nothing of the turn is kept. */
int db_commit(struct db *d) MUSTCHECK;
void db_rollback(struct db *d);
/* Something that was found wrong above: the turn fails. Returns -1. */
int db_doom(struct db *d, const char *why);

/* The statement, reset and without parameters; NULL (and doomed) when it cannot be had. */
sqlite3_stmt *db_stmt(struct db *d, unsigned id) MUSTCHECK;
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
