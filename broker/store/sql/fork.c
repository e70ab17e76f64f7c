/* Conversations as a list, and one that begins as another did. */
#include "broker/store/sql/fork.h"

/* What is not read whole is no list of who may see it. */
static struct span keep(struct sq *l, struct arena *a, struct span v)
{
    struct span copy = arena_copy(a, v);
    if (v.n && copy.p == NULL)
        sq_doom(l, "what was read is more than may be read at once");
    return copy;
}

static enum bstore_result rows(struct sq *l, struct sq_stmt *q, struct arena *a, struct bstore_conversations *out)
{
    enum sq_result got = SQ_FAIL;
    out->row = arena_alloc(a, BSTORE_READ_MAX * sizeof(*out->row));
    while (out->row != NULL && out->n < BSTORE_READ_MAX && (got = sq_step(q)) == SQ_ROW)
        out->row[out->n++] = (struct bstore_conversation){.id = sq_col_id(l, q, 0),
                                                          .created_ms = sq_col_int(q, 1),
                                                          .changed_ms = sq_col_int(q, 2),
                                                          .turns = sq_col_int(q, 3),
                                                          .messages = sq_col_int(q, 4),
                                                          .phase = arena_copy(a, sq_col(q, 5)),
                                                          .busy = sq_col_int(q, 6) != 0,
                                                          .replay = sq_col_int(q, 7) != 0,
                                                          .private = keep(l, a, sq_col(q, 8))};
    sq_reset(q);
    if (got == SQ_FAIL && !l->doomed)
        sq_doom(l, "what was read is more than may be read at once");
    return l->doomed ? BS_FAIL : BS_OK;
}

/* The same with the message that each began with, as far as there is room for them. */
static enum bstore_result rows_first(struct sq *l, struct sq_stmt *q, size_t most, struct arena *a,
                                     struct bstore_conversations *out)
{
    enum sq_result got = SQ_FAIL;
    size_t bytes = 0;
    out->row = arena_alloc(a, most * sizeof(*out->row));
    while (out->row != NULL && (got = sq_step(q)) == SQ_ROW && out->n < most) {
        struct span first = sq_col(q, 7);
        struct bstore_conversation *c = &out->row[out->n++];
        *c = (struct bstore_conversation){.id = sq_col_id(l, q, 0),
                                          .created_ms = sq_col_int(q, 1),
                                          .changed_ms = sq_col_int(q, 2),
                                          .turns = sq_col_int(q, 3),
                                          .messages = sq_col_int(q, 4),
                                          .phase = arena_copy(a, sq_col(q, 5)),
                                          .busy = sq_col_int(q, 6) != 0,
                                          .private = keep(l, a, sq_col(q, 8))};
        bytes += first.n;
        if (first.n > 0 && bytes <= BSTORE_READ_BYTES_MAX)
            c->first = arena_copy(a, first);
    }
    sq_reset(q);
    if (got == SQ_FAIL && !l->doomed)
        sq_doom(l, "what was read is more than may be read at once");
    return l->doomed ? BS_FAIL : BS_OK;
}

enum bstore_result sq_lately(struct bstore *s, struct span tenant, const struct id *only, struct arena *a,
                             struct bstore_conversations *out)
{
    struct sq *l = sq_of(s);
    struct sq_id id = sq_id(only);
    bool one = !id_is_none(only);
    enum bstore_result r;
    do {
        *out = (struct bstore_conversations){.n = 0};
        struct sq_stmt *q = NULL;
        if (sq_begin_read(l) == 0)
            q = one ? sq_stmt(l, SQL_CONVERSATION_ONE, tenant, &id) : sq_stmt(l, SQL_LATELY, tenant, NULL);
        if (q != NULL && !one)
            sq_int(q, 2, BSTORE_LATELY_MAX);
        r = sq_end(l, q != NULL ? rows_first(l, q, one ? 1 : BSTORE_LATELY_MAX, a, out) : BS_FAIL);
    } while (sq_again(l));
    return r == BS_OK && one && out->n == 0 ? BS_NONE : r;
}

enum bstore_result sq_conversations(struct bstore *s, struct span tenant, const struct id *after, struct arena *a,
                                    struct bstore_conversations *out)
{
    struct sq *l = sq_of(s);
    struct sq_id id = id_is_none(after) ? (struct sq_id){""} : sq_id(after);
    enum bstore_result r;
    do {
        *out = (struct bstore_conversations){.n = 0};
        struct sq_stmt *q = sq_begin_read(l) == 0 ? sq_stmt(l, SQL_CONVERSATIONS, tenant, NULL) : NULL;
        if (q != NULL) {
            sq_text(q, 2, span_str(id.text));
            sq_int(q, 3, BSTORE_READ_MAX);
        }
        r = sq_end(l, q != NULL ? rows(l, q, a, out) : BS_FAIL);
    } while (sq_again(l));
    return r;
}

