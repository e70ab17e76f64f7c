/* Conversations as a list, and one that begins as another did. */
#include "broker/store/sqlite/lite.h"

static enum bstore_result rows(struct lite *l, sqlite3_stmt *q, struct arena *a, struct bstore_conversations *out)
{
    enum db_result got = DB_FAIL;
    out->row = arena_alloc(a, BSTORE_READ_MAX * sizeof(*out->row));
    while (out->row != NULL && out->n < BSTORE_READ_MAX && (got = db_step(&l->db, q)) == DB_ROW)
        out->row[out->n++] = (struct bstore_conversation){.id = lite_col_id(l, q, 0),
                                                          .created_ms = db_col_int(q, 1),
                                                          .changed_ms = db_col_int(q, 2),
                                                          .turns = db_col_int(q, 3),
                                                          .messages = db_col_int(q, 4),
                                                          .phase = arena_copy(a, db_col(q, 5)),
                                                          .busy = db_col_int(q, 6) != 0};
    sqlite3_reset(q);
    if (got == DB_FAIL && !l->db.doomed)
        db_doom(&l->db, "what was read is more than may be read at once");
    return l->db.doomed ? BS_FAIL : BS_OK;
}

enum bstore_result lite_conversations(struct bstore *s, struct span tenant, const struct id *after, struct arena *a,
                                      struct bstore_conversations *out)
{
    struct lite *l = lite_of(s);
    struct lite_id id = id_is_none(after) ? (struct lite_id){""} : lite_id(after);
    sqlite3_stmt *q = lite_begin_read(l) == 0 ? lite_stmt(l, SQL_CONVERSATIONS, tenant, NULL) : NULL;
    if (q == NULL)
        return lite_end(l, BS_FAIL);
    db_text(q, 2, span_str(id.text));
    db_int(q, 3, BSTORE_READ_MAX);
    return lite_end(l, rows(l, q, a, out));
}

/* 0 of these messages: of a conversation that is there, or not. */
static enum bstore_result may_fork(struct lite *l, struct span tenant, const struct lite_id *id, uint64_t messages)
{
    uint64_t n;
    sqlite3_stmt *q = lite_stmt(l, SQL_CONVERSATION_GET, tenant, id);
    int r = lite_number(l, q, &n);
    if (r != 0)
        return r > 0 ? BS_NONE : BS_FAIL;
    if ((q = lite_stmt(l, SQL_FORK_CUTS, tenant, id)) == NULL)
        return BS_FAIL;
    db_int(q, 3, messages);
    db_text(q, 4, BSTORE_RESULTS);
    if (lite_number(l, q, &n) != 0)
        return BS_FAIL;
    if (n > 0)
        return BS_CONFLICT;
    if (messages > BSTORE_FORK_MAX)
        return BS_FULL;
    if ((q = lite_stmt(l, SQL_FORK_BYTES, tenant, id)) == NULL)
        return BS_FAIL;
    db_int(q, 3, messages);
    return lite_number(l, q, &n) != 0 ? BS_FAIL : n > BSTORE_FORK_BYTES_MAX ? BS_FULL : BS_OK;
}

static enum bstore_result copy(struct lite *l, struct span tenant, const struct lite_id *from,
                               const struct lite_id *to, uint64_t messages)
{
    uint64_t n;
    sqlite3_stmt *q = lite_stmt(l, SQL_FORK_MESSAGES, tenant, from);
    if (q == NULL)
        return BS_FAIL;
    db_text(q, 3, span_of(to->text, ID_TEXT));
    db_int(q, 4, messages);
    if (db_run(&l->db, q) != 0 || lite_number(l, lite_stmt(l, SQL_FORK_COUNT, tenant, to), &n) != 0)
        return BS_FAIL;
    return n == messages ? BS_OK : BS_CONFLICT;
}

enum bstore_result lite_copy(struct lite *l, struct span tenant, const struct lite_id *from, const struct lite_id *to,
                             uint64_t messages)
{
    enum bstore_result r = may_fork(l, tenant, from, messages);
    return r == BS_OK ? copy(l, tenant, from, to, messages) : r;
}

enum bstore_result lite_fork(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t messages,
                             struct id *out)
{
    struct lite *l = lite_of(s);
    struct lite_id from = lite_id(conversation);
    enum bstore_result r = lite_begin(l) != 0                      ? BS_FAIL
                           : messages == 0 || messages > INT64_MAX ? BS_CONFLICT
                                                                   : may_fork(l, tenant, &from, messages);
    if (r == BS_OK)
        r = lite_new_conversation(l, tenant, out);
    struct lite_id to = lite_id(out);
    return lite_end(l, r == BS_OK ? copy(l, tenant, &from, &to, messages) : r);
}

enum bstore_result lite_ended(struct bstore *s, const struct id *worker)
{
    struct lite *l = lite_of(s);
    struct lite_id id = lite_id(worker);
    sqlite3_stmt *q = lite_begin(l) == 0 ? db_stmt(&l->db, SQL_CLAIMS_END) : NULL;
    if (q == NULL)
        return lite_end(l, BS_FAIL);
    db_text(q, 1, span_of(id.text, ID_TEXT));
    db_int(q, 2, l->now);
    return lite_end(l, db_run(&l->db, q) == 0 ? BS_OK : BS_FAIL);
}

uint64_t lite_pulse(struct bstore *s)
{
    struct lite *l = lite_of(s);
    uint64_t n = 0;
    sqlite3_stmt *q = lite_begin_read(l) == 0 ? db_stmt(&l->db, SQL_PULSE) : NULL;
    bool ok = q != NULL && db_step(&l->db, q) == DB_ROW;
    if (ok)
        n = db_col_int(q, 0);
    if (q != NULL)
        sqlite3_reset(q);
    enum bstore_result r = lite_end(l, ok ? BS_OK : BS_FAIL);
    return r == BS_OK ? n : 0;
}
