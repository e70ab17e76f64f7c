/* What a secret's value may be, and how it becomes a header field. Errors never
 * repeat the value. */
#ifndef PROXY_KEEPER_VALUE_H
#define PROXY_KEEPER_VALUE_H

#include "common/err.h"
#include "common/secret.h"
#include "policy/policy.h"

/* Longest value: what still fits into a head that upstreams take. */
enum { VALUE_MAX = 16 * 1024, VALUE_RENDERED_MAX = 2 * VALUE_MAX };

/* One line feed at the end (with its carriage return) is an editor's, not the secret's. */
struct span value_trim(struct span raw);
/* Not empty, not too long, no control byte, no space at either end. 0, or -1 with words. */
int value_check(struct span v, struct err *e) MUSTCHECK;
/* The field value for this credential: its format, or Basic. NULL with words when they do not fit together. */
struct secret *value_render(const struct credential *c, struct span v, struct err *e) MUSTCHECK;
/* "user:secret", which Basic carries; NULL when the credential is not Basic, or memory is out. */
struct secret *value_basic(const struct credential *c, struct span v) MUSTCHECK;
/* The name of the field: the policy's, or Authorization. */
struct span value_header(const struct credential *c);

#endif
