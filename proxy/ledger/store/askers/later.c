/* What the gateway sends itself once it is approved: which tickets those are, and when the judge is told of them. */
#include "proxy/ledger/store/askers/later.h"

#include "common/crypto/seal.h"
#include "proxy/words.h"

/* Sealed, an answer that cannot be given again: the length of its head, which is none (answer_keep). */
enum { TRIES_DOUBLE = 6, ANSWER_NOTHING = SEAL_EXTRA + 4 };

/* 5 s, 10 s, ... 320 s */
static uint64_t wait_after(uint64_t times)
{
    return (uint64_t)STORE_LATER_MS << (times < TRIES_DOUBLE ? times : TRIES_DOUBLE);
}

int later_ask(struct store *s, struct span ticket, const struct wire_later *l)
{
    sqlite3_stmt *q = l->asked ? db_stmt(&s->db, SQL_LATER_ADD) : NULL;
    if (q == NULL)
        return l->asked ? -1 : 0;
    db_text(q, 1, ticket);
    if (!id_is_none(&l->lease))
        db_blob(q, 2, span_of(l->lease.b, ID_BYTES));
    db_blob(q, 3, l->narrowed);
    return db_run(&s->db, q);
}

/* What it asked for is from now on what anybody of its session may ask for again, and nothing leaves by itself. */
int later_end_sandbox(struct store *s, struct span sandbox, struct span session)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LATER_OF_SANDBOX);
    if (q == NULL)
        return -1;
    db_text(q, 1, sandbox);
    db_text(q, 2, session);
    return db_run(&s->db, q);
}

int later_over(struct store *s, struct span ticket)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LATER_OVER);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    return db_run(&s->db, q);
}

int later_all_again(struct store *s)
{
    return db_run(&s->db, db_stmt(&s->db, SQL_LATER_ALL_AGAIN));
}

struct times {
    uint64_t tries, told;
};

/* 1, 0 it is none, -1. */
static int later_find(struct store *s, struct span ticket, struct wire_later *l, struct times *n)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LATER_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    enum db_result got = db_step(&s->db, q);
    *l = (struct wire_later){.asked = got == DB_ROW};
    *n = (struct times){0, 0};
    if (got == DB_ROW) {
        struct span lease = db_col(q, 0);
        if (lease.n == ID_BYTES)
            memcpy(l->lease.b, lease.p, ID_BYTES);
        l->narrowed = store_copy(s, db_col(q, 1));
        *n = (struct times){db_col_int(q, 2), db_col_int(q, 3)};
    }
    sqlite3_reset(q);
    return got == DB_FAIL || s->db.doomed ? -1 : got == DB_ROW;
}

static int set_next(struct store *s, struct span ticket, const struct times *n, uint64_t wait_ms)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LATER_NEXT);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_int(q, 2, n->tries);
    db_int(q, 3, n->told);
    db_int(q, 4, s->uptime + wait_ms);
    return db_run(&s->db, q);
}

/* What it had taken of limits counts from when it is sent, which is later now. */
static int reserve_back(struct store *s, struct span ticket)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RESERVED_BACK);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    return db_run(&s->db, q);
}

int later_back(struct store *s, struct row *r, bool untold)
{
    struct wire_later l;
    struct times n;
    int got = later_find(s, r->id, &l, &n);
    if (got <= 0 || r->state != TICKET_EXECUTING || row_overdue(s, r))
        return got < 0 ? -1 : 0;
    /* A client that waited was told that nothing was sent; and what a grant let through asks the grant again. */
    if ((r->xid >> XID_FRONT_SHIFT < XID_LATER && !untold) || span_eq(r->channel, SPAN("grant")))
        return 0;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_BACK);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    db_text(q, 2, r->boot);
    db_int(q, 3, r->xid);
    if (db_run(&s->db, q) != 0)
        return -1;
    if (db_changes(&s->db) != 1)
        return 0;
    if (reserve_back(s, r->id) != 0 || set_next(s, r->id, &(struct times){n.tries + 1, 0}, wait_after(n.tries)) != 0)
        return -1;
    r->state = TICKET_APPROVED;
    return 1;
}

int store_later_next(struct store *s, struct id *ticket)
{
    sqlite3_stmt *q = store_begin(s) == 0 ? db_stmt(&s->db, SQL_LATER_DUE) : NULL;
    if (q == NULL)
        return -1;
    db_int(q, 1, s->uptime);
    db_int(q, 2, LATER_SENT_MAX);
    db_int(q, 3, LATER_SENT_EACH);
    enum db_result got = db_step(&s->db, q);
    bool found = got == DB_ROW && id_parse(db_col(q, 0), ticket) == 0;
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : found;
}

int store_later(struct store *s, const struct id *ticket, struct wire_review *r, struct wire_later *l,
                struct store_bytes *request)
{
    char text[ID_TEXT + 1];
    struct times n;
    id_text(ticket, text);
    int got = store_review(s, ticket, r, request),
        known = got < 0 ? -1 : later_find(s, span_of(text, ID_TEXT), l, &n);
    if (known < 0)
        return -1;
    /* The judge takes it now, or cannot: each time it is told, its body is opened, so that it is told ever less
     * often. */
    uint64_t wait = wait_after(n.told++);
    if (set_next(s, span_of(text, ID_TEXT), &n, wait) != 0)
        return -1;
    return got == 1 ? known : got;
}

/* How an answer that was kept may still be had. */
static int answer_left(struct store *s, struct span ticket, uint64_t *until_ms)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_ANSWER_UNTIL);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_int(q, 2, s->wall);
    db_int(q, 3, s->uptime);
    db_int(q, 4, ANSWER_NOTHING);
    enum db_result got = db_step(&s->db, q);
    *until_ms = got == DB_ROW ? db_col_int(q, 0) : 0;
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : 0;
}

/* It has been had: the same request is from now on another one. It stays to be asked for again until its time. */
static int collected(struct store *s, const struct row *r)
{
    struct audit a;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_TAKEN);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    if (db_run(&s->db, q) != 0)
        return -1;
    if (db_changes(&s->db) == 0)
        return 0;
    audit_begin(&a, s, "answer-collected", NULL, NULL, r->id);
    return audit_end(&a);
}

int store_asked(struct store *s, const struct id *ticket, struct span session, bool answer, struct store_asked *out,
                struct store_bytes *kept)
{
    struct row r;
    struct wire_later l;
    struct times n;
    *out = (struct store_asked){.known = false};
    int got = row_begin(s, ticket, &r);
    if (got <= 0 || !span_eq(r.session, session)) /* somebody else's looks the same as none */
        return got < 0 ? -1 : 0;
    out->known = true;
    row_state(&r, &out->state);
    if (later_find(s, r.id, &l, &n) < 0 || answer_left(s, r.id, &out->until_ms) != 0)
        return -1;
    out->later = l.asked;
    out->tries = n.tries;
    if (r.state != TICKET_DONE || out->until_ms == 0 || !answer)
        return 0;
    if (answer_fetch(s, r.id, kept) < 0)
        return -1;
    out->state.has_answer = kept->head.n > 0;
    if (!out->state.has_answer)
        out->until_ms = 0;
    return out->state.has_answer ? collected(s, &r) : 0;
}
