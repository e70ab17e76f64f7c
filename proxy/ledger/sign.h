/* The ledger's word: an Ed25519 key (RFC 8032) of this process alone. Its public half
 * goes to the keeper over their own channel; it ends with the process. */
#ifndef PROXY_LEDGER_SIGN_H
#define PROXY_LEDGER_SIGN_H

#include "common/id.h"

enum { SIGN_BYTES = 64, SIGN_PUBLIC = 32 };

struct signer;
struct signer *signer_new(void) MUSTCHECK;
void signer_free(struct signer **s);
int signer_public(const struct signer *s, uint8_t out[SIGN_PUBLIC]) MUSTCHECK;
/* Over wire_release_statement of these. */
int signer_release(const struct signer *s, uint64_t xid, struct span credential, struct span host, uint16_t port,
                   const struct digest *d, uint8_t out[SIGN_BYTES]) MUSTCHECK;

#endif
