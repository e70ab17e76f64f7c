/* Writes: the intent before, the outcome after. */
#include <stdio.h>

#include "proxy/ledger/store/grants/grants.h"
#include "proxy/ledger/store/people/people.h"
#include "proxy/ledger/store/runs/runs.h"

/* 1 written, 0 this exchange has an intent already, -1. */
static int add_effect(struct store *s, uint64_t xid, struct span ticket, struct span sandbox)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EFFECT_ADD);
    if (q == NULL)
        return -1;
    db_text(q, 1, span_str(s->boot));
    db_int(q, 2, xid);
    db_text_or_null(q, 3, ticket);
    db_text(q, 4, sandbox);
    db_int(q, 5, s->wall);
    return db_run(&s->db, q) != 0 ? -1 : db_changes(&s->db) == 1;
}

/* As if it had never been asked for. */
static int drop_effect(struct store *s, uint64_t xid)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EFFECT_DROP);
    if (q == NULL)
        return -1;
    db_text(q, 1, span_str(s->boot));
    db_int(q, 2, xid);
    return db_run(&s->db, q);
}

static int set_claimed(struct store *s, const struct row *r, uint64_t xid)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_CLAIM);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    db_int(q, 2, s->wall);
    db_text(q, 3, span_str(s->boot));
    db_int(q, 4, xid);
    if (db_run(&s->db, q) != 0)
        return -1;
    return db_changes(&s->db) == 1
               ? 0
               : db_doom(&s->db, "a ticket changed under the ledger's hands; is there a second writer?");
}

static int claim_audit(struct store *s, const struct store_claim *c, struct row *r)
{
    struct audit a;
    struct wire_record now = r->record; /* with the policy and rule that let it go now */
    now.policy = c->policy;
    now.by = c->by;
    now.lease = c->lease;
    if (!span_eq(now.rule.id, c->rule))
        now.rule = (struct wire_rule){.id = c->rule};
    audit_begin(&a, s, "intent", NULL, &c->xid, r->id);
    audit_record(&a, &now);
    jsonw_kv(&a.w, "by", r->by);
    jsonw_kv(&a.w, "channel", r->channel);
    if (c->xid >> XID_FRONT_SHIFT >= XID_LATER)
        jsonw_kv_bool(&a.w, "later", true);
    if (r->grant.n)
        jsonw_kv(&a.w, "grant", r->grant);
    return audit_end(&a) == 0 ? runs_effect(s, &now, &(struct run_effect){.xid = c->xid, .begins = true}) : -1;
}

int ticket_request(struct store *s, const struct row *r, struct store_bytes *out)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_HEAD);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->id);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW)
        out->head = store_copy(s, db_col(q, 0));
    sqlite3_reset(q);
    if (got != DB_ROW)
        return -1;
    int body = r->body_size ? body_fetch(s, r->id, &out->body) : 1;
    return body == 1 && out->body.n != r->body_size ? 0 : body;
}

int store_claim(struct store *s, const struct store_claim *c, bool *ok, uint8_t *state, struct digest *digest,
                struct store_bytes *request)
{
    struct row r;
    struct grant g;
    *ok = false;
    *state = TICKET_NONE;
    int got = row_begin(s, &c->ticket, &r);
    if (got <= 0)
        return got;
    if ((r.state == TICKET_PENDING || r.state == TICKET_APPROVED) && row_overdue(s, &r) && ticket_expire(s, &r) != 0)
        return -1;
    if (ticket_keeps_terms(s, &r, &c->terms) < 0)
        return -1;
    *state = (uint8_t)r.state;
    bool waits = r.state == TICKET_PENDING;
    if (waits && (got = grant_fits(s, r.id, &c->policy, &g)) <= 0)
        return got < 0 ? -1 : ticket_told(s, &r); /* it was said to be granted, and is for a person now */
    /* Another credential or place than the person saw is another request. */
    if ((r.state != TICKET_APPROVED && !waits) || c->xid == 0 || !span_eq(c->credential, r.credential) ||
        !span_eq(c->host, r.host) || c->port != r.port)
        return 0;
    if ((got = ticket_request(s, &r, request)) <= 0)
        return got;
    if ((got = add_effect(s, c->xid, r.id, r.sandbox)) <= 0)
        return got;
    if (waits && grant_use(s, &g, &r) != 0)
        return -1;
    if (c->proof != NULL && votes_proof(s, &r, c->proof) != 0)
        return -1;
    if (set_claimed(s, &r, c->xid) != 0 || reserve_claimed(s, r.id) != 0 || claim_audit(s, c, &r) != 0)
        return -1;
    r.state = TICKET_EXECUTING;
    *state = TICKET_EXECUTING;
    *digest = r.digest;
    *ok = true;
    return ticket_told(s, &r);
}

/* 1 all are reserved, 0 not one. What would be held and join its ticket does not slip through because there is room
 * again. */
