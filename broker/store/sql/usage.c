/* What models were asked, and what that took: a row for each day, conversation, model and task. */
#include "broker/store/sql/usage.h"

#define DAY_MS UINT64_C(86400000)

enum bstore_result sq_meter(struct sq *l, const struct claim *c, const struct bstore_asked *asked,
                            uint64_t cost_micro)
{
    struct sq_id conversation = sq_id(&c->conversation);
    struct sq_stmt *q = sq_stmt(l, SQL_USAGE_ADD, claim_tenant(c), &conversation);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, l->now / DAY_MS);
    sq_bytes(q, 4, asked->model);
    sq_bytes(q, 5, asked->task);
    sq_int(q, 6, asked->input);
    sq_int(q, 7, asked->output);
    sq_int(q, 8, asked->cache_read);
    sq_int(q, 9, asked->cache_write);
    sq_int(q, 10, cost_micro);
    return sq_run(q) == 0 ? BS_OK : BS_FAIL;
}

static struct span keep(struct sq *l, struct arena *a, struct span v)
{
    struct span copy = arena_copy(a, v);
    if (v.n && copy.p == NULL)
        sq_doom(l, "what was metered is more than may be read at once");
    return copy;
}

static struct sq_stmt *rows_after(struct sq *l, struct span tenant, const struct bstore_usage_ask *ask,
                                  const struct sq_id *conversation)
{
    const struct bstore_usage_row *after = ask->after;
    bool one = !id_is_none(&ask->conversation);
    struct sq_stmt *q = sq_stmt(l, one ? SQL_USAGE_OF : SQL_USAGE, tenant, conversation);
    if (q == NULL)
        return NULL;
    if (!one && after == NULL)
        sq_text(q, 2, SPAN(""));
    sq_int(q, 3, after != NULL ? after->day : ask->from);
    sq_bytes(q, 4, after != NULL ? after->asked.model : SPAN(""));
    sq_bytes(q, 5, after != NULL ? after->asked.task : SPAN(""));
    sq_int(q, 6, ask->to);
    sq_int(q, 7, BSTORE_READ_MAX);
    return q;
}

static enum bstore_result rows(struct sq *l, struct sq_stmt *q, struct arena *a, struct bstore_usage *out)
{
    if (q == NULL)
        return BS_FAIL;
    out->row = arena_alloc(a, BSTORE_READ_MAX * sizeof(*out->row));
    if (out->row == NULL)
        sq_doom(l, "what was metered is more than may be read at once");
    while (!l->doomed && out->n < BSTORE_READ_MAX && sq_step(q) == SQ_ROW)
        out->row[out->n++] = (struct bstore_usage_row){.day = sq_col_int(q, 0),
                                                       .conversation = sq_col_id(l, q, 1),
                                                       .asked = {.model = keep(l, a, sq_col(q, 2)),
                                                                 .task = keep(l, a, sq_col(q, 3)),
                                                                 .input = sq_col_int(q, 4),
                                                                 .output = sq_col_int(q, 5),
                                                                 .cache_read = sq_col_int(q, 6),
                                                                 .cache_write = sq_col_int(q, 7)},
                                                       .times = sq_col_int(q, 8),
                                                       .cost_micro = sq_col_int(q, 9)};
    sq_reset(q);
    return l->doomed ? BS_FAIL : BS_OK;
}

enum bstore_result sq_usage(struct bstore *s, struct span tenant, const struct bstore_usage_ask *ask, struct arena *a,
                            struct bstore_usage *out)
{
    struct sq *l = sq_of(s);
    struct sq_id conversation =
        sq_id(id_is_none(&ask->conversation) && ask->after != NULL ? &ask->after->conversation : &ask->conversation);
    enum bstore_result r;
    do {
        *out = (struct bstore_usage){.n = 0};
        r = sq_begin_read(l) != 0 ? BS_FAIL : rows(l, rows_after(l, tenant, ask, &conversation), a, out);
        r = sq_end(l, r);
    } while (sq_again(l));
    return r;
}

static enum bstore_result tenant_after(struct sq *l, struct span after, struct arena *a, struct span *out)
{
    struct sq_stmt *q = sq_stmt(l, SQL_TENANT_AFTER, after.n > 0 ? after : SPAN(""), NULL);
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW)
        *out = keep(l, a, sq_col(q, 0));
    sq_reset(q);
    return got == SQ_FAIL || l->doomed ? BS_FAIL : got == SQ_ROW ? BS_OK : BS_NONE;
}

enum bstore_result sq_tenant_after(struct bstore *s, struct span after, struct arena *a, struct span *out)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        *out = SPAN_NONE;
        r = sq_end(l, sq_begin_read(l) != 0 ? BS_FAIL : tenant_after(l, after, a, out));
    } while (sq_again(l));
    return r;
}
