/* Bytes at rest: AES-256-GCM (NIST SP 800-38D) with a random 96-bit nonce, and
 * keys derived from one master key (HKDF-SHA256, RFC 5869).
 *
 *   sealed: [ nonce 12 | ciphertext, as long as the plain bytes | tag 16 ]
 *
 * One key must not seal more than 2^32 times. Linked, as common/crypto/secret.h, only by
 * the keeper, the carrier and the ledger. 0, or -1: nothing usable was written. */
#ifndef COMMON_CRYPTO_SEAL_H
#define COMMON_CRYPTO_SEAL_H

#include "common/crypto/secret.h"

enum { SEAL_KEY = 32, SEAL_NONCE = 12, SEAL_TAG = 16, SEAL_EXTRA = SEAL_NONCE + SEAL_TAG };

/* A fresh random key, or NULL. */
struct secret *seal_key_new(void) MUSTCHECK;
/* The key for one purpose, named by info; or NULL. */
struct secret *seal_key_derive(const struct secret *master, struct span info) MUSTCHECK;
/* out: plain.n + SEAL_EXTRA bytes. context is bound to the result, and not in it. */
int seal_bytes(const struct secret *key, struct span context, struct span plain, uint8_t *out) MUSTCHECK;
/* out: sealed.n - SEAL_EXTRA bytes; all zero after a failure (wrong key, wrong context, changed, too short). */
int seal_open(const struct secret *key, struct span context, struct span sealed, uint8_t *out) MUSTCHECK;
/* The same into locked memory; NULL on failure. */
struct secret *seal_open_secret(const struct secret *key, struct span context, struct span sealed) MUSTCHECK;

#endif
