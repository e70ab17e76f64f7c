/* Tokens that came in answers (SOURCE_ANSWER of policy/policy.h). Each is known by the lease that took its place, and
 * by what its credential meant then; it is in memory alone, until its time is over. */
#ifndef PROXY_KEEPER_SOURCES_TOKENS_H
#define PROXY_KEEPER_SOURCES_TOKENS_H

#include "common/crypto/secret.h"
#include "common/id.h"

enum { TOKENS_MAX = 2048, TOKENS_BUCKETS = 256 };

struct tokens;

struct tokens *tokens_new(void) MUSTCHECK;
void tokens_free(struct tokens **t);
/* Takes value over, also when it fails. Times in Unix ms. -1: no memory, or as many live as may be. */
int tokens_put(struct tokens *t, uint64_t xid, const struct id *lease, const struct digest *meaning,
               struct secret *value, uint64_t expires_ms, uint64_t now_ms) MUSTCHECK;
/* Borrowed until the next call that is not a find; NULL: there is none, it has ended, or its credential means
 * something else. */
const struct secret *tokens_find(const struct tokens *t, const struct id *lease, const struct digest *meaning,
                                 uint64_t now_ms);
/* Those of the answer to this exchange: it did not go on. */
void tokens_drop(struct tokens *t, uint64_t xid);
void tokens_expire(struct tokens *t, uint64_t now_ms);

#endif
