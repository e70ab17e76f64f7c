#include "proxy/judge/evaluation/evaluation.h"

#include <stdio.h>

#include "proxy/identity.h"
#include "proxy/words.h"

/* What judging needs on top of a request is the parsed body. */
enum { FACTS_MAX = 24 * 1024 * 1024, SUMMARY_MAX = 121 };

void evaluation_drop(struct evaluation *v)
{
    image_unref(v->image);
    arena_free(&v->facts);
    body_unref(&v->body);
    *v = (struct evaluation){0};
}

static bool keep(struct arena *a, struct span *s)
{
    size_t n = s->n;
    *s = arena_copy(a, *s);
    return s->n == n;
}

static bool keep_push(struct arena *a, struct decision *d)
{
    struct git_push *push = d->push ? arena_alloc(a, sizeof(*push)) : NULL;
    struct git_ref *refs = push ? arena_alloc(a, d->push->nrefs * sizeof(*refs)) : NULL;
    if (d->push == NULL || refs == NULL)
        return d->push == NULL;
    *push = *d->push;
    push->refs = refs;
    for (size_t i = 0; i < push->nrefs; i++) {
        refs[i] = d->push->refs[i];
        if (!keep(a, &refs[i].name) || !keep(a, &refs[i].old_id) || !keep(a, &refs[i].new_id))
            return false;
    }
    d->push = push;
    return true;
}

static bool keep_limits(struct arena *a, struct decision *d)
{
    struct limit *l = d->nlimits ? arena_alloc(a, d->nlimits * sizeof(*l)) : NULL;
    if (d->nlimits == 0 || l == NULL)
        return d->nlimits == 0;
    for (size_t i = 0; i < d->nlimits; i++) {
        l[i] = d->limits[i];
        if (!keep(a, &l[i].rule) || !keep(a, &l[i].measure))
            return false;
    }
    d->limits = l;
    return true;
}

void evaluation_pack(struct evaluation *v)
{
    struct decision d = v->d;
    struct span *const text[] = {&d.rule.id,  &d.rule.file, &d.say,        &d.instead,      &d.op,
                                 &d.resource, &d.pack,      &d.approve_by, &d.subprotocols, &d.summary};
    struct arena a;
    bool whole = true;
    if (v->facts.used <= EVALUATION_PACKED)
        return;
    arena_init(&a, FACTS_MAX);
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]) && whole; i++)
        whole = keep(&a, text[i]);
    if (!whole || !keep_push(&a, &d) || !keep_limits(&a, &d)) {
        arena_free(&a);
        return;
    }
    d.facts = NULL;
    d.nfacts = 0;
    d.join_body = SPAN_NONE;
    arena_free(&v->facts);
    v->facts = a;
    v->d = d;
    body_unref(&v->body);
}

/* The request with the bytes that the decision keeps, and no others. */
static struct request with_body(const struct evaluation *v, const struct request *r)
{
    struct request q = *r;
    q.body = body_bytes(v->body);
    return q;
}

/* A request that no pack has words for is named by where it goes: "POST api.example.com/v1/things". */
static struct span target_words(const struct request *r, bool upgrade, struct arena *a)
{
    char text[SUMMARY_MAX], port[8] = "";
    if (r->port != (span_eq(r->scheme, SPAN("https")) ? 443 : 80))
        snprintf(port, sizeof(port), ":%u", r->port);
    int n = snprintf(text, sizeof(text), "%.*s %.*s%s%.*s", SPAN_FMT(upgrade ? SPAN("WebSocket to") : r->method),
                     SPAN_FMT(r->host), port, SPAN_FMT(r->path));
    if (n >= (int)sizeof(text))
        memcpy(text + sizeof(text) - 4, "...", 4);
    return arena_copy(a, span_str(text));
}

/* Spans of the broker are not held: each request has others, so that no approval lets another one go, and their
 * tickets would fill the room of those that a person is to see. */
