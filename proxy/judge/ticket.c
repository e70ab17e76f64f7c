#include "proxy/judge/ticket.h"

#include "common/json/json.h"
#include "common/log.h"
#include "proxy/judge/digest.h"
#include "proxy/judge/push_facts.h"
#include "proxy/judge/record.h"
#include "proxy/judge/refuse.h"
#include "proxy/leaving.h"

/* What a message holds beside the request, the body and the facts. */
enum { REST_MAX = 24 * 1024, FACTS_END = 512 };

/* From here on the request is as it will leave: what the ticket shows, the digest covers and the carrier sends. */
static void as_it_leaves(struct exchange *x)
{
    struct policy *p = x->now.image->policy;
    struct credential c;
    struct leaving l = {.secrets = policy_host_bound(p, x->request.scheme, x->request.host, x->request.port)};
    if (x->now.d.credential >= 0 && policy_credential(p, (size_t)x->now.d.credential, &c) && !c.certificate)
        l.slot = c.header.n ? c.header : SPAN("Authorization");
    leaving_apply(&l, &x->request);
}

void ticket_digests(struct exchange *x)
{
    as_it_leaves(x);
    struct digest_input in = {
        .session = x->sandbox->session,
        .credential = x->now.credential,
        .request = &x->request,
        .body = x->body.bytes,
        .has_join_body = x->now.d.join_body.n != 0,
        .join_body = x->now.d.join_body,
        .rule = x->now.d.rule.id,
        .op = x->now.d.op,
    };
    request_digest(&in, &x->digest);
    request_join_key(&in, &x->join);
}

static size_t request_size(const struct wire_request *r)
{
    size_t n = 128 + r->host.n + r->path.n + r->query.n;
    for (size_t i = 0; i < r->nfields; i++)
        n += 8 + r->field[i].name.n + r->field[i].value.n;
    return n;
}

/* What the policy found, then what the pack of a push holds. */
static struct span facts_json(struct exchange *x, size_t room)
{
    const struct decision *d = &x->now.d;
    struct dynbuf b;
    struct jsonw w;
    struct span out;
    size_t i = 0;
    room = room < TICKET_FACTS_MAX ? room : TICKET_FACTS_MAX;
    dynbuf_init(&b, room);
    jsonw_begin(&w, &b);
    jsonw_array(&w);
    if (d->upgrade)
        (void)fact_row(&w, room - FACTS_END, SPAN("WebSocket"), websocket_words(x));
    while (i < d->nfacts && fact_row(&w, room - FACTS_END, d->facts[i].label, d->facts[i].value))
        i++;
    if (i < d->nfacts)
        (void)fact_row(&w, room, SPAN("More"), SPAN("There is more than can be listed here: see the body."));
    else if (d->push != NULL && x->body.bytes.n > d->join_body.n)
        push_facts(&w, room - FACTS_END, d->push, span_from(x->body.bytes, d->join_body.n));
    jsonw_end_array(&w);
    if (dialect_keep(&b, &x->arena, &out) != 0)
        return SPAN("[{\"label\":\"facts\",\"value\":\"could not be listed: see the body\"}]");
    return out;
}

int ticket_open(struct exchange *x)
{
    struct judge *j = x->judge;
    const struct decision *d = &x->now.d;
    uint8_t path[RECORD_PATH_MAX];
    struct wire_ticket t;
    bool inl = x->body.kind == BODY_INLINE;
    size_t n = REST_MAX + request_size(&x->request) + (inl ? x->body.bytes.n : 0);
    if (n > CHAN_PAYLOAD_MAX)
        return -2;
    ticket_digests(x);
    record_fill(x, &t.record, path);
    t.join = x->join;
    t.request = x->request;
    t.summary = span_first(d->summary, TICKET_SUMMARY_MAX);
    t.facts_json = facts_json(x, CHAN_PAYLOAD_MAX - n);
    t.agent_reason = x->reason;
    t.approve_by = d->approve_by;
    t.dialect = span_str(dialect_name(d->dialect));
    t.reason_required = d->reason_required;
    t.within_ms = d->within_ms ? d->within_ms : j->config.expires_ms;
    struct dynbuf *b = j->ports.begin(j->ports.arg, ROLE_LEDGER, 0, M_TICKET_OPEN, x->xid);
    if (b == NULL)
        return -1;
    wire_put_ticket(b, &t);
    msg_put_u64(b, x->body.bytes.n);
    msg_put_span(b, inl ? x->body.bytes : SPAN_NONE);
    if (judge_commit_ledger(j, x->body.kind == BODY_FD ? x->body.fd : -1) != 0)
        return -1;
    exchange_wait(x, X_TICKET, TICKET_WAIT_MS);
    return 0;
}

int ticket_claim(struct exchange *x)
{
    struct judge *j = x->judge;
    struct dynbuf *b = j->ports.begin(j->ports.arg, ROLE_LEDGER, 0, M_CLAIM, x->xid);
    if (b == NULL)
        return -1;
    msg_put_id(b, &x->ticket.ticket);
    msg_put_span(b, x->now.credential);
    msg_put_span(b, x->request.host);
    msg_put_u16(b, x->request.port);
    msg_put_digest(b, &x->now.image->digest);
    msg_put_span(b, x->now.d.rule.id);
    if (judge_commit_ledger(j, -1) != 0)
        return -1;
    exchange_wait(x, X_CLAIM, TICKET_WAIT_MS);
    return 0;
}

void ticket_void(struct exchange *x, const char *why)
{
    struct judge *j = x->judge;
    struct dynbuf *b = j->ports.begin(j->ports.arg, ROLE_LEDGER, 0, M_TICKET_VOID, x->xid);
    if (b == NULL)
        return;
    msg_put_id(b, &x->ticket.ticket);
    msg_put_span(b, span_str(why));
    if (judge_commit_ledger(j, -1) != 0)
        log_warn("a ticket the policy no longer allows could not be cancelled");
}

int ticket_replay(struct exchange *x)
{
    struct wire_reply r = {0};
    struct msg_in m = msg_in(x->answer);
    if (wire_get_answer(&m, &r.head) != 0)
        return -1;
    uint64_t size = msg_get_u64(&m);
    r.body = msg_get_span(&m, ANSWER_KEPT_MAX);
    if (msg_end(&m) != 0 || r.body.n != size)
        return -1;
    if (x->front && !x->client_gone)
        reply_send(x->judge, x->front->instance, x->xid, &r);
    x->replied = true;
    x->now.d.code = "answer-kept";
    return 0;
}
