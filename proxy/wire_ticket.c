#include "proxy/wire_ticket.h"

enum { NAME_BYTES = 256, CODE_BYTES = 64, PATH_BYTES = 2048, FACTS_BYTES = 256 * 1024, WORDS_BYTES = 4096 };
enum { RULE_BYTES = 256, MEASURE_BYTES = 8 * 1024 };
enum { TYPE_BYTES = 100, SHAPE_BYTES = 8 * 1024, REFS_BYTES = 1024, RANGE_BYTES = 96 };

static int ok(const struct msg_in *m)
{
    return m->bad ? -1 : 0;
}

void wire_put_record(struct dynbuf *b, const struct wire_record *r)
{
    msg_put_span(b, r->sandbox);
    msg_put_span(b, r->session);
    msg_put_span(b, r->method);
    msg_put_span(b, r->scheme);
    msg_put_span(b, r->host);
    msg_put_span(b, span_first(r->path, PATH_BYTES));
    msg_put_u16(b, r->port);
    msg_put_span(b, r->verdict);
    msg_put_span(b, r->code);
    msg_put_span(b, r->cause);
    msg_put_span(b, r->op);
    msg_put_span(b, r->effect);
    msg_put_span(b, span_first(r->resource, PATH_BYTES));
    msg_put_span(b, r->credential);
    msg_put_span(b, r->rule.id);
    /* Of a long path the end says which file it is. */
    msg_put_span(b, span_from(r->rule.file, r->rule.file.n > NAME_BYTES ? r->rule.file.n - NAME_BYTES : 0));
    msg_put_u32(b, r->rule.line);
    msg_put_digest(b, &r->policy);
    msg_put_digest(b, &r->request);
    msg_put_u8(b, r->has_body);
    msg_put_u8(b, r->upgrade);
    msg_put_span(b, span_first(r->content_type, TYPE_BYTES));
    msg_put_span(b, r->refs);
    msg_put_span(b, span_first(r->range, RANGE_BYTES));
    msg_put_span(b, span_first(r->range_sent, RANGE_BYTES));
    msg_put_u64(b, r->generation);
    wire_put_step(b, &r->by);
    msg_put_id(b, &r->lease);
    msg_put_u8(b, r->shadow);
}

int wire_get_record(struct msg_in *m, struct wire_record *r)
{
    r->sandbox = msg_get_span(m, NAME_BYTES);
    r->session = msg_get_span(m, NAME_BYTES);
    r->method = msg_get_span(m, CODE_BYTES);
    r->scheme = msg_get_span(m, 5);
    r->host = msg_get_span(m, HTTP_HOST_MAX);
    r->path = msg_get_span(m, PATH_BYTES);
    r->port = msg_get_u16(m);
    r->verdict = msg_get_span(m, CODE_BYTES);
    r->code = msg_get_span(m, CODE_BYTES);
    r->cause = msg_get_span(m, CODE_BYTES);
    r->op = msg_get_span(m, NAME_BYTES);
    r->effect = msg_get_span(m, CODE_BYTES);
    r->resource = msg_get_span(m, PATH_BYTES);
    r->credential = msg_get_span(m, NAME_BYTES);
    r->rule.id = msg_get_span(m, NAME_BYTES);
    r->rule.file = msg_get_span(m, NAME_BYTES);
    r->rule.line = msg_get_u32(m);
    msg_get_digest(m, &r->policy);
    msg_get_digest(m, &r->request);
    r->has_body = msg_get_bool(m);
    r->upgrade = msg_get_bool(m);
    r->content_type = msg_get_span(m, TYPE_BYTES);
    r->refs = msg_get_span(m, REFS_BYTES);
    r->range = msg_get_span(m, RANGE_BYTES);
    r->range_sent = msg_get_span(m, RANGE_BYTES);
    r->generation = msg_get_u64(m);
    int step = wire_get_step(m, &r->by);
    msg_get_id(m, &r->lease);
    r->shadow = msg_get_bool(m);
    return step != 0 ? -1 : ok(m);
}

