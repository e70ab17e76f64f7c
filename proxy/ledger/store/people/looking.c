/* Who says that they are looking at a ticket, so that two do not race. It tells others and decides nothing: a yes and
 * a no of anybody count as if it were not there. */
#include "proxy/ledger/store/people/people.h"

/* 1 somebody is, 0, -1. */
static int holder(struct store *s, struct span ticket, struct span *who, uint64_t *since)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LOOKING_GET);
    *who = SPAN_NONE;
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_int(q, 2, s->wall);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW) {
        *who = store_copy(s, db_col(q, 0));
        *since = db_col_int(q, 1);
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

static int put(struct store *s, const struct row *r, const struct store_look *l)
{
    sqlite3_stmt *q = db_stmt(&s->db, l->on ? SQL_LOOKING_PUT : SQL_LOOKING_END);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    if (l->on) {
        db_text(q, 2, l->by);
        db_int(q, 3, s->wall);
        db_int(q, 4, s->wall + STORE_LOOKING_MS);
    }
    if (db_run(&s->db, q) != 0 || (q = db_stmt(&s->db, SQL_LOOKING_PRUNE)) == NULL)
        return -1;
    db_int(q, 1, s->wall);
    return db_run(&s->db, q);
}

static int write_down(struct store *s, const struct row *r, const struct store_look *l, struct span from)
{
    struct audit a;
    struct wire_ticket_state st;
    audit_begin(&a, s, l->on ? "ticket-claimed" : "ticket-unclaimed", NULL, NULL, r->id);
    jsonw_kv(&a.w, "by", l->by);
    jsonw_kv(&a.w, "channel", l->channel);
    if (from.n)
        jsonw_kv(&a.w, "from", from);
    if (audit_end(&a) != 0)
        return -1;
    row_state(r, &st);
    if (s->c.changed != NULL)
        s->c.changed(s->c.arg, CHANGE_ASKER, s->now.seq, &st, NULL);
    return 0;
}

/* Of an open ticket. who: whose it was until now, or is. */
static enum looked look(struct store *s, const struct row *r, const struct store_look *l, struct span *who)
{
    uint64_t since = 0;
    int held = holder(s, r->id, who, &since);
    if (held < 0)
        return LOOKED_STORE;
    bool own = held == 1 && span_eq(*who, l->by);
    if (held == 0 && !l->on)
        return LOOKED_NOBODY;
    if (held == 1 && !own && !(l->on && l->over))
        return LOOKED_OTHER;
    if (own && l->on && since + STORE_LOOKING_AGAIN_MS > s->wall)
        return LOOKED_DONE; /* said a moment ago: pressing it again writes nothing */
    if (put(s, r, l) != 0 || write_down(s, r, l, own ? SPAN_NONE : *who) != 0)
        return LOOKED_STORE;
    return LOOKED_DONE;
}

int store_look(struct store *s, const struct id *ticket, const struct store_look *l, enum looked *result,
               struct span *who)
{
    struct row r;
    *result = LOOKED_STORE;
    *who = SPAN_NONE;
    int got = row_begin(s, ticket, &r);
    if (got < 0)
        return -1;
    if (got == 0)
        *result = LOOKED_NO_TICKET;
    else if (r.state != TICKET_PENDING || row_overdue(s, &r) || l->by.n == 0)
        *result = LOOKED_NOT_PENDING;
    else
        *result = look(s, &r, l, who);
    return *result == LOOKED_STORE ? -1 : 0;
}
