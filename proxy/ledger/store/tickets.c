/* Tickets: opening or joining one, deciding it, voiding it. */
#include <stdio.h>
#include <stdlib.h>

#include "proxy/outbound.h"
#include "proxy/ledger/store/gates/gates.h"
#include "proxy/ledger/store/askers/later.h"
#include "proxy/ledger/store/grants/grants.h"
#include "proxy/ledger/store/people/people.h"

/* What its own client took back counts as pending for so long from when it was opened: asking and taking back is no
 * way past the bound on what one sandbox may ask people. */
enum { TAKEN_BACK_MS = 60 * 60 * 1000, TAKEN_BACK_WHY = 500, TAKEN_BACK_WORDS = 640 };

/* 1 a row was read, 0 none, -1. */
static int find_live(struct store *s, struct span session, const struct digest *join, struct row *r)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_LIVE);
    if (q == NULL)
        return -1;
    db_text(q, 1, session);
    db_blob(q, 2, span_of(join->b, DIGEST_BYTES));
    enum db_result got = db_step(&s->db, q);
    int found = got == DB_ROW ? (row_read(s, q, r) == 0 ? 1 : -1) : got == DB_DONE ? 0 : -1;
    sqlite3_reset(q);
    if (found != 1 || r->state == TICKET_EXECUTING || !row_overdue(s, r))
        return found;
    return ticket_expire(s, r) == 0 ? 0 : -1; /* too late to join it */
}

int ticket_joinable(struct store *s, struct span session, const struct digest *join)
{
    struct row r;
    int got = find_live(s, session, join, &r);
    sqlite3_stmt *q = got == 0 ? db_stmt(&s->db, SQL_TICKET_MEMORY) : NULL;
    if (q == NULL)
        return got == 0 ? -1 : got;
    db_text(q, 1, session);
    db_blob(q, 2, span_of(join->b, DIGEST_BYTES));
    db_int(q, 3, s->wall);
    db_int(q, 4, s->uptime);
    enum db_result found = db_step(&s->db, q);
    sqlite3_reset(q);
    return found == DB_FAIL ? -1 : found == DB_ROW;
}

static int repeat(struct store *s, const struct row *r)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_REPEAT);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    return db_run(&s->db, q);
}

/* An id from a statement that selects one; then the row. */
static int find_through(struct store *s, sqlite3_stmt *q, struct row *r)
{
    struct span id = SPAN_NONE;
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW)
        id = store_copy(s, db_col(q, 0));
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : id.n ? row_find(s, id, r) : 0;
}

/* The same request again: a kept answer is handed out once; and once it is told that an answer nobody took was not
 * kept, or whoever missed it would ask for the same effect again. */
static int take_answer(struct store *s, const struct wire_ticket *t, struct wire_ticket_state *st,
                       struct store_bytes *kept)
{
    struct row r;
    struct audit a;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_ANSWERED);
    if (q == NULL)
        return -1;
    db_text(q, 1, t->record.session);
    db_blob(q, 2, span_of(t->join.b, DIGEST_BYTES));
    db_int(q, 3, s->wall);
    db_int(q, 4, s->uptime);
    int got = find_through(s, q, &r);
    if (got <= 0 || (got = answer_fetch(s, r.id, kept)) <= 0)
        return got;
    static const enum sql_id both[] = {SQL_ANSWER_REMOVE, SQL_TICKET_TAKEN};
    row_state(&r, st);
    st->joined = true;
    st->has_answer = kept->head.n > 0;
    for (int i = 0; i <= st->has_answer; i++) {
        if ((q = db_stmt(&s->db, both[i])) == NULL)
            return -1;
        db_text(q, 1, r.id);
        if (db_run(&s->db, q) != 0)
            return -1;
    }
    if (!st->has_answer)
        return 1;
    audit_begin(&a, s, "answer-collected", NULL, NULL, r.id);
    return audit_end(&a) == 0 ? 1 : -1;
}

/* A denial stands for as long as its ticket would have lived, for the same request on the same terms: it gets the
 * same words, and nobody is asked again. */
static int same_denial(struct store *s, const struct wire_ticket *t, struct wire_ticket_state *st)
{
    struct row r;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_DENIED);
    if (q == NULL)
        return -1;
    db_text(q, 1, t->record.session);
    db_blob(q, 2, span_of(t->join.b, DIGEST_BYTES));
    db_int(q, 3, s->wall);
    db_int(q, 4, s->uptime);
    db_blob(q, 5, span_of(t->terms.b, DIGEST_BYTES));
    int got = find_through(s, q, &r);
    if (got <= 0)
        return got;
    row_state(&r, st);
    st->joined = true;
    return repeat(s, &r) == 0 ? 1 : -1;
}