void wire_put_later(struct dynbuf *b, const struct wire_later *l)
{
    msg_put_u8(b, l->asked);
    msg_put_id(b, &l->lease);
    msg_put_span(b, l->narrowed);
}

int wire_get_later(struct msg_in *m, struct wire_later *l)
{
    l->asked = msg_get_bool(m);
    msg_get_id(m, &l->lease);
    l->narrowed = msg_get_span(m, WORDS_BYTES);
    return ok(m);
}

void wire_put_ticket(struct dynbuf *b, const struct wire_ticket *t)
{
    wire_put_record(b, &t->record);
    msg_put_digest(b, &t->join);
    msg_put_digest(b, &t->terms);
    wire_put_request(b, &t->request);
    msg_put_span(b, t->summary);
    msg_put_span(b, t->facts_json);
    msg_put_span(b, t->agent_reason);
    msg_put_span(b, t->approve_by);
    msg_put_span(b, t->dialect);
    msg_put_u8(b, t->reason_required);
    msg_put_u8(b, t->people.quorum);
    msg_put_u8(b, t->people.self);
    msg_put_u8(b, t->people.step_up);
    msg_put_u8(b, t->people.diff);
    msg_put_u8(b, (uint8_t)t->people.escalate.n);
    for (size_t i = 0; i < t->people.escalate.n; i++) {
        msg_put_u64(b, t->people.escalate.step[i].after_ms);
        msg_put_span(b, t->people.escalate.step[i].to);
    }
    msg_put_u8(b, (uint8_t)t->gates.n);
    for (size_t i = 0; i < t->gates.n; i++) {
        msg_put_span(b, t->gates.name[i]);
        msg_put_digest(b, &t->gates.of[i]);
    }
    msg_put_u64(b, t->within_ms);
    msg_put_digest(b, &t->shape.digest);
    msg_put_span(b, t->shape.json);
    msg_put_u32(b, t->shape.uses);
    msg_put_u64(b, t->shape.within_ms);
    wire_put_later(b, &t->later);
    msg_put_u8(b, t->take_back);
}

static int get_escalate(struct msg_in *m, struct wire_escalate *e)
{
    size_t n = msg_get_u8(m);
    if (n > WIRE_ESCALATE_MAX)
        return -1;
    for (e->n = 0; e->n < n; e->n++) {
        e->step[e->n].after_ms = msg_get_u64(m);
        e->step[e->n].to = msg_get_span(m, NAME_BYTES);
    }
    return ok(m);
}

int wire_get_ticket(struct msg_in *m, struct wire_ticket *t)
{
    if (wire_get_record(m, &t->record) != 0)
        return -1;
    msg_get_digest(m, &t->join);
    msg_get_digest(m, &t->terms);
    if (wire_get_request(m, &t->request) != 0)
        return -1;
    t->summary = msg_get_span(m, WORDS_BYTES);
    t->facts_json = msg_get_span(m, FACTS_BYTES);
    t->agent_reason = msg_get_span(m, WORDS_BYTES);
    t->approve_by = msg_get_span(m, NAME_BYTES);
    t->dialect = msg_get_span(m, CODE_BYTES);
    t->reason_required = msg_get_bool(m);
    t->people.quorum = msg_get_u8(m);
    t->people.self = msg_get_u8(m);
    t->people.step_up = msg_get_bool(m);
    t->people.diff = msg_get_u8(m);
    if (get_escalate(m, &t->people.escalate) != 0)
        return -1;
    size_t ngates = msg_get_u8(m);
    if (ngates > WIRE_GATES_MAX)
        return -1;
    for (t->gates.n = 0; t->gates.n < ngates; t->gates.n++) {
        t->gates.name[t->gates.n] = msg_get_span(m, NAME_BYTES);
        msg_get_digest(m, &t->gates.of[t->gates.n]);
    }
    t->within_ms = msg_get_u64(m);
    msg_get_digest(m, &t->shape.digest);
    t->shape.json = msg_get_span(m, SHAPE_BYTES);
    t->shape.uses = msg_get_u32(m);
    t->shape.within_ms = msg_get_u64(m);
    if (wire_get_later(m, &t->later) != 0)
        return -1;
    t->take_back = msg_get_bool(m);
    return ok(m);
}

