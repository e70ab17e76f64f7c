/* The ledger's word, by Ed25519 (RFC 8032). One key of this process alone, whose public half goes to the keeper over
 * their own channel: it ends with the process. And one that follows from the keeper's, the same for the life of the
 * gateway: it signs the audit. */
#ifndef PROXY_LEDGER_STORE_SIGN_H
#define PROXY_LEDGER_STORE_SIGN_H

#include "common/id.h"
#include "common/crypto/secret.h"

enum { SIGN_BYTES = 64, SIGN_PUBLIC = 32 };

struct signer;
struct signer *signer_new(void) MUSTCHECK;
/* seed: 32 bytes that nobody else has. */
struct signer *signer_of(const struct secret *seed) MUSTCHECK;
void signer_free(struct signer **s);
int signer_public(const struct signer *s, uint8_t out[SIGN_PUBLIC]) MUSTCHECK;
/* Over wire_release_statement of these, and what passkeys signed for it (store_proof; empty: nothing). */
int signer_release(const struct signer *s, uint64_t xid, struct span credential, struct span host, uint16_t port,
                   const struct digest *d, struct span proof, uint8_t out[SIGN_BYTES]) MUSTCHECK;

/* Over the span "countersign audit 1", seq, and the hash of that record, as common/msg.h writes them. */
int signer_head(const struct signer *s, uint64_t seq, const struct digest *head, uint8_t out[SIGN_BYTES]) MUSTCHECK;

#endif
