/* Why was it so, and what would make it otherwise? For the verbs, not for the gateway: this looks at every rule. */
#ifndef POLICY_EXPLAIN_H
#define POLICY_EXPLAIN_H

#include "policy/policy.h"

enum { NEAR_MAX = 16 };

/* What of a rule can keep it from fitting; MISS_NONE: all of it fits, another rule went before. */
enum miss {
    MISS_HOST = 0,
    MISS_SCHEME,
    MISS_PORT,
    MISS_METHOD,
    MISS_PATH,
    MISS_OP,
    MISS_EFFECT,
    MISS_WS,
    MISS_RESOURCE,
    MISS_QUERY,
    MISS_HEADER,
    MISS_GIT,
    MISS_BODY,
    MISS_SCOPE,
    MISS_WHEN,
    MISS_EXCEPT,
    MISS_NONE
};
const char *miss_name(enum miss m);

struct near_miss { /* a rule that decided nothing, though all of it but one key fits */
    uint32_t index;
    struct span id, file;
    uint32_t line;
    enum verdict verdict;
    enum miss miss;
    bool open;            /* nobody can tell: what it asks about is not seen */
    struct span resource; /* of the request, for a change of it */
    struct span words;    /* "effect is write, the rule wants read" */
};

/* Near misses of a request that was judged as d at now_ms; in order of id. Returns how many. */
size_t policy_near_misses(const struct policy *p, const struct subject *s, const struct request *r,
                          const struct decision *d, uint64_t now_ms, struct arena *a, struct near_miss out[NEAR_MAX]);

/* The same request changed in the one thing that a near miss lacks: its nth try, false when there is none. What comes
 * of it has to be judged. */
struct change {
    struct subject subject;
    struct request request;
    struct label label[16]; /* when the change is one of them */
    struct span words;      /* "with method GET" */
};
bool policy_change(const struct policy *p, const struct subject *s, const struct request *r,
                   const struct near_miss *miss, unsigned nth, struct arena *a, struct change *out);

/* The entry of a credential's only: list that lets it go with this request, in words; -1 and all of them: none does.
 */
int policy_only_entry(const struct policy *p, size_t credential, const struct request *r, struct arena *a,
                      struct span *words);
/* Who is named by an approvers entry, in words; empty: nobody is. */
struct span policy_operators(const struct policy *p, struct span approvers, struct arena *a);
/* The names of these gates (approval_terms.gates), with commas; empty: there are none. */
struct span policy_gates_asked(const struct policy *p, uint32_t gates, struct arena *a);
/* How many rules there are, where rule i stands, and which credential it uses (-1: none). */
size_t policy_rules(const struct policy *p);
struct rule_ref policy_rule(const struct policy *p, size_t i);
size_t policy_rule_excepts(const struct policy *p, size_t i);
int policy_rule_credential(const struct policy *p, struct span id);

/* Calls fn for the rule that decided (except -1), and for each entry of an except: that took the request out of its
 * rule. */
typedef void policy_cover_fn(void *arg, size_t rule, int except);
void policy_cover(const struct policy *p, const struct subject *s, const struct request *r, const struct decision *d,
                  uint64_t now_ms, struct arena *a, policy_cover_fn *fn, void *arg);

#endif
