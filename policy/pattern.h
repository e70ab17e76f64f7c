/* A pattern as a policy has them, for others that bound requests by one: segments with * and **. */
#ifndef POLICY_PATTERN_H
#define POLICY_PATTERN_H

#include "common/span.h"

/* sep: '/' for paths, '.' for operations. Case counts. */
bool policy_pattern_fits(struct span pattern, struct span s, uint8_t sep);

#endif