/* 1 there is room, 0 there is not, -1. */
static int count_below(struct store *s, sqlite3_stmt *q, uint64_t max, uint64_t bytes, uint64_t bytes_max)
{
    if (q == NULL || db_step(&s->db, q) != DB_ROW)
        return -1;
    bool room = db_col_int(q, 0) < max && bytes <= bytes_max && db_col_int(q, 1) <= bytes_max - bytes;
    sqlite3_reset(q);
    return room;
}

/* A quarter of what is there for all is kept for tenants who have little open, so that one whose sandboxes ask
 * without end leaves the others theirs. A tenant with nobody beside it may have it all. */
static int share_left(struct store *s, struct span sandbox, uint64_t bytes)
{
    unsigned most = s->c.open_max;
    int room = count_below(s, db_stmt(&s->db, SQL_OPEN_ALL), most - most / 4, bytes, STORE_ALL_BYTES / 4 * 3);
    if (room != 0)
        return room;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_OPEN_OF_TENANT);
    if (q == NULL)
        return -1;
    db_text(q, 1, sandbox);
    room = count_below(s, q, most / STORE_TENANTS_LEAST, bytes, STORE_ALL_BYTES / STORE_TENANTS_LEAST);
    if (room != 0 || (q = db_stmt(&s->db, SQL_TENANT_ALONE)) == NULL)
        return q == NULL ? -1 : room;
    db_text(q, 1, sandbox);
    enum db_result others = db_step(&s->db, q);
    sqlite3_reset(q);
    return others == DB_FAIL ? -1 : others == DB_DONE;
}

static int room_for(struct store *s, const struct wire_ticket *t, uint64_t bytes)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_PENDING_OF_SANDBOX);
    if (q == NULL)
        return -1;
    db_text(q, 1, t->record.sandbox);
    db_int(q, 2, s->wall - TAKEN_BACK_MS);
    int room = count_below(s, q, s->c.pending_max, bytes, s->c.sandbox_bytes);
    if (room == 1)
        room = count_below(s, db_stmt(&s->db, SQL_OPEN_ALL), s->c.open_max, bytes, STORE_ALL_BYTES);
    return room == 1 ? share_left(s, t->record.sandbox, bytes) : room;
}

/* A credential of the sandbox's own is for the upstream alone: who reads the ticket sees which it is. */
static void put_value(struct jsonw *w, const struct http_field *f)
{
    struct dynbuf b;
    if (!outbound_is_credential(f->name)) {
        jsonw_string(w, f->value);
        return;
    }
    dynbuf_init(&b, 256);
    dynbuf_add(&b, SPAN(OUTBOUND_MASKED));
    outbound_mask(f->name, f->value, &b);
    jsonw_string(w, dynbuf_span(&b));
    dynbuf_free(&b);
}

static struct span fields_json(struct store *s, const struct wire_request *r)
{
    struct jsonw w;
    dynbuf_reset(&s->json);
    jsonw_begin(&w, &s->json);
    jsonw_array(&w);
    for (size_t i = 0; i < r->nfields; i++) {
        jsonw_array(&w);
        jsonw_string(&w, r->field[i].name);
        put_value(&w, &r->field[i]);
        jsonw_end_array(&w);
    }
    jsonw_end_array(&w);
    if (!dynbuf_ok(&s->json))
        db_doom(&s->db, "a request head is too large to be written down");
    return store_copy(s, dynbuf_span(&s->json));
}

static struct span exact_head(struct store *s, const struct wire_request *r)
{
    struct dynbuf b;
    dynbuf_init(&b, STORE_JSON_MAX);
    wire_put_request(&b, r);
    if (!dynbuf_ok(&b))
        db_doom(&s->db, "a request head is too large to be kept");
    struct span out = store_copy(s, dynbuf_span(&b));
    dynbuf_free(&b);
    return out;
}

static void bind_request(sqlite3_stmt *q, const struct wire_request *r, struct span fields, struct span head)
{
    db_text(q, 4, r->method);
    db_text(q, 5, r->scheme);
    db_text(q, 6, r->host);
    db_int(q, 7, r->port);
    db_text(q, 8, r->path);
    if (r->has_query)
        db_text(q, 9, r->query);
    db_text(q, 10, fields);
    db_blob(q, 11, head);
}

