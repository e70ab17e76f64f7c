/* Bytes too large for a message, in memory files that nobody can change any more:
 * all four seals (F_SEAL_SEAL, _SHRINK, _GROW, _WRITE; memfd_create(2)). What is
 * not sealed is refused: a peer could change it between check and use. */
#ifndef COMMON_MEMFD_H
#define COMMON_MEMFD_H

#include "common/span.h"

/* A sealed one with these bytes (may be none), or -1. The caller closes it. */
int memfd_of(struct span s) MUSTCHECK;
/* Put the seals on one that was written. -1: errno. */
int memfd_seal(int fd) MUSTCHECK;
/* Map one of 1 to max bytes for reading: 0, or -1 with *out empty. fd is borrowed, and may be closed afterwards;
 * release with memfd_unmap. */
int memfd_map(int fd, uint64_t max, struct span *out) MUSTCHECK;
void memfd_unmap(struct span *s);

#endif
