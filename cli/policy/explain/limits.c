/* limits: in the verbs of an author: what they are and what comes past them, in words. */
#include <stdio.h>

#include "common/json/json.h"
#include "cli/policy/explain/explain.h"
#include "policy/image/image.h"
#include "policy/limit.h"
#include "policy/explain/why.h"

static const char *const whose[LIMIT_PERS] = {
    [LIMIT_PER_SANDBOX] = "sandbox", [LIMIT_PER_SESSION] = "session", [LIMIT_PER_ALL] = "all"};

/* The hold that over: of the limit's rule names, or NULL. */
static const struct img_rule *over_of(const struct policy *p, const struct limit *l)
{
    int at = img_rule_named(p, l->rule);
    const struct img_rule *r = at < 0 ? NULL : img_at(p, IMG_RULE, (uint32_t)at);
    return r && r->verdict == VERDICT_ALLOW && r->over != IMG_NONE ? img_at(p, IMG_RULE, r->over) : NULL;
}

/* What comes of this request at this time once limit i is used up: the judge's own word. */
struct past {
    struct decision decision;
    struct span over, hours; /* of the hold in over:; hours: it is out of these */
};

static struct past past_of(const struct policy *p, struct asked *q, size_t i)
{
    struct past x = {.decision = q->decision};
    const struct img_rule *over = over_of(p, &q->decision.limits[i]);
    bool past[LIMITS_MAX] = {false};
    struct dynbuf b;
    past[i < LIMITS_MAX ? i : 0] = true;
    policy_past_limits(p, &q->request, past, q->now_ms, &q->a, &x.decision);
    x.over = over ? img_span(p, over->id) : SPAN_NONE;
    if (over == NULL || when_in_force(p, over, q->now_ms))
        return x;
    dynbuf_init(&b, WORDS_MAX);
    why_hours(&b, p, over);
    x.hours = arena_keep(&q->a, &b);
    return x;
}

static void print_past(const struct past *x)
{
    const struct decision *d = &x->decision;
    if (d->verdict == VERDICT_HOLD)
        printf("; past that: held by rule %.*s\n", SPAN_FMT(d->rule.id));
    else if (x->hours.n)
        printf("; past that: denied, as %.*s is in force only %.*s\n", SPAN_FMT(x->over), SPAN_FMT(x->hours));
    else if (strcmp(d->code, "over-limit") != 0)
        printf("; past that: denied because %s\n", d->code);
    else
        printf("; past that: denied\n");
}

void explain_limits_print(const struct policy *p, struct asked *q, const char *indent)
{
    for (size_t i = 0; i < q->decision.nlimits; i++) {
        const struct limit *l = &q->decision.limits[i];
        struct past past = past_of(p, q, i);
        struct span kind, key;
        printf("%s  limit of %.*s: at most %llu ", indent, SPAN_FMT(l->rule), (unsigned long long)l->max);
        if (span_cut(l->measure, ':', &kind, &key))
            printf("of %.*s", SPAN_FMT(key));
        else
            fputs(l->max == 1 ? "request" : "requests", stdout);
        fputs(" in ", stdout);
        explain_print_span(l->window_ms);
        printf(l->per == LIMIT_PER_ALL ? ", of all together" : ", per %s", whose[l->per]);
        if ((key.n || l->amount > 1) && !l->uncountable)
            printf(" (this one: %llu)", (unsigned long long)l->amount);
        print_past(&past);
    }
}

void explain_limits_json(const struct policy *p, struct asked *q, struct jsonw *w)
{
    if (q->decision.nlimits == 0)
        return;
    jsonw_kv_array(w, "limits");
    for (size_t i = 0; i < q->decision.nlimits; i++) {
        const struct limit *l = &q->decision.limits[i];
        struct past past = past_of(p, q, i);
        jsonw_object(w);
        jsonw_kv(w, "rule", l->rule);
        jsonw_kv(w, "of", l->measure);
        jsonw_kv_u64(w, "max", l->max);
        jsonw_kv_u64(w, "every_seconds", l->window_ms / 1000);
        jsonw_kv(w, "per", span_str(whose[l->per]));
        jsonw_kv_u64(w, "amount", l->amount);
        jsonw_kv(w, "past_limit", span_str(verdict_name(past.decision.verdict)));
        if (past.over.n)
            jsonw_kv(w, "over", past.over);
        if (past.hours.n)
            jsonw_kv(w, "over_only", past.hours);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}
