/* What the rules come to about one question: each that fits adds to the votes. */
#ifndef POLICY_DECIDE_RULE_VOTES_H
#define POLICY_DECIDE_RULE_VOTES_H

#include "policy/limit.h"
#include "policy/match/match.h"

/* The rules with limits among those that decide together, each once; n past LIMITS_MAX: more than fit. */
struct limited {
    uint32_t n, rule[LIMITS_MAX];
};
void limited_add(struct limited *set, uint32_t rule);
void limited_join(struct limited *set, const struct limited *more);
/* Is what this rule's limits ask of the request here to be seen? */
bool limits_seen(const struct ask *k, const struct img_rule *r);

/* What several holds ask together. rule: the one to name, -1 for none. */
struct hold_sum {
    int rule;
    uint32_t credential, approver; /* IMG_NONE: none said */
    bool clash_credential, clash_approver, reason;
    uint64_t within_ms, inline_wait_ms;
    struct ws_terms messages;       /* what all of them let be sent */
    struct approval_terms approval; /* the strictest */
    struct grant_terms grants;      /* the narrowest */
    struct limited limited;
};
#define HOLD_SUM_NONE                                                                                                \
    {                                                                                                                \
        .rule = -1, .credential = IMG_NONE, .approver = IMG_NONE, .inline_wait_ms = UINT64_MAX                       \
    }
extern const struct hold_sum hold_sum_none;
void hold_sum_add(const struct policy *p, uint32_t rule, struct hold_sum *h);
struct ws_terms ws_terms_of(const struct img_rule *r);
struct ws_terms ws_terms_meet(struct ws_terms a, struct ws_terms b);
struct grant_terms grant_terms_meet(struct grant_terms a, struct grant_terms b);
/* Of what no rule says anything of: one yes, by whoever runs the machine. */
extern const struct approval_terms approval_usual;
/* The strictest of both. */
struct approval_terms approval_terms_meet(struct approval_terms a, struct approval_terms b);

/* What follows from all rules about one question. Indices of rules, -1 for none. */
struct rule_votes {
    int floor, deny, allow;
    struct hold_sum hold;
    struct hold_sum loose; /* fits in another spelling only: an allow is a hold, a hold asks this too */
    bool maybe_deny, maybe_hold, maybe_allow, maybe_bound;
    int hold_maybe, allow_maybe; /* a rule that might */
    uint32_t credential_allow;   /* IMG_NONE: none said */
    bool clash_allow;
    struct limited limited_allow; /* those that allow, and those that would in another spelling */
};
/* Added to *t, which begins as rule_votes_none. */
extern const struct rule_votes rule_votes_none;
void rule_votes_of(const struct ask *k, struct rule_votes *t);
/* Of this rule alone. */
void rule_votes_of_one(const struct ask *k, uint32_t rule, struct rule_votes *t);
/* Calls fn for every rule that the index has for this question, once for each key that it is found under. */
typedef void rule_fn(const struct ask *k, uint32_t rule, void *arg);
void rule_votes_each(const struct ask *k, rule_fn *fn, void *arg);
/* How the rule's match is asked first, and how its except:; and whether entry i of its except: takes the question out
 * of it. */
enum strictness rule_strictness(const struct ask *k, const struct img_rule *r);
enum strictness rule_except_strictness(const struct img_rule *r);
enum fit rule_except_fits(const struct ask *k, const struct img_rule *r, uint32_t i);

#endif
