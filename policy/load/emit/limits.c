/* limits: and over: of a rule: checked, and written. */
#include "policy/limit.h"
#include "policy/load/check/check_gate.h"
#include "policy/load/emit/emit.h"
#include "policy/load/read/scalar.h"

static struct span key_of(const struct m_sum *s)
{
    return s->pointer.at ? s->pointer.text : s->field.text;
}

static void check_twice(struct loader *l, const struct m_limits *m)
{
    const struct m_sum *v = m->sum.v;
    uint64_t n, a, b;
    for (size_t i = 0; i < m->requests.n; i++)
        for (size_t k = 0; k < i; k++)
            if (scalar_rate(m->requests.v[i].text, &n, &a) == NULL &&
                scalar_rate(m->requests.v[k].text, &n, &b) == NULL && a == b)
                load_problem(l, m->requests.v[i].at, "P012", "there is a number of requests for this time already");
    for (size_t i = 0; i < m->sum.n; i++)
        for (size_t k = 0; k < i; k++)
            if (v[i].every.at && v[i].every.v == v[k].every.v && span_eq(key_of(&v[i]), key_of(&v[k])))
                load_problem(l, v[i].at, "P012", "there is a sum of this for this time already");
}

static void check_sum(struct loader *l, const struct m_rule *r, const struct m_sum *s)
{
    const struct m_match *t = &r->match;
    const char *why = s->pointer.at ? scalar_pointer(s->pointer.text) : NULL;
    if (s->at && (s->field.at != NULL) == (s->pointer.at != NULL))
        load_problem(l, s->at, "P015", "a sum is of one thing: field: of a form, or pointer: into JSON");
    if (why)
        load_problem(l, s->pointer.at, "P013", "\"%.*s\" %s", SPAN_FMT(span_first(s->pointer.text, 100)), why);
    if (s->field.at && t->json.n)
        load_problem(l, s->field.at, "P015",
                     "json: is of JSON bodies, field: of forms: the sum of JSON has pointer:");
    if (s->pointer.at && t->form.n)
        load_problem(l, s->pointer.at, "P015",
                     "form: is of forms, pointer: of JSON bodies: the sum of a form has field:");
    if (s->at && t->multipart.at)
        load_problem(l, s->at, "P015",
                     "nothing of a form with files is added up: a rule with multipart: limits requests:");
    if (s->at && t->graphql.at)
        load_problem(l, s->at, "P015", "nothing of GraphQL is added up: a rule with graphql: limits requests:");
    if (s->at && (t->jsonrpc.at || t->mcp.at))
        load_problem(l, s->at, "P015",
                     "nothing of JSON-RPC is added up: a rule with jsonrpc: or mcp: limits requests:");
    if (s->at && t->git.at)
        load_problem(l, s->at, "P015", "a push has no fields to add up: a rule with git: limits requests:");
}

static void check_over(struct loader *l, const struct model *m, const struct m_rule *r)
{
    int at = model_rule(m, r->over.text);
    if (r->limits.at == NULL || r->decide.v != VERDICT_ALLOW)
        load_problem(l, r->over.at, "P015", "over: belongs to a rule that allows and has limits:");
    if (at < 0)
        load_problem(l, r->over.at, "P011", "there is no rule \"%.*s\"", SPAN_FMT(span_first(r->over.text, 100)));
    else if (m->rules[at]->decide.v != VERDICT_HOLD && !m->rules[at]->at->broken)
        load_problem(l, r->over.at, "P015", "\"%.*s\" does not hold: over: names a rule with decide: hold",
                     SPAN_FMT(r->over.text));
}

