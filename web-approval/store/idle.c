/* Started sandboxes that are idle. */
#include "web-approval/store/idle.h"

#include "web-approval/store/store_in.h"

#define IDLES(reach)                                                                                                 \
    "SELECT i.name, i.tenant, i.checkpoint, i.box, i.cpu_percent, i.left_ms, i.since_ms, i.strict, s.kind, "         \
    "s.session, s.owner, s.generation, " reach " FROM idle AS i JOIN sandbox AS s ON s.name = i.name "

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

    if (store_query(s, IDLES("s.reach") "WHERE i.name = :name", &q, e) != 0)
        return -1;
    store_bind(q, ":name", name);
    return store_walk(s, q, a, take, &w, e) == 0 ? w.found : -1;
}

int desk_store_idles(struct desk_store *s, struct span tenant, struct arena *a, desk_store_idle_fn *fn, void *ctx,
                     struct err *e)
{
    struct walk w = {.fn = fn, .ctx = ctx};
    sqlite3_stmt *q;

    if (store_query(s, IDLES("''") "WHERE :tenant = '' OR i.tenant = :tenant ORDER BY i.name", &q, e) != 0)
        return -1;
    store_bind(q, ":tenant", tenant);
    return store_walk(s, q, a, take, &w, e);
}

static int take_sum(void *ctx, struct row *r)
{
    struct idle_sum *sum = ctx;

    sum->n = row_number(r);
    sum->bytes = row_number(r);
    return 1;
}

/* In JSON the words of a box are at most twice as long as here; its numbers, and what is said of it beside them, have
 * 1 KiB. What the dock knows of it is told to its tenant alone. */
#define SUM                                                                                                          \
    "SELECT count(*), coalesce(sum(1024 + 2 * length(i.box) + iif(:tenant = '', 0, coalesce((SELECT "                \
    "max(length(CAST(t.note AS BLOB))) FROM token AS t WHERE t.kind = 'access' AND t.scope = i.name), 0))), 0) "     \
    "FROM idle AS i WHERE :tenant = '' OR i.tenant = :tenant"

int desk_store_idle_sum(struct desk_store *s, struct span tenant, struct arena *a, struct idle_sum *sum,
                        struct err *e)
{
    sqlite3_stmt *q;

    *sum = (struct idle_sum){0};
    if (store_query(s, SUM, &q, e) != 0)
        return -1;
    store_bind(q, ":tenant", tenant);
    return store_walk(s, q, a, take_sum, sum, e);
}
