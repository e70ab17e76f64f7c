/* Bounds on what a rule lets through: so many requests, or so much of a field, in so long. The policy says what one
 * request takes and where the bound is; the ledger counts (proxy/ledger), in the transaction of the intent or the
 * ticket. Pure. */
#ifndef POLICY_LIMIT_H
#define POLICY_LIMIT_H

#include "policy/policy.h"

enum { LIMITS_MAX = 16 }; /* on one request, of all rules that decide it together; more is a denial */

/* One bound. rule and measure are its key in the ledger: they outlive a reload; windows and maxima are only asked. */
struct limit {
    struct span rule;        /* id of the rule that sets it */
    struct span measure;     /* "requests", "form:amount" or "json:/amount" */
    uint32_t per;            /* LIMIT_PER_* of records.h: whose use is counted */
    uint64_t max, window_ms; /* at most `max` in any `window_ms` */
    uint64_t amount;         /* what this request takes: how many it stands for, or the field's value */
    bool uncountable;        /* it cannot be seen how much that is: past the limit, whatever was used */
};

/* Is used + amount past the bound? No overflow lets it through. The one place that says so. */
bool limit_is_past(const struct limit *l, uint64_t used);

/* d is an allow or a hold with limits (d->limits); past[i]: limit i is used up. Rewrites d: an allow of which every
 * rule past its limit names a hold in over: becomes that hold (code "over-limit", its own limits in d->limits;
 * several holds add up as always), anything else is denied (code "over-limit", the say: of the rule whose limit it
 * is); so is what a hold that is not in force at now_ms would take. */
void policy_past_limits(const struct policy *p, const struct request *r, const bool *past, uint64_t now_ms,
                        struct arena *a, struct decision *d);

#endif
