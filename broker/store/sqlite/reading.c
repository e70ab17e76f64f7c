#include "broker/store/sqlite/lite.h"

/* A copy that lives on; doomed if there is no room for it. */
static struct span keep(struct lite *l, struct arena *a, struct span v)
{
    struct span copy = arena_copy(a, v);
    if (v.n && copy.p == NULL)
        db_doom(&l->db, "what was read is more than may be read at once");
    return copy;
}

enum bstore_result lite_turn(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                             struct bstore_turn_row *out)
{
    struct lite *l = lite_of(s);
    struct lite_id id = lite_id(turn);
    sqlite3_stmt *q = lite_begin_read(l) != 0 ? NULL : lite_stmt(l, SQL_TURN_GET, tenant, &id);
    if (q == NULL)
        return lite_end(l, BS_FAIL);
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW)
        *out = (struct bstore_turn_row){.conversation = lite_col_id(l, q, 0),
                                        .state = keep(l, a, db_col(q, 1)),
                                        .end = turn_end_of(db_col(q, 2)),
                                        .why = keep(l, a, db_col(q, 3)),
                                        .used = {db_col_int(q, 4), db_col_int(q, 5), db_col_int(q, 6)}};
    sqlite3_reset(q);
    return lite_end(l, got == DB_ROW ? BS_OK : got == DB_DONE ? BS_NONE : BS_FAIL);
}

/* Which of the log is there; is somebody still adding to it? */
static enum bstore_result bounds(struct lite *l, struct span tenant, const struct lite_id *id, struct bstore_log *out)
{
    uint64_t open;
    sqlite3_stmt *q = lite_stmt(l, SQL_CONVERSATION_GET, tenant, id);
    if (q == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW) {
        out->epoch = db_col_int(q, 0);
        out->first = db_col_int(q, 1);
        out->next = db_col_int(q, 2);
    }
    sqlite3_reset(q);
    if (got != DB_ROW)
        return got == DB_DONE ? BS_NONE : BS_FAIL;
    if (lite_number(l, lite_stmt(l, SQL_CONVERSATION_OPEN, tenant, id), &open) != 0)
        return BS_FAIL;
    out->busy = open > 0;
    return BS_OK;
}

static enum bstore_result events(struct lite *l, sqlite3_stmt *q, struct arena *a, struct bstore_log *out)
{
    enum db_result got;
    size_t bytes = 0;
    out->event = arena_alloc(a, BSTORE_READ_MAX * sizeof(*out->event));
    if (out->event == NULL) {
        db_doom(&l->db, "what was read is more than may be read at once");
        return BS_FAIL;
    }
    while (bytes < BSTORE_READ_BYTES_MAX && out->n < BSTORE_READ_MAX && (got = db_step(&l->db, q)) == DB_ROW) {
        out->event[out->n++] = (struct bstore_read_event){.seq = db_col_int(q, 0),
                                                          .turn = lite_col_id(l, q, 1),
                                                          .turn_epoch = db_col_int(q, 2),
                                                          .type = keep(l, a, db_col(q, 3)),
                                                          .body = keep(l, a, db_col(q, 4))};
        bytes += db_col(q, 4).n;
    }
    sqlite3_reset(q);
    return l->db.doomed ? BS_FAIL : BS_OK;
}

enum bstore_result lite_events(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t epoch,
                               uint64_t after, struct arena *a, struct bstore_log *out)
{
    struct lite *l = lite_of(s);
    struct lite_id id = lite_id(conversation);
    enum bstore_result r = lite_begin_read(l) != 0 ? BS_FAIL : bounds(l, tenant, &id, out);
    if (r != BS_OK)
        return lite_end(l, r);
    if (epoch == 0)
        after = out->first - 1;
    else if (epoch != out->epoch || after + 1 < out->first || after >= out->next)
        return lite_end(l, BS_LOST);
    sqlite3_stmt *q = lite_stmt(l, SQL_EVENTS, tenant, &id);
    if (q == NULL)
        return lite_end(l, BS_FAIL);
    db_int(q, 3, after);
    db_int(q, 4, BSTORE_READ_MAX);
    return lite_end(l, events(l, q, a, out));
}

static enum bstore_result messages(struct lite *l, sqlite3_stmt *q, struct arena *a, struct bstore_messages *out)
{
    enum db_result got;
    size_t bytes = 0;
    out->message = arena_alloc(a, BSTORE_READ_MAX * sizeof(*out->message));
    if (out->message == NULL) {
        db_doom(&l->db, "what was read is more than may be read at once");
        return BS_FAIL;
    }
    while (bytes < BSTORE_READ_BYTES_MAX && out->n < BSTORE_READ_MAX && (got = db_step(&l->db, q)) == DB_ROW) {
        out->message[out->n++] = (struct bstore_read_message){.seq = db_col_int(q, 0),
                                                              .turn = lite_col_id(l, q, 1),
                                                              .role = keep(l, a, db_col(q, 2)),
                                                              .body = keep(l, a, db_col(q, 3))};
        bytes += db_col(q, 3).n;
    }
    sqlite3_reset(q);
    return l->db.doomed ? BS_FAIL : BS_OK;
}

enum bstore_result lite_messages(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                                 struct arena *a, struct bstore_messages *out)
{
    struct lite *l = lite_of(s);
    struct lite_id id = lite_id(conversation);
    struct bstore_log log = {.n = 0};
    enum bstore_result r = lite_begin_read(l) != 0 ? BS_FAIL : bounds(l, tenant, &id, &log);
    sqlite3_stmt *q = r == BS_OK ? lite_stmt(l, SQL_MESSAGES, tenant, &id) : NULL;
    if (q == NULL)
        return lite_end(l, r == BS_OK ? BS_FAIL : r);
    db_int(q, 3, after < INT64_MAX ? after : INT64_MAX);
    db_int(q, 4, BSTORE_READ_MAX);
    return lite_end(l, messages(l, q, a, out));
}

enum bstore_result lite_queued(struct bstore *s, struct span tenant, const struct id *conversation, struct arena *a,
                               struct bstore_messages *out)
{
    struct lite *l = lite_of(s);
    struct lite_id id = lite_id(conversation);
    sqlite3_stmt *q = lite_begin_read(l) == 0 ? lite_stmt(l, SQL_QUEUED, tenant, &id) : NULL;
    if (q == NULL)
        return lite_end(l, BS_FAIL);
    db_int(q, 3, 0);
    db_int(q, 4, BSTORE_TALK_MAX);
    return lite_end(l, messages(l, q, a, out));
}
