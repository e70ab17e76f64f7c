/* /api/v1/tickets */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "policy/policy.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/deciding/deciding.h"
#include "web-approval/diffs/diffs.h"
#include "web-approval/grants/grants.h"
#include "web-approval/people/people.h"
#include "web-approval/people/who.h"
#include "web-approval/route.h"

enum { FLAG_SAID = 500 };

static void kv_hex(struct jsonw *w, const char *key, struct span bytes)
{
    char text[2 * DIGEST_BYTES + 1] = "";

    if (bytes.n <= DIGEST_BYTES)
        hex_text(bytes, text);
    jsonw_kv(w, key, span_str(text));
}

static void rule_json(struct jsonw *w, const struct ticket *t)
{
    jsonw_kv_object(w, "rule");
    jsonw_kv(w, "id", t->rule_id);
    jsonw_kv(w, "file", t->rule_file);
    jsonw_kv_u64(w, "line", t->rule_line);
    jsonw_end_object(w);
}

static void full_json(struct jsonw *w, const struct ticket *t)
{
    jsonw_kv_raw(w, "fields", t->fields_json.n ? t->fields_json : SPAN("[]"));
    jsonw_kv_raw(w, "facts", t->facts_json.n ? t->facts_json : SPAN("[]"));
    jsonw_kv(w, "tenant", t->tenant);
    jsonw_kv(w, "code", t->code);
    kv_hex(w, "policy", t->policy);
    kv_hex(w, "body_sha256", t->body_sha256);
    jsonw_kv(w, "agent_reason", t->agent_reason);
    jsonw_kv(w, "approve_by", t->approve_by);
    jsonw_kv_u64(w, "quorum", t->quorum);
    jsonw_kv_bool(w, "step_up", t->step_up != 0);
    jsonw_kv(w, "dialect", t->dialect);
    jsonw_kv_u64(w, "repeats", t->repeats);
    jsonw_kv(w, "decided_channel", t->decided_channel);
    jsonw_kv_u64(w, "claimed_ms", t->claimed_ms);
    if (t->has_outcome) {
        jsonw_kv_u64(w, "bytes_out", t->bytes_out);
        jsonw_kv_u64(w, "bytes_in", t->bytes_in);
        jsonw_kv_bool(w, "delivered", t->delivered);
    }
}

/* Of what may still be sent: is there somebody to take the answer? */
static void client_json(struct jsonw *w, const struct ticket *t)
{
    if (!span_eq(t->state, SPAN("pending")) && !span_eq(t->state, SPAN("approved")))
        return;
    jsonw_kv_object(w, "client");
    jsonw_kv_bool(w, "waits", t->asker.waits);
    jsonw_kv_u64(w, "since_ms", t->asker.since_ms);
    if (t->asker.waits)
        jsonw_kv_u64(w, "until_ms", t->asker.until_ms);
    jsonw_kv_bool(w, "later", t->asker.later);
    jsonw_end_object(w);
}

/* Who is looking at it; a word to the others alone. */
static void claim_json(struct jsonw *w, const struct ticket *t)
{
    if (t->looking.by.n == 0)
        return;
    jsonw_kv_object(w, "claim");
    jsonw_kv(w, "by", t->looking.by);
    jsonw_kv_u64(w, "since_ms", t->looking.since_ms);
    jsonw_kv_u64(w, "until_ms", t->looking.until_ms);
    jsonw_end_object(w);
}

static void ticket_members(struct jsonw *w, const struct ticket *t, bool full)
{
    jsonw_kv(w, "id", t->id);
    jsonw_kv(w, "state", t->state);
    jsonw_kv(w, "sandbox", t->sandbox);
    jsonw_kv(w, "session", t->session);
    jsonw_kv(w, "op", t->op);
    jsonw_kv(w, "effect", t->effect);
    jsonw_kv(w, "summary", t->summary);
    jsonw_kv(w, "resource", t->resource);
    jsonw_kv(w, "method", t->method);
    jsonw_kv(w, "scheme", t->scheme);
    jsonw_kv(w, "host", t->host);
    jsonw_kv_u64(w, "port", t->port);
    jsonw_kv(w, "path", t->path);
    if (t->has_query)
        jsonw_kv(w, "query", t->query);
    jsonw_kv(w, "credential", t->credential);
    rule_json(w, t);
    jsonw_kv_bool(w, "reason_required", t->reason_required);
    jsonw_kv_u64(w, "body_size", t->body_size);
    kv_hex(w, "digest", t->digest);
    jsonw_kv_u64(w, "created_ms", t->created_ms);
    jsonw_kv_u64(w, "expires_ms", t->expires_ms);
    client_json(w, t);
    claim_json(w, t);
    if (t->escalated_ms)
        jsonw_kv_u64(w, "escalated_ms", t->escalated_ms);
    jsonw_kv_u64(w, "decided_ms", t->decided_ms);
    jsonw_kv(w, "decided_by", t->decided_by);
    jsonw_kv(w, "decided_reason", t->decided_reason);
    jsonw_kv_u64(w, "ended_ms", t->ended_ms);
    if (t->has_outcome)
        jsonw_kv_u64(w, "status", t->status);
    if (full)
        full_json(w, t);
}