void wire_facts_digest(const struct wire_facts *f, struct digest *out)
{
    const struct span all[] = {SPAN("countersign facts 1"),
                               f->ticket,
                               f->effect,
                               f->op,
                               f->resource,
                               f->credential,
                               f->sandbox,
                               f->method,
                               f->scheme,
                               f->host,
                               f->path,
                               f->query,
                               f->summary,
                               f->facts_json,
                               f->agent_reason};
    uint8_t port[2] = {(uint8_t)(f->port >> 8), (uint8_t)f->port};
    struct digest_ctx *d = digest_begin();
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        digest_add_field(d, all[i]);
    digest_add_field(d, span_of(f->digest.b, DIGEST_BYTES));
    digest_add_field(d, span_of(port, sizeof(port)));
    digest_end(d, out);
}

struct span wire_ticket_told(const struct wire_ticket_state *s)
{
    bool model = span_starts(s->by, SPAN("gate ")) && span_starts(s->words, SPAN("model "));

    return model ? SPAN_NONE : s->words;
}

void wire_put_ticket_state(struct dynbuf *b, const struct wire_ticket_state *s)
{
    msg_put_id(b, &s->ticket);
    msg_put_u8(b, s->state);
    msg_put_u8(b, s->joined);
    msg_put_u64(b, s->expires_ms);
    msg_put_span(b, s->by);
    msg_put_span(b, s->words);
    msg_put_u8(b, s->granted);
    msg_put_u8(b, s->has_answer);
}

int wire_get_ticket_state(struct msg_in *m, struct wire_ticket_state *s)
{
    msg_get_id(m, &s->ticket);
    s->state = msg_get_u8(m);
    s->joined = msg_get_bool(m);
    s->expires_ms = msg_get_u64(m);
    s->by = msg_get_span(m, NAME_BYTES);
    s->words = msg_get_span(m, WORDS_BYTES);
    s->granted = msg_get_bool(m);
    s->has_answer = msg_get_bool(m);
    if (s->state > TICKET_UNKNOWN)
        m->bad = true;
    return ok(m);
}

void wire_put_review(struct dynbuf *b, const struct wire_review *r)
{
    msg_put_id(b, &r->ticket);
    msg_put_span(b, r->sandbox);
    msg_put_span(b, r->session);
    msg_put_digest(b, &r->terms);
    msg_put_span(b, r->code);
    msg_put_u8(b, r->has_body);
    wire_put_request(b, &r->request);
}

int wire_get_review(struct msg_in *m, struct wire_review *r)
{
    msg_get_id(m, &r->ticket);
    r->sandbox = msg_get_span(m, NAME_BYTES);
    r->session = msg_get_span(m, NAME_BYTES);
    msg_get_digest(m, &r->terms);
    r->code = msg_get_span(m, CODE_BYTES);
    r->has_body = msg_get_bool(m);
    return wire_get_request(m, &r->request);
}

void wire_put_sandbox(struct dynbuf *b, const struct wire_sandbox *s)
{
    msg_put_span(b, s->name);
    msg_put_span(b, s->session);
    msg_put_span(b, s->owner);
    msg_put_span(b, s->tenant);
    msg_put_span(b, s->kind);
    msg_put_u64(b, s->generation);
    msg_put_span(b, s->frozen);
    for (size_t i = 0; i < EGRESS_MEASURES; i++)
        msg_put_u64(b, s->egress[i]);
    msg_put_u64(b, s->egress_epoch);
    msg_put_span(b, s->reach);
    msg_put_u8(b, s->has_token);
    msg_put_digest(b, &s->token_hash);
    msg_put_u8(b, (uint8_t)s->nolder);
    for (size_t i = 0; i < s->nolder; i++)
        msg_put_digest(b, &s->older[i]);
    msg_put_u16(b, (uint16_t)s->nlabels);
    for (size_t i = 0; i < s->nlabels; i++) {
        msg_put_span(b, s->label[i].key);
        msg_put_span(b, s->label[i].value);
    }
}

