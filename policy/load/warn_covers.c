/* Rules that others leave nothing to decide. */
#include "policy/glob.h"
#include "policy/load/warn.h"

static bool covers_list(const struct items *a, const struct items *b, uint8_t sep)
{
    if (a->n == 0)
        return true;
    for (size_t i = 0; i < b->n; i++) {
        bool covered = false;
        for (size_t k = 0; k < a->n && !covered; k++) {
            struct glob g = glob_of(a->v[k].text, sep);
            covered = span_eq(a->v[k].text, b->v[i].text) || glob_match(&g, b->v[i].text, sep, false);
        }
        if (!covered)
            return false;
    }
    return b->n > 0;
}

static bool covers_hosts(const struct items *a, const struct items *b)
{
    bool all = b->n > 0;
    for (size_t i = 0; i < b->n && all; i++) {
        all = false;
        for (size_t k = 0; k < a->n && !all; k++)
            all = span_eq(a->v[k].text, b->v[i].text) || pattern_covers(a->v[k].text, b->v[i].text);
    }
    return a->n == 0 || all;
}

static bool covers_mask(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && (b & ~a) == 0);
}

/* Nothing but what is compared below. */
static bool is_plain(const struct m_match *x)
{
    return !x->query.n && !x->query_names.at && !x->header.n && !x->git.at && !x->json.n && !x->form.n && !x->ws.at;
}

bool match_covers(const struct m_match *x, const struct m_match *y)
{
    const struct items *hosts = x->hosts.at ? &x->hosts : &x->derived;
    return is_plain(x) && covers_hosts(hosts, y->hosts.at ? &y->hosts : &y->derived) &&
           covers_list(&x->ports, &y->ports, 0) && covers_list(&x->methods, &y->methods, 0) &&
           covers_list(&x->paths, &y->paths, '/') && covers_list(&x->ops, &y->ops, '.') &&
           covers_list(&x->resources, &y->resources, '/') && covers_mask(x->schemes.v, y->schemes.v) &&
           covers_mask(x->effects.v, y->effects.v);
}

/* Is everything that b is about certainly something that rule a is about? */
static bool covers(const struct m_rule *a, const struct m_rule *b)
{
    if (a->when.n || a->except.n)
        return false;
    if (a->scope.at && (!b->scope.at || !covers_list(&a->scope, &b->scope, 0)))
        return false;
    return match_covers(&a->match, &b->match);
}

/* A hold or an allow that names no port or scheme is about https on 443 alone, and never about an upgrade. */
static bool covers_as_written(const struct m_rule *a, const struct m_rule *b)
{
    const struct m_match *x = &a->match, *y = &b->match;
    uint64_t have = x->schemes.v ? x->schemes.v : SCHEME_HTTPS, want = y->schemes.v ? y->schemes.v : SCHEME_HTTPS;
    return covers(a, b) && (x->ports.n || !y->ports.n) && (want & ~have) == 0 && !y->ws.at;
}

static bool same_text(const struct item *a, const struct item *b)
{
    return (a->at != NULL) == (b->at != NULL) && (a->at == NULL || span_eq(a->text, b->text));
}

static void compare(struct loader *l, const struct m_rule *a, const struct m_rule *b)
{
    const char *does = a->decide.v == VERDICT_DENY ? "denies" : "holds";
    if (a->decide.v == b->decide.v) {
        /* Only the first of two by id says so. */
        if (a->floor == b->floor && same_text(&a->use, &b->use) && !b->when.n && !b->except.n && !a->limits.at &&
            !b->limits.at && covers(a, b) && covers(b, a))
            problem(l, b->at, "P103", "the rule \"%.*s\" says what \"%.*s\" at %s:%u says: one of them is enough",
                    SPAN_FMT(b->id.text), SPAN_FMT(a->id.text), a->at->file, a->at->line);
    } else if (a->decide.v == VERDICT_DENY
                   ? covers(a, b)
                   : a->decide.v == VERDICT_HOLD && b->decide.v == VERDICT_ALLOW &&
                         !(b->over.at && span_eq(b->over.text, a->id.text)) && covers_as_written(a, b)) {
        problem(l, b->at, "P103", "the rule \"%.*s\" never decides: the %s \"%.*s\" at %s:%u %s all it is about%s",
                SPAN_FMT(b->id.text), a->floor ? "floor" : "rule", SPAN_FMT(a->id.text), a->at->file, a->at->line,
                does, a->decide.v == VERDICT_HOLD ? ", and a hold goes before an allow: give it an except:" : "");
    }
}

/* A hold goes before an allow: over: that names one which holds everything from the first request on. */
static void warn_over(struct loader *l, const struct model *m, const struct m_rule *r)
{
    int at = r->over.at ? find_rule(m, r->over.text) : -1;
    if (at >= 0 && m->rules[at]->decide.v == VERDICT_HOLD && covers_as_written(m->rules[at], r))
        problem(l, r->over.at, "P113",
                "the rule \"%.*s\" never decides: \"%.*s\" holds all it is about from the first request on; add "
                "except: to that one",
                SPAN_FMT(r->id.text), SPAN_FMT(r->over.text));
}

/* Of one verdict with all others; so many pairs: a very large policy is not worth minutes of warnings. */
static void compare_all(struct loader *l, const struct model *m, uint64_t verdict, size_t budget)
{
    for (size_t i = 0; i < m->nrules; i++) {
        const struct m_rule *a = m->rules[i];
        if (a->decide.v != verdict)
            continue;
        for (size_t k = 0; k < m->nrules && budget; k++, budget--)
            if (k > i || (k < i && m->rules[k]->decide.v != a->decide.v))
                compare(l, a, m->rules[k]);
    }
}

void warn_covered(struct loader *l, const struct model *m)
{
    for (size_t i = 0; i < m->nrules; i++)
        warn_over(l, m, m->rules[i]);
    compare_all(l, m, VERDICT_DENY, 200 * 1000);
    compare_all(l, m, VERDICT_HOLD, 100 * 1000);
    compare_all(l, m, VERDICT_ALLOW, 100 * 1000);
}
