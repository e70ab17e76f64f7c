/* By what a file is known whose bytes were kept before: their GMAC (NIST SP 800-38D) under a key of its owner's
 * checkpoints. Who does not know the key can make no other bytes with the same one; who reads a workspace knows it,
 * and so what a mark is of is decided by who keeps the bytes, who makes it of those that were told.
 *
 * It is some ten times as fast as all else that becomes of a file which is told: the way over the stream, the name of
 * each piece (HMAC-SHA256), and its search. */
#ifndef SANDBOX_SHIM_CHECKPOINT_MARK_H
#define SANDBOX_SHIM_CHECKPOINT_MARK_H

#include "common/span.h"

enum {
    MARK = 16,
    MARK_LEAST = 16 * 1024 /* bytes of a file: smaller ones have none, and are told as quickly */
};

struct evp_cipher_ctx_st;
struct mark {
    struct evp_cipher_ctx_st *gcm;
    uint64_t n; /* bytes since mark_begin */
};

/* -1: no memory. mark_close is right in any case. */
int mark_open(struct mark *m, const uint8_t key[MARK]) MUSTCHECK;
void mark_close(struct mark *m);
/* Of the next file: all of its bytes, and then its mark. */
void mark_begin(struct mark *m);
void mark_add(struct mark *m, const uint8_t *p, size_t n);
void mark_end(struct mark *m, uint8_t out[MARK]);

#endif
