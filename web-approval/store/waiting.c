/* What waits, some of each sandbox: one that floods hides nothing of the others; and what was decided lately. */
#include "common/json/json.h"
#include "web-approval/store/store_in.h"

enum { BOXES_TEXT = 1024 * 1024 }; /* far more than STORE_ROWS_MAX names */

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

/* The sandboxes as one parameter: their rows are asked for in one go. */
static struct span boxes(const struct desk_waits *w, size_t limit, struct arena *a)
{
    struct dynbuf out;
    struct jsonw json;

    dynbuf_init(&out, BOXES_TEXT);
    jsonw_begin(&json, &out);
    jsonw_array(&json);
    for (size_t i = 0; i < w->n && i < limit; i++)
        jsonw_string(&json, w->box[i].sandbox);
    jsonw_end_array(&json);
    struct span all = out.failed ? SPAN_NONE : arena_copy(a, dynbuf_span(&out));
    dynbuf_free(&out);
    return all;
}

int desk_store_waiting(struct desk_store *s, size_t each, size_t limit, struct arena *a, struct desk_waits *w,
                       desk_store_ticket_fn *fn, void *ctx, struct err *e)
{
    sqlite3_stmt *q;

    w->n = 0;
    if (store_query(s, "SELECT sandbox, count(*) " BY_SANDBOX, &q, e) != 0 || store_walk(s, q, a, box, w, e) != 0)
        return -1;
    struct span all = boxes(w, limit, a);
    if (!all.p)
        return err_set(e, "there is no memory for the names of what waits");
    if (store_query(s,
                    "SELECT " TICKET_LISTED " FROM (SELECT value AS box FROM json_each(:boxes)) CROSS JOIN " TICKETS
                    " WHERE ticket.rowid IN (SELECT t.rowid FROM ticket t INDEXED BY ticket_sandbox_open WHERE "
                    "t.state = 'pending' AND t.sandbox = box ORDER BY t.rowid LIMIT :each) LIMIT :limit",
                    &q, e) != 0)
        return -1;
    store_bind(q, ":boxes", all);
    store_bind_u64(q, ":each", share(w, each, limit));
    store_bind_u64(q, ":limit", limit < STORE_ROWS_MAX ? limit : STORE_ROWS_MAX);
    return store_tickets(s, true, q, a, fn, ctx, e);
}

/* Of each state the newest, and of those the newest: however many wait, they are not walked through. */
int desk_store_lately(struct desk_store *s, size_t limit, struct arena *a, desk_store_ticket_fn *fn, void *ctx,
                      struct err *e)
{
    sqlite3_stmt *q;

    if (store_query(
            s,
            "SELECT " TICKET_COLUMNS " FROM " TICKETS
            " WHERE ticket.rowid IN (SELECT t.rowid FROM (SELECT column1 AS is_now FROM (VALUES ('approved'), "
            "('denied'), ('expired'), ('cancelled'), ('executing'), ('done'), ('failed'), ('unknown'))) "
            "CROSS JOIN ticket t WHERE t.rowid IN (SELECT o.rowid FROM ticket o INDEXED BY ticket_state "
            "WHERE o.state = is_now ORDER BY o.created_ms DESC LIMIT :limit) "
            "ORDER BY t.created_ms DESC, t.id DESC LIMIT :limit) ORDER BY created_ms DESC, id DESC",
            &q, e) != 0)
        return -1;
    store_bind_u64(q, ":limit", limit < STORE_ROWS_MAX ? limit : STORE_ROWS_MAX);
    return store_tickets(s, false, q, a, fn, ctx, e);
}
