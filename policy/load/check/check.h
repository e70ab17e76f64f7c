/* Between the files that check what is refused. */
#ifndef POLICY_LOAD_CHECK_CHECK_H
#define POLICY_LOAD_CHECK_CHECK_H

#include "policy/load/read/model.h"

/* A problem of this value, which it names; why NULL: there is none. */
void check_value(struct loader *l, const struct item *v, const char *code, const char *why);
/* The same of each, as P013. */
void check_texts(struct loader *l, const struct items *v, const char *(*why)(struct span));
/* Why it is no pattern of a value in which nothing parts. */
const char *check_why_free(struct span s);
/* json:, form:, multipart:, graphql:, jsonrpc: and mcp: of a match (check_body.c). */
void check_body(struct loader *l, const struct m_match *t);
/* check_inject.c */
void check_inject(struct loader *l, const struct m_inject *j);

#endif