void api_ticket_json(struct jsonw *w, const struct ticket *t, bool full)
{
    jsonw_object(w);
    ticket_members(w, t, full);
    jsonw_end_object(w);
}

static int list_row(void *ctx, const struct ticket *t)
{
    api_ticket_json(ctx, t, false);
    return 0;
}

void api_tickets(struct exchange *x)
{
    struct ticket_filter f = {.limit = 100};
    struct span limit;
    struct jsonw w;
    struct err e;
    uint64_t n = f.limit;

    if (query_field(x, "state", &f.state) != 0 || query_field(x, "after", &f.after) != 0 ||
        query_field(x, "prefix", &f.prefix) != 0 || query_field(x, "limit", &limit) != 0)
        return;
    if (limit.n && (span_u64(limit, STORE_ROWS_MAX, &n) != 0 || n == 0)) {
        reply_problem(x, 400, "Bad request", "limit is a number from 1 to %d", STORE_ROWS_MAX);
        return;
    }
    f.limit = (size_t)n;
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "tickets");
    int rc = desk_store_tickets(x->desk->store, &f, &x->arena, list_row, &w, &e);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_unable(x, &e);
}

int api_ticket_find(struct exchange *x, struct ticket *t)
{
    struct err e;
    struct id id;
    int rc = id_parse(x->arg, &id) == 0 ? desk_store_ticket(x->desk->store, x->arg, &x->arena, t, &e) : 0;

    if (rc == 1)
        return 0;
    if (rc < 0)
        reply_unable(x, &e);
    else
        reply_problem(x, 404, "No such ticket", "no ticket has this id");
    return -1;
}

static void flag_json(struct jsonw *w, const struct flag *f)
{
    jsonw_object(w);
    jsonw_kv(w, "words", span_str(f->words));
    jsonw_kv(w, "about", f->name);
    jsonw_kv(w, "value", span_first(f->value, FLAG_SAID));
    jsonw_kv_bool(w, "blocks", f->blocks);
    jsonw_end_object(w);
}

static int gate_json(void *ctx, const struct gate_row *g)
{
    struct jsonw *w = ctx;

    jsonw_object(w);
    jsonw_kv(w, "name", g->name);
    jsonw_kv(w, "state", g->state);
    jsonw_kv(w, "words", g->words);
    jsonw_kv_u64(w, "at_ms", g->at_ms);
    jsonw_end_object(w);
    return 0;
}

/* With what the page says first of it, and what a yes needs. */
static void read_json(struct exchange *x, struct view *v)
{
    const char *waits = diffs_refuse(x->desk, &v->t);
    struct span name = deciding_name(v);
    struct jsonw w;
    struct err e;

    if (waits)
        reading_block(&v->r, waits, SPAN_NONE, SPAN_NONE);
    if (reading_pictures(&v->r) > 0)
        reading_block(&v->r, DECIDING_PICTURE, SPAN_NONE, SPAN_NONE);
    reply_json(x, 200, &w);
    jsonw_object(&w);
    ticket_members(&w, &v->t, true);
    diffs_json(&w, x->desk, &v->t);
    people_asked_json(x, &v->t, &w);
    jsonw_kv_array(&w, "gates");
    if (v->t.gates > 0 && desk_store_gates(x->desk->store, v->t.id, &x->arena, gate_json, &w, &e) != 0)
        jsonw_string(&w, SPAN("cannot be looked up now"));
    jsonw_end_array(&w);
    jsonw_kv_object(&w, "reading");
    jsonw_kv_bool(&w, "blocks", v->r.blocks || !v->there);
    jsonw_kv_array(&w, "flags");
    for (size_t i = 0; i < v->r.nflags; i++)
        flag_json(&w, &v->r.flag[i]);
    jsonw_end_array(&w);
    if (name.n)
        jsonw_kv(&w, "name", name);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
}

void api_ticket(struct exchange *x)
{
    struct span reading;
    struct ticket t;
    struct jsonw w;

    if (query_field(x, "reading", &reading) != 0 || api_ticket_find(x, &t) != 0)
        return;
    if (reading.n) {
        deciding_read(x, &t, NULL, read_json);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    ticket_members(&w, &t, true);
    people_asked_json(x, &t, &w);
    diffs_json(&w, x->desk, &t);
    jsonw_end_object(&w);
}

/* --- bodies --------------------------------------------------------------- */

void api_body_ask(struct exchange *x, const struct id *id, ask_fn *fn)
{
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_BODY_GET, M_BODY_IS, fn);
    if (!b)
        return;
    msg_put_id(b, id);
    ask_send(x);
}

