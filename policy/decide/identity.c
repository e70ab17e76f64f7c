#include "policy/identity.h"

#include "common/msg.h"
#include "policy/match/match.h"

static void put_place(const struct policy *p, const struct img_place *l, struct dynbuf *out)
{
    msg_put_u32(out, l->scheme);
    msg_put_span(out, img_span(p, l->host));
    msg_put_u32(out, l->port);
    msg_put_u32(out, l->path.n);
    for (uint32_t i = 0; i < l->path.n; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, l->path.first + i);
        msg_put_span(out, img_span(p, g->text));
    }
}

static void put_settings(const struct policy *p, struct img_range r, struct dynbuf *out)
{
    msg_put_u32(out, r.n);
    for (uint32_t k = 0; k < r.n; k++) {
        const struct img_setting *s = img_at(p, IMG_SETTING, r.first + k);
        msg_put_span(out, img_span(p, s->key));
        msg_put_u32(out, s->from);
        msg_put_span(out, img_span(p, s->value));
    }
}

static void put_own(const struct policy *p, uint32_t i, struct dynbuf *out)
{
    const struct img_cred *c = img_at(p, IMG_CRED, i);
    const struct img_cred *beside = c->beside == IMG_NONE ? NULL : img_at(p, IMG_CRED, c->beside);
    const struct img_str text[] = {c->name, c->arg,    c->header,  c->where,   c->format,
                                   c->user, c->region, c->service, c->template};
    for (size_t k = 0; k < sizeof(text) / sizeof(text[0]); k++)
        msg_put_span(out, img_span(p, text[k]));
    msg_put_u32(out, c->source);
    msg_put_u32(out, c->slot);
    msg_put_u32(out, c->basic);
    msg_put_u32(out, c->certificate);
    msg_put_u32(out, c->refuse);
    msg_put_u32(out, c->sign);
    msg_put_u32(out, c->lease);
    msg_put_u32(out, c->require_lease);
    msg_put_u32(out, c->freeze_on_leak);
    msg_put_span(out, beside != NULL ? img_span(p, beside->name) : SPAN_NONE);
    msg_put_u32(out, c->only.n);
    for (uint32_t k = 0; k < c->only.n; k++)
        put_place(p, img_at(p, IMG_PLACE, c->only.first + k), out);
    put_settings(p, c->settings, out);
    put_settings(p, c->fields, out);
    msg_put_u32(out, c->hash);
    msg_put_u32(out, c->encoding);
    msg_put_u32(out, c->key_coding);
    msg_put_u32(out, c->secret_parts);
}

/* The credentials of this name. */
static void put_named(const struct policy *p, struct span name, struct dynbuf *out)
{
    for (uint32_t i = 0; i < p->n[IMG_CRED]; i++)
        if (span_eq(img_span(p, ((const struct img_cred *)img_at(p, IMG_CRED, i))->name), name))
            put_own(p, i, out);
}

/* Tokens that stand in answers are another's once those that the answers are asked for with are. */
static void put_credential(const struct policy *p, uint32_t i, struct dynbuf *out)
{
    const struct img_cred *c = img_at(p, IMG_CRED, i);
    put_own(p, i, out);
    for (uint32_t k = 0; c->source == SOURCE_ANSWER && k < c->settings.n; k++) {
        const struct img_setting *s = img_at(p, IMG_SETTING, c->settings.first + k);
        if (span_eq(img_span(p, s->key), SPAN("to")))
            put_named(p, img_span(p, s->value), out);
    }
}

void policy_put_credential(const struct policy *p, size_t i, struct dynbuf *out)
{
    if (i < p->n[IMG_CRED])
        put_credential(p, (uint32_t)i, out);
}

void policy_put_place(const struct policy *p, struct span scheme, struct span host, uint16_t port, struct dynbuf *out)
{
    for (uint32_t i = 0; i < p->n[IMG_CRED]; i++)
        if (policy_credential_bound(p, i, scheme, host, port))
            put_credential(p, i, out);
}

static void put_texts(const struct policy *p, struct img_range r, struct dynbuf *out)
{
    msg_put_u32(out, r.n);
    for (uint32_t k = 0; k < r.n; k++)
        msg_put_span(out, img_text(p, r, k));
}

