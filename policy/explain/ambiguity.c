/* The request is evaluated once more, until the first thing that leaves a question open. */
#include "policy/ambiguity.h"

#include "policy/decide/evaluate.h"
#include "policy/explain.h"

static const struct {
    const char *word, *words;
} causes[] = {
#define X(name, word, words) {word, words},
    AMBIGUITY_CAUSES(X)
#undef X
};

const char *ambiguity_words(enum ambiguity_cause c)
{
    return causes[c].words;
}

struct seek {
    enum ambiguity_cause found;
    struct span key; /* of the body, that the rule asks about */
    int rule;        /* which; -1: none does */
};

static bool asks_refs(const struct img_match *m)
{
    return m->git_refs.n || m->git_force != TRI_UNSET || m->git_delete != TRI_UNSET;
}

/* What leaves this match open. */
static void seek_match(const struct ask *k, const struct img_match *m, enum strictness how, struct seek *s)
{
    bool strictly = how == AS_WRITTEN;
    if (match_fits(k, m, how) != FIT_MAYBE)
        return;
    s->found = AMBIGUITY_OTHER;
    for (uint32_t i = 0; i < m->body.n; i++) {
        const struct img_cond *c = img_at(k->p, IMG_COND, m->body.first + i);
        if (body_fits(k->body, k->p, c, k->request, strictly, k->arena) != FIT_MAYBE)
            continue;
        s->found = body_ambiguity(k->body, k->p, c, k->request, k->arena);
        s->key = img_span(k->p, c->key);
        return;
    }
    if (m->ws_protocols.n && k->request->fields_unknown)
        s->found = AMBIGUITY_OFFERS;
    else if (m->header.n && k->request->fields_unknown)
        s->found = AMBIGUITY_HEADER;
    else if (asks_refs(m) && k->push_unknown)
        s->found = AMBIGUITY_PUSH;
}

/* What is open of a rule that is: the first such is told, of the lowest id. */
static void seek_rule(const struct ask *k, uint32_t rule, void *arg)
{
    struct seek *s = arg, of = {.rule = (int)rule};
    const struct img_rule *r = img_at(k->p, IMG_RULE, rule);
    const struct img_match *m = img_at(k->p, IMG_MATCH, r->match.first);
    struct rule_votes t = rule_votes_none;
    rule_votes_of_one(k, rule, &t);
    if (!(t.maybe_deny || t.maybe_hold || t.maybe_allow || t.maybe_bound) || (s->rule >= 0 && s->rule <= of.rule))
        return;
    seek_match(k, m, rule_strictness(k, r), &of);
    if (of.found == AMBIGUITY_NONE && r->verdict != VERDICT_DENY)
        seek_match(k, m, ANY_SPELLING, &of);
    for (uint32_t i = 0; i < r->except.n && of.found == AMBIGUITY_NONE; i++)
        seek_match(k, img_at(k->p, IMG_MATCH, r->except.first + i), rule_except_strictness(r), &of);
    if (of.found == AMBIGUITY_NONE && r->limits.n && !limits_seen(k, r))
        of.found = k->body->open != AMBIGUITY_NONE ? (enum ambiguity_cause)k->body->open : AMBIGUITY_BODY_CUT;
    if (of.found == AMBIGUITY_NONE)
        of.found = AMBIGUITY_OTHER;
    *s = of;
}

/* The first question that something leaves open. */
static void seek_question(void *arg, const struct ask *k, const struct class *c)
{
    struct seek *s = arg;
    if (s->found != AMBIGUITY_NONE)
        return;
    if (c->bad == NULL)
        rule_votes_each(k, seek_rule, s);
    if (c->bad || c->pending)
        *s = (struct seek){c->pending ? AMBIGUITY_BODY_CUT : (enum ambiguity_cause)c->ambiguity, SPAN_NONE, s->rule};
}

struct ambiguity policy_ambiguity(const struct policy *p, const struct subject *s, const struct request *r,
                                  const struct decision *d, uint64_t now_ms, struct arena *a)
{
    struct seek is = {.rule = -1};
    struct body_view body = {.looked = false};
    const struct observer look = {.asked = seek_question, .arg = &is};
    struct decision again;
    if (!span_eq(span_str(d->code), SPAN("unclassified")))
        return (struct ambiguity){.word = "", .told = ""};
    evaluate(p, s, r, now_ms, &body, a, &look, &again);
    if (is.found == AMBIGUITY_NONE)
        is.found = AMBIGUITY_OTHER;
    bool of_policy = is.found >= AMBIGUITY_KIND && is.found <= AMBIGUITY_PACKS;
    enum ambiguity_cause told = of_policy ? AMBIGUITY_OTHER : is.found;
    return (struct ambiguity){.cause = is.found,
                              .rule = policy_rule(p, (size_t)is.rule), /* -1: no rule, nothing */
                              .word = causes[is.found].word,
                              .words = span_str(causes[is.found].words),
                              .asked = is.key,
                              .told = causes[told].word,
                              .told_words = span_str(causes[told].words)};
}