int api_body_read(struct frame *f, struct body *b)
{
    *b = (struct body){.fd = -1};
    if (!f)
        return -1;
    struct msg_in m = msg_in(f->payload);
    bool ok = msg_get_bool(&m);
    b->size = msg_get_u64(&m);
    b->bytes = msg_get_span(&m, BODY_INLINE_MAX);
    if (msg_end(&m) != 0 || !ok)
        return -1;
    if (b->bytes.n == b->size)
        return 0;
    struct stat st;
    b->fd = frame_take_fd(f, 0);
    if (b->fd >= 0 && fstat(b->fd, &st) == 0 && (uint64_t)st.st_size == b->size)
        return 0;
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
    return -1;
}

/* As a download and never as a document: whatever the bytes are, no browser renders them. */
static void body_came(struct exchange *x, struct frame *f)
{
    struct body b;

    if (api_body_read(f, &b) != 0) {
        reply_problem(x, f ? 410 : 503, f ? "No longer kept" : "Not possible now",
                      f ? "this ticket's body is not kept any more"
                        : "the ledger did not answer; try again in a moment");
        return;
    }
    x->status = 200;
    x->type = "text/plain; charset=utf-8";
    (void)snprintf(x->download, sizeof(x->download), "%.*s.txt", SPAN_FMT(x->arg));
    dynbuf_reset(&x->out);
    if (b.fd < 0) {
        (void)dynbuf_add(&x->out, b.bytes);
        return;
    }
    x->file = b.fd;
    x->file_size = b.size;
}

void api_ticket_body(struct exchange *x)
{
    struct ticket t;
    struct id id;

    if (api_ticket_find(x, &t) != 0 || id_parse(x->arg, &id) != 0)
        return;
    if (t.body_size > 0) {
        api_body_ask(x, &id, body_came);
        return;
    }
    reply_empty(x, 200);
    x->type = "text/plain; charset=utf-8";
}

/* --- deciding ------------------------------------------------------------- */

/* Of what the page, or the terminal, shows of it: a ticket's row does not change in that. All zero: it cannot be read
 * now, and the ledger will say so. */
static void facts_shown(struct exchange *x, const struct id *id, struct digest *out)
{
    char text[ID_TEXT + 1];
    struct ticket t;
    struct err e;

    id_text(id, text);
    *out = (struct digest){{0}};
    if (x->slack)
        return; /* they were shown less than all that */
    if (desk_store_ticket(x->desk->store, span_of(text, ID_TEXT), &x->arena, &t, &e) == 1)
        people_facts(&t, out);
}

void api_decide(struct exchange *x, const struct id *id, enum choice what, struct span reason,
                const struct digest *shown, const char *channel, ask_fn *fn)
{
    api_decide_more(x, id, what, reason, shown, (struct grant_ask){0}, channel, fn);
}

void api_decide_more(struct exchange *x, const struct id *id, enum choice what, struct span reason,
                     const struct digest *shown, struct grant_ask more, const char *channel, ask_fn *fn)
{
    struct digest facts;

    facts_shown(x, id, &facts);
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_DECIDE, M_DECIDED, fn);
    if (!b)
        return;
    msg_put_id(b, id);
    msg_put_u8(b, (uint8_t)what);
    msg_put_span(b, span_str(x->operator));
    msg_put_span(b, span_str(channel));
    msg_put_span(b, span_str(who_how(x)));
    msg_put_span(b, reason);
    msg_put_digest(b, shown);
    msg_put_digest(b, &facts);
    msg_put_span(b, x->passkey);
    msg_put_u32(b, more.uses);
    msg_put_u64(b, more.for_ms);
    msg_put_span(b, what == DECIDE_APPROVE ? x->instead_of : SPAN_NONE);
    ask_send(x);
}

