#include "proxy/judge/tickets/ticket.h"

#include "common/json/json.h"
#include "proxy/identity.h"
#include "proxy/judge/tickets/digest.h"
#include "proxy/judge/evaluation/rate_limit.h"
#include "proxy/judge/evaluation/signing.h"
#include "proxy/judge/tickets/later.h"
#include "proxy/judge/tickets/push_facts.h"
#include "proxy/judge/tickets/retry.h"
#include "proxy/judge/tickets/shape.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/outbound.h"

/* What a message holds beside the request, the body and the facts. */
enum { REST_MAX = 32 * 1024, FACTS_END = 512, LIMIT_WORDS = 2048 };

/* The request as it will leave: what the ticket shows, the digest covers and the carrier sends. plain: its answer
 * must be one that can be looked at, as that of JSON-RPC, which is given the id of the retry that collects it. */
static void as_it_leaves(struct policy *p, int credential, bool plain, struct wire_request *r)
{
    struct credential c;
    struct outbound l = outbound_of(r, false, SPAN_NONE, plain || policy_host_bound(p, r->scheme, r->host, r->port));
    if (credential >= 0 && policy_credential(p, (size_t)credential, &c) && !c.certificate) {
        l.beside = true;
        signing_slots(p, &c, &l);
    }
    outbound_apply(&l, r);
}

/* r is as it leaves. What is held for being past a limit may be so by other rules the next time: who may approve it
 * is then part of what it is. Of a body in signed chunks a retry repeats the data, not the signatures; data: room for
 * the digest of it. */
static struct digest_input input_of(const struct exchange *x, const struct decision *d, const struct wire_request *r,
                                    struct span credential, struct digest *data)
{
    bool chunks = d->join_body.n == 0 && signing_join(x, data);
    bool past = span_eq(span_str(d->code), SPAN("over-limit"));
    return (struct digest_input){
        .session = x->sandbox->session,
        .credential = credential,
        .request = r,
        .body = body_bytes(x->body),
        .has_join_body = chunks || d->join_body.n != 0,
        .join_body = chunks ? span_of(data->b, DIGEST_BYTES) : d->join_body,
        .rule = d->rule.id,
        .approve_by = past ? d->approve_by : SPAN_NONE,
        .op = d->op,
    };
}

void ticket_digests(struct exchange *x)
{
    refuse_keep_signature(x);
    as_it_leaves(x->now.image->policy, x->now.d.credential, x->rpc_id.n > 0, &x->request);
    struct digest data;
    struct digest_input in = input_of(x, &x->now.d, &x->request, x->now.credential, &data);
    request_digest(&in, &x->digest);
    request_join_key(&in, &x->join);
}

void ticket_join(struct exchange *x, const struct decision *d, struct digest *join)
{
    struct policy *p = x->now.image->policy;
    struct wire_request r = x->request;
    struct credential c = {.name = SPAN_NONE};
    as_it_leaves(p, d->credential, false, &r); /* no key has what answers are asked for */
    if (d->credential >= 0 && !policy_credential(p, (size_t)d->credential, &c))
        c.name = SPAN_NONE;
    struct digest data;
    struct digest_input in = input_of(x, d, &r, c.name, &data);
    request_join_key(&in, join);
}

static size_t request_size(const struct wire_request *r)
{
    size_t n = 128 + r->host.n + r->path.n + r->query.n;
    for (size_t i = 0; i < r->nfields; i++)
        n += 8 + r->field[i].name.n + r->field[i].value.n;
    return n;
}

/* What the page shows as the reason of the hold; it must come first, where no fact of a request's own can stand. */
static void limit_row(struct exchange *x, struct jsonw *w, size_t room)
{
    struct dynbuf b;
    if (x->exceeded == NULL || x->exceeded->n == 0)
        return;
    dynbuf_init(&b, LIMIT_WORDS);
    dynbuf_addf(&b, "Rule %.*s: ", SPAN_FMT(x->exceeded->past[0].rule));
    dynbuf_add(&b, rate_limit_words(x));
    if (dynbuf_ok(&b))
        (void)fact_row(w, room, SPAN("Limit"), dynbuf_span(&b));
    dynbuf_free(&b);
}

/* In whose name it is sent, where that is not the policy's business: the sandbox brought it. */
static void own_rows(struct exchange *x, struct jsonw *w, size_t room)
{
    struct dynbuf b;
    dynbuf_init(&b, REST_MAX);
    for (size_t i = 0; i < x->request.nfields; i++) {
        const struct http_field *f = &x->request.field[i];
        if (!outbound_is_credential(f->name))
            continue;
        dynbuf_reset(&b);
        dynbuf_addf(&b, "%.*s: ", SPAN_FMT(span_first(f->name, 64)));
        outbound_mask(f->name, f->value, &b);
        if (dynbuf_ok(&b))
            (void)fact_row(w, room, SPAN("The sandbox's own credential"), dynbuf_span(&b));
    }
    dynbuf_free(&b);
}

