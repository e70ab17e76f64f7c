/* Started sandboxes that are idle. */
#include "web-approval/store/idle.h"

#include "web-approval/store/store_in.h"

#define IDLES                                                                                                        \
    "SELECT i.name, i.tenant, i.checkpoint, i.box, i.cpu_percent, i.left_ms, i.since_ms, i.strict, s.kind, "         \
    "s.session, s.owner, s.generation, s.reach FROM idle AS i JOIN sandbox AS s ON s.name = i.name "

struct walk {
    desk_store_idle_fn *fn;
    void *ctx;
    struct idle_row *first;
    int found;
};

static int take(void *ctx, struct row *r)
{
    struct walk *w = ctx;
    struct idle_row i = {.name = row_text(r)};

    i.tenant = row_text(r);
    i.checkpoint = row_text(r);
    i.box = row_text(r);
    i.cpu_percent = row_number(r);
    i.left_ms = row_number(r);
    i.since_ms = row_number(r);
    i.strict = row_number(r) != 0;
    i.kind = row_text(r);
    i.session = row_text(r);
    i.owner = row_text(r);
    i.generation = row_number(r);
    i.reach = row_text(r);
    if (w->first)
        *w->first = i;
    w->found = 1;
    return r->full || !w->fn ? 1 : w->fn(w->ctx, &i);
}

int desk_store_idle(struct desk_store *s, struct span name, struct arena *a, struct idle_row *r, struct err *e)
{
    struct walk w = {.first = r};
    sqlite3_stmt *q;

    if (store_query(s, IDLES "WHERE i.name = :name", &q, e) != 0)
        return -1;
    store_bind(q, ":name", name);
    return store_walk(s, q, a, take, &w, e) == 0 ? w.found : -1;
}

int desk_store_idles(struct desk_store *s, struct span tenant, struct arena *a, desk_store_idle_fn *fn, void *ctx,
                     struct err *e)
{
    struct walk w = {.fn = fn, .ctx = ctx};
    sqlite3_stmt *q;

    if (store_query(s, IDLES "WHERE :tenant = '' OR i.tenant = :tenant ORDER BY i.name", &q, e) != 0)
        return -1;
    store_bind(q, ":tenant", tenant);
    return store_walk(s, q, a, take, &w, e);
}

static int take_count(void *ctx, struct row *r)
{
    uint64_t *n = ctx;

    *n = row_number(r);
    return 1;
}

int desk_store_idle_count(struct desk_store *s, struct span tenant, struct arena *a, uint64_t *n, struct err *e)
{
    sqlite3_stmt *q;

    *n = 0;
    if (store_query(s, "SELECT count(*) FROM idle WHERE :tenant = '' OR tenant = :tenant", &q, e) != 0)
        return -1;
    store_bind(q, ":tenant", tenant);
    return store_walk(s, q, a, take_count, n, e);
}
