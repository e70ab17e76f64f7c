/* Tokens that came in answers (SOURCE_ANSWER of policy/policy.h). Each is known by the lease that took its place, and
 * by what its credential meant then; it is in memory alone, until its time is over. */
#ifndef PROXY_KEEPER_SOURCES_TOKENS_H
#define PROXY_KEEPER_SOURCES_TOKENS_H

#include "common/crypto/secret.h"
#include "common/lease/wire_lease.h"

/* Each has a lease, or waits for the ledger's word that it may have one: leases of one sandbox are LEASES_EACH, of
 * all sandboxes LEASES_ANSWERS, and a token goes with its lease. What is over is for those that wait. */
enum { TOKENS_MAX = LEASES_MAX, TOKENS_EACH = 2 * LEASES_EACH /* of one front */, TOKENS_BUCKETS = 1024 };
enum { TOKENS_SWEEP_MS = 1000 };

struct tokens;

struct tokens *tokens_new(void) MUSTCHECK;
void tokens_free(struct tokens **t);
/* Takes value over, also when it fails. Times in Unix ms. -1: no memory, or as many live as may be, of the front of
 * this xid or of all. */
int tokens_put(struct tokens *t, uint64_t xid, const struct id *lease, const struct digest *meaning,
               struct secret *value, uint64_t expires_ms, uint64_t now_ms) MUSTCHECK;
/* Borrowed until the next call that is not a find; NULL: there is none, it has ended, or its credential means
 * something else. */
const struct secret *tokens_find(const struct tokens *t, const struct id *lease, const struct digest *meaning,
                                 uint64_t now_ms);
/* Those of the answer to this exchange: it did not go on. */
void tokens_drop(struct tokens *t, uint64_t xid);
/* The one behind this lease, which is dead. */
void tokens_end(struct tokens *t, const struct id *lease);
/* Those whose time is over; looked for once in TOKENS_SWEEP_MS. None of them is found in the meantime. */
void tokens_expire(struct tokens *t, uint64_t now_ms);

#endif
