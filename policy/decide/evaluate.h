/* The one evaluation of a request. The decision is made by it; who explains the decision, or says when it changes,
 * looks on at the questions that it asked, so that nothing is worked out a second way. */
#ifndef POLICY_DECIDE_EVALUATE_H
#define POLICY_DECIDE_EVALUATE_H

#include "policy/decide/rule_votes.h"

struct observer {
    /* The rules are about to be asked this: about one reading and one class of the request, one member of a push, or
     * (k->could) the push that it stands before. k lives as long as the call; what it points to, as the arena. */
    void (*asked)(void *arg, const struct ask *k, const struct class *c);
    /* What was asked about this class is what the decision speaks of, unless another class follows. NULL: not told.
     */
    void (*taken)(void *arg);
    void *arg;
};
/* policy_judge, with one who looks on (NULL: nobody, and nothing is paid for it). *body is what was seen of the
 * request's body: of a request that is evaluated for several times it is parsed once. */
void evaluate(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
              struct body_view *body, struct arena *a, const struct observer *o, struct decision *d);

#endif
