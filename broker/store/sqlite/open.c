#include <stdlib.h>

#include "broker/store/sql/sq.h"
#include "broker/store/sqlite/schema_2_sql.h"
#include "broker/store/sqlite/schema_sql.h"
#include "broker/store/sqlite/sqlite.h"
#include "common/sqlite/db.h"
#include "common/time/clock.h"

enum { PULSE = SQL_COUNT, STATEMENTS };

static const struct db_statement statements[STATEMENTS] = {
#define X(name, sql) [SQL_##name] = {#name, sql},
    SQL_STATEMENTS(X)
#undef X
        [PULSE] = {"PULSE", "PRAGMA data_version"},
};
static const char *const schemas[BSTORE_SCHEMA] = {schema_sql, schema_2_sql};
static const unsigned tables[BSTORE_SCHEMA] = {8, 8};

static const struct db_kind kind = {
    .application = BSTORE_APPLICATION,
    .versions = BSTORE_SCHEMA,
    .schema = schemas,
    .tables = " tenant conversation turn step tool_call message display chat_key ",
    .count = tables,
    .statement = statements,
    .statements = STATEMENTS,
    .busy_ms = 5000, /* other workers write, each for the time of one transaction */
    .wal_max = BSTORE_WAL_MAX,
    .mode = 0600,
};

struct lite {
    struct sq sq; /* first */
    struct db db;
};

static struct db *db_of(struct sq *l)
{
    return &((struct lite *)l)->db;
}

static void lite_close(struct sq *l)
{
    struct db *d = db_of(l);
    db_rollback(d);
    db_close(d);
    free(l);
}

/* One that writes has the lock from its beginning, and its time is from after that: a claim that ran out while we
 * waited for it has run out. */
static int lite_begin(struct sq *l, bool reads)
{
    struct db *d = db_of(l);
    int r = reads ? db_begin_read(d) : db_begin(d);
    l->now = clock_ms(CLOCK_REALTIME);
    return r == 0 ? 0 : sq_doom(l, d->why.text);
}

static int lite_commit(struct sq *l)
{
    return db_commit(db_of(l)) == 0 ? 0 : sq_doom(l, db_of(l)->why.text);
}

static void lite_rollback(struct sq *l)
{
    db_rollback(db_of(l));
}

/* Who else writes was waited for; nothing that went wrong goes right at once. */
static bool lite_again(struct sq *l)
{
    return false;
}

static void bind(struct sq_stmt *q, sqlite3_stmt *s)
{
    int n = sqlite3_bind_parameter_count(s);
    for (int at = 1; at <= n && (size_t)at <= q->values; at++) {
        const struct sq_value *v = &q->value[at - 1];
        if (v->kind == SQ_INT)
            db_int(s, at, v->number);
        else if (v->kind == SQ_BLOB)
            db_blob(s, at, v->bytes);
        else if (v->kind != SQ_NONE)
            db_text(s, at, v->bytes);
    }
}

static enum sq_result lite_step(struct sq_stmt *q)
{
    struct db *d = db_of(q->of);
    enum db_result got;
    if (statements[q->id].text[0] == '\0')
        return SQ_DONE;
    if (!q->ran) {
        if ((q->native = db_stmt(d, q->id)) == NULL) {
            (void)sq_doom(q->of, d->why.text);
            return SQ_FAIL;
        }
        bind(q, q->native);
        q->ran = true;
    }
    got = db_step(d, q->native);
    if (got == DB_DONE) {
        q->changes = (uint64_t)db_changes(d);
        q->ran = false;
    }
    if (got == DB_FAIL)
        (void)sq_doom(q->of, d->why.text);
    return got == DB_ROW ? SQ_ROW : got == DB_DONE ? SQ_DONE : SQ_FAIL;
}

static void lite_reset(struct sq_stmt *q)
{
    sqlite3_reset(q->native);
}

static struct span lite_col(struct sq_stmt *q, int at)
{
    return db_col(q->native, at);
}

static uint64_t lite_col_int(struct sq_stmt *q, int at)
{
    return db_col_int(q->native, at);
}

static uint64_t lite_pulse(struct sq *l)
{
    struct db *d = db_of(l);
    uint64_t n = 0;
    sqlite3_stmt *q = db_begin_read(d) == 0 ? db_stmt(d, PULSE) : NULL;
    if (q != NULL && db_step(d, q) == DB_ROW)
        n = db_col_int(q, 0);
    if (q != NULL)
        sqlite3_reset(q);
    db_rollback(d);
    return n;
}

static const struct sq_base base = {
    .close = lite_close,
    .begin = lite_begin,
    .commit = lite_commit,
    .rollback = lite_rollback,
    .again = lite_again,
    .step = lite_step,
    .reset = lite_reset,
    .col = lite_col,
    .col_int = lite_col_int,
    .pulse = lite_pulse,
};

struct bstore *bstore_sqlite_open(const char *path, const struct bstore_test *test, struct err *e)
{
    bool fresh;
    struct lite *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        err_set(e, "out of memory");
        return NULL;
    }
    sq_init(&l->sq, &base, test);
    if (db_open(&l->db, &kind, path, test ? test->max_pages : 0, &fresh, e) != 0) {
        free(l);
        return NULL;
    }
    if (test != NULL) {
        l->db.at = test->at;
        l->db.at_arg = test->arg;
    }
    return &l->sq.face;
}