static int intent_reserve(struct store *s, uint64_t xid, const struct wire_record *r, const struct digest *join,
                          const struct wire_limits *limits, struct wire_over *over)
{
    static const struct digest none;
    int joins = memcmp(join, &none, sizeof(none)) == 0 ? 0 : ticket_joinable(s, r->session, join);
    if (joins < 0)
        return -1;
    if (joins == 0)
        return reserve(s, limits, r, SPAN_NONE, xid, over);
    over->n = limits->n;
    for (size_t i = 0; i < limits->n; i++)
        over->past[i] = true;
    return 0;
}

int store_intent(struct store *s, uint64_t xid, const struct wire_record *r, const struct digest *join,
                 const struct wire_limits *limits, bool *ok, struct wire_over *over)
{
    struct audit a;
    *ok = false;
    *over = (struct wire_over){.n = 0};
    if (store_begin(s) != 0)
        return -1;
    int got = xid ? add_effect(s, xid, SPAN_NONE, r->sandbox) : 0;
    if (got <= 0)
        return got;
    if (limits->n > 0) {
        got = intent_reserve(s, xid, r, join, limits, over);
        if (got <= 0)
            return got < 0 ? -1 : drop_effect(s, xid);
        s->read_intents |= span_eq(r->effect, SPAN("read"));
    }
    audit_begin(&a, s, "intent", NULL, &xid, SPAN_NONE);
    audit_record(&a, r);
    *ok = audit_end(&a) == 0 && runs_effect(s, r, &(struct run_effect){.xid = xid, .begins = true}) == 0;
    return *ok ? 0 : -1;
}

/* Ends the intent if it is in the state `from`. 1 it was, 0 it is not, -1. */
static int end_effect(struct store *s, const struct store_outcome *o, struct span from, uint64_t sent_ms)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EFFECT_END);
    if (q == NULL)
        return -1;
    db_text(q, 1, span_str(s->boot));
    db_int(q, 2, o->xid);
    db_text(q, 3, span_str(outcome_name(o->outcome)));
    db_int(q, 4, s->wall);
    db_int(q, 5, o->status);
    if (sent_ms != 0)
        db_int(q, 6, sent_ms);
    db_text(q, 7, from);
    if (db_run(&s->db, q) != 0)
        return -1;
    if (db_changes(&s->db) == 0)
        return 0;
    return o->outcome == OUTCOME_NOT_SENT && reserve_free_exchange(s, o->xid) != 0 ? -1 : 1;
}

static int find_effect(struct store *s, uint64_t xid, struct span *state)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EFFECT_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, span_str(s->boot));
    db_int(q, 2, xid);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW)
        *state = store_copy(s, db_col(q, 0));
    sqlite3_reset(q);
    return got == DB_FAIL || s->db.doomed ? -1 : got == DB_ROW;
}

/* Ends the intent of an exchange. "Not sent" against a mark that the first byte left is a contradiction, and so is no
 * knowledge. 1 it is ended, 0 there is none, 2 its end is written already (it was said to a ledger that died before
 * it could answer), -1. An unknown end gives way to a known one. */
static int weigh(struct store *s, struct store_outcome *o, uint64_t sent_ms)
{
    struct span state;
    if (sent_ms != 0 && o->outcome == OUTCOME_NOT_SENT)
        o->outcome = OUTCOME_UNKNOWN;
    int got = end_effect(s, o, SPAN("intent"), sent_ms); /* as most are */
    if (got != 0 || (got = find_effect(s, o->xid, &state)) <= 0)
        return got;
    bool sent = span_eq(state, SPAN("sent"));
    if (sent && o->outcome == OUTCOME_NOT_SENT)
        o->outcome = OUTCOME_UNKNOWN;
    if (!sent && (!span_eq(state, SPAN("unknown")) || o->outcome == OUTCOME_UNKNOWN))
        return 2;
    return end_effect(s, o, state, sent_ms);
}

static int result_audit(struct store *s, const struct store_outcome *o, struct span ticket, uint64_t sent_ms)
{
    struct audit a;
    char when[32];
    audit_begin(&a, s, "result", NULL, &o->xid, ticket);
    jsonw_kv(&a.w, "outcome", span_str(outcome_name(o->outcome)));
    if (o->status)
        jsonw_kv_u64(&a.w, "status", o->status);
    jsonw_kv_u64(&a.w, "bytes_out", o->out);
    jsonw_kv_u64(&a.w, "bytes_in", o->in);
    jsonw_kv_bool(&a.w, "delivered", o->delivered);
    if (sent_ms != 0) {
        audit_time(sent_ms, when);
        jsonw_kv(&a.w, "sent", span_str(when));
    }
    audit_record(&a, &o->record);
    return audit_end(&a);
}

