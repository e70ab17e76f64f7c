/* A rule that restricts by what a body says, and says nothing of where: it is about every request to its hosts, and
 * what is not such a body cannot be told from one that it is about. */
#include "policy/load/check/warn.h"

enum { LOOKS_MAX = 1000 * 1000, SHOWN = 100 };

static bool is_read(const struct m_match *t)
{
    return t->can == 1u << EFFECT_READ;
}

static bool hosts_meet(const struct items *a, const struct items *b, size_t *looks)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n && ++*looks < LOOKS_MAX; k++)
            if (warn_pattern_covers(a->v[i].text, b->v[k].text) || warn_pattern_covers(b->v[k].text, a->v[i].text))
                return true;
    return false;
}

/* Words that both have; a list that is not there has all. */
static bool words_meet(const struct items *a, const struct items *b)
{
    bool meet = a->n == 0 || b->n == 0;
    for (size_t i = 0; i < a->n && !meet; i++)
        for (size_t k = 0; k < b->n && !meet; k++)
            meet = span_eq(a->v[i].text, b->v[k].text);
    return meet;
}

/* Without port: a rule is about the usual ones. */
static bool ports_meet(const struct items *a, const struct items *b)
{
    const struct items *said = a->n ? a : b;
    bool usual = a->n == 0 && b->n == 0;
    for (size_t i = 0; i < said->n; i++)
        usual |= span_eq(said->v[i].text, SPAN("443")) || span_eq(said->v[i].text, SPAN("80"));
    return a->n && b->n ? words_meet(a, b) : usual;
}

/* The one thing that a match asks of bodies (check_body.c), if it does. */
struct asked {
    const struct node *at;
    int kind;
    const char *words;
};

static struct asked asked_of(const struct m_match *t)
{
    const struct asked all[] = {{t->json.at, COND_JSON, "JSON"},
                                {t->form.at, COND_FORM, "a form"},
                                {t->multipart.at, COND_MULTIPART, "a form with files"},
                                {t->graphql.at, COND_GRAPHQL, "GraphQL"},
                                {t->jsonrpc.at, COND_JSONRPC, "JSON-RPC"},
                                {t->mcp.at, COND_JSONRPC, "MCP"}};
    size_t i = 0;
    while (i < sizeof(all) / sizeof(all[0]) - 1 && all[i].at == NULL)
        i++;
    return all[i];
}

static bool is_everywhere(const struct m_rule *r)
{
    const struct m_match *t = &r->match;
    return r->decide.v != VERDICT_ALLOW && asked_of(t).at && t->paths.n == 0 && t->ops.n == 0 &&
           t->resources.n == 0 && !is_read(t);
}

/* Does it let through, or hold, what r cannot be sure of? */
static bool suffers(const struct m_rule *r, const struct m_rule *other, size_t *looks)
{
    const struct m_match *t = &r->match, *o = &other->match;
    struct asked asks = asked_of(t), other_asks = asked_of(o);
    bool alike = other_asks.at != NULL && other_asks.kind == asks.kind;
    return other != r && other->decide.v != VERDICT_DENY && !alike && !is_read(o) &&
           words_meet(&t->methods, &o->methods) && ports_meet(&t->ports, &o->ports) &&
           hosts_meet(warn_rule_hosts(r), warn_rule_hosts(other), looks);
}

void warn_bodies(struct loader *l, const struct model *m)
{
    size_t looks = 0;
    for (size_t i = 0; i < m->nrules; i++) {
        const struct m_rule *r = m->rules[i], *other = NULL;
        for (size_t k = 0; k < m->nrules && other == NULL && is_everywhere(r); k++)
            other = suffers(r, m->rules[k], &looks) ? m->rules[k] : NULL;
        if (other == NULL)
            continue;
        struct asked asks = asked_of(&r->match);
        load_problem(l, asks.at, "P127",
                     "the rule names no path:, and so is about every body sent to its hosts, also by rule %.*s: one "
                     "that is not %s is refused as unclassified, since nobody can tell that this rule is not about "
                     "it; add path: or op:",
                     SPAN_FMT(span_first(other->id.text, SHOWN)), asks.words);
    }
}
