/* Whom a policy takes for one, and whether the time matters to it: for who keeps its answers, as a replay does. */
#ifndef POLICY_SCOPE_H
#define POLICY_SCOPE_H

#include "policy/policy.h"

/* Is a rule about this subject scoped by labels? Then who does not know them cannot tell. */
bool policy_asks_labels(const struct policy *p, struct span sandbox);
/* Whom the policy takes for one: a bit for each scope that covers the subject. False: there are more scopes than
 * bits. */
bool policy_scopes_of(const struct policy *p, const struct subject *s, uint64_t *bits);
/* Does any scope ask for this label with this value, whatever else it asks for? */
bool policy_scope_asks(const struct policy *p, struct span key, struct span value);
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
