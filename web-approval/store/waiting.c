/* What waits, a few of each sandbox: one that floods hides nothing of the others. */
#include "web-approval/store/store_in.h"

/* Of each the first that were asked, in one way through all that wait (STORE_OPEN_MAX of the ledger), which the index
 * has by sandbox. */
static const char waiting[] =
    "SELECT " TICKET_COLUMNS " FROM " TICKETS " WHERE ticket.rowid IN (SELECT at FROM (SELECT rowid AS at, "
    "row_number() OVER (PARTITION BY sandbox ORDER BY rowid) AS nth FROM ticket INDEXED BY ticket_sandbox_open "
    "WHERE state = 'pending') WHERE nth <= :each) LIMIT :limit";

int desk_store_waiting(struct desk_store *s, size_t each, size_t limit, struct arena *a, desk_store_ticket_fn *fn,
                       void *ctx, struct err *e)
{
    sqlite3_stmt *q;

    if (store_query(s, waiting, &q, e) != 0)
        return -1;
    store_bind_u64(q, ":each", each);
    store_bind_u64(q, ":limit", limit < STORE_ROWS_MAX ? limit : STORE_ROWS_MAX);
    return store_tickets(s, q, a, fn, ctx, e);
}

static int first_number(void *ctx, struct row *r)
{
    *(uint64_t *)ctx = row_number(r);
    return 0;
}

int desk_store_pending_of(struct desk_store *s, struct span sandbox, struct arena *a, uint64_t *n, struct err *e)
{
    sqlite3_stmt *q;

    *n = 0;
    if (store_query(s, "SELECT count(*) FROM ticket WHERE state = 'pending' AND sandbox = :sandbox", &q, e) != 0)
        return -1;
    store_bind(q, ":sandbox", sandbox);
    return store_walk(s, q, a, first_number, n, e);
}
