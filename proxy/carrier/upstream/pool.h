/* Upstream connections that wait for the next request of the same sandbox, upstream, address and
 * credential (C25). A byte or an end while one waits ends it (A46): nobody asked. */
#ifndef CARRIER_POOL_H
#define CARRIER_POOL_H

#include "common/net/conn.h"
#include "common/net/loop.h"
#include "proxy/carrier/upstream/upstream.h"

enum { POOL_MAX = 512, POOL_EACH = 64 };

/* upstream is compared as a pointer: an upstream that the policy changed is another one. */
struct pool_key {
    uint64_t front;
    const struct upstream *upstream;
    struct addr addr; /* of one that is given back */
    struct span credential;
    const struct addr *to; /* of one that is taken: to which it may lead now */
    size_t nto;
};

struct pooled;
struct pool {
    struct loop *loop;
    struct pooled *first; /* the one put back last stands first */
    size_t n;
};

void pool_init(struct pool *p, struct loop *l);
void pool_clear(struct pool *p);
/* Give a connection back; it is closed when something stands in its input. Of POOL_EACH of its kind the one that has
 * waited longest is closed for it; a full pool closes one of the front that has most. */
void pool_put(struct pool *p, const struct pool_key *k, struct upstream *u, struct conn **c);
/* Take one that was used within the last max_idle ms and whose address is among k->to; *addr says which. NULL: none.
 */
struct conn *pool_take(struct pool *p, const struct pool_key *k, uint64_t max_idle, struct addr *addr) MUSTCHECK;
/* Close what has waited longer, and what belongs to a front that is gone. */
void pool_expire(struct pool *p, uint64_t max_idle);
void pool_front_gone(struct pool *p, uint64_t front);

#endif
