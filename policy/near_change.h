/* The smallest change by which a request that was denied or held would be let through. For the refusal, not for the
 * decision: it judges anew. */
#ifndef POLICY_NEAR_CHANGE_H
#define POLICY_NEAR_CHANGE_H

#include "policy/policy.h"

/* One sentence, "To refs/heads/agent/x it is allowed." with the patterns of a rule in the subject's own scope: for a
 * push other refs, for what no rule is about a path near its own. It is judged to be so. Empty: nothing that small is
 * known, or looking for it would cost too much. d: what this request was judged as at now_ms. In the arena. */
struct span policy_near_change(const struct policy *p, const struct subject *s, const struct request *r,
                               const struct decision *d, uint64_t now_ms, struct arena *a);

#endif
