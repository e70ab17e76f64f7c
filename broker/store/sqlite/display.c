#include "broker/store/sqlite/lite.h"

static sqlite3_stmt *of_conversation(struct lite *l, unsigned sql, const struct claim *c, const struct lite_id *id)
{
    return lite_stmt(l, sql, claim_tenant(c), id);
}

/* Events first .. next - 1 of so many bytes are there, and that is too much: the older half goes, until it is not. */
static enum bstore_result cut(struct lite *l, const struct claim *c, const struct lite_id *id, uint64_t first,
                              uint64_t next, uint64_t bytes)
{
    while (next - first > 1 && (next - first > BSTORE_LOG_MAX || bytes > BSTORE_LOG_BYTES_MAX)) {
        first = next - (next - first) / 2;
        sqlite3_stmt *q = of_conversation(l, SQL_LOG_CUT, c, id);
        if (q == NULL)
            return BS_FAIL;
        db_int(q, 3, first);
        if (db_run(&l->db, q) != 0 || (q = of_conversation(l, SQL_LOG_FIRST, c, id)) == NULL)
            return BS_FAIL;
        db_int(q, 3, first);
        if (lite_number(l, q, &bytes) != 0)
            return BS_FAIL;
    }
    return BS_OK;
}

struct taken {
    uint64_t first, next, bytes;
};

/* Numbers for n events of so many bytes. */
static enum bstore_result numbers(struct lite *l, const struct claim *c, const struct lite_id *id, size_t n,
                                  uint64_t bytes, struct taken *out)
{
    sqlite3_stmt *q = of_conversation(l, SQL_LOG_TAKE, c, id);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 3, n);
    db_int(q, 4, bytes);
    db_int(q, 5, l->now);
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW)
        *out = (struct taken){db_col_int(q, 0), db_col_int(q, 1), db_col_int(q, 2)};
    sqlite3_reset(q);
    return got == DB_ROW ? BS_OK : BS_FAIL;
}

enum bstore_result lite_append(struct lite *l, const struct claim *c, const struct bstore_event *event, size_t n,
                               uint64_t *seq)
{
    struct lite_id id = lite_id(&c->conversation), turn = lite_id(&c->turn);
    struct taken t;
    uint64_t bytes = 0;
    *seq = 0;
    if (n == 0)
        return BS_OK;
    for (size_t i = 0; i < n; i++)
        bytes += event[i].body.n;
    if (numbers(l, c, &id, n, bytes, &t) != BS_OK)
        return BS_FAIL;
    for (size_t i = 0; i < n; i++) {
        sqlite3_stmt *q = of_conversation(l, SQL_LOG_ADD, c, &id);
        if (q == NULL)
            return BS_FAIL;
        db_int(q, 3, t.next - n + i);
        db_text(q, 4, span_of(turn.text, ID_TEXT));
        db_int(q, 5, c->epoch);
        db_text(q, 6, event[i].type);
        db_blob(q, 7, event[i].body);
        db_int(q, 8, l->now);
        if (db_run(&l->db, q) != 0)
            return BS_FAIL;
    }
    *seq = t.next - 1;
    return cut(l, c, &id, t.first, t.next, t.bytes);
}

enum bstore_result lite_message(struct lite *l, const struct claim *c, const struct bstore_message *m, uint64_t *seq)
{
    struct lite_id id = lite_id(&c->conversation), turn = lite_id(&c->turn);
    sqlite3_stmt *q = of_conversation(l, SQL_CONVERSATION_MESSAGE, c, &id);
    if (lite_number(l, q, seq) != 0 || (q = of_conversation(l, SQL_MESSAGE_ADD, c, &id)) == NULL)
        return BS_FAIL;
    db_int(q, 3, *seq);
    db_text(q, 4, span_of(turn.text, ID_TEXT));
    db_text(q, 5, m->role);
    db_blob(q, 6, m->body);
    return db_run(&l->db, q) == 0 ? BS_OK : BS_FAIL;
}

enum bstore_result lite_log(struct bstore *s, const struct claim *c, const struct bstore_event *event, size_t n,
                            uint64_t *seq)
{
    struct lite *l = lite_of(s);
    enum bstore_result r = lite_begin_fenced(l, c);
    return lite_end(l, r == BS_OK ? lite_append(l, c, event, n, seq) : r);
}