int wire_get_sandbox(struct msg_in *m, struct wire_sandbox *s)
{
    s->name = msg_get_span(m, NAME_BYTES);
    s->session = msg_get_span(m, NAME_BYTES);
    s->owner = msg_get_span(m, NAME_BYTES);
    s->tenant = msg_get_span(m, NAME_BYTES);
    s->kind = msg_get_span(m, CODE_BYTES);
    s->generation = msg_get_u64(m);
    s->frozen = msg_get_span(m, WORDS_BYTES);
    for (size_t i = 0; i < EGRESS_MEASURES; i++)
        s->egress[i] = msg_get_u64(m);
    s->egress_epoch = msg_get_u64(m);
    s->reach = msg_get_span(m, REACH_MAX);
    if (!reach_ok(s->reach))
        m->bad = true;
    s->has_token = msg_get_bool(m);
    msg_get_digest(m, &s->token_hash);
    size_t n = msg_get_u8(m);
    if (n > WIRE_TOKENS_OLDER || (n > 0 && !s->has_token))
        m->bad = true;
    for (s->nolder = 0; !m->bad && s->nolder < n; s->nolder++)
        msg_get_digest(m, &s->older[s->nolder]);
    n = msg_get_u16(m);
    if (n > sizeof(s->label) / sizeof(s->label[0]) || s->name.n == 0)
        m->bad = true;
    for (s->nlabels = 0; !m->bad && s->nlabels < n; s->nlabels++) {
        s->label[s->nlabels].key = msg_get_span(m, NAME_BYTES);
        s->label[s->nlabels].value = msg_get_span(m, NAME_BYTES);
    }
    return ok(m);
}

void wire_release_statement(struct dynbuf *b, uint64_t xid, struct span credential, struct span host, uint16_t port,
                            const struct digest *d)
{
    msg_put_span(b, SPAN("countersign release 1"));
    msg_put_u64(b, xid);
    msg_put_span(b, credential);
    msg_put_span(b, host);
    msg_put_u16(b, port);
    msg_put_digest(b, d);
}

void wire_put_limits(struct dynbuf *b, const struct wire_limits *l)
{
    msg_put_u8(b, (uint8_t)l->n);
    for (size_t i = 0; i < l->n; i++) {
        const struct wire_limit *k = &l->limit[i];
        msg_put_span(b, k->rule);
        msg_put_span(b, k->measure);
        msg_put_u8(b, k->per);
        msg_put_u64(b, k->max);
        msg_put_u64(b, k->window_ms);
        msg_put_u64(b, k->amount);
        msg_put_u8(b, k->uncountable);
    }
}

int wire_get_limits(struct msg_in *m, struct wire_limits *l)
{
    size_t n = msg_get_u8(m);
    if (n > WIRE_LIMITS_MAX)
        m->bad = true;
    for (l->n = 0; !m->bad && l->n < n; l->n++) {
        struct wire_limit *k = &l->limit[l->n];
        k->rule = msg_get_span(m, RULE_BYTES);
        k->measure = msg_get_span(m, MEASURE_BYTES);
        k->per = msg_get_u8(m);
        k->max = msg_get_u64(m);
        k->window_ms = msg_get_u64(m);
        k->amount = msg_get_u64(m);
        k->uncountable = msg_get_bool(m);
        if (k->per > WIRE_PER_ALL || k->rule.n == 0 || k->measure.n == 0 || k->window_ms == 0)
            m->bad = true;
    }
    return m->bad ? -1 : 0;
}

void wire_put_over(struct dynbuf *b, const struct wire_over *o)
{
    msg_put_u8(b, (uint8_t)o->n);
    for (size_t i = 0; i < o->n; i++)
        msg_put_u8(b, o->past[i]);
    msg_put_u64(b, o->room_ms);
}

int wire_get_over(struct msg_in *m, struct wire_over *o)
{
    size_t n = msg_get_u8(m);
    if (n > WIRE_LIMITS_MAX)
        m->bad = true;
    for (o->n = 0; !m->bad && o->n < n; o->n++)
        o->past[o->n] = msg_get_bool(m);
    o->room_ms = msg_get_u64(m);
    return m->bad ? -1 : 0;
}
