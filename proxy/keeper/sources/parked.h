/* Who waits for a value that is being fetched: a release, which is then asked once more as if it had just come, or a
 * caller at the door. Bounded, and of a sandbox's front at most PARKED_A_FRONT with PARKED_BYTES_A_FRONT. */
#ifndef PROXY_KEEPER_PARKED_H
#define PROXY_KEEPER_PARKED_H

#include "proxy/keeper/keeper.h"

enum {
    PARKED_MAX = 1024,
    PARKED_A_FRONT = 64,
    PARKED_BYTES_MAX = 16 * 1024 * 1024,
    PARKED_BYTES_A_FRONT = 1024 * 1024 /* a release that signs may have some 200 KiB */
};

struct caller;

/* The release of this exchange, until question wait is answered. -1: too many wait already. */
int parked_add(struct keeper *k, uint64_t wait, uint64_t xid, struct span payload) MUSTCHECK;
int parked_add_caller(struct keeper *k, uint64_t wait, struct caller *c) MUSTCHECK;
/* This caller hung up; NULL: the judge is gone, who asked for the releases. */
void parked_drop(struct keeper *k, const struct caller *c);
/* That question is answered (0: all are, for nobody answers any more). */
void parked_wake(struct keeper *k, uint64_t wait);

#endif
