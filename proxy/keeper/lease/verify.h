/* Did who has the secret half of a lease sign this? The secret is derived for the answer, the key of its day is kept,
 * and what the judge took apart is not looked into: the same signatures are made, and compared. */
#ifndef PROXY_KEEPER_LEASE_VERIFY_H
#define PROXY_KEEPER_LEASE_VERIFY_H

#include "proxy/keeper/lease/lease.h"
#include "proxy/keeper/signer/signer.h"

/* keys: a signer of the leases' own, so that no sandbox drives out a real credential's keys. VERIFIED_NOT: out of
 * memory, a form that has no secret half, or a time or names that no signature has. */
enum wire_verified lease_verify(struct signer *keys, const struct secret *root,
                                const struct wire_signed *w) MUSTCHECK;
/* Did who has the lease's text, or one that was narrowed from it, add these layers (common/lease/narrowed.h)?
 * VERIFIED_NOT: a form that is none or a pair's, or layers that are none. */
enum wire_verified lease_verify_narrowed(const struct secret *root, const struct id *lease, enum lease_format f,
                                         struct span layers, const struct digest *mac) MUSTCHECK;

#endif
