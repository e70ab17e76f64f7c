/* Bytes that must not leak: locked in memory, kept out of cores, wiped when
 * freed. There is no way to print one, and none to copy one into a span that
 * outlives it. Used only by the keeper, the carrier, the ledger and the
 * fetcher. */
#ifndef COMMON_CRYPTO_SECRET_H
#define COMMON_CRYPTO_SECRET_H

#include "common/span.h"

struct secret; /* opaque */

/* A copy of s in locked memory, or NULL. The caller wipes its own copy. */
struct secret *secret_new(struct span s) MUSTCHECK;
/* n zero bytes to be filled through secret_fill. */
struct secret *secret_room(size_t n) MUSTCHECK;
uint8_t *secret_fill(struct secret *s);
/* Borrow the bytes; valid until secret_free. Never store the span. */
struct span secret_bytes(const struct secret *s);
/* Wipe and release; an empty page may be kept for the next one. *s becomes NULL; NULL is fine. */
void secret_free(struct secret **s);

#endif
