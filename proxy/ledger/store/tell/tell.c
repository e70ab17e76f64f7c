/* Telling people outside the page: an outbox in the same transaction as what it tells of. */
#include "proxy/ledger/store/tell/tell.h"

#include <stdio.h>

#include "common/log.h"
#include "proxy/ledger/store/tell/tell_body.h"

enum { MINUTE_MS = 60 * 1000 };
#define DAY_MS (24ull * 3600 * 1000)

/* ---- who is told of what ---- */

static bool wants(const struct wire_tell_target *t, uint32_t event, struct span tenant, bool of_all)
{
    bool whose = t->ntenants == 0 || of_all;
    for (size_t i = 0; i < t->ntenants; i++)
        whose |= span_eq(t->tenant[i], tenant);
    return whose && (t->events & event) != 0;
}

/* 1: it may go by itself, 0: one more of many, -1. What others send fills its part; a sandbox that was not heard of
 * has one place kept in another, so that a few noisy ones hide no neighbour's first word. What an operator does is
 * hidden behind no sandbox's flood, and by no tests. */
static int room_for(struct store *s, const struct wire_tell_target *t, struct span sandbox, bool test)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TELL_ROOM);
    if (q == NULL)
        return -1;
    db_text(q, 1, t->name);
    db_int(q, 2, s->wall > MINUTE_MS ? s->wall - MINUTE_MS : 0);
    db_int(q, 3, s->wall);
    db_text(q, 4, sandbox);
    db_int(q, 5, test);
    int room = -1;
    if (db_step(&s->db, q) == DB_ROW) {
        uint64_t all = db_col_int(q, 0), own = db_col_int(q, 1), due = db_col_int(q, 2), own_due = db_col_int(q, 3);
        if (sandbox.n == 0)
            room = own < TELL_SANDBOX_MINUTE && own_due < TELL_QUEUE;
        else
            room = own < TELL_SANDBOX_MINUTE && all < TELL_MINUTE + (own == 0 ? TELL_FIRST : 0) &&
                   due < TELL_QUEUE + (own_due == 0 ? TELL_FIRST : 0);
    }
    sqlite3_reset(q);
    return room;
}

/* Of what asks people for something: 1 it may go by itself, 0 what this hour has room for is used up, -1. One sandbox
 * has half of it at most, and one that was not heard of has a place past it, as in room_for. What nobody has decided
 * for long has a budget of its own: new requests do not hide it. What is past it waits as before, and is told of with
 * the others. */
static int in_budget(struct store *s, const struct wire_tell_target *t, struct span event, struct span sandbox)
{
    sqlite3_stmt *q = t->budget ? db_stmt(&s->db, SQL_TELL_PROMPTS) : NULL;
    if (q == NULL)
        return t->budget ? -1 : 1;
    db_text(q, 1, t->name);
    db_int(q, 2, s->wall > TELL_BUDGET_MS ? s->wall - TELL_BUDGET_MS : 0);
    db_int(q, 3, s->wall);
    db_text(q, 4, sandbox);
    db_text(q, 5, event);
    int room = -1;
    if (db_step(&s->db, q) == DB_ROW) {
        uint64_t all = db_col_int(q, 0), own = db_col_int(q, 1);
        room = all < t->budget + (own == 0 ? TELL_FIRST : 0) && own < (t->budget + 1) / 2;
    }
    sqlite3_reset(q);
    return room;
}

