/* Every code that a problem of a policy can have: what it means and what to do. Codes are stable: one that is no
 * longer told stays here, and none is used for something else. */
#ifndef POLICY_LOAD_CHECK_CODES_H
#define POLICY_LOAD_CHECK_CODES_H

#include <stddef.h>

struct policy_code {
    const char *code, *means, *todo; /* means: a few words; todo: a sentence or more */
};

/* The i-th, by code, or NULL past the last. */
const struct policy_code *policy_code_at(size_t i);
/* By name, or NULL. */
const struct policy_code *policy_code_find(const char *code);

#endif