static void bind_judgement(sqlite3_stmt *q, const struct wire_ticket *t)
{
    const struct wire_record *r = &t->record;
    db_blob(q, 14, span_of(r->request.b, DIGEST_BYTES));
    db_blob(q, 15, span_of(t->join.b, DIGEST_BYTES));
    db_text(q, 16, r->op);
    db_text(q, 17, r->effect);
    db_text(q, 18, r->resource);
    db_text(q, 19, r->credential);
    db_text(q, 20, r->code);
    db_text(q, 21, r->rule.id);
    db_text(q, 22, r->rule.file);
    db_int(q, 23, r->rule.line);
    db_blob(q, 24, span_of(r->policy.b, DIGEST_BYTES));
    db_text(q, 25, t->summary);
    db_text(q, 26, t->facts_json);
    db_text(q, 27, t->agent_reason);
    db_text(q, 28, t->approve_by);
    db_text(q, 29, t->dialect);
    db_int(q, 30, t->reason_required);
    db_int(q, 34, r->has_body);
    db_int(q, 35, r->upgrade);
    db_text(q, 36, r->content_type);
    db_text(q, 37, r->refs);
    db_blob(q, 38, span_of(t->terms.b, DIGEST_BYTES));
}

static int insert(struct store *s, const struct wire_ticket *t, struct span id, struct span body, uint64_t lives_ms)
{
    struct digest sum;
    struct span fields = fields_json(s, &t->request), head = exact_head(s, &t->request);
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_ADD);
    if (q == NULL)
        return -1;
    digest_of(body, &sum);
    db_text(q, 1, id);
    db_text(q, 2, t->record.sandbox);
    db_text(q, 3, t->record.session);
    bind_request(q, &t->request, fields, head);
    db_int(q, 12, body.n);
    db_blob(q, 13, span_of(sum.b, DIGEST_BYTES));
    bind_judgement(q, t);
    db_int(q, 31, s->wall);
    db_int(q, 32, s->wall + lives_ms);
    db_int(q, 33, s->uptime + lives_ms);
    if (db_run(&s->db, q) != 0 || grant_shape(s, id, &t->shape) != 0 || people_set(s, id, &t->people) != 0 ||
        gates_set(s, id, &t->gates) != 0)
        return -1;
    return body.n ? body_keep(s, id, body) : 0;
}

/* 1 reserved, 0 refused. */
static int reserve_or_refuse(struct store *s, const struct wire_ticket *t, const struct wire_limits *limits,
                             struct span id, struct wire_ticket_state *st, struct wire_over *over)
{
    int got = reserve(s, limits, &t->record, id, 0, over);
    if (got == 0)
        *st = (struct wire_ticket_state){.state = TICKET_NONE, .words = SPAN("over-limit")};
    return got;
}

/* What a grant covers nobody is asked about, nor told before it is known to wait after all. */
static int may_be_granted(struct store *s, const struct row *r, struct wire_ticket_state *st)
{
    struct grant g;
    int got = r->state == TICKET_PENDING ? grant_fits(s, r->id, NULL, &g) : 0;
    st->granted = got == 1;
    return got < 0 ? -1 : 0;
}

static int open_new(struct store *s, const struct wire_ticket *t, const struct wire_limits *limits, struct span body,
                    struct wire_ticket_state *st, struct wire_over *over)
{
    struct id id;
    struct audit a;
    struct row r;
    char text[ID_TEXT + 1];
    uint64_t lives = t->within_ms ? t->within_ms : s->c.expires_ms;
    if (lives > STORE_EXPIRES_MAX_MS)
        lives = STORE_EXPIRES_MAX_MS;
    int room = room_for(s, t, body.n);
    if (room < 0)
        return -1;
    if (room == 0 || body.n > STORE_BODY_MAX) {
        st->words = SPAN("too-many-pending");
        return 0;
    }
    if (t->facts_json.n == 0) { /* the judge reads what costs much for new tickets alone */
        st->words = SPAN("facts-wanted");
        return 0;
    }
    if (body.n && s->data_key == NULL) { /* the keeper has not come yet: nobody else's turn need fail for it */
        st->words = SPAN("store");
        return 0;
    }
    if (id_new(&id) != 0)
        return db_doom(&s->db, "no randomness for a ticket's id");
    id_text(&id, text);
    int got = reserve_or_refuse(s, t, limits, span_of(text, ID_TEXT), st, over);
    if (got <= 0)
        return got;
    if (insert(s, t, span_of(text, ID_TEXT), body, lives) != 0 || asker_waits(s, span_of(text, ID_TEXT), 0) != 0 ||
        later_ask(s, span_of(text, ID_TEXT), &t->later) != 0)
        return -1;
    audit_begin(&a, s, "ticket-opened", NULL, t->exchange ? &t->exchange : NULL, span_of(text, ID_TEXT));
    audit_record(&a, &t->record);
    jsonw_kv(&a.w, "summary", t->summary);
    if (t->later.asked)
        jsonw_kv_bool(&a.w, "later", true);
    if (audit_end(&a) != 0 || row_find(s, span_of(text, ID_TEXT), &r) != 1)
        return -1;
    row_state(&r, st);
    return may_be_granted(s, &r, st) != 0 ? -1 : st->granted ? 0 : ticket_told(s, &r);
}