/* The ticket this exchange executed, and no other. */
static int end_ticket(struct store *s, const struct store_outcome *o, struct span id, struct row *r)
{
    static const enum ticket_state to[] = {
        [OUTCOME_UNKNOWN] = TICKET_UNKNOWN, [OUTCOME_NOT_SENT] = TICKET_FAILED, [OUTCOME_ANSWERED] = TICKET_DONE};
    int got = row_find(s, id, r);
    if (got <= 0 || r->xid != o->xid || !span_eq(r->boot, span_str(s->boot)))
        return got < 0 ? -1 : 0;
    if (o->outcome == OUTCOME_UNKNOWN && r->state == TICKET_UNKNOWN)
        return 0;
    if ((got = ticket_end(s, r, to[o->outcome], o)) <= 0)
        return got;
    if (o->delivered || o->outcome != OUTCOME_ANSWERED || s->data_key == NULL)
        return 1;
    struct span head = o->kept ? o->answer_head : SPAN_NONE, body = o->kept ? o->answer_body : SPAN_NONE;
    return answer_keep(s, id, head, body) == 0 ? 1 : -1;
}

int store_outcome(struct store *s, const struct store_outcome *given)
{
    struct store_outcome o = *given;
    struct row r;
    char text[ID_TEXT + 1];
    struct span id = SPAN_NONE;
    int ended = 0;
    if (store_begin(s) != 0)
        return -1;
    if ((unsigned)o.outcome > OUTCOME_ANSWERED)
        o.outcome = OUTCOME_UNKNOWN;
    /* A read has no intent to look for, unless it was counted. */
    bool read = id_is_none(&o.ticket) && span_eq(o.record.effect, SPAN("read"));
    uint64_t sent_ms = sent_take(s, o.xid);
    int intent = read && !s->read_intents ? 0 : weigh(s, &o, sent_ms);
    if (intent < 0 || intent == 2)
        return intent < 0 ? -1 : 0;
    if (!id_is_none(&o.ticket)) {
        id_text(&o.ticket, text);
        id = span_of(text, ID_TEXT);
        if ((ended = end_ticket(s, &o, id, &r)) < 0)
            return -1;
    }
    const struct run_effect effect = {
        .xid = o.xid, .refused = o.outcome == OUTCOME_NOT_SENT, .out = o.out, .in = o.in};
    if (runs_effect(s, &o.record, &effect) != 0)
        return -1;
    if (read && intent == 0 && !s->c.audit_reads)
        return 0;
    if (result_audit(s, &o, id, sent_ms) != 0)
        return -1;
    return ended == 1 ? ticket_told(s, &r) : 0;
}

int store_audit(struct store *s, uint64_t xid, const struct wire_record *r)
{
    struct audit a;
    if (store_begin(s) != 0)
        return -1;
    bool answered = span_eq(r->code, SPAN(WIRE_CODE_STUB));
    audit_begin(&a, s, answered ? "answered" : "denied", NULL, &xid, SPAN_NONE);
    audit_record(&a, r);
    if (audit_end(&a) != 0)
        return -1;
    return answered ? 0 : runs_effect(s, r, &(struct run_effect){.xid = xid, .refused = true});
}

int store_websocket(struct store *s, const struct store_websocket *w)
{
    struct audit a;
    if (store_begin(s) != 0)
        return -1;
    audit_begin(&a, s, "websocket", NULL, &w->xid, SPAN_NONE);
    jsonw_kv_u64(&a.w, "messages_out", w->messages_out);
    jsonw_kv_u64(&a.w, "messages_in", w->messages_in);
    jsonw_kv_u64(&a.w, "bytes_out", w->out);
    jsonw_kv_u64(&a.w, "bytes_in", w->in);
    if (w->closed)
        jsonw_kv_u64(&a.w, "closed", w->closed);
    audit_record(&a, &w->record);
    if (audit_end(&a) != 0)
        return -1;
    return runs_effect(s, &w->record, &(struct run_effect){.xid = w->xid, .out = w->out, .in = w->in, .again = true});
}

static bool kind_ok(struct span kind)
{
    for (size_t i = 0; i < kind.n; i++)
        if (!(kind.p[i] >= 'a' && kind.p[i] <= 'z') && kind.p[i] != '-')
            return false;
    return kind.n > 0 && kind.n <= 32;
}

int store_note(struct store *s, struct span by, struct span kind, struct span json)
{
    struct audit a;
    struct arena scratch;
    if (store_begin(s) != 0)
        return -1;
    arena_init(&scratch, 256 * 1024);
    /* Its own kind, so that nobody can note a result or a decision that was none. */
    audit_begin(&a, s, "note", NULL, NULL, SPAN_NONE);
    jsonw_kv(&a.w, "from", by);
    jsonw_kv(&a.w, "about", kind_ok(kind) ? kind : SPAN("other"));
    jsonw_key(&a.w, "what");
    if (json.n <= 16 * 1024 && json_parse(json, &scratch) != NULL)
        jsonw_raw(&a.w, json);
    else
        jsonw_string(&a.w, span_first(json, 4096));
    arena_free(&scratch);
    return audit_end(&a);
}
