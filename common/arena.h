/* A region of memory with a cap, freed at once: one per exchange.
 * Secrets never live here (common/crypto/secret.h), but for as long as an answer is taken apart (arena_wipe). */
#ifndef COMMON_ARENA_H
#define COMMON_ARENA_H

#include "common/span.h"

struct arena_block;
struct dynbuf;
struct arena {
    struct arena_block *blocks;
    size_t used, max;
};

/* max: the most bytes it may hand out in all. No memory is taken yet. */
void arena_init(struct arena *a, size_t max);
/* Give everything back; the arena can be used again. */
void arena_free(struct arena *a);
/* The same, and the bytes are overwritten first. */
void arena_wipe(struct arena *a);
/* n zeroed bytes, aligned for any type, or NULL when the cap is reached or memory is out. */
void *arena_alloc(struct arena *a, size_t n) MUSTCHECK;
/* A copy of s that lives as long as the arena; p is NULL on failure (and for an empty s, n is 0). */
struct span arena_copy(struct arena *a, struct span s) MUSTCHECK;
/* The same of what a buffer holds, which is freed. p is NULL if it or the copy failed, and only then. */
struct span arena_keep(struct arena *a, struct dynbuf *b) MUSTCHECK;
/* One behind the other; p is NULL on failure, and only then. */
struct span arena_join(struct arena *a, struct span one, struct span other) MUSTCHECK;
/* Text of our own making; p is NULL on failure. */
struct span arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3) MUSTCHECK;
/* Room for one more record at the end of v, which has n of `size` bytes each and room for *max: v itself, or a larger
 * copy. NULL: no memory; v is as it was. */
void *arena_more(struct arena *a, void *v, size_t n, size_t *max, size_t size) MUSTCHECK;

#endif
