/* Rules that can fit nothing, and exceptions that take nothing away or everything. */
#include "policy/image/glob.h"
#include "policy/load/read/set.h"
#include "policy/load/check/warn.h"

static uint64_t effects_of_op(const struct model *m, struct span op)
{
    struct glob g = glob_of(op, '.');
    uint64_t can = 0;
    for (size_t i = 0; i < m->npacks; i++) {
        const struct m_op *ops = m->packs[i]->ops.v;
        for (size_t k = 0; k < m->packs[i]->ops.n; k++)
            can |= glob_match(&g, ops[k].op.text, '.', false) ? UINT64_C(1) << ops[k].effect.v : 0;
    }
    return span_starts(op, SPAN("http.")) || span_starts(op, SPAN("*")) ? 0 : can;
}

/* Without a pack the method alone says what the effect is; a GET with a body is a write too. */
static uint64_t effects_of_method(struct span s)
{
    bool reads = span_eq(s, SPAN("GET")) || span_eq(s, SPAN("HEAD")) || span_eq(s, SPAN("OPTIONS"));
    return (span_eq(s, SPAN("DELETE")) ? 1u << EFFECT_DELETE : 1u << EFFECT_WRITE) | (reads ? 1u << EFFECT_READ : 0);
}

uint64_t warn_effects_of(const struct model *m, const struct m_match *t)
{
    uint64_t can = 0;
    if (t->effects.v || t->ws.at)
        return t->effects.v;
    for (size_t i = 0; i < t->ops.n; i++) {
        uint64_t one = effects_of_op(m, t->ops.v[i].text);
        if (one == 0)
            return 0;
        can |= one;
    }
    for (size_t i = 0; t->ops.n == 0 && m->npacks == 0 && i < t->methods.n; i++)
        can |= effects_of_method(t->methods.v[i].text);
    return can;
}

/* An operation has one effect: asking for another one never fits. */
static void warn_effect(struct loader *l, const struct model *m, const struct m_rule *r)
{
    const struct m_match *t = &r->match;
    bool fits = t->ops.n == 0 || t->effects.v == 0 || t->ws.at; /* an upgrade of a read is a write */
    for (size_t o = 0; o < t->ops.n && !fits; o++) {
        struct glob g = glob_of(t->ops.v[o].text, '.');
        fits = span_starts(t->ops.v[o].text, SPAN("http."));
        for (size_t i = 0; i < m->npacks && !fits; i++) {
            const struct m_op *ops = m->packs[i]->ops.v;
            for (size_t k = 0; k < m->packs[i]->ops.n && !fits; k++)
                fits = glob_match(&g, ops[k].op.text, '.', false) && (t->effects.v & 1u << ops[k].effect.v);
        }
    }
    if (!fits)
        load_problem(l, t->effects.at, "P102", "the rule can never fit: none of its operations has this effect");
}

/* Both name some, and none that the other names. */
static bool apart(const struct items *a, const struct set *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (set_has(b, a->v[i].text))
            return false;
    return a->n > 0 && b->n > 0;
}

static const struct items *texts_of(const struct m_cond *c)
{
    return c->in.at ? &c->in : &c->equals;
}

/* A list is about pointers or about fields; of multipart: about a part's file name or type too. */
static bool same_key(const struct m_cond *a, const struct m_cond *b)
{
    return span_eq(a->pointer.text, b->pointer.text) && span_eq(a->field.text, b->field.text) &&
           span_eq(a->file.text, b->file.text) && span_eq(a->content_type.text, b->content_type.text);
}

/* May one value be as both conditions say? */
static bool exclude(const struct m_cond *a, const struct m_cond *b, const struct set *texts_of_b)
{
    if (a->absent.at)
        return !b->absent.at;
    if (a->at_most.at && b->at_least.at)
        return a->at_most.v < b->at_least.v;
    return apart(texts_of(a), texts_of_b);
}

enum { COMPARED = 32 }; /* conditions; a longer list is not compared whole */

static void warn_excluded(struct loader *l, const struct m_cond *v, const struct set *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (i != k && same_key(&v[i], &v[k]) && exclude(&v[i], &v[k], &texts[k])) {
                load_problem(
                    l, v[i].at, "P102",
                    "the rule can never fit: this and what line %u says of the same value exclude each other",
                    v[k].at->line);
                return;
            }
}

