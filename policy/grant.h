/* What of a request a grant leaves open, as far as the policy says it: not the value of what a rule has a condition
 * on.
 */
#ifndef POLICY_GRANT_H
#define POLICY_GRANT_H

#include "policy/policy.h"

enum grant_at { GRANT_QUERY = 0, GRANT_FORM, GRANT_JSON };

/* The rule of this id; -1: there is none, or its conditions say of a body what no names say (GraphQL, JSON-RPC, forms
 * with files). */
int policy_grant_rule(const struct policy *p, struct span id);
/* Do some servers take this name for that one: in another case, with other signs in it or none, as a member (a[b] for
 * a)? */
bool policy_grant_alike(struct span name, struct span want);

/* Has that rule a condition on this name (a parameter, a form's field, a member of the outermost object or what is in
 * it), or on one that only some take for it, or in another place? Then who reads it as that one decides by a value
 * that this rule asks for. */
enum grant_fix { GRANT_OPEN = 0, GRANT_UNSURE, GRANT_FIXES };
enum grant_fix policy_grant_fixes(const struct policy *p, int rule, enum grant_at at, struct span name);

#endif