/* The rule may count more by now than when the ticket was opened. */
static int join_live(struct store *s, const struct wire_ticket *t, const struct wire_limits *limits,
                     const struct row *r, struct wire_ticket_state *st, struct wire_over *over)
{
    row_state(r, st);
    st->joined = true;
    int got = r->state == TICKET_EXECUTING ? 1 : reserve_or_refuse(s, t, limits, r->id, st, over);
    if (got == 1 && (may_be_granted(s, r, st) != 0 || later_ask(s, r->id, &t->later) != 0))
        return -1;
    return got <= 0 ? got : repeat(s, r);
}

/* Its user takes it back, in the agent's own client: what is open is over, and nothing is opened. What leaves already
 * is told as such. */
static int take_back(struct store *s, const struct wire_ticket *t, struct row *r, bool live,
                     struct wire_ticket_state *st)
{
    static char words[TAKEN_BACK_WORDS]; /* until the answer is written */
    struct span why = span_first(t->agent_reason, TAKEN_BACK_WHY);
    const char *said = why.n > 0 ? ", and said: " : "";
    if (!live) {
        st->state = TICKET_CANCELLED;
    } else {
        bool open = r->state == TICKET_PENDING || r->state == TICKET_APPROVED;
        int n = snprintf(words, sizeof(words), "its user declined it in the agent's own client%s%.*s", said,
                         SPAN_FMT(why));
        if (open && ticket_decide(s, r, TICKET_CANCELLED, SPAN("client"), SPAN_NONE, span_of(words, (size_t)n)) != 0)
            return -1;
        row_state(r, st);
        st->joined = true;
    }
    if (st->state == TICKET_CANCELLED) {
        int n = snprintf(words, sizeof(words), "its user declined it there%s%.*s", said, SPAN_FMT(why));
        st->by = SPAN("its own client");
        st->words = span_of(words, (size_t)n);
    }
    return 0;
}

int store_ticket_open(struct store *s, const struct wire_ticket *t, const struct wire_limits *limits,
                      struct span body, struct wire_ticket_state *st, struct store_bytes *kept,
                      struct wire_over *over)
{
    struct row r;
    *st = (struct wire_ticket_state){.state = TICKET_NONE};
    *over = (struct wire_over){.n = 0};
    if (store_begin(s) != 0)
        return -1;
    int got = find_live(s, t->record.session, &t->join, &r);
    if (got == 1) /* who decides on a request by the rules of now must not have decided by others */
        got = ticket_keeps_terms(s, &r, &t->terms);
    if (got == 1)
        return t->take_back ? take_back(s, t, &r, true, st) : join_live(s, t, limits, &r, st, over);
    if (got == 0)
        got = take_answer(s, t, st, kept); /* what was carried out is told, also to who would take it back */
    if (got == 0 && t->take_back)
        return take_back(s, t, &r, false, st);
    if (got == 0)
        got = same_denial(s, t, st);
    return got == 0 ? open_new(s, t, limits, body, st, over) : got < 0 ? -1 : 0;
}

static int decide_open(struct store *s, struct row *r, const struct store_decision *d)
{
    static const enum ticket_state to[] = {
        [DECIDE_APPROVE] = TICKET_APPROVED, [DECIDE_DENY] = TICKET_DENIED, [DECIDE_CANCEL] = TICKET_CANCELLED};
    r->decision = d;
    return ticket_decide(s, r, to[d->what], d->by, d->channel, d->reason);
}