static void warn_conds(struct loader *l, const struct list *conds)
{
    const struct m_cond *v = conds->v;
    struct set texts[COMPARED] = {{0}};
    size_t n = conds->n < COMPARED ? conds->n : COMPARED;
    if (n < 2)
        return;
    for (size_t i = 0; i < n; i++)
        set_add_all(l, &texts[i], texts_of(&v[i]));
    warn_excluded(l, v, texts, n);
    for (size_t i = 0; i < n; i++)
        set_free(&texts[i]);
}

static void warn_method(struct loader *l, const struct model *m, const struct m_match *t)
{
    uint64_t can = 0;
    if (m->npacks || t->methods.n == 0 || t->effects.v == 0 || t->ws.at)
        return;
    for (size_t i = 0; i < t->methods.n; i++)
        can |= effects_of_method(t->methods.v[i].text);
    if ((can & t->effects.v) == 0)
        load_problem(l, t->effects.at, "P102",
                     "the rule can never fit: none of its methods has this effect without a pack");
}

static bool literal(const struct items *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (span_index(v->v[i].text, '*') < v->v[i].text.n)
            return false;
    return true;
}

/* What a rule names, to be asked once for each entry of its except:. */
struct about {
    struct set methods, ports, hosts, paths, ops, resources;
};

static struct about about_of(struct loader *l, const struct m_match *t)
{
    struct about b = {0};
    set_add_all(l, &b.methods, &t->methods);
    set_add_all(l, &b.ports, &t->ports);
    if (literal(&t->hosts))
        set_add_all(l, &b.hosts, &t->hosts);
    if (literal(&t->paths))
        set_add_all(l, &b.paths, &t->paths);
    if (literal(&t->ops))
        set_add_all(l, &b.ops, &t->ops);
    if (literal(&t->resources))
        set_add_all(l, &b.resources, &t->resources);
    return b;
}

static void about_free(struct about *b)
{
    struct set *const all[] = {&b->methods, &b->ports, &b->hosts, &b->paths, &b->ops, &b->resources};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        set_free(all[i]);
}

/* A rule that has a pattern has an empty set: nothing is apart from it. */
static bool apart_names(const struct items *a, const struct set *b)
{
    return b->n > 0 && literal(a) && apart(a, b);
}

static void warn_except(struct loader *l, const struct m_rule *r, const struct about *b, const struct m_match *e)
{
    const struct m_match *t = &r->match;
    bool nothing = apart(&e->methods, &b->methods) || apart(&e->ports, &b->ports) ||
                   apart_names(&e->hosts, &b->hosts) || apart_names(&e->paths, &b->paths) ||
                   apart_names(&e->ops, &b->ops) || apart_names(&e->resources, &b->resources) ||
                   (e->effects.v && t->effects.v && !(e->effects.v & t->effects.v)) ||
                   (e->schemes.v && t->schemes.v && !(e->schemes.v & t->schemes.v));
    if (nothing)
        load_problem(l, e->at, "P102", "this entry of except: takes nothing away: the rule is about nothing of it");
    else if (!r->taken && warn_match_covers(l, e, t))
        load_problem(l, e->at, "P102", "the rule can never fit: this entry of its except: takes everything away");
}

static void warn_excepts(struct loader *l, const struct m_rule *r)
{
    const struct m_match *e = r->except.v;
    struct about b = about_of(l, &r->match);
    for (size_t i = 0; i < r->except.n; i++)
        warn_except(l, r, &b, &e[i]);
    about_free(&b);
}

void warn_never(struct loader *l, const struct model *m, const struct m_rule *r)
{
    warn_effect(l, m, r);
    if (r->decide.v != VERDICT_DENY)
        warn_method(l, m, &r->match);
    warn_conds(l, &r->match.json);
    warn_conds(l, &r->match.form);
    warn_conds(l, &r->match.multipart);
    warn_conds(l, &r->match.graphql.arguments);
    warn_conds(l, &r->match.jsonrpc.params);
    warn_conds(l, &r->match.mcp.arguments);
    if (r->except.n)
        warn_excepts(l, r);
}