/* What the policy found, then what the pack of a push holds. */
static struct span facts_json(struct exchange *x, size_t room)
{
    const struct decision *d = &x->now.d;
    struct dynbuf b;
    struct jsonw w;
    struct span out, body = body_bytes(x->body);
    size_t i = 0;
    room = room < TICKET_FACTS_MAX ? room : TICKET_FACTS_MAX;
    dynbuf_init(&b, room);
    jsonw_begin(&w, &b);
    jsonw_array(&w);
    limit_row(x, &w, room - FACTS_END);
    own_rows(x, &w, room - FACTS_END);
    if (d->upgrade)
        (void)fact_row(&w, room - FACTS_END, SPAN("WebSocket"), websocket_words(x));
    while (i < d->nfacts && fact_row(&w, room - FACTS_END, d->facts[i].label, d->facts[i].value))
        i++;
    if (i < d->nfacts)
        (void)fact_row(&w, room, SPAN("More"), SPAN("There is more than can be listed here: see the body."));
    else if (d->push != NULL && body.n > d->join_body.n)
        push_facts(&w, room - FACTS_END, d->push, span_from(body, d->join_body.n));
    jsonw_end_array(&w);
    if (dialect_keep(&b, &x->arena, &out) != 0)
        return SPAN("[{\"label\":\"facts\",\"value\":\"could not be listed: see the body\"}]");
    return out;
}

/* Reading a pack takes long, and whoever is held may ask again at any rate: only a new ticket is worth it. */
static bool facts_can_wait(const struct exchange *x)
{
    return x->now.d.push != NULL && body_bytes(x->body).n > x->now.d.join_body.n && x->claim != CLAIM_FACTS_DUE;
}

static int keep_rpc_id(struct exchange *x)
{
    struct retry t;
    retry_of(&x->request, body_bytes(x->body), &t);
    x->rpc_id = arena_copy(&x->arena, span_of(t.id, t.nid));
    return x->rpc_id.n == t.nid && (t.nid == 0 || x->rpc_id.p != NULL) ? 0 : -1;
}

struct span ticket_answer_id(const struct exchange *x)
{
    struct retry t = {.nid = 0};
    if (x->rpc_id.n)
        retry_of(&x->request, body_bytes(x->body), &t);
    return t.nid && !span_eq(span_of(t.id, t.nid), x->rpc_id) ? x->rpc_id : SPAN_NONE;
}

/* Whose yes it needs, and what is asked of it first. -1: no digest can be made. */
static int people_of(const struct policy *p, const struct decision *d, struct wire_ticket *t)
{
    struct escalation e[ESCALATE_MAX];
    struct gate g;
    size_t n = policy_escalations(p, d, e);
    t->people = (struct wire_people){.quorum = (uint8_t)d->approval.quorum,
                                     .self = (uint8_t)d->approval.self,
                                     .step_up = d->approval.step_up,
                                     .diff = (uint8_t)d->approval.diff};
    for (size_t i = 0; i < n && i < WIRE_ESCALATE_MAX; i++) {
        t->people.escalate.step[i].after_ms = e[i].after_ms;
        t->people.escalate.step[i].to = e[i].to;
        t->people.escalate.n = i + 1;
    }
    t->gates.n = 0;
    for (size_t i = 0; i < GATES_MAX && policy_gate(p, i, &g); i++)
        if (d->approval.gates >> i & 1) {
            if (identity_of_gate(p, &g, &t->gates.of[t->gates.n]) != 0)
                return -1;
            t->gates.name[t->gates.n++] = g.name;
        }
    return 0;
}

