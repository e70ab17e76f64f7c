/* Bodies too large for a message, in memory files that nobody can change any more. */
#ifndef PROXY_LEDGER_MEMFD_H
#define PROXY_LEDGER_MEMFD_H

#include "common/span.h"

/* Map one for reading, if it is sealed against every change and has this size (1 to max). Release with memfd_unmap;
 * fd stays the caller's. */
int memfd_map(int fd, uint64_t size, uint64_t max, struct span *out) MUSTCHECK;
void memfd_unmap(struct span *s);
/* A sealed one with these bytes, or -1. */
int memfd_of(struct span s) MUSTCHECK;

#endif
