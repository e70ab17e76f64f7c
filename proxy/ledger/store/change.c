/* The one way a ticket changes: compare and set, audit record, word to the judge and the desk. */
#include "common/log.h"
#include "proxy/ledger/store/askers/later.h"
#include "proxy/ledger/store/people/people.h"
#include "proxy/ledger/store/tell/tell.h"

int ticket_told(struct store *s, const struct row *r)
{
    struct wire_ticket_state st;
    row_state(r, &st);
    log_exchange(LOG_INFO, span_eq(r->boot, span_str(s->boot)) ? r->xid : 0, "ticket %.*s is %s", SPAN_FMT(r->id),
                 ticket_state_name(r->state));
    if (s->c.changed != NULL)
        s->c.changed(s->c.arg, CHANGE_TICKET, s->now.seq, &st, NULL);
    return tell_ticket(s, r);
}

/* Denied, cancelled and expired are ends; approved is not. */
static bool ends(enum ticket_state t)
{
    return t != TICKET_PENDING && t != TICKET_APPROVED && t != TICKET_EXECUTING;
}

/* How whoever decided had signed in, what they were shown, and who had agreed. */
static void decided_by(struct store *s, const struct row *r, struct jsonw *w)
{
    static const struct digest none;
    char hex[2 * DIGEST_BYTES + 1];
    if (r->decision->instead_of.n)
        jsonw_kv(w, "for", r->decision->instead_of);
    if (r->decision->how.n)
        jsonw_kv(w, "how", r->decision->how);
    if (memcmp(&r->decision->facts, &none, sizeof(none)) != 0) {
        hex_text(span_of(r->decision->facts.b, DIGEST_BYTES), hex);
        jsonw_kv(w, "shown", span_str(hex));
    }
    jsonw_kv_bool(w, "passkey", r->decision->passkey.n > 0);
    if (r->decision->what == DECIDE_APPROVE)
        votes_json(s, r, w);
}

int ticket_decide(struct store *s, struct row *r, enum ticket_state to, struct span by, struct span channel,
                  struct span reason)
{
    struct audit a;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_DECIDE);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    db_text(q, 2, span_str(ticket_state_name(r->state)));
    db_text(q, 3, span_str(ticket_state_name(to)));
    db_int(q, 4, s->wall);
    db_text(q, 5, by);
    db_text(q, 6, channel);
    db_text(q, 7, reason);
    if (ends(to))
        db_int(q, 8, s->wall);
    if (db_run(&s->db, q) != 0)
        return -1;
    if (db_changes(&s->db) != 1)
        return db_doom(&s->db, "a ticket changed under the ledger's hands; is there a second writer?");
    bool counts = r->decision != NULL && r->state == TICKET_PENDING && to != TICKET_CANCELLED;
    if (counts && tally_add(s, r, to == TICKET_APPROVED) != 0)
        return -1;
    if (ends(to) && (reserve_free_ticket(s, r->id) != 0 || asker_over(s, r->id) != 0 || later_over(s, r->id) != 0))
        return -1;
    r->state = to;
    r->by = by;
    r->channel = channel;
    r->reason = reason;
    r->decided_ms = s->wall;
    audit_begin(&a, s, to == TICKET_EXPIRED ? "ticket-expired" : "ticket-decided", NULL, NULL, r->id);
    jsonw_kv(&a.w, "state", span_str(ticket_state_name(to)));
    jsonw_kv(&a.w, "by", by);
    jsonw_kv(&a.w, "channel", channel);
    jsonw_kv(&a.w, "reason", reason);
    if (r->grant.n)
        jsonw_kv(&a.w, "grant", r->grant);
    if (r->decision != NULL)
        decided_by(s, r, &a.w);
    audit_record(&a, &r->record);
    return audit_end(&a) == 0 ? ticket_told(s, r) : -1;
}

int ticket_expire(struct store *s, struct row *r)
{
    return ticket_decide(s, r, TICKET_EXPIRED, SPAN("time"), SPAN_NONE,
                         r->state == TICKET_APPROVED ? SPAN("approved, but not used in time")
                                                     : SPAN("nobody decided in time"));
}

int ticket_keeps_terms(struct store *s, struct row *r, const struct digest *terms)
{
    bool open = r->state == TICKET_PENDING || r->state == TICKET_APPROVED;
    if (!open || memcmp(&r->terms, terms, sizeof(*terms)) == 0)
        return 1;
    return ticket_decide(s, r, TICKET_CANCELLED, SPAN("policy"), SPAN_NONE, span_str(TICKET_OTHER_TERMS));
}

int ticket_end(struct store *s, struct row *r, enum ticket_state to, const struct store_outcome *o)
{
    int back = to == TICKET_FAILED ? later_back(s, r, o != NULL && o->untold) : 0;
    sqlite3_stmt *q = back == 0 ? db_stmt(&s->db, SQL_TICKET_END) : NULL;
    if (q == NULL)
        return back == 1 ? 1 : -1;
    db_text(q, 1, r->id);
    db_text(q, 2, span_str(ticket_state_name(to)));
    db_int(q, 3, s->wall);
    if (o != NULL) {
        db_int(q, 4, o->status);
        db_int(q, 5, o->out);
        db_int(q, 6, o->in);
        db_int(q, 7, o->delivered);
    }
    db_text(q, 8, r->boot);
    db_int(q, 9, r->xid);
    if (db_run(&s->db, q) != 0)
        return -1;
    if (db_changes(&s->db) != 1)
        return 0;
    if (asker_over(s, r->id) != 0 || later_over(s, r->id) != 0 ||
        (to == TICKET_FAILED && reserve_free_ticket(s, r->id) != 0))
        return -1;
    r->state = to;
    return 1;
}
