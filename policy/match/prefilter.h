/* The prefilter: a no for most rules at once. Rules of one host that say no path are all asked; most differ from the
 * request in a word: method, effect, operation, port, scheme, a query at all. What a request is, is put into classes,
 * one bit each; of a rule it is known, once the policy is open, in which classes it never fits, however it is asked.
 * One AND tells. A word is in the class of its hash: that it is in one of the rule's says nothing, the whole question
 * is asked then. */
#ifndef POLICY_MATCH_PREFILTER_H
#define POLICY_MATCH_PREFILTER_H

#include "policy/match/match.h"

/* The classes that the rule never fits. */
uint64_t prefilter_never(const struct policy *p, const struct img_rule *r);
/* The classes of the question; none of a kind where it may be several things. */
uint64_t prefilter_classes(const struct ask *k);

#endif
