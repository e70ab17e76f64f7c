/* The signature over the head of the audit's chain, for those who check it (the ledger signs:
 * proxy/ledger/store/sign.h). */
#ifndef COMMON_CRYPTO_AUDIT_HEAD_H
#define COMMON_CRYPTO_AUDIT_HEAD_H

#include "common/id.h"

enum { AUDIT_KEY = 32, AUDIT_SIGNATURE = 64 }; /* Ed25519 */

/* Did the owner of this key sign that record seq has this hash? */
bool audit_head_signed(uint64_t seq, const struct digest *hash, const uint8_t key[AUDIT_KEY],
                       const uint8_t signature[AUDIT_SIGNATURE]) MUSTCHECK;

#endif