static void spans_are_not_held(const struct sandbox *s, struct decision *d)
{
    bool spans = false;
    for (size_t i = 0; i < s->nlabels; i++)
        spans |= span_eq(s->label[i].key, span_str(SPANS_LABEL)) && span_eq(s->label[i].value, SPAN(SPANS_VALUE));
    if (d->verdict != VERDICT_HOLD || !spans || !span_eq(s->session, SPAN(SPANS_SESSION)))
        return;
    d->verdict = VERDICT_DENY;
    d->code = "spans-held";
    d->say =
        SPAN("The policy holds spans for approval, which nobody could give for all of them: allow them by a rule");
}

bool evaluation_over(struct evaluation *v, const struct sandbox *s, const struct request *r,
                     const struct exceeded *over)
{
    bool past[LIMITS_MAX] = {false}, any = false;
    for (size_t i = 0; i < v->d.nlimits && i < LIMITS_MAX; i++)
        for (size_t k = 0; k < over->n && !past[i]; k++)
            any |= past[i] = span_eq(v->d.limits[i].rule, over->past[k].rule) &&
                             span_eq(v->d.limits[i].measure, over->past[k].measure);
    struct request q = with_body(v, r);
    if (any)
        policy_past_limits(v->image->policy, &q, past, v->at_ms, &v->facts, &v->d);
    spans_are_not_held(s, &v->d);
    return any;
}

void evaluation_make(struct judge *j, const struct sandbox *s, struct span lane, const struct request *r,
                     struct body *body, const struct exceeded *over, struct evaluation *out)
{
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(s, lane, own);
    struct credential c;
    *out = (struct evaluation){.image = image_ref(j->image),
                               .body = body_ref(body),
                               .d.credential = -1,
                               .at_ms = j->ports.wall(j->ports.arg)};
    struct request q = with_body(out, r);
    arena_init(&out->facts, FACTS_MAX);
    policy_judge(out->image->policy, &who, &q, out->at_ms, &out->facts, &out->d);
    if (out->d.nlimits > LIMITS_MAX) { /* it says itself that there are no more */
        out->d.verdict = VERDICT_DENY;
        out->d.nlimits = 0;
    }
    if (over != NULL && out->d.verdict == VERDICT_ALLOW)
        (void)evaluation_over(out, s, r, over);
    spans_are_not_held(s, &out->d);
    if (out->d.credential >= 0 && policy_credential(out->image->policy, (size_t)out->d.credential, &c))
        out->credential = c.name;
    if (out->d.code == NULL)
        out->d.code = "internal";
    if (out->d.verdict == VERDICT_HOLD && out->d.summary.n == 0)
        out->d.summary = target_words(r, out->d.upgrade, &out->facts);
}

void evaluation_ambiguity(struct evaluation *v, const struct sandbox *s, struct span lane, const struct request *r)
{
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(s, lane, own);
    struct request q = with_body(v, r);
    struct arena again; /* the body is parsed once more, for which v->facts may have no room; nothing of it is kept */
    arena_init(&again, FACTS_MAX);
    v->ambiguity = policy_ambiguity(v->image->policy, &who, &q, &v->d, v->at_ms, &again);
    arena_free(&again);
}

bool evaluation_each_judged(const struct evaluation *v, const struct sandbox *s, struct span lane,
                            const struct request *r, bool (*fn)(const struct judged *j, void *arg), void *arg)
{
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(s, lane, own);
    struct arena again;
    arena_init(&again, FACTS_MAX);
    bool all = policy_each_judged(v->image->policy, &who, r, v->at_ms, &again, fn, arg);
    arena_free(&again);
    return all;
}

bool evaluation_terms_same(const struct evaluation *a, const struct evaluation *b)
{
    struct digest x, y;
    return identity_of_terms(a->image->policy, &a->d, &x) == 0 &&
           identity_of_terms(b->image->policy, &b->d, &y) == 0 && memcmp(&x, &y, sizeof(x)) == 0;
}

bool evaluation_counts_same(const struct decision *a, const struct decision *b)
{
    if (a->nlimits != b->nlimits)
        return false;
    for (size_t i = 0; i < a->nlimits; i++) {
        const struct limit *x = &a->limits[i], *y = &b->limits[i];
        if (!span_eq(x->rule, y->rule) || !span_eq(x->measure, y->measure) || x->per != y->per ||
            x->amount != y->amount || x->uncountable != y->uncountable)
            return false;
    }
    return true;
}
