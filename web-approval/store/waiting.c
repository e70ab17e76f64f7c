/* What waits, some of each sandbox: one that floods hides nothing of the others. */
#include "web-approval/store/store_in.h"

/* One way through the index, which has all that wait (STORE_OPEN_MAX of the ledger) by sandbox. */
#define BY_SANDBOX                                                                                                   \
    "FROM ticket INDEXED BY ticket_sandbox_open WHERE state = 'pending' GROUP BY sandbox ORDER BY min(rowid)"

static int box(void *ctx, struct row *r)
{
    struct desk_waits *w = ctx;

    if (w->n < STORE_ROWS_MAX)
        w->box[w->n++] = (struct desk_waits_box){.sandbox = row_text(r), .waiting = row_number(r)};
    return w->n == STORE_ROWS_MAX;
}

/* The most of each that is no more than limit of all: those that have fewer leave their part to the others. */
static size_t share(const struct desk_waits *w, size_t each, size_t limit)
{
    for (size_t k = each; k > 1; k--) {
        size_t all = 0;
        for (size_t i = 0; i < w->n; i++)
            all += w->box[i].waiting < k ? w->box[i].waiting : k;
        if (all <= limit)
            return k;
    }
    return 1;
}

int desk_store_waiting(struct desk_store *s, size_t each, size_t limit, struct arena *a, struct desk_waits *w,
                       desk_store_ticket_fn *fn, void *ctx, struct err *e)
{
    sqlite3_stmt *q;

    w->n = 0;
    if (store_query(s, "SELECT sandbox, count(*) " BY_SANDBOX, &q, e) != 0 || store_walk(s, q, a, box, w, e) != 0)
        return -1;
    if (store_query(s,
                    "SELECT " TICKET_COLUMNS " FROM (SELECT sandbox AS box " BY_SANDBOX
                    " LIMIT :limit) CROSS JOIN " TICKETS
                    " WHERE ticket.rowid IN (SELECT t.rowid FROM ticket t INDEXED BY ticket_sandbox_open WHERE "
                    "t.state = 'pending' AND t.sandbox = box ORDER BY t.rowid LIMIT :each) LIMIT :limit",
                    &q, e) != 0)
        return -1;
    store_bind_u64(q, ":each", share(w, each, limit));
    store_bind_u64(q, ":limit", limit < STORE_ROWS_MAX ? limit : STORE_ROWS_MAX);
    return store_tickets(s, q, a, fn, ctx, e);
}
