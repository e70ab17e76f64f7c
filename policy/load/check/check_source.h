/* source: of a credential, what its tables cannot say; addresses as other keys have them, too. */
#ifndef POLICY_LOAD_CHECK_CHECK_SOURCE_H
#define POLICY_LOAD_CHECK_CHECK_SOURCE_H

#include "policy/load/read/model.h"

/* An address as https://HOST[:PORT]/PATH, with neither query nor user. False: a problem was told. */
bool check_https(struct loader *l, const struct item *url);
void check_source(struct loader *l, const struct m_source *s);

#endif
