/* A growing byte buffer that is born with its limit.
 *
 *      p
 *      v
 *      [ bytes 0..n | room up to cap (grown on demand, never past max) ]
 *
 * Growing past max, or out of memory, fails, wipes and frees the bytes and leaves the
 * buffer in a failed state in which every further add fails too, so that a
 * row of adds needs one check at its end (dynbuf_ok). */
#ifndef COMMON_DYNBUF_H
#define COMMON_DYNBUF_H

#include <stdarg.h>

#include "common/span.h"

struct dynbuf {
    uint8_t *p;
    size_t n, cap, max;
    bool failed;
};

/* max: the most bytes it may ever hold; 0 means none at all. */
void dynbuf_init(struct dynbuf *b, size_t max);
/* Release the memory; the limit stays, the failed state is cleared. NULL is fine. */
void dynbuf_free(struct dynbuf *b);
/* As dynbuf_free, but the bytes are overwritten first. */
void dynbuf_wipe(struct dynbuf *b);
/* Forget the bytes, keep the memory. */
void dynbuf_reset(struct dynbuf *b);
/* Append. 0, or -1 (too big, or no memory; the buffer is then failed). */
int dynbuf_add(struct dynbuf *b, struct span s);
int dynbuf_add_byte(struct dynbuf *b, uint8_t c);
/* In decimal digits. */
int dynbuf_add_u64(struct dynbuf *b, uint64_t v);
int dynbuf_addf(struct dynbuf *b, const char *fmt, ...) PRINTF(2, 3);
/* Each byte as %XX, but for letters, digits and those in `plain`. */
void dynbuf_add_percent(struct dynbuf *b, struct span s, const char *plain);
/* What dynbuf_room does when it has to grow, or to fail. */
uint8_t *dynbuf_grow(struct dynbuf *b, size_t n) MUSTCHECK;
/* Make room for n more bytes and return where they go, or NULL. Commit with dynbuf_grew. */
static inline MUSTCHECK uint8_t *dynbuf_room(struct dynbuf *b, size_t n)
{
    if (b->failed || b->p == NULL || n > b->cap - b->n)
        return dynbuf_grow(b, n);
    unpoison(b->p + b->n, n);
    return b->p + b->n;
}
void dynbuf_grew(struct dynbuf *b, size_t n);
/* Drop n bytes from the front (n <= b->n). They are overwritten: what passes through may be a credential. */
void dynbuf_drop(struct dynbuf *b, size_t n);
bool dynbuf_ok(const struct dynbuf *b) MUSTCHECK;

static inline struct span dynbuf_span(const struct dynbuf *b)
{
    return (struct span){b->p, b->n};
}

#endif