unsigned api_decided(struct frame *f, const char **state, const char **why)
{
    static const struct {
        unsigned status;
        const char *why;
    } answers[] = {
        {503, "the ledger could not write it down, so nothing was decided; try again"},
        {200, NULL},
        {409, "it is not pending any more: it was decided, it expired, or it was withdrawn; look at it again"},
        {404, "no ticket has this id"},
        {409, "it has expired; the agent has to ask again"},
        {409, "the request is not the one that was shown: load it again and look at what it says now"},
        {422, "the rule that held this wants a reason with an approval"},
        {422,
         "no such grant may be given with it: its rule allows fewer, or less time, or none; or its sandbox began "
         "anew, or has as many grants as it may have; and a deputy gives none; nothing was decided"},
        {200, NULL},
        {403,
         "it is of a sandbox of your own, or of somebody whose deputy you are or who is yours: somebody else must "
         "approve it (the rule says whether its owner may)"},
        {403,
         "only people count for this: sign in by name (countersign operator), not as a user of this machine; nothing "
         "was decided"},
        {409, "you have agreed to it already, or your deputy has, or whose deputy you are: that counts once; "
              "somebody else "
              "must, too"},
        {403, "the rule that held it wants a passkey: approve it on its page, with yours; nothing was decided"},
        {409, "a gate has not answered yet (the ticket says which): try again in a moment; nothing was decided"},
        {403, "you are not the deputy of that person, or not any more; nothing was decided"},
        {403,
         "the rule that held it wants the passkey of somebody whom it names, and no deputy's stands for that: one "
         "of these must approve it, in their own name; nothing was decided"},
    };
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    uint8_t code = msg_get_u8(&m), st = msg_get_u8(&m);

    *state = ticket_state_name(st);
    if (msg_end(&m) != 0 || code >= sizeof answers / sizeof answers[0]) {
        *why = "the ledger did not answer: whether it was decided is not known; look at the ticket again";
        return 503;
    }
    *why = answers[code].why;
    return answers[code].status;
}

static void decided(struct exchange *x, struct frame *f)
{
    const char *state, *why;
    unsigned status = api_decided(f, &state, &why);
    struct jsonw w;

    if (status != 200) {
        reply_problem(x, status, "Not decided", "%s", why);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "id", x->arg);
    jsonw_kv(&w, "state", span_str(state));
    jsonw_end_object(&w);
}

/* What a yes was said with, kept while the body is asked for. */
struct yes {
    struct span reason, name;
    struct digest shown;
    struct grant_ask more;
};

static void judged(struct exchange *x, struct view *v)
{
    const struct yes *yes = deciding_own(x);
    unsigned status = 0;
    const char *why =
        yes->more.uses ? grants_refuse(x, v, yes->name, &status) : deciding_refuses(x, v, yes->name, &status);
    struct id id;

    if (why)
        reply_problem(x, status, status == 422 ? "Name needed" : "Cannot be approved", "%s", why);
    else if (id_parse(v->t.id, &id) == 0)
        api_decide_more(x, &id, DECIDE_APPROVE, yes->reason, &yes->shown, yes->more, "cli", decided);
}

static void decide(struct exchange *x, enum choice what)
{
    struct member m[] = {{"digest", JSON_STRING, true, NULL},  {"reason", JSON_STRING, false, NULL},
                         {"name", JSON_STRING, false, NULL},   {"uses", JSON_NUMBER, false, NULL},
                         {"for_ms", JSON_NUMBER, false, NULL}, {"deputy_for", JSON_STRING, false, NULL}};
    uint64_t uses = 0, for_ms = 0;
    struct yes *yes = arena_alloc(&x->arena, sizeof *yes);
    struct ticket t;
    struct id id;

    if (!yes) {
        reply_problem(x, 503, "Not possible now", "there is no memory for this");
        return;
    }
    *yes = (struct yes){.reason = SPAN_NONE};
    if (body_members(x, m, what == DECIDE_APPROVE ? 6 : 2) != 0 || api_number(x, &m[3], &uses, 1, UINT32_MAX) != 0 ||
        api_number(x, &m[4], &for_ms, 1, UINT32_MAX) != 0 ||
        (m[1].value && reason_clean(x, m[1].value->text, &yes->reason) != 0))
        return;
    if (hex_parse(m[0].value->text, yes->shown.b, DIGEST_BYTES) != 0) {
        reply_problem(x, 400, "Bad request", "`digest` is the ticket's digest, %d hexadecimal digits",
                      2 * DIGEST_BYTES);
        return;
    }
    if ((uses != 0) != (for_ms != 0)) {
        reply_problem(x, 400, "Bad request", "`uses` and `for_ms` belong together");
        return;
    }
    yes->more = (struct grant_ask){(uint32_t)uses, for_ms};
    yes->name = m[2].value ? m[2].value->text : SPAN_NONE;
    if (api_ticket_find(x, &t) != 0 || id_parse(x->arg, &id) != 0)
        return;
    if (what == DECIDE_DENY)
        api_decide(x, &id, what, yes->reason, &yes->shown, "cli", decided);
    else if (t.reason_required && yes->reason.n == 0)
        reply_problem(x, 422, "Reason needed", "the rule that held this wants a reason with an approval");
    else if (!api_may_approve(x, &t, m[5].value ? m[5].value->text : SPAN_NONE))
        reply_problem(x, 403, "Not yours to approve", "the rule that held this names who may approve it");
    else
        deciding_read(x, &t, yes, judged);
}

void api_approve(struct exchange *x)
{
    decide(x, DECIDE_APPROVE);
}

void api_deny(struct exchange *x)
{
    decide(x, DECIDE_DENY);
}
