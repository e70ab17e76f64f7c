/* Does a rule fit a classified request? Three answers, because a body that is
 * not here yet may still say; and three ways to ask: as it is written (allow), in
 * any spelling that a server may take for the same (hold, exceptions of an allow),
 * and so on every scheme and port that the rule does not name (deny). */
#ifndef POLICY_MATCH_MATCH_H
#define POLICY_MATCH_MATCH_H

#include "policy/classify/classify.h"

enum strictness { AS_WRITTEN = 0, ANY_SPELLING, ANY_PLACE };

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
    const struct member *member; /* NULL: it is not about one, or they are not known yet */
    const struct member *members;
    size_t nmembers;
    bool push_unknown; /* a push whose commands are not known yet */
    bool could;        /* asked of the push that this request stands before: it needs that one might be */
    bool upgrade;      /* to a WebSocket; lifted: it would be a read otherwise */
    bool lifted;
    struct span beside; /* the operation that it overrides */
    bool overridden;    /* any method may be meant: what restricts one fits, what lets through must mean them all */
    struct body_view *body;
    struct arena *arena;
    uint64_t now_ms;
};

/* when: of a rule (policy/match/when.c). */
bool when_in_force(const struct policy *p, const struct img_rule *r, uint64_t now_ms);
/* The next time, in Unix seconds, at which a window of the rule begins or ends or its zone's clock is set, at most
 * eight days after now; INT64_MAX: none. Between two such times the rule is either in force or not. */
int64_t when_next(const struct policy *p, const struct img_rule *r, int64_t now);
enum fit match_fits(const struct ask *k, const struct img_match *m, enum strictness how);
bool match_label(const struct policy *p, const struct subject *s, const struct img_pair *want);
bool match_one_scope(const struct policy *p, const struct subject *s, const struct img_scope *c);
/* The entry of upstreams: for a host and port, or NULL. */
const struct img_upstream *region_upstream(const struct policy *p, struct span host, uint16_t port);
/* May this subject reach this host, for its regions (policy/match/region.c)? Or: on any port that the match means? */
const struct img_scope *region_keeps_out(const struct policy *p, const struct subject *s, struct span host,
                                         uint16_t port);
bool region_lets(const struct policy *p, const struct subject *s, const struct img_match *m, struct span host);
struct span region_words(const struct policy *p, const struct img_scope *c, struct span host, struct arena *a);
bool match_scope(const struct policy *p, const struct subject *s, const struct img_rule *r);
/* Is the port one of the match's, or, where it has none, the scheme's own? */
bool match_names_port(const struct policy *p, const struct img_match *m, struct span scheme, uint16_t port);
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

#endif
