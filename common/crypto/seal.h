/* Bytes at rest: sealed as aead.h says, and keys derived from one master key (HKDF-SHA256, RFC 5869). Linked, as
 * common/crypto/secret.h, only by the keeper, the carrier and the ledger. 0, or -1: nothing usable was written. */
#ifndef COMMON_CRYPTO_SEAL_H
#define COMMON_CRYPTO_SEAL_H

#include "common/crypto/aead.h"
#include "common/crypto/secret.h"

enum { SEAL_KEY = AEAD_KEY, SEAL_EXTRA = AEAD_EXTRA };

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
