/* Why was it so? For the verbs, not for the gateway: this looks at every rule. */
#ifndef POLICY_EXPLAIN_H
#define POLICY_EXPLAIN_H

#include "policy/policy.h"

enum { NEAR_MAX = 16 };

struct near_miss { /* a rule that decided nothing, though all of it but one key fits */
    struct span id, file;
    uint32_t line;
    enum verdict verdict;
    const char *missing; /* the key; "outranked" when all of it fits */
};

/* Near misses of a request that was judged as d; in order of id. Returns how many. */
size_t policy_near_misses(const struct policy *p, const struct subject *s, const struct request *r,
                          const struct decision *d, struct arena *a, struct near_miss out[NEAR_MAX]);
/* Why a request was judged "unclassified", in words; NULL when it was not. */
const char *policy_why_unclear(const struct request *r, const struct decision *d, struct arena *a);
/* How many rules there are, and where rule i stands (for coverage). */
size_t policy_rules(const struct policy *p);
struct rule_ref policy_rule(const struct policy *p, size_t i);

#endif
