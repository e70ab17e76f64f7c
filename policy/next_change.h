/* A denial, or a hold, that the clock alone will change. For the refusal, not for the decision: it judges anew. */
#ifndef POLICY_NEXT_CHANGE_H
#define POLICY_NEXT_CHANGE_H

#include "policy/policy.h"

struct next_change {
    uint64_t at_ms;           /* Unix time: from then on ... */
    struct decision decision; /* ... this; need_body: it depends on the body */
    struct span hours;        /* of the rule that lets it through, "mon-fri 09:00-17:00 Europe/Berlin"; or empty */
    struct span at;           /* that time in words: 2026-11-23T08:00:00Z */
};

/* The first time within eight days at which this request, denied or held as d at now_ms, would not be denied any
 * more, or would be allowed. False: none is known, or it was for something else. What it says comes from rules in the
 * subject's own scope. */
bool policy_next_change(const struct policy *p, const struct subject *s, const struct request *r,
                        const struct decision *d, uint64_t now_ms, struct arena *a, struct next_change *out);

#endif