int ticket_open(struct exchange *x)
{
    struct judge *j = x->judge;
    const struct decision *d = &x->now.d;
    struct dialect_client client = refuse_client(x);
    struct digest data;
    struct record_text text;
    struct wire_ticket t;
    struct wire_limits limits;
    bool inl = body_kind(x->body) == BODY_INLINE;
    struct span body = body_bytes(x->body);
    size_t n = REST_MAX + request_size(&x->request) + (inl ? body.n : 0);
    if (n > CHAN_PAYLOAD_MAX)
        return -2;
    if (keep_rpc_id(x) != 0 || identity_of_terms(x->now.image->policy, d, &t.terms) != 0)
        return -1;
    later_wanted(x);
    ticket_digests(x);
    struct digest_input in = input_of(x, d, &x->request, x->now.credential, &data);
    record_fill(x, &t.record, &text);
    t.join = x->join;
    t.request = x->request;
    t.summary = span_first(d->summary, TICKET_SUMMARY_MAX);
    t.facts_json = facts_can_wait(x) ? SPAN_NONE : facts_json(x, CHAN_PAYLOAD_MAX - n);
    t.take_back = x->elicit.declined;
    t.agent_reason = t.take_back ? x->elicit.reason : x->reason;
    t.approve_by = d->approve_by;
    t.dialect = span_str(dialect_name(dialect_of(&client)));
    shape_of(x->now.image->policy, d, &in, &x->arena, &t.shape);
    later_wire(x, &t.later);
    t.reason_required = d->reason_required;
    if (people_of(x->now.image->policy, d, &t) != 0)
        return -1;
    t.within_ms = d->within_ms ? d->within_ms : j->config.expires_ms;
    struct dynbuf *b = post_begin(j, ROLE_LEDGER, 0, M_TICKET_OPEN, x->xid);
    wire_put_ticket(b, &t);
    rate_limit_wire(x, &limits);
    wire_put_limits(b, &limits);
    msg_put_u64(b, body.n);
    msg_put_span(b, inl ? body : SPAN_NONE);
    if (post_commit(j, body_fd(x->body)) != 0)
        return -1;
    exchange_claim(x, x->claim == CLAIM_FACTS_DUE ? CLAIM_ASKED_AGAIN : CLAIM_ASKED);
    exchange_wait(x, X_TICKET, TICKET_WAIT_MS);
    return 0;
}

int ticket_claim(struct exchange *x)
{
    struct digest terms;
    if (identity_of_terms(x->now.image->policy, &x->now.d, &terms) != 0)
        return -1;
    struct dynbuf *b = post_begin(x->judge, ROLE_LEDGER, 0, M_CLAIM, x->xid);
    msg_put_id(b, &x->ticket.ticket);
    msg_put_span(b, x->now.credential);
    msg_put_span(b, x->request.host);
    msg_put_u16(b, x->request.port);
    msg_put_digest(b, &x->now.image->digest);
    msg_put_span(b, x->now.d.rule.id);
    msg_put_digest(b, &terms);
    wire_put_step(b, &x->by);
    msg_put_id(b, &x->lease);
    if (post_commit(x->judge, -1) != 0)
        return -1;
    exchange_claim(x, CLAIM_MADE);
    exchange_wait(x, X_CLAIM, TICKET_WAIT_MS);
    return 0;
}

void ticket_void(struct exchange *x, const char *why)
{
    struct dynbuf *b = post_begin(x->judge, ROLE_LEDGER, 0, M_TICKET_VOID, x->xid);
    msg_put_id(b, &x->ticket.ticket);
    msg_put_span(b, span_str(why));
    post_send(x->judge, "a ticket the policy no longer allows could not be cancelled");
}

/* With the id that this client waits for. */
static int with_own_id(struct exchange *x, struct wire_reply *r)
{
    struct rpc_answer a;
    struct dynbuf b;
    struct span type = SPAN_NONE;
    bool coded = false;
    for (size_t i = 0; i < r->head.nfields; i++) {
        coded |= span_ieq(r->head.field[i].name, SPAN("content-encoding"));
        if (span_ieq(r->head.field[i].name, SPAN("content-type")))
            type = r->head.field[i].value;
    }
    rpc_answer_begin(&a, type);
    int rc = 0;
    if (x->rpc_id.n && a.is && !coded) {
        dynbuf_init(&b, ANSWER_KEPT_MAX + RPC_ID_MAX);
        rc = rpc_answer_feed(&a, x->rpc_id, r->body, true, &b) != 0 ? -1 : 0;
        if (dialect_keep(&b, &x->arena, &r->body) != 0)
            rc = -1;
    }
    rpc_answer_end(&a);
    return rc;
}

int ticket_replay(struct exchange *x)
{
    struct wire_reply r = {0};
    struct msg_in m = msg_in(x->answer);
    if (wire_get_answer(&m, &r.head) != 0)
        return -1;
    uint64_t size = msg_get_u64(&m);
    r.body = msg_get_span(&m, ANSWER_KEPT_MAX);
    if (msg_end(&m) != 0 || r.body.n != size || with_own_id(x, &r) != 0)
        return -1;
    reply_own(x, &r);
    x->now.d.code = "answer-kept";
    return 0;
}