/* 0 of these messages: of a conversation that is there, or not. */
static enum bstore_result may_fork(struct sq *l, struct span tenant, const struct sq_id *id, uint64_t messages)
{
    uint64_t n;
    struct sq_stmt *q = sq_stmt(l, SQL_CONVERSATION_GET, tenant, id);
    int r = sq_number(l, q, &n);
    if (r != 0)
        return r > 0 ? BS_NONE : BS_FAIL;
    if ((q = sq_stmt(l, SQL_FORK_CUTS, tenant, id)) == NULL)
        return BS_FAIL;
    sq_int(q, 3, messages);
    sq_bytes(q, 4, BSTORE_RESULTS);
    if (sq_number(l, q, &n) != 0)
        return BS_FAIL;
    if (n > 0)
        return BS_CONFLICT;
    if (messages > BSTORE_FORK_MAX)
        return BS_FULL;
    if ((q = sq_stmt(l, SQL_FORK_BYTES, tenant, id)) == NULL)
        return BS_FAIL;
    sq_int(q, 3, messages);
    return sq_number(l, q, &n) != 0 ? BS_FAIL : n > BSTORE_FORK_BYTES_MAX ? BS_FULL : BS_OK;
}

static enum bstore_result copy(struct sq *l, struct span tenant, const struct sq_id *from, const struct sq_id *to,
                               uint64_t messages)
{
    uint64_t n;
    struct sq_stmt *q = sq_stmt(l, SQL_FORK_MESSAGES, tenant, from);
    if (q == NULL)
        return BS_FAIL;
    sq_text(q, 3, span_of(to->text, ID_TEXT));
    sq_int(q, 4, messages);
    if (sq_run(q) != 0 || sq_number(l, sq_stmt(l, SQL_FORK_COUNT, tenant, to), &n) != 0)
        return BS_FAIL;
    return n == messages ? BS_OK : BS_CONFLICT;
}

enum bstore_result sq_private(struct sq *l, struct span tenant, const struct sq_id *id, struct dynbuf *out)
{
    struct sq_stmt *q = sq_stmt(l, SQL_CONVERSATION_PRIVATE, tenant, id);
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    dynbuf_reset(out);
    if (got == SQ_ROW && dynbuf_add(out, sq_col(q, 0)) != 0)
        sq_doom(l, "no memory for which models may see a conversation");
    sq_reset(q);
    return got == SQ_FAIL || l->doomed ? BS_FAIL : got == SQ_DONE ? BS_NONE : BS_OK;
}

enum bstore_result sq_copy(struct sq *l, struct span tenant, const struct sq_id *from, const struct sq_id *to,
                           uint64_t messages)
{
    enum bstore_result r = may_fork(l, tenant, from, messages);
    return r == BS_OK ? copy(l, tenant, from, to, messages) : r;
}

enum bstore_result sq_fork(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t messages,
                           struct id *out)
{
    struct sq *l = sq_of(s);
    struct sq_id from = sq_id(conversation);
    struct dynbuf private;
    enum bstore_result r;
    dynbuf_init(&private, BSTORE_PRIVATE_MAX);
    if (messages == 0 || messages > INT64_MAX)
        return BS_CONFLICT;
    do {
        r = sq_begin(l) != 0 ? BS_FAIL : sq_lock_tenant(l, SQL_TENANT_LOCK, tenant);
        if (r == BS_OK)
            r = may_fork(l, tenant, &from, messages);
        if (r == BS_OK)
            r = sq_private(l, tenant, &from, &private);
        if (r == BS_OK)
            r = sq_new_conversation(l, tenant, dynbuf_span(&private), out);
        struct sq_id to = sq_id(out);
        r = sq_end(l, r == BS_OK ? copy(l, tenant, &from, &to, messages) : r);
    } while (sq_again(l));
    dynbuf_free(&private);
    return r;
}

enum bstore_result sq_ended(struct bstore *s, const struct id *worker)
{
    struct sq *l = sq_of(s);
    struct sq_id id = sq_id(worker);
    enum bstore_result r;
    do {
        struct sq_stmt *q = sq_begin(l) == 0 ? sq_get(l, SQL_CLAIMS_END) : NULL;
        if (q != NULL) {
            sq_text(q, 1, span_of(id.text, ID_TEXT));
            sq_int(q, 2, l->now);
            l->told = true;
        }
        r = sq_end(l, q != NULL && sq_run(q) == 0 ? BS_OK : BS_FAIL);
    } while (sq_again(l));
    return r;
}
