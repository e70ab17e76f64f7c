/* The last bytes of an output, however much there was of it. */
#ifndef SANDBOX_SHIM_WARDEN_RING_H
#define SANDBOX_SHIM_WARDEN_RING_H

#include "common/span.h"

enum { RING_MAX = 128 * 1024 };

/* Born as zeros. Places in an output are counted from its beginning. */
struct ring {
    uint8_t *bytes; /* RING_MAX of them, from the first put on for which there was memory */
    uint64_t first; /* so many were put before that */
    uint64_t end;   /* so many were put */
};

void ring_free(struct ring *r);
/* What finds no room takes that of what was put first; without memory for any, it is counted and gone. */
void ring_put(struct ring *r, struct span s);
/* What is kept from *at on, as one piece of at most `most` bytes, and *at is behind it; borrowed until the next put.
 * If bytes from *at on are gone, *at skips them, and *cut is more by so many. */
struct span ring_get(const struct ring *r, uint64_t *at, size_t most, uint64_t *cut);

#endif
