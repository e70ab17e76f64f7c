/* What a cell sees otherwise than its sandbox. */
#ifndef SANDBOX_SHIM_CELL_PLACES_H
#define SANDBOX_SHIM_CELL_PLACES_H

#include "common/err.h"

/* Whom to trust, each at its beginning. */
struct cell_trust {
    int ca, bundle, truststore;
};

/* In mounts, processes and a network that are this process's own, of which it is the first; of what the sandbox may
 * keep in memory, one of so many parts. -1: words. */
int places_make(const struct cell_trust *t, unsigned parts, struct err *e) MUSTCHECK;

#endif
