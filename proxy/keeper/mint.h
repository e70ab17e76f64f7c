/* Minting on demand: a cache of the leafs last used, and a rate past which no
 * new ones are made (many names cost time to sign and room to keep). */
#ifndef PROXY_KEEPER_MINT_H
#define PROXY_KEEPER_MINT_H

#include "proxy/keeper/ca.h"

enum { MINT_CACHE = 4096, MINT_BURST = 512, MINT_PER_SECOND = 128 };

struct mint;
enum mint_result { MINT_REFUSED = 0, MINT_TOO_FAST, MINT_OK };

/* Borrows ca. */
struct mint *mint_new(const struct ca *ca) MUSTCHECK;
void mint_free(struct mint **m);
/* now: Unix seconds; ms: a clock that only goes forward. The leaf is valid until the next call. */
enum mint_result mint_leaf(struct mint *m, struct span host, struct span spki, int64_t now, uint64_t ms,
                           struct span *leaf) MUSTCHECK;
size_t mint_cached(const struct mint *m);

#endif
