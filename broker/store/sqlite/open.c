#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "broker/store/sql/sq.h"
#include "broker/store/sqlite/schema_2_sql.h"
#include "broker/store/sqlite/schema_3_sql.h"
#include "broker/store/sqlite/schema_4_sql.h"
#include "broker/store/sqlite/schema_5_sql.h"
#include "broker/store/sqlite/schema_6_sql.h"
#include "broker/store/sqlite/schema_sql.h"
#include "broker/store/sqlite/sqlite.h"
#include "common/sqlite/db.h"
#include "common/time/clock.h"

enum { PULSE = SQL_COUNT, MARK_WHOLE, MARK_COPYING, MARK_MOVED, STATEMENTS };

#define TEXT_OF(n) #n
#define MARK(n)    "PRAGMA application_id=" TEXT_OF(n)

static const struct db_statement statements[STATEMENTS] = {
#define X(name, sql) [SQL_##name] = {#name, sql},
    SQL_STATEMENTS(X) SQL_MOVES(X)
#undef X
        [PULSE] = {"PULSE", "PRAGMA data_version"},
    [MARK_WHOLE] = {"MARK_WHOLE", MARK(BSTORE_APPLICATION)},
    [MARK_COPYING] = {"MARK_COPYING", MARK(BSTORE_APPLICATION_COPYING)},
    [MARK_MOVED] = {"MARK_MOVED", MARK(BSTORE_APPLICATION_MOVED)},
};
static const char *const schemas[BSTORE_SCHEMA] = {schema_sql,   schema_2_sql, schema_3_sql,
                                                   schema_4_sql, schema_5_sql, schema_6_sql};
static const unsigned tables[BSTORE_SCHEMA] = {8, 8, 9, 10, 11, 11};

static const struct db_other others[] = {
    {BSTORE_APPLICATION_COPYING,
     "is not all there: countersign-broker migrate has not ended; let it end, or begin it anew"},
    {BSTORE_APPLICATION_MOVED, "was moved by countersign-broker migrate: say the new store as store:"},
    {0, NULL},
};

static struct db_kind kind_of(int application, bool alone)
{
    return (struct db_kind){
        .application = application,
        .versions = BSTORE_SCHEMA,
        .schema = schemas,
        .tables = " tenant conversation turn step tool_call message display chat_key recorded move usage ",
        .count = tables,
        .statement = statements,
        .statements = STATEMENTS,
        .busy_ms = 5000, /* other workers write, each for the time of one transaction */
        .wal_max = BSTORE_WAL_MAX,
        .mode = 0600,
        .other = others,
        .alone = alone,
    };
}

struct lite {
    struct sq sq; /* first */
    struct db_kind kind;
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
        if (v->null)
            continue;
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

static bool lite_col_null(struct sq_stmt *q, int at)
{
    return db_col_null(q->native, at);
}

/* It is in the first page of the file, and changed with all others. */
static int lite_mark(struct sq *l, enum bstore_state state)
{
    struct db *d = db_of(l);
    sqlite3_stmt *q = db_stmt(d, state == BSTORE_WHOLE   ? MARK_WHOLE
                                 : state == BSTORE_MOVED ? MARK_MOVED
                                                         : MARK_COPYING);
    return q != NULL && db_run(d, q) == 0 ? 0 : sq_doom(l, d->why.text);
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
    .col_null = lite_col_null,
    .mark = lite_mark,
    .pulse = lite_pulse,
};

/* NULL with the reason; *found: the application of a store that is refused. */
static struct bstore *open_as(const char *path, int application, bool alone, const struct bstore_test *test,
                              int *found, struct err *e)
{
    bool fresh;
    struct lite *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        err_set(e, "out of memory");
        return NULL;
    }
    sq_init(&l->sq, &base, test);
    l->kind = kind_of(application, alone);
    if (db_open(&l->db, &l->kind, path, test ? test->max_pages : 0, &fresh, e) != 0) {
        *found = l->db.application;
        free(l);
        return NULL;
    }
    if (test != NULL) {
        l->db.at = test->at;
        l->db.at_arg = test->arg;
    }
    return &l->sq.face;
}

struct bstore *bstore_sqlite_open(const char *path, const struct bstore_test *test, struct err *e)
{
    int found;
    return open_as(path, BSTORE_APPLICATION, false, test, &found, e);
}

struct bstore *bstore_sqlite_alone(const char *path, bool make, const struct bstore_test *test,
                                   enum bstore_state *state, struct err *e)
{
    static const struct {
        int application;
        enum bstore_state state;
    } as[] = {{BSTORE_APPLICATION_COPYING, BSTORE_COPYING},
              {BSTORE_APPLICATION, BSTORE_WHOLE},
              {BSTORE_APPLICATION_MOVED, BSTORE_MOVED}};
    struct bstore *s = NULL;
    struct stat st;
    *state = BSTORE_ABSENT;
    *e = (struct err){""};
    if (!make && lstat(path, &st) != 0 && errno == ENOENT)
        return NULL;
    for (size_t i = 0; s == NULL && i < sizeof(as) / sizeof(as[0]); i++) {
        int found = 0;
        s = open_as(path, as[i].application, true, test, &found, e);
        *state = as[i].state;
        if (s == NULL && (found == 0 || found == as[i].application))
            break;
    }
    return s;
}
