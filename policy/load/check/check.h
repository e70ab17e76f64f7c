/* Between the files that check what is refused. */
#ifndef POLICY_LOAD_CHECK_CHECK_H
#define POLICY_LOAD_CHECK_CHECK_H

#include "policy/load/read/model.h"

/* A problem of this value, which it names; why NULL: there is none. */
void check_value(struct loader *l, const struct item *v, const char *code, const char *why);
/* check_inject.c */
void check_inject(struct loader *l, const struct m_inject *j);

#endif
