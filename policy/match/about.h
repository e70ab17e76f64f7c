/* For what looks at rules again after the decision: which of them were asked, and when one changes with the hours. */
#ifndef POLICY_MATCH_ABOUT_H
#define POLICY_MATCH_ABOUT_H

#include "policy/match/match.h"

/* Calls fn for every rule that the index has for this question, once for each key that it is found under. */
typedef void about_fn(const struct ask *k, uint32_t rule, void *arg);
void about_rules(const struct ask *k, about_fn *fn, void *arg);

/* The next time, in Unix seconds, at which a window of the rule begins or ends or its zone's clock is set, at most
 * eight days after now; INT64_MAX: none. Between two such times the rule is either in force or not. */
int64_t when_next(const struct policy *p, const struct img_rule *r, int64_t now);

/* policy_judge, of a request that is judged for several times: its body is parsed once, into *body. */
void judge_again(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                 struct body_view *body, struct arena *a, struct decision *d);

/* The question again that led to d, of the path as it is written. */
struct ask ask_again(const struct policy *p, const struct subject *s, const struct request *r,
                     const struct decision *d, struct body_view *body, struct arena *a);
/* The question is about this class of a reading of the request, which is written as `as` and there the path is
 * `path`: both its own, but where the reading is another spelling. */
static inline void ask_class(struct ask *k, const struct class *c, const struct class *as, struct span path)
{
    bool lifted = k->upgrade && as->effect == EFFECT_READ;
    k->written = (struct written){path, as->op, as->resource, lifted ? EFFECT_WRITE : as->effect, lifted};
    k->op = c->op;
    k->resource = c->resource;
    k->lifted = k->upgrade && c->effect == EFFECT_READ;
    k->effect = k->lifted ? EFFECT_WRITE : c->effect;
    k->overridden = c->overridden;
    k->beside = c->beside;
    k->git_service = c->git_service;
    k->push_unknown = c->pending || c->bad != NULL;
}
/* True: it is one that stands before a push, and the question is made the one about the push it may lead to. */
bool ask_could(struct ask *k);

#endif
