/* Rules that others leave nothing to decide. */
#include "policy/image/glob.h"
#include "policy/load/check/warn.h"

/* So much is compared: a very large policy is not worth minutes of warnings. One is a name with a name; what walks
 * back and forth, a pattern with several stars, counts for more. */
enum { COMPARED_MAX = 20 * 1000 * 1000, STEPS = 32 };

static bool covers_glob(struct loader *l, struct span a, struct span b, uint8_t sep)
{
    size_t star = span_index(a, '*');
    if (star == a.n)
        return span_eq(a, b);
    if (span_index(span_from(a, star + 1), '*') + star + 1 < a.n)
        l->compared += a.n * b.n / STEPS;
    return glob_covers(a, b, sep);
}

static bool host_covers(struct span a, struct span b)
{
    bool wild = a.n > 0 && a.p[0] == '*';
    return span_eq(a, b) || (wild && warn_pattern_covers(a, b));
}

/* sep: of patterns; HOSTS: of names as hosts are written. */
enum { HOSTS = 1 };

static bool any_covers(struct loader *l, const struct items *a, struct span b, size_t at, uint8_t sep)
{
    if (at < a->n && span_eq(a->v[at].text, b)) /* the same list once more */
        return true;
    for (size_t i = 0; i < a->n && l->compared < COMPARED_MAX; i++, l->compared++)
        if (sep == HOSTS ? host_covers(a->v[i].text, b) : covers_glob(l, a->v[i].text, b, sep))
            return true;
    return false;
}

static bool covers_list(struct loader *l, const struct items *a, const struct items *b, uint8_t sep)
{
    if (a->n == 0)
        return true;
    for (size_t i = 0; i < b->n; i++)
        if (!any_covers(l, a, b->v[i].text, i, sep))
            return false;
    return b->n > 0;
}

static bool covers_mask(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && (b & ~a) == 0);
}

/* Nothing but what is compared below. */
static bool is_plain(const struct m_match *x)
{
    return !x->query.n && !x->query_names.at && !x->header.n && !x->git.at && !x->json.n && !x->form.n &&
           !x->multipart.n && !x->graphql.at && !x->jsonrpc.at && !x->mcp.at && !x->ws.at;
}

bool warn_match_covers(struct loader *l, const struct m_match *x, const struct m_match *y)
{
    const struct items *hosts = x->hosts.at ? &x->hosts : &x->derived;
    return is_plain(x) && covers_list(l, hosts, y->hosts.at ? &y->hosts : &y->derived, HOSTS) &&
           covers_list(l, &x->ports, &y->ports, 0) && covers_list(l, &x->methods, &y->methods, 0) &&
           covers_list(l, &x->paths, &y->paths, '/') && covers_list(l, &x->ops, &y->ops, '.') &&
           covers_list(l, &x->resources, &y->resources, '/') && covers_mask(x->schemes.v, y->schemes.v) &&
           covers_mask(x->effects.v, y->can);
}

/* Is everything that b is about certainly something that rule a is about? */
static bool covers(struct loader *l, const struct m_rule *a, const struct m_rule *b)
{
    if (a->when.n || a->except.n)
        return false;
    if (a->scope.at && (!b->scope.at || !covers_list(l, &a->scope, &b->scope, 0)))
        return false;
    return warn_match_covers(l, &a->match, &b->match);
}

/* A hold or an allow that names no port or scheme is about https on 443 alone, and never about an upgrade. */
static bool covers_as_written(struct loader *l, const struct m_rule *a, const struct m_rule *b)
{
    const struct m_match *x = &a->match, *y = &b->match;
    uint64_t have = x->schemes.v ? x->schemes.v : SCHEME_HTTPS, want = y->schemes.v ? y->schemes.v : SCHEME_HTTPS;
    return covers(l, a, b) && (x->ports.n || !y->ports.n) && (want & ~have) == 0 && !y->ws.at;
}

static bool same_text(const struct item *a, const struct item *b)
{
    return (a->at != NULL) == (b->at != NULL) && (a->at == NULL || span_eq(a->text, b->text));
}

/* A hold goes before an allow. One of some hours is not helped by an except:, which leaves the others to no rule. */
static const char *what_helps(const struct m_rule *hold, const struct m_rule *allow)
{
    if (hold->decide.v != VERDICT_HOLD)
        return "";
    return allow->when.n ? ", and a hold goes before an allow: give it a when: of the other hours"
                         : ", and a hold goes before an allow: give it an except:";
}

static void compare(struct loader *l, const struct m_rule *a, const struct m_rule *b)
{
    const char *does = a->decide.v == VERDICT_DENY ? "denies" : "holds";
    if (a->decide.v == b->decide.v) {
        /* Only the first of two by id says so. */
        if (a->floor == b->floor && same_text(&a->use, &b->use) && !b->when.n && !b->except.n && !a->limits.at &&
            !b->limits.at && covers(l, a, b) && covers(l, b, a))
            load_problem(l, b->at, "P103",
                         "the rule \"%.*s\" says what \"%.*s\" at %s:%u says: one of them is enough",
                         SPAN_FMT(b->id.text), SPAN_FMT(a->id.text), a->at->file, a->at->line);
    } else if (a->decide.v == VERDICT_DENY
                   ? covers(l, a, b)
                   : a->decide.v == VERDICT_HOLD && b->decide.v == VERDICT_ALLOW &&
                         !(b->over.at && span_eq(b->over.text, a->id.text)) && covers_as_written(l, a, b)) {
        load_problem(l, b->at, "P103",
                     "the rule \"%.*s\" never decides: the %s \"%.*s\" at %s:%u %s all it is about%s",
                     SPAN_FMT(b->id.text), a->floor ? "floor" : "rule", SPAN_FMT(a->id.text), a->at->file,
                     a->at->line, does, what_helps(a, b));
    }
}

/* A hold goes before an allow: over: that names one which holds everything from the first request on. */
static void warn_over(struct loader *l, const struct model *m, const struct m_rule *r)
{
    int at = r->over.at ? model_rule(m, r->over.text) : -1;
    const struct m_rule *hold = at >= 0 && m->rules[at]->decide.v == VERDICT_HOLD ? m->rules[at] : NULL;
    if (hold && covers_as_written(l, hold, r))
        load_problem(l, r->over.at, "P113",
                     "the rule \"%.*s\" never decides: \"%.*s\" holds all it is about from the first request on; %s",
                     SPAN_FMT(r->id.text), SPAN_FMT(r->over.text),
                     r->when.n ? "add except: to that one, and hold the other hours by one with a when:"
                               : "add except: to that one");
    if (hold && emit_when_apart(r, hold))
        load_problem(
            l, r->over.at, "P118",
            "\"%.*s\" is never in force when \"%.*s\" is: what is past the limits is denied; name a hold that has "
            "these hours, or no when:",
            SPAN_FMT(r->over.text), SPAN_FMT(r->id.text));
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
    l->compared = 0; /* what one rule's exceptions took is not taken from all rules */
    for (size_t i = 0; i < m->nrules; i++)
        warn_over(l, m, m->rules[i]);
    compare_all(l, m, VERDICT_DENY, 200 * 1000);
    compare_all(l, m, VERDICT_HOLD, 100 * 1000);
    compare_all(l, m, VERDICT_ALLOW, 100 * 1000);
}
