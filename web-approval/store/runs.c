/* The desk's reading of what ran. */
#include "web-approval/store/store_in.h"

struct run_walk {
    desk_store_run_fn *fn;
    void *ctx;
};
static int run_step(void *ctx, struct row *r)
{
    struct run_walk *w = ctx;
    struct run_row o;
    struct span *const texts[] = {&o.id,    &o.what,  &o.sandbox,    &o.tenant, &o.command,
                                  &o.state, &o.begin, &o.begin_hash, &o.end,    &o.end_hash};
    uint64_t *const numbers[] = {&o.generation, &o.began_ms, &o.ended_ms, &o.begin_seq, &o.end_seq};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = row_text(r);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        *numbers[i] = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &o);
}

#define RUNS                                                                                                         \
    "SELECT r.id, r.what, r.sandbox, r.tenant, r.command, r.state, b.json, b.hash, e.json, e.hash, r.generation, "   \
    "r.began_ms, r.ended_ms, r.begin_seq, r.end_seq FROM run r LEFT JOIN audit b ON b.seq = r.begin_seq "            \
    "LEFT JOIN audit e ON e.seq = r.end_seq WHERE (:sandbox = '' OR r.sandbox = :sandbox) "                          \
    "AND substr(r.id, 1, length(:prefix)) = :prefix AND r.begin_seq > :after AND r.begin_seq < :before "

int desk_store_runs(struct desk_store *s, const struct run_filter *f, struct arena *a, desk_store_run_fn *fn,
                    void *ctx, struct err *e)
{
    struct run_walk w = {fn, ctx};
    sqlite3_stmt *q;
    if (store_query(
            s, f->newest ? RUNS "ORDER BY r.begin_seq DESC LIMIT :limit" : RUNS "ORDER BY r.begin_seq LIMIT :limit",
            &q, e) != 0)
        return -1;
    store_bind(q, ":sandbox", f->sandbox);
    store_bind(q, ":prefix", f->prefix);
    store_bind_u64(q, ":after", f->after);
    store_bind_u64(q, ":before", f->before);
    store_bind_u64(q, ":limit", f->limit);
    return store_walk(s, q, a, run_step, &w, e);
}

static int egress_step(void *ctx, struct row *r)
{
    struct run_effects *o = ctx;
    uint64_t *const to[] = {&o->requests, &o->refused, &o->bytes_out, &o->bytes_in};
    for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++)
        *to[i] = row_number(r);
    return 1;
}

static int effect_step(void *ctx, struct row *r)
{
    struct run_effects *o = ctx;
    bool sent = row_number(r) == 1;
    struct span exchange = row_text(r), lease = row_text(r);
    size_t i = 0;
    o->sent += sent;
    if (sent && o->n < RUN_EFFECTS_NAMED)
        o->exchange[o->n++] = exchange;
    while (i < o->nleases && !span_eq(o->lease[i], lease))
        i++;
    if (lease.n > 0 && i == o->nleases && i < RUN_LEASES_NAMED)
        o->lease[o->nleases++] = lease;
    return r->full;
}

int desk_store_effects(struct desk_store *s, struct span run, struct arena *a, struct run_effects *o, struct err *e)
{
    sqlite3_stmt *q;
    *o = (struct run_effects){.n = 0};
    if (store_query(s, "SELECT requests, refused, bytes_out, bytes_in FROM run WHERE id = :run", &q, e) != 0)
        return -1;
    store_bind(q, ":run", run);
    if (store_walk(s, q, a, egress_step, o, e) != 0 ||
        store_query(s, "SELECT sent, exchange, lease FROM run_effect WHERE run = :run ORDER BY exchange", &q, e) != 0)
        return -1;
    store_bind(q, ":run", run);
    return store_walk(s, q, a, effect_step, o, e);
}