void check_limits(struct loader *l, const struct model *m, const struct m_rule *r)
{
    const struct m_limits *v = &r->limits;
    const struct m_sum *sums = v->sum.v;
    if (r->over.at)
        check_over(l, m, r);
    if (v->at == NULL)
        return;
    if (r->decide.at && r->decide.v == VERDICT_DENY)
        load_problem(l, v->at, "P015", "a rule that denies has nothing to limit");
    if (v->requests.at == NULL && v->sum.at == NULL)
        load_problem(l, v->at, "P015", "limits: says how much: requests: 20/1d, or sum:");
    if (v->requests.n + v->sum.n > LIMITS_MAX)
        load_problem(l, v->at, "P017", "more than %d limits", LIMITS_MAX);
    else
        check_twice(l, v);
    for (size_t i = 0; i < v->sum.n; i++) {
        check_sum(l, r, &sums[i]);
        if ((sums[i].pointer.at != NULL) != (sums[0].pointer.at != NULL))
            load_problem(l, sums[i].at, "P015",
                         "a body is of one kind, and its other sums would never count: write two rules");
    }
}

struct img_range emit_limits(struct emit *w, const struct m_rule *r)
{
    const struct m_limits *v = &r->limits;
    const struct m_sum *sums = v->sum.v;
    uint32_t first = emit_count(w, IMG_LIMIT), per = (uint32_t)v->per.v;
    for (size_t i = 0; i < v->requests.n; i++) {
        struct img_limit out = {.measure = LIMIT_REQUESTS, .per = per, .key = emit_str(w, SPAN_NONE)};
        (void)scalar_rate(v->requests.v[i].text, &out.max, &out.window_ms); /* checked when it was read */
        (void)emit_record(w, IMG_LIMIT, &out);
    }
    for (size_t i = 0; i < v->sum.n; i++) {
        struct img_limit out = {.measure = sums[i].pointer.at ? LIMIT_JSON : LIMIT_FORM,
                                .per = per,
                                .key = emit_str(w, key_of(&sums[i])),
                                .max = sums[i].max.v,
                                .window_ms = sums[i].every.v};
        (void)emit_record(w, IMG_LIMIT, &out);
    }
    return emit_range(w, IMG_LIMIT, first);
}

/* Without grants: a few, of what a pack names and what takes nothing away. */
void emit_grants(const struct m_rule *r, struct img_rule *out)
{
    const struct m_grants *g = &r->approve.grants;
    if (r->decide.v != VERDICT_HOLD)
        return;
    if (r->approve.gates.n > 0 || r->approve.diff.v == DIFF_REQUIRED)
        return; /* what a grant would cover no gate has seen, and nobody its diff */
    out->grant_uses = g->uses.at ? (uint8_t)g->uses.v : GRANT_USES_USUAL;
    out->grant_within_ms = g->within.at ? g->within.v : GRANT_WITHIN_USUAL;
    out->grant_effects = (uint8_t)(g->effects.at ? g->effects.v : 1u << EFFECT_READ | 1u << EFFECT_WRITE);
    out->grant_named = g->at == NULL;
}

/* An entry of users of the machine alone is as it was before there were people. */
static bool names_people(const struct m_approver *v)
{
    bool people = v->groups.n > 0;
    for (size_t i = 0; i < v->operators.n; i++)
        people |= !span_starts(v->operators.v[i].text, SPAN("uid "));
    return people;
}

/* Of those whom it escalates to. */
static bool asks_people(const struct model *m, const struct m_rule *r)
{
    const struct m_escalate *v = r->approve.escalate.v;
    bool people = false;
    for (size_t i = 0; i < r->approve.escalate.n; i++) {
        int at = model_approver(m, v[i].to.text);
        people |= at >= 0 && names_people(m->approvers[at]);
    }
    return people;
}

/* One of those whom it escalates to has an entry that lets nobody approve what is their own. */
static bool forbids_own(const struct model *m, const struct m_rule *r)
{
    const struct m_escalate *v = r->approve.escalate.v;
    bool forbids = false;
    for (size_t i = 0; i < r->approve.escalate.n; i++) {
        int at = model_approver(m, v[i].to.text);
        forbids |= at >= 0 && m->approvers[at]->people.self.at != NULL && !m->approvers[at]->people.self.v;
    }
    return forbids;
}