static int insert(struct store *s, const struct wire_tell_target *t, struct span event, struct span ticket,
                  struct span sandbox, struct span title, struct span body, uint64_t after_ms)
{
    char text[8 + ID_TEXT + 1] = "msg_";
    bool many = body.n == 0;
    struct id id;
    sqlite3_stmt *q = id_new(&id) == 0 ? db_stmt(&s->db, SQL_TELL_ADD) : NULL;
    if (q == NULL)
        return db_doom(&s->db, "a message to people cannot be written down");
    id_text(&id, text + 4);
    db_text(q, 1, span_str(text));
    db_text(q, 2, t->name);
    db_blob(q, 3, span_of(t->of.b, DIGEST_BYTES));
    db_text(q, 4, event);
    db_text(q, 5, ticket);
    db_text(q, 6, sandbox);
    db_text(q, 7, title);
    db_text(q, 8, body);
    db_int(q, 9, many);
    db_int(q, 10, s->wall);
    db_int(q, 11, s->wall + after_ms);
    return db_run(&s->db, q);
}

/* The sooner of when it was due and when this one is. */
static int one_more(struct store *s, const struct wire_tell_target *t, uint64_t after_ms)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TELL_MORE);
    if (q == NULL)
        return -1;
    db_text(q, 1, t->name);
    db_blob(q, 2, span_of(t->of.b, DIGEST_BYTES));
    db_int(q, 3, s->wall + after_ms);
    if (db_run(&s->db, q) != 0)
        return -1;
    return db_changes(&s->db) > 0 ? 0
                                  : insert(s, t, SPAN("many"), SPAN_NONE, SPAN_NONE, SPAN_NONE, SPAN_NONE, after_ms);
}

static int put(struct store *s, const struct wire_tell_target *t, const struct tell_facts *f)
{
    struct dynbuf title, body;
    int room = room_for(s, t, f->sandbox, span_eq(span_str(f->event), SPAN("test"))), bad = 0;
    int asks = room == 1 && f->waits ? in_budget(s, t, span_str(f->event), f->sandbox) : 1;
    if (room < 0 || asks < 0)
        return -1;
    if (room == 0 || asks == 0)
        return one_more(s, t, room == 0 ? TELL_MANY_MS : TELL_DIGEST_MS);
    if (tell_write(t->kind, t->buttons, f, &title, &body) == 0)
        bad = insert(s, t, span_str(f->event), f->ticket, f->sandbox, dynbuf_span(&title), dynbuf_span(&body), 0);
    else
        log_error("a message to %.*s cannot be written: it is too long, or there is no memory", SPAN_FMT(t->name));
    dynbuf_free(&title);
    dynbuf_free(&body);
    return bad;
}

/* ---- what there is to tell ---- */

static const struct news {
    uint32_t event; /* any of these */
    const char *name, *words;
} news[] = {
    [TICKET_PENDING] = {TELL_WAITING, "ticket.waiting", "A request waits for a decision"},
    [TICKET_APPROVED] = {TELL_DECIDED, "ticket.approved", "A request was approved"},
    [TICKET_DENIED] = {TELL_DECIDED, "ticket.denied", "A request was denied"},
    [TICKET_EXPIRED] = {TELL_EXPIRED, "ticket.expired", "A request expired undecided"},
    [TICKET_CANCELLED] = {TELL_CANCELLED, "ticket.cancelled", "A request was cancelled"},
    [TICKET_DONE] = {TELL_EXECUTED, "ticket.executed", "An approved request was sent and answered"},
    [TICKET_FAILED] = {TELL_FAILED, "ticket.failed", "An approved request was not sent"},
    [TICKET_UNKNOWN] = {TELL_UNKNOWN, "ticket.unknown", "Nobody knows whether an approved request had its effect"},
};

/* One that goes back to be sent once more was approved before, and one by a grant nobody is asked about. */
static const struct news *news_of(const struct store *s, const struct row *r)
{
    bool known = (size_t)r->state < sizeof(news) / sizeof(news[0]) && news[r->state].name != NULL;
    bool again = r->state == TICKET_APPROVED && (r->grant.n > 0 || r->decided_ms != s->wall);
    return known && !again ? &news[r->state] : NULL;
}

static int tenant_of(struct store *s, struct span ticket, struct span *tenant)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TELL_FACTS);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    int got = db_step(&s->db, q) == DB_ROW ? 0 : -1;
    if (got == 0)
        *tenant = store_copy(s, db_col(q, 0));
    sqlite3_reset(q);
    return got;
}

