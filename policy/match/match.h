/* Does a rule fit a classified request? Three answers, because a body that is
 * not here yet may still say; and three ways to ask: as it is written (allow), in
 * any spelling that a server may take for the same (hold, exceptions of an allow),
 * and so on every scheme and port that the rule does not name (deny). */
#ifndef POLICY_MATCH_MATCH_H
#define POLICY_MATCH_MATCH_H

#include "policy/match/body.h"
#include "policy/classify/classify.h"
#include "policy/limit.h"

enum strictness { AS_WRITTEN = 0, ANY_SPELLING, ANY_PLACE };

/* One member of a push. */
struct member {
    struct span ref;
    bool force, delete;
};

/* What lets a request through is asked about: what is written, where the reading is another spelling of it. */
struct written {
    struct span path, op, resource;
    enum effect effect;
    bool lifted;
};

/* What the rules are asked about: one reading of one request, one member of it. */
struct ask {
    const struct policy *p;
    const struct subject *subject;
    const struct request *request;
    struct span path, method, op, resource;
    enum effect effect;
    struct written written; /* of AS_WRITTEN: as above, or of the spelling that this is another one of */
    uint32_t git_service;
    const struct member *member; /* NULL: not a push, or not known yet */
    bool push_unknown;           /* a push whose commands are not known yet */
    bool upgrade;                /* to a WebSocket; lifted: it would be a read otherwise */
    bool lifted;
    struct span beside; /* the operation that it overrides */
    bool overridden;    /* any method may be meant: what restricts one fits, what lets through must mean them all */
    struct body_view *body;
    struct arena *arena;
    uint64_t now_ms;
};

/* when: of a rule (policy/match/when.c). */
bool when_in_force(const struct policy *p, const struct img_rule *r, uint64_t now_ms);
enum fit match_fits(const struct ask *k, const struct img_match *m, enum strictness how);
bool one_scope_fits(const struct policy *p, const struct subject *s, const struct img_scope *c);
/* The entry of upstreams: for a host and port, or NULL. */
const struct img_upstream *upstream_at(const struct policy *p, struct span host, uint16_t port);
/* May this subject reach this host, for its regions (policy/match/region.c)? Or: on any port that the match means? */
const struct img_scope *region_keeps_out(const struct policy *p, const struct subject *s, struct span host,
                                         uint16_t port);
bool region_lets(const struct policy *p, const struct subject *s, const struct img_match *m, struct span host);
struct span region_words(const struct policy *p, const struct img_scope *c, struct span host, struct arena *a);
bool scope_fits(const struct policy *p, const struct subject *s, const struct img_rule *r);
/* Does a host pattern of the match name the host, on a port it means? */
bool match_names_place(const struct policy *p, const struct img_match *m, struct span scheme, struct span host,
                       uint16_t port, enum strictness how);

/* The question of the request itself, no reading of it: what is written is what is asked. */
static inline void ask_written(struct ask *k)
{
    k->written = (struct written){k->path, k->op, k->resource, k->effect, k->lifted};
}

/* query:, query_names: and header: of a match (policy/match/pairs.c). */
enum fit pairs_fit(const struct ask *k, const struct img_match *m, bool strictly);

/* Does the match name the operation? One that names none does. */
bool match_names_op(const struct policy *p, const struct img_match *m, struct span op);

/* Does the request ask for an upgrade? The front leaves an Upgrade field in none but proper WebSocket requests. */
bool match_is_upgrade(const struct request *r);
/* Of the subprotocols it offers those that the match names, as a list; -1: no memory. With `all`, if it names none,
 * all of them. */
int match_subprotocols(const struct ask *k, const struct img_match *m, bool all, struct span *out) MUSTCHECK;

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
    struct ws_terms messages; /* what all of them let be sent */
    struct limited limited;
};
extern const struct hold_sum hold_sum_none;
void hold_sum_add(const struct policy *p, uint32_t rule, struct hold_sum *h);
struct ws_terms ws_terms_of(const struct img_rule *r);
struct ws_terms ws_terms_meet(struct ws_terms a, struct ws_terms b);

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
void rule_votes_of(const struct ask *k, struct rule_votes *t);

#endif
