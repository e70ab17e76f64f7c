#include "broker/store/sql/sq.h"

static struct sq_stmt *of_conversation(struct sq *l, unsigned sql, const struct claim *c, const struct sq_id *id)
{
    return sq_stmt(l, sql, claim_tenant(c), id);
}

/* Events first .. next - 1 of so many bytes are there, and that is too much: the older half goes, until it is not. */
static enum bstore_result cut(struct sq *l, const struct claim *c, const struct sq_id *id, uint64_t first,
                              uint64_t next, uint64_t bytes)
{
    while (next - first > 1 && (next - first > BSTORE_LOG_MAX || bytes > BSTORE_LOG_BYTES_MAX)) {
        first = next - (next - first) / 2;
        struct sq_stmt *q = of_conversation(l, SQL_LOG_CUT, c, id);
        if (q == NULL)
            return BS_FAIL;
        sq_int(q, 3, first);
        if (sq_run(q) != 0 || (q = of_conversation(l, SQL_LOG_FIRST, c, id)) == NULL)
            return BS_FAIL;
        sq_int(q, 3, first);
        if (sq_number(l, q, &bytes) != 0)
            return BS_FAIL;
    }
    return BS_OK;
}

struct taken {
    uint64_t first, next, bytes;
};

/* Numbers for n events of so many bytes. */
static enum bstore_result numbers(struct sq *l, const struct claim *c, const struct sq_id *id, size_t n,
                                  uint64_t bytes, struct taken *out)
{
    struct sq_stmt *q = of_conversation(l, SQL_LOG_TAKE, c, id);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, n);
    sq_int(q, 4, bytes);
    sq_int(q, 5, l->now);
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW)
        *out = (struct taken){sq_col_int(q, 0), sq_col_int(q, 1), sq_col_int(q, 2)};
    sq_reset(q);
    return got == SQ_ROW ? BS_OK : BS_FAIL;
}

enum bstore_result sq_append(struct sq *l, const struct claim *c, const struct bstore_event *event, size_t n,
                             uint64_t *seq)
{
    struct sq_id id = sq_id(&c->conversation), turn = sq_id(&c->turn);
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
        struct sq_stmt *q = of_conversation(l, SQL_LOG_ADD, c, &id);
        if (q == NULL)
            return BS_FAIL;
        sq_int(q, 3, t.next - n + i);
        sq_text(q, 4, span_of(turn.text, ID_TEXT));
        sq_int(q, 5, c->epoch);
        sq_bytes(q, 6, event[i].type);
        sq_blob(q, 7, event[i].body);
        sq_int(q, 8, l->now);
        if (sq_run(q) != 0)
            return BS_FAIL;
    }
    *seq = t.next - 1;
    l->told = true;
    return cut(l, c, &id, t.first, t.next, t.bytes);
}

enum bstore_result sq_message(struct sq *l, const struct claim *c, const struct bstore_message *m, uint64_t *seq)
{
    struct sq_id id = sq_id(&c->conversation), turn = sq_id(&c->turn);
    struct sq_stmt *q = of_conversation(l, SQL_CONVERSATION_MESSAGE, c, &id);
    if (sq_number(l, q, seq) != 0 || (q = of_conversation(l, SQL_MESSAGE_ADD, c, &id)) == NULL)
        return BS_FAIL;
    sq_int(q, 3, *seq);
    sq_text(q, 4, span_of(turn.text, ID_TEXT));
    sq_bytes(q, 5, m->role);
    sq_blob(q, 6, m->body);
    return sq_run(q) == 0 ? BS_OK : BS_FAIL;
}

enum bstore_result sq_log(struct bstore *s, const struct claim *c, const struct bstore_event *event, size_t n,
                          uint64_t *seq)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_begin_fenced(l, c);
        r = sq_end(l, r == BS_OK ? sq_append(l, c, event, n, seq) : r);
    } while (sq_again(l));
    return r;
}
