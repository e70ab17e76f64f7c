#ifndef POLICY_LOAD_CHECK_CAPTURES_H
#define POLICY_LOAD_CHECK_CAPTURES_H

#include "policy/load/read/grammar.h"

/* Paths of the rule with {name} become ones with "*", as written in `written`; what its words name is checked. */
void check_captures(struct loader *l, struct m_rule *r);

#endif
