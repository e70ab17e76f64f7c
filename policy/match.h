/* Does a rule fit a classified request? Three answers, because a body that is
 * not here yet may still say; and three ways to ask: as it is written (allow), in
 * any spelling that a server may take for the same (hold, exceptions of an allow),
 * and so on every scheme and port that the rule does not name (deny). */
#ifndef POLICY_MATCH_H
#define POLICY_MATCH_H

#include "policy/body.h"
#include "policy/classify/classify.h"

enum strictness { AS_WRITTEN = 0, ANY_SPELLING, ANY_PLACE };

/* One member of a push. */
struct member {
    struct span ref;
    bool force, delete;
};

/* What the rules are asked about: one reading of one request, one member of it. */
struct ask {
    const struct policy *p;
    const struct subject *subject;
    const struct request *request;
    struct span path, method, op, resource;
    enum effect effect;
    uint32_t git_service;
    const struct member *member; /* NULL: not a push, or not known yet */
    bool push_unknown;           /* a push whose commands are not known yet */
    bool upgrade;                /* to a WebSocket; lifted: it would be a read otherwise */
    bool lifted;
    struct body_view *body;
    struct arena *arena;
};

enum fit match_fits(const struct ask *k, const struct img_match *m, enum strictness how);
/* The same question for people: the names of the keys that do not fit, as written. Returns how many. */
enum { MISSES_MAX = 14 };
unsigned match_misses(const struct ask *k, const struct img_match *m, const char *out[MISSES_MAX]);
bool scope_fits(const struct policy *p, const struct subject *s, const struct img_rule *r);
/* Does a host pattern of the match name the host, on a port it means? */
bool match_names_place(const struct policy *p, const struct img_match *m, struct span scheme, struct span host,
                       uint16_t port, enum strictness how);

/* Does the request ask for an upgrade? The front leaves an Upgrade field in none but proper WebSocket requests. */
bool match_is_upgrade(const struct request *r);
/* Of the subprotocols it offers those that the match names, as a list; -1: no memory. With `all`, if it names none,
 * all of them. */
int match_subprotocols(const struct ask *k, const struct img_match *m, bool all, struct span *out) MUSTCHECK;

/* What several holds ask together. rule: the one to name, -1 for none. */
struct hold_sum {
    int rule;
    uint32_t credential, approver; /* IMG_NONE: none said */
    bool clash_credential, clash_approver, reason;
    uint64_t within_ms, inline_wait_ms;
    struct ws_terms messages; /* what all of them let be sent */
};
struct ws_terms ws_terms_of(const struct img_rule *r);
struct ws_terms ws_terms_meet(struct ws_terms a, struct ws_terms b);

/* What follows from all rules about one question. Indices of rules, -1 for none. */
struct tally {
    int floor, deny, allow;
    struct hold_sum hold;
    struct hold_sum loose; /* fits in another spelling only: turns an allow into a hold, nothing else */
    bool maybe_deny, maybe_hold, maybe_allow;
    int hold_maybe, allow_maybe; /* a rule that might */
    uint32_t credential_allow;   /* IMG_NONE: none said */
    bool clash_allow;
};
void tally_rules(const struct ask *k, struct tally *t);

#endif