static int tell_of(struct store *s, const struct row *r, const struct news *n, struct span to)
{
    const struct tell_targets *all = s->c.tell;
    struct span tenant = SPAN_NONE;
    uint32_t anybody = 0;
    for (size_t i = 0; all != NULL && i < all->n; i++)
        anybody |= all->target[i].events;
    if (n == NULL || (anybody & n->event) == 0)
        return 0;
    if (tenant_of(s, r->id, &tenant) != 0)
        return -1;
    struct tell_facts f = {.event = n->name,
                           .words = n->words,
                           .desk = all->desk,
                           .at_ms = s->wall,
                           .ticket = r->id,
                           .state = span_str(ticket_state_name(r->state)),
                           .sandbox = r->sandbox,
                           .tenant = tenant,
                           .op = r->record.op,
                           .effect = r->record.effect,
                           .method = r->record.method,
                           .host = r->host,
                           .resource = r->record.resource,
                           .by = n->event == TELL_DECIDED ? r->by : SPAN_NONE,
                           .asked = to,
                           .waits = (n->event & TELL_WAITING) != 0,
                           .port = r->port,
                           .since_ms = r->created_ms,
                           .expires_ms = r->state == TICKET_PENDING ? r->expires_ms : 0};
    for (size_t i = 0; i < all->n; i++)
        if (wants(&all->target[i], n->event, tenant, false) && put(s, &all->target[i], &f) != 0)
            return -1;
    return 0;
}

int tell_ticket(struct store *s, const struct row *r)
{
    return tell_of(s, r, news_of(s, r), SPAN_NONE);
}

int tell_escalated(struct store *s, const struct row *r, struct span to)
{
    static const struct news still = {TELL_WAITING | TELL_ESCALATED, "ticket.escalated",
                                      "Nobody has decided yet, and others are asked as well"};
    return tell_of(s, r, &still, to);
}

int tell_frozen(struct store *s, bool on, struct span by)
{
    const struct tell_targets *all = s->c.tell;
    struct tell_facts f = {.event = on ? "writes.frozen" : "writes.thawed",
                           .words = on ? "No write leaves: an operator froze them" : "Writes go on",
                           .at_ms = s->wall,
                           .by = by};
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        f.desk = all->desk;
        if (wants(&all->target[i], TELL_FROZEN, SPAN_NONE, true) && put(s, &all->target[i], &f) != 0)
            return -1;
    }
    return 0;
}

int store_tell_test(struct store *s, struct span name, struct span by, const char **why)
{
    const struct tell_targets *all = s->c.tell;
    struct tell_facts f = {.event = "test", .words = "A test: somebody wants to know whether this arrives", .by = by};
    *why = "nobody of that name is told";
    if (store_begin(s) != 0)
        return -1;
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        if (!span_eq(all->target[i].name, name))
            continue;
        int room = room_for(s, &all->target[i], SPAN_NONE, true);
        *why = room == 0 ? "it was told too much in the last minute; try again in a minute" : NULL;
        f.desk = all->desk;
        f.at_ms = s->wall;
        return room < 0 ? -1 : room == 0 ? 0 : put(s, &all->target[i], &f);
    }
    return 0;
}

/* ---- what is due ---- */

/* Of those alone of whom the target may hear. */
static int who_waits(struct store *s, const struct wire_tell_target *t, struct tell_facts *f)
{
    enum db_result got;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TELL_WAITING);
    if (q == NULL)
        return -1;
    while ((got = db_step(&s->db, q)) == DB_ROW) {
        if (!wants(t, t->events, db_col(q, 1), false))
            continue;
        f->waiting += db_col_int(q, 2);
        if (f->nwhose == TELL_WHOSE_MAX)
            continue;
        f->whose[f->nwhose].sandbox = store_copy(s, db_col(q, 0));
        f->whose[f->nwhose++].n = db_col_int(q, 2);
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : 0;
}

