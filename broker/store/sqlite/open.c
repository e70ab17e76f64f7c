#include "broker/store/sqlite/lite.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/store/sqlite/schema_2_sql.h"
#include "broker/store/sqlite/schema_3_sql.h"
#include "broker/store/sqlite/schema_sql.h"
#include "common/time/clock.h"

static const struct db_statement statements[SQL_COUNT] = {
#define X(name, sql) [SQL_##name] = {#name, sql},
    SQL_STATEMENTS(X)
#undef X
};
static const char *const schemas[BSTORE_SCHEMA] = {schema_sql, schema_2_sql, schema_3_sql};
static const unsigned tables[BSTORE_SCHEMA] = {8, 8, 9};

static const struct db_kind kind = {
    .application = BSTORE_APPLICATION,
    .versions = BSTORE_SCHEMA,
    .schema = schemas,
    .tables = " tenant conversation turn step tool_call message display chat_key recorded ",
    .count = tables,
    .statement = statements,
    .statements = SQL_COUNT,
    .busy_ms = 5000, /* other workers write, each for the time of one transaction */
    .wal_max = BSTORE_WAL_MAX,
    .mode = 0600,
};

static void lite_close(struct bstore *s)
{
    struct lite *l = lite_of(s);
    db_rollback(&l->db);
    db_close(&l->db);
    free(l);
}

static const char *lite_why(struct bstore *s)
{
    return lite_of(s)->why;
}

static const struct bstore_ops ops = {
    .close = lite_close,
    .why = lite_why,
    .chat = lite_chat,
    .claim = lite_claim,
    .extend = lite_extend,
    .release = lite_release,
    .load = lite_load,
    .step = lite_step,
    .plan = lite_plan,
    .spent = lite_spent,
    .stricter = lite_stricter,
    .call = lite_call,
    .settle = lite_settle,
    .log = lite_log,
    .finish = lite_finish,
    .cancel = lite_cancel,
    .turn = lite_turn,
    .events = lite_events,
    .messages = lite_messages,
    .queued = lite_queued,
    .ended = lite_ended,
    .conversations = lite_conversations,
    .fork = lite_fork,
    .record = lite_record,
    .recorded = lite_recorded,
    .turns = lite_turns,
    .replay = lite_replay,
    .replayed = lite_replayed,
    .pulse = lite_pulse,
    .sweep = lite_sweep,
};

struct bstore *bstore_sqlite_open(const char *path, const struct bstore_sqlite_test *test, struct err *e)
{
    bool fresh;
    struct lite *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        err_set(e, "out of memory");
        return NULL;
    }
    l->face.ops = &ops;
    l->test = test;
    if (db_open(&l->db, &kind, path, test ? test->max_pages : 0, &fresh, e) != 0) {
        free(l);
        return NULL;
    }
    if (test != NULL) {
        l->db.at = test->at;
        l->db.at_arg = test->arg;
    }
    return &l->face;
}

static int begun(struct lite *l, int r)
{
    /* After the lock is held: a claim that ran out while we waited for it has run out. */
    l->now = l->test && l->test->now_ms ? l->test->now_ms(l->test->arg) : clock_ms(CLOCK_REALTIME);
    return r;
}

int lite_begin(struct lite *l)
{
    return begun(l, db_begin(&l->db));
}

int lite_begin_read(struct lite *l)
{
    return begun(l, db_begin_read(&l->db));
}

enum bstore_result lite_end(struct lite *l, enum bstore_result r)
{
    l->why[0] = '\0';
    if (l->db.doomed)
        r = BS_FAIL;
    if (r == BS_OK && db_commit(&l->db) != 0)
        r = BS_FAIL;
    if (r == BS_FAIL)
        (void)snprintf(l->why, sizeof(l->why), "%s",
                       l->db.doomed ? l->db.why.text : "what is stored is not as it was");
    if (r != BS_OK)
        db_rollback(&l->db);
    return r;
}

struct lite_id lite_id(const struct id *id)
{
    struct lite_id out;
    id_text(id, out.text);
    return out;
}

sqlite3_stmt *lite_stmt(struct lite *l, unsigned sql, struct span tenant, const struct lite_id *id)
{
    sqlite3_stmt *q = db_stmt(&l->db, sql);
    if (q == NULL)
        return NULL;
    db_text(q, 1, tenant);
    if (id != NULL)
        db_text(q, 2, span_of(id->text, ID_TEXT));
    return q;
}

struct id lite_col_id(struct lite *l, sqlite3_stmt *q, int at)
{
    struct id id = {{0}};
    if (id_parse(db_col(q, at), &id) != 0)
        db_doom(&l->db, "an id in the store is none");
    return id;
}

int lite_number(struct lite *l, sqlite3_stmt *q, uint64_t *out)
{
    enum db_result got = q == NULL ? DB_FAIL : db_step(&l->db, q);
    *out = 0;
    if (got == DB_ROW)
        *out = db_col_int(q, 0);
    if (q != NULL)
        sqlite3_reset(q);
    return got == DB_ROW ? 0 : got == DB_DONE ? 1 : -1;
}

enum bstore_result lite_change(struct lite *l, sqlite3_stmt *q, enum bstore_result none)
{
    if (q == NULL || db_run(&l->db, q) != 0)
        return BS_FAIL;
    return db_changes(&l->db) > 0 ? BS_OK : none;
}

enum bstore_result lite_fence(struct lite *l, const struct claim *c, bool *cancelled)
{
    struct lite_id turn = lite_id(&c->turn), worker = lite_id(&c->worker), conversation = lite_id(&c->conversation);
    uint64_t flag;
    sqlite3_stmt *q = lite_stmt(l, SQL_FENCE, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 3, c->epoch);
    db_text(q, 4, span_of(worker.text, ID_TEXT));
    db_int(q, 5, l->now);
    db_text(q, 6, span_of(conversation.text, ID_TEXT));
    int r = lite_number(l, q, &flag);
    *cancelled = flag != 0;
    return r == 0 ? BS_OK : r > 0 ? BS_FENCED : BS_FAIL;
}

enum bstore_result lite_begin_fenced(struct lite *l, const struct claim *c)
{
    bool cancelled;
    return lite_begin(l) != 0 ? BS_FAIL : lite_fence(l, c, &cancelled);
}
