/* What the rules come to, on its way into a decision: shared by the decision (decide.c) and by what follows when a
 * limit is used up (limit.c). */
#ifndef POLICY_DECIDE_OUTCOME_H
#define POLICY_DECIDE_OUTCOME_H

#include "policy/decide/rule_votes.h"

struct outcome {
    enum verdict verdict;
    bool need_body;
    const char *code;
    int rule;
    uint32_t credential, approver;
    bool reason;
    uint64_t within_ms, inline_wait_ms;
    struct ws_terms messages;
    struct approval_terms approval;
    struct grant_terms grants;
    struct limited limited;
    bool learned; /* some of it fits no rule, and the policy learns */
};

struct outcome outcome_refusal(const char *code, int rule);
/* Of several holds together; two that ask for different credentials or approvers are a refusal. */
struct outcome outcome_of_hold(const struct hold_sum *h);
/* Into the decision, once its credential may go there and its limits are known; else a refusal. What the decision
 * says of the request itself stays. */
void outcome_settle(const struct ask *k, struct outcome *o, struct decision *d);

/* The bounds of those rules as d->limits; NULL, or the code of a denial. */
const char *limits_of(const struct ask *k, const struct limited *set, struct decision *d) MUSTCHECK;

#endif