static void put_approvers(const struct policy *p, struct span name, struct dynbuf *out)
{
    for (uint32_t i = 0; i < p->n[IMG_APPROVER] && name.n; i++) {
        const struct img_approver *v = img_at(p, IMG_APPROVER, i);
        if (!span_eq(img_span(p, v->name), name))
            continue;
        put_texts(p, v->operators, out);
        put_texts(p, v->groups, out);
    }
}

/* How to get there and whom to trust there, which says who answers. */
static void put_upstream(const struct policy *p, struct span host, uint32_t port, struct dynbuf *out)
{
    for (uint32_t i = 0; i < p->n[IMG_UPSTREAM]; i++) {
        const struct img_upstream *u = img_at(p, IMG_UPSTREAM, i);
        if (u->port != port || !span_eq(img_span(p, u->host), host))
            continue;
        msg_put_span(out, img_span(p, u->address));
        msg_put_span(out, img_span(p, u->ca));
        msg_put_span(out, img_span(p, u->crl));
        msg_put_u32(out, u->only_tls13);
        put_texts(p, u->pins, out);
        put_texts(p, u->allow_private, out);
    }
}

/* Of a program what it always was, so that nothing that waits for one ends with a new version. */
void policy_put_gate(const struct policy *p, const struct gate *g, struct dynbuf *out)
{
    msg_put_span(out, g->name);
    msg_put_u64(out, g->timeout_ms);
    msg_put_u32(out, (uint32_t)g->words);
    for (size_t k = 0; k < g->words; k++)
        msg_put_span(out, policy_gate_word(p, g, k));
    if (g->kind == GATE_PROGRAM)
        return;
    msg_put_u32(out, g->kind);
    msg_put_u8(out, g->body);
    msg_put_span(out, g->url);
    msg_put_span(out, g->secret);
    msg_put_u32(out, g->api);
    msg_put_span(out, g->model);
    msg_put_span(out, g->instructions);
    if (g->credential >= 0)
        policy_put_credential(p, (size_t)g->credential, out);
    put_upstream(p, g->host, g->port, out);
}

/* Nothing of what has none, whose terms are then what they were before there were gates. */
static void put_gates(const struct policy *p, uint32_t gates, struct dynbuf *out)
{
    struct gate g;
    for (size_t i = 0; i < GATES_MAX; i++)
        if ((gates >> i & 1) != 0 && policy_gate(p, i, &g))
            policy_put_gate(p, &g, out);
}

/* Likewise. */
static void put_escalations(const struct policy *p, const struct decision *d, struct dynbuf *out)
{
    struct escalation e[ESCALATE_MAX];
    size_t n = policy_escalations(p, d, e);
    for (size_t i = 0; i < n; i++) {
        msg_put_span(out, SPAN("escalate:")); /* no gate has such a name, which could stand here */
        msg_put_u64(out, e[i].after_ms);
        msg_put_span(out, e[i].to);
        put_approvers(p, e[i].to, out);
    }
}

void policy_put_terms(const struct policy *p, const struct decision *d, struct dynbuf *out)
{
    bool has = d->credential >= 0 && (uint32_t)d->credential < p->n[IMG_CRED];
    msg_put_span(out, d->rule.id);
    msg_put_span(out, d->op);
    msg_put_span(out, span_str(effect_name(d->effect)));
    msg_put_u8(out, has);
    if (has) {
        uint32_t i = (uint32_t)d->credential, beside = ((const struct img_cred *)img_at(p, IMG_CRED, i))->beside;
        put_credential(p, i, out);
        if (beside != IMG_NONE)
            put_credential(p, beside, out);
    }
    msg_put_span(out, d->approve_by);
    put_approvers(p, d->approve_by, out);
    msg_put_u8(out, d->reason_required);
    msg_put_u32(out, d->approval.quorum);
    msg_put_u32(out, d->approval.self);
    msg_put_u8(out, d->approval.step_up);
    msg_put_u8(out, (uint8_t)d->approval.diff);
    msg_put_u64(out, d->within_ms);
    msg_put_u32(out, d->messages.send);
    msg_put_u64(out, d->messages.max);
    msg_put_u64(out, d->messages.total);
    msg_put_u64(out, d->messages.within_ms);
    put_gates(p, d->approval.gates, out);
    put_escalations(p, d, out);
}
