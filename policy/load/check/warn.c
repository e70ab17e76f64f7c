/* What loads, but is likely not what was meant. */
#include "policy/load/read/model.h"

#include "policy/load/read/names.h"
#include "policy/load/check/warn.h"

const struct items *warn_rule_hosts(const struct m_rule *r)
{
    return r->match.hosts.at ? &r->match.hosts : &r->match.derived;
}

bool warn_pattern_covers(struct span pattern, struct span host)
{
    bool deep = span_starts(pattern, SPAN("**.")), one = !deep && span_starts(pattern, SPAN("*."));
    if (!deep && !one)
        return span_eq(pattern, host);
    struct span suffix = span_from(pattern, deep ? 2 : 1);
    return host.n > suffix.n && span_ends(host, suffix) && (deep || span_index(host, '.') == host.n - suffix.n);
}

/* Does one of the match's conditions keep what is added up from being 0? */
static bool takes_some(const struct m_match *t, const struct m_sum *s)
{
    const struct list *conds = s->pointer.at ? &t->json : &t->form;
    struct span key = s->pointer.at ? s->pointer.text : s->field.text;
    const struct m_cond *c = conds->v;
    uint64_t n;
    for (size_t i = 0; i < conds->n; i++) {
        const struct items *texts = c[i].in.at ? &c[i].in : &c[i].equals;
        bool some = texts->n > 0 || (c[i].at_least.at && c[i].at_least.v > 0);
        for (size_t k = 0; k < texts->n; k++)
            some &= span_u64(texts->v[k].text, UINT64_MAX, &n) == 0 && n > 0;
        if (some && span_eq(c[i].pointer.at ? c[i].pointer.text : c[i].field.text, key))
            return true;
    }
    return false;
}

/* One sum that every request takes some of bounds their number too. */
static void warn_sums(struct loader *l, const struct m_rule *r)
{
    const struct m_sum *v = r->limits.sum.v;
    if (r->limits.sum.n == 0 || r->limits.requests.n)
        return;
    for (size_t i = 0; i < r->limits.sum.n; i++)
        if (takes_some(&r->match, &v[i]))
            return;
    struct span what = v->pointer.at ? v->pointer.text : v->field.text;
    load_problem(
        l, v->at, "P116",
        "a request with %.*s of 0 takes nothing of the sum, and so there may be any number of them: add requests:, "
        "or int_gte: 1 to the match",
        SPAN_FMT(span_first(what, 100)));
}

/* Does it ask for more than the name of an operation, which the client chooses? */
static bool asks_graphql(const struct m_graphql *g)
{
    return g->types.n || g->fields.n || g->arguments.n || g->persisted.n;
}

/* Arguments are those of tools alone; params are of any method. */
static bool asks_jsonrpc(const struct m_jsonrpc *m)
{
    return m->methods.n || m->tools.n || m->arguments.n;
}

static void warn_rule(struct loader *l, const struct model *m, struct uses *uses, const struct m_rule *r)
{
    const struct m_match *t = &r->match;
    if (r->use.at && uses)
        warn_use(l, uses, r);
    warn_never(l, m, r);
    warn_words(l, r);
    warn_private(l, m, r);
    warn_sums(l, r);
    bool narrowed = t->effects.at || t->methods.at || t->ops.at || t->ws.at || asks_graphql(&t->graphql) ||
                    asks_jsonrpc(&t->jsonrpc) || asks_jsonrpc(&t->mcp);
    if (r->decide.v == VERDICT_ALLOW && !narrowed)
        load_problem(l, r->at, "P104",
                     "the rule allows writes too: add effect: read, or effect: [read, write] if that is meant");
    if (r->messages.at && t->effects.v == 1u << EFFECT_READ)
        load_problem(
            l, r->messages.at, "P110",
            "the rule counts the WebSocket as a read and lets messages be sent: a freeze does not stop them; take "
            "effect: read out if they change something");
    const struct items *hosts = warn_rule_hosts(r);
    for (size_t i = 0; i < hosts->n && r->decide.v != VERDICT_DENY; i++)
        if (names_shared(hosts->v[i].text))
            load_problem(l, hosts->v[i].at, "P109",
                         "under \"%.*s\" every customer of that service has a name, an attacker too: name your own",
                         SPAN_FMT(hosts->v[i].text));
}

/* A person's name, or of a group what a provider may call it. */
static bool is_word(struct span name, const char *more)
{
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || c == '\0' || strchr(more, c) == NULL))
            return false;
    }
    return name.n > 0;
}

/* Operators are people (countersign operator), and users of this machine who may open the gateway's socket. */
static bool is_operator(struct span name)
{
    uint64_t uid;
    if (span_starts(name, SPAN("uid ")))
        return span_u64(span_from(name, 4), UINT32_MAX, &uid) == 0;
    return name.n <= 40 && is_word(name, "._-@");
}

static void warn_approver(struct loader *l, const struct m_approver *a)
{
    for (size_t i = 0; i < a->operators.n; i++)
        if (!is_operator(a->operators.v[i].text))
            load_problem(l, a->operators.v[i].at, "P117",
                         "no operator is called \"%.*s\", so nobody approves by that name: people have names of a-z "
                         "0-9 . _ - @ "
                         "(countersign operator add), users of the gateway's machine are \"uid N\"",
                         SPAN_FMT(span_first(a->operators.v[i].text, 100)));
    for (size_t i = 0; i < a->groups.n; i++)
        if (!is_word(a->groups.v[i].text, "._-:@/") || a->groups.v[i].text.n > 64)
            load_problem(
                l, a->groups.v[i].at, "P117",
                "no group is called \"%.*s\", so nobody approves by it: groups have names of a-z 0-9 . _ - : @ /",
                SPAN_FMT(span_first(a->groups.v[i].text, 100)));
}

void warn_model(struct loader *l, const struct model *m)
{
    struct uses *uses = warn_uses(l, m);
    for (size_t i = 0; i < m->nrules; i++) {
        int hold = m->rules[i]->over.at ? model_rule(m, m->rules[i]->over.text) : -1;
        if (hold >= 0)
            m->rules[hold]->taken = true;
        struct m_match *except = m->rules[i]->except.v;
        m->rules[i]->match.can = warn_effects_of(m, &m->rules[i]->match);
        for (size_t k = 0; k < m->rules[i]->except.n; k++)
            except[k].can = warn_effects_of(m, &except[k]);
    }
    for (size_t i = 0; i < m->nrules; i++)
        warn_rule(l, m, uses, m->rules[i]);
    for (size_t i = 0; i < m->nupstreams; i++)
        warn_address(l, m->upstreams[i]);
    for (size_t i = 0; i < m->napprovers; i++)
        warn_approver(l, m->approvers[i]);
    warn_places(l, m);
    warn_bodies(l, m);
    warn_covered(l, m);
    if (m->nrules == 0)
        load_problem(l, NULL, "P107", "no rules: everything is denied");
}
