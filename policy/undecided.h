/* A request of which not all is known (a recorded one): what would have to be known? */
#ifndef POLICY_UNDECIDED_H
#define POLICY_UNDECIDED_H

#include "policy/policy.h"

enum undecided { UNDECIDED_BODY = 0, UNDECIDED_HEADER, UNDECIDED_REFS, UNDECIDED_SUBPROTOCOL };
/* Of a request whose decision says need_body the first rule that may fit and what it asks for; an empty id when none
 * is found (a pack that needs the body). */
struct rule_ref policy_undecided(const struct policy *p, const struct subject *s, const struct request *r,
                                 const struct decision *d, struct arena *a, enum undecided *what);
/* Is a rule about this subject scoped by labels? Then who does not know them cannot tell. */
bool policy_asks_labels(const struct policy *p, struct span sandbox);
/* Whom the policy takes for one: a bit for each scope that covers the subject. False: there are more scopes than
 * bits. */
bool policy_scopes_of(const struct policy *p, const struct subject *s, uint64_t *bits);
/* The scope of this name, or -1; the name of this scope, or nothing. */
struct span policy_scope_name(const struct policy *p, int scope);
int policy_scope(const struct policy *p, struct span name);
/* Does it cover the subject? known: the labels are those that it has; else they may be any. */
enum covers { COVERS_NOT = 0, COVERS_IT, COVERS_MAYBE };
enum covers policy_scope_covers(const struct policy *p, int scope, const struct subject *s, bool known);
/* Does the time decide anything: rules in force at some hours, or a policy that learns until then? */
bool policy_asks_hours(const struct policy *p);
bool policy_asks_moment(const struct policy *p);

#endif
