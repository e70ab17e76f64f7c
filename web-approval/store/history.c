/* A search through tickets. */
#include "web-approval/store/store_in.h"

#define BEFORE                                                                                                       \
    "(:after = '' OR (created_ms, id) < (SELECT created_ms, id FROM ticket WHERE id = :after)) "                     \
    "ORDER BY created_ms DESC, id DESC "

/* instr, for a person's words are no pattern. */
static const char search[] =
    "SELECT " TICKET_COLUMNS " FROM " TICKETS " WHERE ticket.rowid IN (SELECT rowid FROM ticket WHERE " BEFORE
    "LIMIT :back) AND (:state = '' OR state = :state) "
    "AND (:sandbox = '' OR instr(lower(sandbox), lower(:sandbox)) > 0) "
    "AND (:host = '' OR instr(lower(host), lower(:host)) > 0) "
    "AND (:by = '' OR instr(lower(decided_by), lower(:by)) > 0) "
    "AND (:text = '' OR instr(lower(summary || char(10) || method || ' ' || host || path || '?' || "
    "coalesce(query, '') || char(10) || op || char(10) || resource || char(10) || agent_reason || char(10) || "
    "decided_reason), lower(:text)) > 0) ORDER BY created_ms DESC, id DESC LIMIT :limit";

static int id_first(void *ctx, struct row *r)
{
    *(struct span *)ctx = row_text(r);
    return 0;
}

/* The oldest of those that are looked at, if there are older ones. */
static int last_searched(struct desk_store *s, struct span after, struct arena *a, struct span *id, struct err *e)
{
    sqlite3_stmt *q;

    *id = SPAN_NONE;
    if (store_query(s, "SELECT id FROM ticket WHERE " BEFORE "LIMIT 1 OFFSET :back", &q, e) != 0)
        return -1;
    store_bind(q, ":after", after);
    store_bind_u64(q, ":back", STORE_SEARCHED - 1);
    return store_walk(s, q, a, id_first, id, e);
}

struct found {
    desk_store_ticket_fn *fn;
    void *ctx;
    struct span last;
    size_t n;
};

static int found_one(void *ctx, const struct ticket *t)
{
    struct found *f = ctx;

    f->n++;
    f->last = t->id;
    return f->fn(f->ctx, t);
}

int desk_store_history(struct desk_store *s, const struct history_filter *f, struct arena *a,
                       desk_store_ticket_fn *fn, void *ctx, struct span *further, struct err *e)
{
    struct found found = {.fn = fn, .ctx = ctx};
    size_t limit = f->limit < STORE_ROWS_MAX ? f->limit : STORE_ROWS_MAX;
    sqlite3_stmt *q;

    if (last_searched(s, f->after, a, further, e) != 0 || store_query(s, search, &q, e) != 0)
        return -1;
    store_bind(q, ":after", f->after);
    store_bind(q, ":state", f->state);
    store_bind(q, ":sandbox", f->sandbox);
    store_bind(q, ":host", f->host);
    store_bind(q, ":by", f->by);
    store_bind(q, ":text", f->text);
    store_bind_u64(q, ":back", STORE_SEARCHED);
    store_bind_u64(q, ":limit", limit);
    if (store_tickets(s, false, q, a, found_one, &found, e) != 0)
        return -1;
    if (found.n == limit)
        *further = found.last;
    return 0;
}
