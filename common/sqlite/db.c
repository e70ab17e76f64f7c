#include "common/sqlite/db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

int db_doom(struct db *d, const char *why)
{
    if (!d->doomed)
        err_set(&d->why, "%s", why);
    d->doomed = true;
    return -1;
}

static int exec(struct db *d, const char *sql, struct err *e)
{
    if (sqlite3_exec(d->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return err_set(e, "%s", sqlite3_errmsg(d->sqlite));
}

/* The file itself, before SQLite sees it: ours, regular, not a link. 1 it is there, 0 it is not, -1. */
static int check_file(const char *path, mode_t mode, struct err *e)
{
    struct stat st;
    int r = 1, fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_errno(e, "cannot open the store %s", path);
    if (fstat(fd, &st) != 0)
        r = err_errno(e, "cannot look at the store %s", path);
    else if (!S_ISREG(st.st_mode))
        r = err_set(e, "the store %s is not a regular file", path);
    else if (st.st_uid != geteuid())
        r = err_set(e, "the store %s belongs to uid %u and not to uid %u; chown it", path, st.st_uid, geteuid());
    else if (fchmod(fd, mode) != 0)
        r = err_errno(e, "cannot set the mode of the store %s", path);
    close(fd);
    return r;
}

static int pragma_int(struct db *d, const char *sql, int64_t *out)
{
    sqlite3_stmt *s = NULL;
    int r = -1;
    if (sqlite3_prepare_v2(d->sqlite, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
        *out = sqlite3_column_int64(s, 0);
        r = 0;
    }
    sqlite3_finalize(s);
    return r;
}

static int check_whole(struct db *d, const char *path, struct err *e)
{
    sqlite3_stmt *s = NULL;
    const char *said = "it cannot be checked";
    int r = -1;
    if (sqlite3_prepare_v2(d->sqlite, "PRAGMA quick_check(1)", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        said = (const char *)sqlite3_column_text(s, 0);
    if (said != NULL && strcmp(said, "ok") == 0)
        r = 0;
    else
        err_set(e, "the store %s is damaged (%s); restore it from a backup, it is not made anew", path,
                said ? said : "out of memory");
    sqlite3_finalize(s);
    return r;
}

static int sync_dir(const char *path)
{
    char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash == NULL)
        return -1;
    slash[slash == dir] = '\0';
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0)
        close(fd);
    return r;
}

/* What each version has more than the one before it, from the one after `version` on. */
static int add_from(struct db *d, int64_t version, struct err *e)
{
    for (int64_t i = version; i < (int64_t)d->kind->versions; i++)
        if (exec(d, d->kind->schema[i], e) != 0)
            return -1;
    return 0;
}

/* Made whole under another name, then moved into place: a store without its tables is always a damaged one. */
static int make(const struct db_kind *kind, const char *path, struct err *e)
{
    char beside[PATH_MAX + 32], journal[PATH_MAX + 32], stamp[96];
    struct err why = {"out of memory"};
    struct db d = {.kind = kind};
    int r = -1, flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX;
    snprintf(beside, sizeof(beside), "%s.new", path);
    snprintf(journal, sizeof(journal), "%s.new-journal", path);
    snprintf(stamp, sizeof(stamp), "PRAGMA application_id=%d; PRAGMA user_version=%u; COMMIT;", kind->application,
             kind->versions);
    (void)unlink(beside);
    (void)unlink(journal);
    if (sqlite3_open_v2(beside, &d.sqlite, flags, NULL) != SQLITE_OK)
        err_set(&why, "%s", d.sqlite ? sqlite3_errmsg(d.sqlite) : "out of memory");
    else if (exec(&d, "PRAGMA synchronous=FULL; BEGIN IMMEDIATE;", &why) == 0 && add_from(&d, 0, &why) == 0)
        r = exec(&d, stamp, &why);
    sqlite3_close(d.sqlite);
    if (r == 0 && (renameat2(AT_FDCWD, beside, AT_FDCWD, path, RENAME_NOREPLACE) != 0 || sync_dir(path) != 0))
        r = err_errno(&why, "it cannot be put in place");
    return r == 0 ? 0 : err_set(e, "cannot make the store %s: %s", path, why.text);
}

/* The named tables of this version are there: how many of the kind's. */
static int count_tables(struct db *d, int64_t *n)
{
    static const char sql[] = "SELECT count(*) FROM sqlite_schema WHERE type='table' AND instr(?1,' '||name||' ')>0";
    sqlite3_stmt *s = NULL;
    int r = -1;
    if (sqlite3_prepare_v2(d->sqlite, sql, -1, &s, NULL) == SQLITE_OK &&
        sqlite3_bind_text(s, 1, d->kind->tables, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
        *n = sqlite3_column_int64(s, 0);
        r = 0;
    }
    sqlite3_finalize(s);
    return r;
}

/* *version: a known one. */
static int check_schema(struct db *d, const char *path, int64_t *version, struct err *e)
{
    int64_t application = 0, tables = 0, latest = d->kind->versions;
    if (pragma_int(d, "PRAGMA application_id", &application) != 0 ||
        pragma_int(d, "PRAGMA user_version", version) != 0 || count_tables(d, &tables) != 0)
        return sqlite3_errcode(d->sqlite) == SQLITE_BUSY
                   ? err_set(e, "the store %s is in use: end what has it open, and try again", path)
                   : err_set(e, "the store %s cannot be read (%s); restore it from a backup, it is not made anew",
                             path, sqlite3_errmsg(d->sqlite));
    d->application = (int)application;
    for (const struct db_other *o = d->kind->other; o != NULL && o->words != NULL; o++)
        if (application == o->application && application != d->kind->application)
            return err_set(e, "the store %s %s", path, o->words);
    if (application != d->kind->application)
        return err_set(e, "%s is not a store of this program; point the store elsewhere", path);
    if (*version < 1 || *version > latest || tables != d->kind->count[*version - 1])
        return err_set(e,
                       "the store %s has schema version %lld, this program reads %lld; use the program that wrote it",
                       path, (long long)*version, (long long)latest);
    return 0;
}

/* All of it or nothing: who is interrupted finds the old version again. */
static int migrate(struct db *d, const char *path, int64_t version, struct err *e)
{
    struct err why = {"out of memory"};
    char stamp[64];
    unsigned latest = d->kind->versions;
    if (version == latest)
        return 0;
    snprintf(stamp, sizeof(stamp), "PRAGMA user_version=%u; COMMIT;", latest);
    if (exec(d, "BEGIN IMMEDIATE", &why) == 0 && add_from(d, version, &why) == 0 && exec(d, stamp, &why) == 0) {
        log_warn("the store %s is of version %u now; it was of version %lld", path, latest, (long long)version);
        return 0;
    }
    sqlite3_exec(d->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return err_set(e, "the store %s cannot be brought from version %lld to %u: %s; nothing of it was changed", path,
                   (long long)version, latest, why.text);
}

static int settings(struct db *d, unsigned max_pages, struct err *e)
{
    char sql[512];
    int persist = 1;
    /* The log stays when we end: a reader without the right to write needs it. */
    sqlite3_file_control(d->sqlite, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
    sqlite3_extended_result_codes(d->sqlite, 1);
    sqlite3_db_config(d->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(d->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    snprintf(sql, sizeof(sql),
             "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA cell_size_check=ON;"
             "PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=%d; PRAGMA "
             "wal_autocheckpoint=4000;",
             (int)d->kind->wal_max);
    if (exec(d, sql, e) != 0)
        return -1;
    if (max_pages == 0)
        return 0;
    snprintf(sql, sizeof(sql), "PRAGMA max_page_count=%u;", max_pages);
    return exec(d, sql, e);
}

/* SQLite refuses links anywhere in a path; above the folder of the store they are the operator's own business. */
static int real_path(const char *path, char out[PATH_MAX], struct err *e)
{
    char dir[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash[1] == '\0' || (size_t)(slash - path) >= sizeof(dir))
        return err_set(e, "the store needs an absolute path, not %s", path);
    memcpy(dir, path, (size_t)(slash - path));
    dir[slash - path] = '\0';
    if (realpath(dir[0] ? dir : "/", real) == NULL)
        return err_errno(e, "cannot find the folder of the store %s", path);
    int n = snprintf(out, PATH_MAX, "%s/%s", real, slash + 1);
    return n > 0 && n < PATH_MAX - 32 ? 0 : err_set(e, "the path of the store is too long");
}

int db_open(struct db *d, const struct db_kind *kind, const char *given, unsigned max_pages, bool *fresh,
            struct err *e)
{
    struct err why = {"synchronous=FULL cannot be had"};
    char path[PATH_MAX];
    int64_t mode = -1, version = 0;
    *d = (struct db){.kind = kind};
    if (kind->statements > DB_STATEMENTS_MAX)
        return err_set(e, "more statements than a store may have");
    if (real_path(given, path, e) != 0)
        return -1;
    int there = check_file(path, kind->mode, e);
    if (there < 0 || (there == 0 && (make(kind, path, e) != 0 || check_file(path, kind->mode, e) != 1)))
        return -1;
    *fresh = there == 0;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    if (sqlite3_open_v2(path, &d->sqlite, flags, NULL) != SQLITE_OK) {
        err_set(e, "cannot open the store %s: %s", path, d->sqlite ? sqlite3_errmsg(d->sqlite) : "out of memory");
        goto fail;
    }
    /* What is there is looked at before anything is written to it. Somebody else may be making a log whole that was
     * cut off: that is waited for, too. */
    sqlite3_busy_timeout(d->sqlite, (int)kind->busy_ms);
    if (kind->alone && exec(d, "PRAGMA locking_mode=EXCLUSIVE", e) != 0)
        goto fail;
    if (check_schema(d, path, &version, e) != 0)
        goto fail;
    if (kind->alone && version != kind->versions) {
        err_set(e, "the store %s is of version %lld: start what uses it once, which brings it to %u", path,
                (long long)version, kind->versions);
        goto fail;
    }
    if (settings(d, max_pages, &why) != 0 || pragma_int(d, "PRAGMA synchronous", &mode) != 0 || mode != 2) {
        err_set(e, "cannot set the store %s up: %s", path, why.text);
        goto fail;
    }
    if (check_whole(d, path, e) != 0 || migrate(d, path, version, e) != 0)
        goto fail;
    return 0;
fail:
    version = d->application;
    db_close(d);
    d->application = (int)version;
    return -1;
}

void db_close(struct db *d)
{
    for (size_t i = 0; i < DB_STATEMENTS_MAX; i++)
        sqlite3_finalize(d->stmt[i]);
    sqlite3_close(d->sqlite);
    *d = (struct db){.sqlite = NULL};
}

/* What may be cut off here says its name first. */
static void at(struct db *d, const char *point)
{
    if (d->at != NULL)
        d->at(d->at_arg, point);
}

static int begin(struct db *d, const char *how)
{
    if (d->doomed)
        return -1;
    if (d->open_tx)
        return 0;
    at(d, "BEGIN");
    if (sqlite3_exec(d->sqlite, how, NULL, NULL, NULL) != SQLITE_OK)
        return db_doom(d, sqlite3_errmsg(d->sqlite));
    d->open_tx = true;
    return 0;
}

int db_begin(struct db *d)
{
    return begin(d, "BEGIN IMMEDIATE");
}

int db_begin_read(struct db *d)
{
    return begin(d, "BEGIN");
}

static void reset_all(struct db *d)
{
    for (size_t i = 0; i < DB_STATEMENTS_MAX; i++)
        if (d->stmt[i] != NULL && sqlite3_stmt_busy(d->stmt[i]))
            sqlite3_reset(d->stmt[i]);
}

int db_commit(struct db *d)
{
    if (!d->open_tx && !d->doomed)
        return 0;
    reset_all(d); /* a SELECT left standing would hold the transaction open */
    if (d->doomed)
        return -1;
    at(d, "COMMIT");
    if (sqlite3_exec(d->sqlite, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        return db_doom(d, sqlite3_errmsg(d->sqlite));
    d->open_tx = false;
    at(d, "COMMITTED");
    return 0;
}

void db_rollback(struct db *d)
{
    reset_all(d);
    if (!sqlite3_get_autocommit(d->sqlite)) /* some failures have rolled back already */
        sqlite3_exec(d->sqlite, "ROLLBACK", NULL, NULL, NULL);
    d->open_tx = d->doomed = false;
}

sqlite3_stmt *db_stmt(struct db *d, unsigned id)
{
    if (d->doomed || id >= d->kind->statements)
        return NULL;
    if (d->stmt[id] == NULL && sqlite3_prepare_v3(d->sqlite, d->kind->statement[id].text, -1,
                                                  SQLITE_PREPARE_PERSISTENT, &d->stmt[id], NULL) != SQLITE_OK) {
        db_doom(d, sqlite3_errmsg(d->sqlite));
        return NULL;
    }
    sqlite3_reset(d->stmt[id]);
    sqlite3_clear_bindings(d->stmt[id]);
    at(d, d->kind->statement[id].name);
    return d->stmt[id];
}

/* Bound in place: what is bound stays put until the statement has run. A failed bind leaves NULL, which the schema
 * refuses. */
void db_text(sqlite3_stmt *s, int at, struct span v)
{
    sqlite3_bind_text64(s, at, v.n ? (const char *)v.p : "", v.n, SQLITE_STATIC, SQLITE_UTF8);
}

void db_text_or_null(sqlite3_stmt *s, int at, struct span v)
{
    if (v.n)
        db_text(s, at, v);
}

void db_blob(sqlite3_stmt *s, int at, struct span v)
{
    if (v.n)
        sqlite3_bind_blob64(s, at, v.p, v.n, SQLITE_STATIC);
    else
        sqlite3_bind_zeroblob(s, at, 0);
}

void db_int(sqlite3_stmt *s, int at, uint64_t v)
{
    sqlite3_bind_int64(s, at, (int64_t)v);
}

enum db_result db_step(struct db *d, sqlite3_stmt *s)
{
    if (s == NULL || d->doomed)
        return DB_FAIL;
    int r = sqlite3_step(s);
    if (r == SQLITE_ROW)
        return DB_ROW;
    if (r == SQLITE_DONE) {
        sqlite3_reset(s);
        return DB_DONE;
    }
    db_doom(d, sqlite3_errmsg(d->sqlite));
    return DB_FAIL;
}

int db_run(struct db *d, sqlite3_stmt *s)
{
    enum db_result r;
    while ((r = db_step(d, s)) == DB_ROW)
        ;
    return r == DB_DONE ? 0 : -1;
}

int db_changes(const struct db *d)
{
    return sqlite3_changes(d->sqlite);
}

struct span db_col(sqlite3_stmt *s, int at)
{
    const void *p = sqlite3_column_blob(s, at); /* first: it fixes what column_bytes counts */
    int n = sqlite3_column_bytes(s, at);
    return span_of(p, p && n > 0 ? (size_t)n : 0);
}

uint64_t db_col_int(sqlite3_stmt *s, int at)
{
    return (uint64_t)sqlite3_column_int64(s, at);
}

bool db_col_null(sqlite3_stmt *s, int at)
{
    return sqlite3_column_type(s, at) == SQLITE_NULL;
}

bool db_col_digest(sqlite3_stmt *s, int at, struct digest *d)
{
    struct span v = db_col(s, at);
    if (v.n != DIGEST_BYTES)
        return false;
    memcpy(d->b, v.p, DIGEST_BYTES);
    return true;
}
