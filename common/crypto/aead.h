/* AES-256-GCM (NIST SP 800-38D) with a random 96-bit nonce, under a key that the caller has: a secret of the
 * gateway's is behind seal.h, which few may link; this is also for keys that are none of these.
 *
 *   sealed: [ nonce 12 | ciphertext, as long as the plain bytes | tag 16 ]
 *
 * One key must not seal more than 2^32 times. Both: 0, or -1: nothing usable was written. */
#ifndef COMMON_CRYPTO_AEAD_H
#define COMMON_CRYPTO_AEAD_H

#include "common/span.h"

enum { AEAD_KEY = 32, AEAD_NONCE = 12, AEAD_TAG = 16, AEAD_EXTRA = AEAD_NONCE + AEAD_TAG };

/* key: AEAD_KEY bytes. out: plain.n + AEAD_EXTRA bytes. context is bound to the result, and not in it. */
int aead_seal(struct span key, struct span context, struct span plain, uint8_t *out) MUSTCHECK;
/* out: sealed.n - AEAD_EXTRA bytes; all zero after a failure (wrong key, wrong context, changed, too short). */
int aead_open(struct span key, struct span context, struct span sealed, uint8_t *out) MUSTCHECK;

#endif
