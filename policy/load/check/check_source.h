/* source: of a credential, what its tables cannot say. */
#ifndef POLICY_LOAD_CHECK_CHECK_SOURCE_H
#define POLICY_LOAD_CHECK_CHECK_SOURCE_H

#include "policy/load/read/model.h"

void check_source(struct loader *l, const struct m_source *s);

#endif
