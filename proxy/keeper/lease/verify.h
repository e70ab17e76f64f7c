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

#endif