/* From its first try on it says the same each time. */
static int write_many(struct store *s, const struct wire_tell_target *t, uint64_t count, uint64_t at_ms,
                      struct store_tell *out)
{
    struct dynbuf title, body;
    struct tell_facts f = {.event = "tickets.many",
                           .words = "Many requests at once",
                           .desk = s->c.tell->desk,
                           .at_ms = s->wall,
                           .since_ms = at_ms,
                           .count = count};
    sqlite3_stmt *q;
    int bad = who_waits(s, t, &f);
    if (bad != 0)
        return -1;
    bad = tell_write(t->kind, t->buttons, &f, &title, &body);
    if (bad == 0) {
        out->title = store_copy(s, dynbuf_span(&title));
        out->body = store_copy(s, dynbuf_span(&body));
    }
    dynbuf_free(&title);
    dynbuf_free(&body);
    if (bad != 0 || (q = db_stmt(&s->db, SQL_TELL_BODY)) == NULL)
        return db_doom(&s->db, "a message to people cannot be written");
    db_text(q, 1, out->id);
    db_text(q, 2, out->title);
    db_text(q, 3, out->body);
    return db_run(&s->db, q);
}

int store_tell_next(struct store *s, const struct wire_tell_target *t, struct store_tell *out)
{
    sqlite3_stmt *q = store_begin(s) == 0 ? db_stmt(&s->db, SQL_TELL_DUE) : NULL;
    uint64_t count = 0, at_ms = 0;
    if (q == NULL)
        return -1;
    db_text(q, 1, t->name);
    db_blob(q, 2, span_of(t->of.b, DIGEST_BYTES));
    db_int(q, 3, s->wall);
    db_int(q, 4, TELL_BACKOFF_MAX_MS + TELL_MANY_MS); /* a clock that was set back delays it by so much at most */
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW) {
        out->id = store_copy(s, db_col(q, 0));
        out->title = store_copy(s, db_col(q, 2));
        out->body = store_copy(s, db_col(q, 3));
        count = db_col_int(q, 4);
        at_ms = db_col_int(q, 5);
    }
    sqlite3_reset(q);
    if (got != DB_ROW)
        return got == DB_FAIL ? -1 : 0;
    return out->body.n > 0 || write_many(s, t, count, at_ms, out) == 0 ? 1 : -1;
}

/* ---- what became of it ---- */

static int end(struct store *s, struct span id, const char *state, struct span words)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TELL_END);
    if (q == NULL)
        return -1;
    db_text(q, 1, id);
    db_text(q, 2, span_str(state));
    db_int(q, 3, s->wall);
    db_text(q, 4, words);
    return db_run(&s->db, q);
}

/* In the log, the audit and on the page: who was not told. */
static int give_up(struct store *s, struct span id, struct span target, struct span event, struct span ticket,
                   struct span words)
{
    struct audit a;
    log_warn("notify %.*s was not told of %.*s %.*s, and will not be: %.*s", SPAN_FMT(target), SPAN_FMT(event),
             SPAN_FMT(ticket), SPAN_FMT(words));
    sqlite3_stmt *q = end(s, id, "given-up", words) == 0 ? db_stmt(&s->db, SQL_TELL_MOST) : NULL;
    if (q == NULL)
        return -1;
    db_text(q, 1, target);
    db_int(q, 2, TELL_GIVEN_UP);
    if (db_run(&s->db, q) != 0)
        return -1;
    audit_begin(&a, s, "not-told", NULL, NULL, ticket);
    jsonw_kv(&a.w, "target", target);
    jsonw_kv(&a.w, "event", event);
    jsonw_kv(&a.w, "message", id);
    jsonw_kv(&a.w, "words", words);
    return audit_end(&a);
}