/* An open ticket, by somebody who may say so: with enough that agree it is decided. */
static enum decided decide_with(struct store *s, struct row *r, const struct store_decision *d)
{
    enum decided why = DECIDED_STORE;
    int got = vote_may(s, r, d, &why);
    if (got <= 0)
        return got < 0 ? DECIDED_STORE : why;
    if (d->grant.uses &&
        (got = d->what == DECIDE_APPROVE ? grant_give(s, r, &d->grant, d->by, d->channel, d->reason) : 0) <= 0)
        return got < 0 ? DECIDED_STORE : DECIDED_NO_GRANT;
    if ((got = vote_put(s, r, d)) <= 0)
        return got < 0 ? DECIDED_STORE : DECIDED_AGREED;
    return decide_open(s, r, d) == 0 ? DECIDED_DONE : DECIDED_STORE;
}

int store_decide(struct store *s, const struct id *ticket, const struct store_decision *d, enum decided *result,
                 uint8_t *state)
{
    static const struct digest none;
    struct row r;
    *result = DECIDED_STORE;
    *state = TICKET_NONE;
    int got = row_begin(s, ticket, &r);
    if (got < 0)
        return -1;
    /* An approval may be taken back as long as it was not used; nothing else is decided twice. */
    bool alive = got == 1 && (r.state == TICKET_PENDING || r.state == TICKET_APPROVED);
    bool open = alive && (r.state == TICKET_PENDING || d->what != DECIDE_APPROVE);
    if (got == 0)
        *result = DECIDED_NO_TICKET;
    else if (d->what < DECIDE_APPROVE || d->what > DECIDE_CANCEL || d->by.n == 0)
        *result = DECIDED_NOT_PENDING;
    else if (alive && row_overdue(s, &r))
        *result = ticket_expire(s, &r) == 0 ? DECIDED_EXPIRED : DECIDED_STORE;
    else if (r.state == TICKET_EXPIRED)
        *result = DECIDED_EXPIRED;
    else if (!open)
        *result = DECIDED_NOT_PENDING;
    else if (memcmp(&d->shown, &none, sizeof(none)) != 0 && memcmp(&d->shown, &r.digest, sizeof(none)) != 0)
        *result = DECIDED_OTHER_DIGEST;
    else if (d->what == DECIDE_APPROVE && r.reason_required && span_trim(d->reason).n == 0)
        *result = DECIDED_NO_REASON;
    else
        *result = decide_with(s, &r, d);
    *state = got == 1 ? (uint8_t)r.state : TICKET_NONE;
    return *result == DECIDED_STORE ? -1 : 0;
}

int store_void(struct store *s, const struct id *ticket, struct span why)
{
    struct row r;
    int got = row_begin(s, ticket, &r);
    if (got <= 0)
        return got;
    if (r.state != TICKET_PENDING && r.state != TICKET_APPROVED)
        return 0;
    return ticket_decide(s, &r, TICKET_CANCELLED, SPAN("policy"), SPAN_NONE, why);
}

int store_open_tickets(struct store *s, struct id **ids, size_t *n)
{
    struct id *v = calloc(2 * STORE_OPEN_MAX, sizeof(*v));
    sqlite3_stmt *q = v ? db_stmt(&s->db, SQL_TICKETS_OPEN_ALL) : NULL;
    enum db_result got = DB_FAIL;
    *ids = NULL;
    *n = 0;
    while (q != NULL && *n < 2 * STORE_OPEN_MAX && (got = db_step(&s->db, q)) == DB_ROW)
        *n += id_parse(db_col(q, 0), &v[*n]) == 0;
    if (q != NULL)
        sqlite3_reset(q);
    if (got == DB_FAIL || *n == 0) {
        free(v);
        *n = 0;
        return got == DB_FAIL ? -1 : 0;
    }
    *ids = v;
    return 0;
}

int store_review(struct store *s, const struct id *ticket, struct wire_review *r, struct store_bytes *request)
{
    struct row row;
    int got = row_begin(s, ticket, &row);
    if (got <= 0)
        return got;
    if (row.state != TICKET_PENDING && row.state != TICKET_APPROVED)
        return 0;
    *r = (struct wire_review){.ticket = *ticket,
                              .sandbox = row.sandbox,
                              .session = row.session,
                              .terms = row.terms,
                              .code = row.record.code,
                              .has_body = row.record.has_body};
    return ticket_request(s, &row, request);
}

int store_body(struct store *s, const struct id *ticket, bool *ok, struct dynbuf *body)
{
    struct row r;
    char text[ID_TEXT + 1];
    *ok = false;
    arena_free(&s->arena);
    id_text(ticket, text);
    int got = row_find(s, span_of(text, ID_TEXT), &r);
    if (got == 1 && r.body_size)
        got = body_fetch(s, r.id, body);
    *ok = got == 1 && body->n == r.body_size;
    return got < 0 ? -1 : 0;
}
