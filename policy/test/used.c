/* What a test or a person says is used up of the limits, and what the decision comes to then. */
#include "policy/image/image.h"
#include "policy/limit.h"
#include "policy/test/asked.h"

static uint64_t used_of(const struct used *v, size_t n, const struct limit *l)
{
    for (size_t i = 0; i < n; i++)
        if (span_eq(v[i].rule, l->rule) && span_eq(v[i].measure, l->measure))
            return v[i].n;
    return 0;
}

void asked_past_limits(const struct policy *p, const struct request *r, uint64_t now_ms, const struct used *used,
                       size_t nused, struct arena *a, struct decision *d)
{
    enum verdict was = VERDICT_ALLOW;
    do { /* an allow may become a hold, which has limits of its own; a hold past them is denied */
        bool past[LIMITS_MAX] = {false};
        was = d->verdict;
        for (size_t i = 0; i < d->nlimits && i < LIMITS_MAX; i++)
            past[i] = limit_is_past(&d->limits[i], used_of(used, nused, &d->limits[i]));
        if (d->nlimits)
            policy_past_limits(p, r, past, now_ms, a, d);
    } while (was == VERDICT_ALLOW && d->verdict == VERDICT_HOLD);
}

const char *asked_why_unused(const struct asked *q, const struct policy *p)
{
    for (size_t i = 0; i < q->nused; i++) {
        bool found = false;
        struct span measure = q->used[i].measure, kind, key;
        bool requests = !span_cut(measure, ':', &kind, &key);
        for (uint32_t r = 0; r < p->n[IMG_RULE] && !found; r++) {
            const struct img_rule *rule = img_at(p, IMG_RULE, r);
            for (uint32_t k = 0; k < rule->limits.n && !found && span_eq(img_span(p, rule->id), q->used[i].rule);
                 k++) {
                const struct img_limit *l = img_at(p, IMG_LIMIT, rule->limits.first + k);
                found = requests ? l->measure == LIMIT_REQUESTS
                                 : l->measure == (span_eq(kind, SPAN("json")) ? LIMIT_JSON : LIMIT_FORM) &&
                                       span_eq(img_span(p, l->key), key);
            }
        }
        if (!found)
            return "used: names a limit that no rule has";
    }
    return NULL;
}