/* What the rule says counts beside what its approvers entry says, the stricter of both; whether the owner may, the
 * rule's own word first. Where people are named at all, nobody approves what is their own unless that is said. */
void emit_people(const struct model *m, const struct m_rule *r, struct img_rule *out)
{
    int at = r->approve.by.at ? model_approver(m, r->approve.by.text) : -1;
    static const struct m_people nobody = {.quorum = {.v = 0}};
    const struct m_people *own = &r->approve.people, *of = at < 0 ? &nobody : &m->approvers[at]->people;
    if (r->decide.v != VERDICT_HOLD)
        return;
    uint64_t most = own->quorum.v > of->quorum.v ? own->quorum.v : of->quorum.v;
    out->quorum = most ? (uint8_t)most : 1;
    out->step_up = own->step_up.v || of->step_up.v;
    out->diff = (uint8_t)r->approve.diff.v;
    for (size_t i = 0; i < r->approve.gates.n; i++) {
        int gate = model_gate(m, r->approve.gates.v[i].text);
        out->gates |= gate >= 0 && gate < GATES_MAX ? (uint8_t)(1u << gate) : 0;
    }
    const struct number *says = own->self.at ? &own->self : of->self.at ? &of->self : NULL;
    bool named = (at >= 0 && names_people(m->approvers[at])) || out->quorum > 1 || out->step_up ||
                 asks_people(m, r) || forbids_own(m, r);
    out->self = says ? (says->v ? SELF_YES : SELF_NO) : named ? SELF_NO : SELF_OF_MACHINE;
}

/* The number of this step, which several rules may have; ESCALATE_MAX: there is no room for it. */
static uint32_t step_of(struct emit *w, const struct m_escalate *e)
{
    const struct img_escalate *all = (const struct img_escalate *)(const void *)w->table[IMG_ESCALATE].p;
    struct img_escalate out = {(uint32_t)model_approver(w->m, e->to.text), 0, e->after.v};
    uint32_t i = 0, n = emit_count(w, IMG_ESCALATE);
    while (i < n && (all[i].after_ms != out.after_ms || all[i].approver != out.approver))
        i++;
    if (i == n && n < ESCALATE_MAX)
        (void)emit_record(w, IMG_ESCALATE, &out);
    return i;
}

void emit_escalate(struct emit *w, const struct m_rule *r, struct img_rule *out)
{
    const struct m_escalate *v = r->approve.escalate.v;
    for (size_t i = 0; i < r->approve.escalate.n && r->decide.v == VERDICT_HOLD; i++) {
        uint32_t at = step_of(w, &v[i]);
        if (at < ESCALATE_MAX)
            out->escalate |= 1u << at;
    }
}

void emit_gates(struct emit *w)
{
    for (size_t i = 0; i < w->m->ngates; i++) {
        const struct m_gate *g = w->m->gates[i];
        struct gate_place to = check_gate_place(g);
        int credential = g->credential.at ? model_credential(w->m, g->credential.text) : -1;
        struct img_gate out = {.name = emit_str(w, g->name.text),
                               .program = emit_texts(w, &g->program),
                               .timeout_ms = g->timeout.at ? g->timeout.v : GATE_TIMEOUT_USUAL,
                               .kind = g->program.at   ? GATE_PROGRAM
                                       : g->webhook.at ? GATE_WEBHOOK
                                                       : GATE_MODEL,
                               .body = g->program.at || g->body.v, /* a program has no network to take it elsewhere */
                               .url = emit_str(w, g->webhook.at ? g->webhook.text : g->url.text),
                               .api = (uint32_t)g->api.v,
                               .credential = credential < 0 ? IMG_NONE : (uint32_t)credential,
                               .model = emit_str(w, g->model.text),
                               .instructions = emit_str(w, g->instructions.text),
                               .secret = emit_str(w, g->secret.store.text),
                               .host = emit_str(w, to.host),
                               .port = to.port};
        (void)emit_record(w, IMG_GATE, &out);
    }
}
