/* Tokens in answers (SOURCE_ANSWER of policy/policy.h): the carrier is told where they are, the keeper keeps them,
 * and what the sandbox gets in their place are leases, bound to it as any other and written down by the ledger. */
#ifndef PROXY_JUDGE_LEASES_SWAP_H
#define PROXY_JUDGE_LEASES_SWAP_H

#include "proxy/judge/exchange/exchange.h"

/* For wire_forward: those that an answer to a request with its credential has; *out is empty where there are none.
 * -1: no memory, or more than SWAPS_MAX; then nothing may be sent. */
int swap_put(struct exchange *x, struct span *out) MUSTCHECK;
/* M_SWAP_TAKE of the carrier's: there was one. -1: it breaks the contract. */
int swap_take(struct exchange *x, struct span payload) MUSTCHECK;
/* M_LEASE_TAKE of the ledger's: its leases are written down, or not. */
int swap_taken(struct judge *j, uint64_t xid, struct span payload) MUSTCHECK;
/* The ledger's word, M_LEASE, that the judge has acted on: behind dead leases the keeper need keep no token. -1: it
 * is none. */
int swap_leases_told(struct judge *j, struct span payload) MUSTCHECK;
/* Is the credential of its decision one whose values are known by their leases? */
bool swap_is_token(const struct exchange *x);
/* WWW-Authenticate for who brings no lease of this credential, or one that has ended; empty: it says none. */
struct span swap_challenge(const struct policy *p, const struct credential *c);

#endif
