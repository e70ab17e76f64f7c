/* Big-endian fields from the front of a span. Inside this room only.
 * Each takes what it read off *s. False when there is not enough; then nothing was taken and *out is 0 or empty. */
#ifndef COMMON_HANDSHAKE_TAKE_H
#define COMMON_HANDSHAKE_TAKE_H

#include "common/span.h"

static inline bool take_bytes(struct span *s, size_t n, struct span *out)
{
    *out = SPAN_NONE;
    if (s->n < n)
        return false;
    *out = span_first(*s, n);
    *s = span_from(*s, n);
    return true;
}

/* An unsigned number of 1 to 4 bytes. */
static inline bool take_number(struct span *s, size_t bytes, uint32_t *out)
{
    struct span got;
    bool there = take_bytes(s, bytes, &got);
    *out = 0;
    for (size_t i = 0; i < got.n; i++)
        *out = *out << 8 | got.p[i];
    return there;
}

/* A length of `bytes` bytes, then as many bytes as it says (a vector of RFC 8446 section 3.4). */
static inline bool take_vector(struct span *s, size_t bytes, struct span *out)
{
    struct span rest = *s;
    uint32_t n;
    *out = SPAN_NONE;
    if (!take_number(&rest, bytes, &n) || !take_bytes(&rest, n, out))
        return false;
    *s = rest;
    return true;
}

#endif
