/* Nobody has decided for a while: who is asked as well, as the rule that holds it says. It widens who may approve,
 * and nothing of what a yes needs: how many, whose own it is and passkeys are as before (votes.c). */
#include "proxy/ledger/store/people/people.h"
#include "proxy/ledger/store/tell/tell.h"

int escalate_set(struct store *s, struct span ticket, const struct wire_escalate *e)
{
    for (size_t i = 0; i < e->n; i++) {
        sqlite3_stmt *q = db_stmt(&s->db, SQL_ESCALATE_ADD);
        if (q == NULL)
            return -1;
        db_text(q, 1, ticket);
        db_text(q, 2, e->step[i].to);
        db_int(q, 3, e->step[i].after_ms);
        db_int(q, 4, s->wall + e->step[i].after_ms);
        db_int(q, 5, s->uptime + e->step[i].after_ms);
        if (db_run(&s->db, q) != 0)
            return -1;
    }
    return 0;
}

struct due {
    struct span ticket, entry;
    uint64_t after_ms;
    bool waits;
};

/* By CLOCK_BOOTTIME alone: a wall clock that jumps makes nobody an approver. 1, 0 none is due, -1. */
static int next_due(struct store *s, struct due *d)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_ESCALATE_DUE);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->uptime);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW)
        *d = (struct due){store_copy(s, db_col(q, 0)), store_copy(s, db_col(q, 1)), db_col_int(q, 2),
                          db_col_int(q, 3) != 0};
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

static int widen(struct store *s, const struct due *d)
{
    struct audit a;
    struct row r;
    struct wire_ticket_state st;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_ESCALATE_SINCE);
    if (q == NULL || row_find(s, d->ticket, &r) != 1)
        return -1;
    db_text(q, 1, d->ticket);
    db_text(q, 2, d->entry);
    db_int(q, 3, s->wall);
    if (db_run(&s->db, q) != 0)
        return -1;
    audit_begin(&a, s, "ticket-escalated", NULL, NULL, d->ticket);
    jsonw_kv(&a.w, "to", d->entry);
    jsonw_kv_u64(&a.w, "after_ms", d->after_ms);
    if (audit_end(&a) != 0)
        return -1;
    row_state(&r, &st);
    if (s->c.changed != NULL)
        s->c.changed(s->c.arg, CHANGE_ASKER, s->now.seq, &st, NULL);
    return tell_escalated(s, &r, d->entry);
}

/* What was decided before it was due is never. */
static int forget(struct store *s, struct span ticket)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_ESCALATE_DROP);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    return db_run(&s->db, q);
}

int escalate_tick(struct store *s)
{
    enum { AT_ONCE = 64 };
    struct due d;
    int got = 1;
    for (size_t i = 0; i < AT_ONCE && (got = next_due(s, &d)) == 1; i++) {
        char ticket[ID_TEXT], entry[256];
        if (d.ticket.n != ID_TEXT || d.entry.n > sizeof(entry))
            return db_doom(&s->db, "an escalation in the store is damaged");
        memcpy(ticket, d.ticket.p, ID_TEXT); /* store_begin forgets what was read */
        memcpy(entry, d.entry.p, d.entry.n);
        d.ticket = span_of(ticket, ID_TEXT);
        d.entry = span_of(entry, d.entry.n);
        if (store_begin(s) != 0 || (d.waits ? widen(s, &d) : forget(s, d.ticket)) != 0)
            return -1;
    }
    return got < 0 ? -1 : 0;
}

int escalate_new_boot(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_ESCALATE_NEW_BOOT);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall < s->last_ms ? s->wall : s->last_ms);
    db_int(q, 2, s->uptime);
    return db_run(&s->db, q);
}
