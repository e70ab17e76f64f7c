/* Asks once more what the decision asked, until the first thing that left it open. */
#include "policy/ambiguity.h"

#include "policy/match/about.h"

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

static void seek_rule(const struct ask *k, uint32_t rule, void *arg)
{
    struct seek *s = arg;
    const struct img_rule *r = img_at(k->p, IMG_RULE, rule);
    const struct img_match *m = img_at(k->p, IMG_MATCH, r->match.first);
    enum strictness loosest = r->verdict == VERDICT_DENY ? ANY_PLACE : ANY_SPELLING;
    if (s->found != AMBIGUITY_NONE || !scope_fits(k->p, k->subject, r) || !when_in_force(k->p, r, k->now_ms) ||
        match_fits(k, m, loosest) == FIT_NO)
        return;
    if (r->verdict != VERDICT_DENY)
        seek_match(k, m, AS_WRITTEN, s);
    if (s->found == AMBIGUITY_NONE && (r->verdict != VERDICT_ALLOW || r->limits.n))
        seek_match(k, m, loosest, s);
    for (uint32_t i = 0; i < r->except.n && s->found == AMBIGUITY_NONE; i++)
        seek_match(k, img_at(k->p, IMG_MATCH, r->except.first + i),
                   r->verdict == VERDICT_ALLOW ? ANY_SPELLING : AS_WRITTEN, s);
    if (s->found == AMBIGUITY_NONE && r->limits.n && !limits_seen(k, r))
        s->found = k->body->open != AMBIGUITY_NONE ? (enum ambiguity_cause)k->body->open : AMBIGUITY_BODY_CUT;
}

static void seek_class(struct ask k, const struct class *c, struct seek *s)
{
    if (c->bad || c->pending) {
        s->found = c->pending ? AMBIGUITY_BODY_CUT : (enum ambiguity_cause)c->ambiguity;
        return;
    }
    ask_class(&k, c, c, k.path);
    about_rules(&k, seek_rule, s);
}

static struct seek seek(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                        struct arena *a)
{
    struct seek found = {AMBIGUITY_NONE, SPAN_NONE};
    struct body_view body = {.looked = false};
    struct reading reading[READINGS_MAX];
    struct class c[CLASSES_MAX];
    struct ask k = {.p = p,
                    .subject = s,
                    .request = r,
                    .method = r->method,
                    .body = &body,
                    .arena = a,
                    .upgrade = match_is_upgrade(r),
                    .now_ms = now_ms};
    size_t n = 0;
    if (readings_of(r->path, a, reading, &n) != 0)
        return found;
    for (size_t i = 0; i < n; i++) {
        k.path = reading[i].path;
        size_t classes = classify(p, r, reading[i].path, a, c);
        for (size_t j = 0; j < classes && found.found == AMBIGUITY_NONE; j++)
            seek_class(k, &c[j], &found);
    }
    return found;
}

struct ambiguity policy_ambiguity(const struct policy *p, const struct subject *s, const struct request *r,
                                  const struct decision *d, uint64_t now_ms, struct arena *a)
{
    if (!span_eq(span_str(d->code), SPAN("unclassified")))
        return (struct ambiguity){.word = "", .told = ""};
    struct seek is = seek(p, s, r, now_ms, a);
    if (is.found == AMBIGUITY_NONE)
        is.found = AMBIGUITY_OTHER;
    bool of_policy = is.found >= AMBIGUITY_KIND && is.found <= AMBIGUITY_PACKS;
    enum ambiguity_cause told = of_policy ? AMBIGUITY_OTHER : is.found;
    return (struct ambiguity){.word = causes[is.found].word,
                              .words = span_str(causes[is.found].words),
                              .asked = is.key,
                              .told = causes[told].word,
                              .told_words = span_str(causes[told].words)};
}