/* When it is tried again; 0: not any more. The last try is as its time is over. */
static uint64_t next_try(const struct store *s, struct span target, uint64_t at_ms, uint64_t tries)
{
    uint64_t patience = DAY_MS, wait = TELL_BACKOFF_MAX_MS;
    for (size_t i = 0; s->c.tell != NULL && i < s->c.tell->n; i++)
        if (span_eq(s->c.tell->target[i].name, target))
            patience = s->c.tell->target[i].give_up_ms;
    if (tries < 8)
        wait = TELL_BACKOFF_MS << tries;
    uint64_t last = at_ms + patience;
    if (s->wall >= last || at_ms > s->wall + patience) /* or the clock was set back: nobody knows how old it is */
        return 0;
    return s->wall + wait < last ? s->wall + wait : last;
}

int store_told(struct store *s, struct span id, enum tell_outcome what, struct span words)
{
    sqlite3_stmt *q = store_begin(s) == 0 ? db_stmt(&s->db, SQL_TELL_GET) : NULL;
    struct span target = SPAN_NONE, event = SPAN_NONE, ticket = SPAN_NONE;
    uint64_t tries = 0, at_ms = 0, next = 0;
    if (q == NULL)
        return -1;
    db_text(q, 1, id);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW) {
        target = store_copy(s, db_col(q, 0));
        event = store_copy(s, db_col(q, 1));
        ticket = store_copy(s, db_col(q, 2));
        tries = db_col_int(q, 3);
        at_ms = db_col_int(q, 4);
    }
    sqlite3_reset(q);
    if (got != DB_ROW)
        return got == DB_FAIL ? -1 : 0;
    if (what == TELL_TOLD)
        return end(s, id, "told", words);
    if (what == TELL_NOT_NOW)
        next = next_try(s, target, at_ms, tries);
    if (next == 0)
        return give_up(s, id, target, event, ticket, words);
    if ((q = db_stmt(&s->db, SQL_TELL_LATER)) == NULL)
        return -1;
    db_text(q, 1, id);
    db_int(q, 2, next);
    db_text(q, 3, words);
    log_info("notify %.*s: %.*s was not told, and is tried again: %.*s", SPAN_FMT(target), SPAN_FMT(event),
             SPAN_FMT(words));
    return db_run(&s->db, q);
}

/* ---- what is over ---- */

int tell_tick(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TELL_OLD);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall > TELL_TOLD_MS ? s->wall - TELL_TOLD_MS : 0);
    db_int(q, 2, s->wall > TELL_GIVEN_UP_MS ? s->wall - TELL_GIVEN_UP_MS : 0);
    return db_run(&s->db, q);
}

static bool is_now(const struct tell_targets *all, struct span name, struct span of)
{
    for (size_t i = 0; all != NULL && i < all->n; i++)
        if (span_eq(all->target[i].name, name) && span_eq(span_of(all->target[i].of.b, DIGEST_BYTES), of))
            return true;
    return false;
}

int tell_start(struct store *s)
{
    for (unsigned i = 0;;) {
        struct span name = SPAN_NONE, of = SPAN_NONE;
        sqlite3_stmt *q = db_stmt(&s->db, SQL_TELL_TARGETS);
        if (q == NULL)
            return -1;
        db_int(q, 1, i);
        enum db_result got = db_step(&s->db, q);
        if (got == DB_ROW) {
            name = store_copy(s, db_col(q, 0));
            of = store_copy(s, db_col(q, 1));
        }
        sqlite3_reset(q);
        if (got != DB_ROW)
            return got == DB_FAIL ? -1 : 0;
        if (is_now(s->c.tell, name, of)) {
            i++;
            continue;
        }
        if ((q = db_stmt(&s->db, SQL_TELL_DROP)) == NULL)
            return -1;
        db_text(q, 1, name);
        db_blob(q, 2, of);
        if (db_run(&s->db, q) != 0)
            return -1;
        log_warn("notify %.*s is there no more, or is another now: %d messages to it are dropped", SPAN_FMT(name),
                 db_changes(&s->db));
    }
}
