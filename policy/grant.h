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
/* Does that rule have a condition on this name: a parameter, a form's field, a member of the outermost object or what
 * is in it? */
bool policy_grant_fixes(const struct policy *p, int rule, enum grant_at at, struct span name);

#endif
