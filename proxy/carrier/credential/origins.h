/* What each origin (scheme, host, port) was given: its answers are searched for all of it as long as this process
 * remembers it, whatever a later policy binds there (a host that lost a credential may still hand it back). */
#ifndef CARRIER_ORIGINS_H
#define CARRIER_ORIGINS_H

#include "proxy/carrier/scrub/scrub.h"
#include "proxy/carrier/upstream/upstream.h"

/* Past them the origin that was given nothing for longest is forgotten. */
enum { ORIGINS_MAX = 4096, ORIGINS_BUCKETS = 256 };

struct origin;
struct origins {
    struct origin *bucket[ORIGINS_BUCKETS];
    struct origin *newest, *oldest;
    size_t n;
};

/* The origin is given these: the set of all it was ever given, a reference of the caller's own. At most
 * SCRUB_SECRETS_MAX are remembered of an origin, the latest, and no more than scrub_new takes. NULL: e says why. */
struct scrub *origins_give(struct origins *s, struct span scheme, struct span host, uint16_t port,
                           const struct scrub_secret *secret, size_t n, struct err *e) MUSTCHECK;
/* What it was given, or NULL; borrowed, until the next origins_give. */
struct scrub *origins_find(const struct origins *s, const struct upstream *u) MUSTCHECK;
/* For an exchange that has a set already (NULL: none): one of all that, and of what its origin was given since, by
 * whomever; borrowed like that of origins_find, or set itself. NULL: e says why. */
struct scrub *origins_since(struct origins *s, const struct upstream *u, struct scrub *set, struct err *e) MUSTCHECK;
void origins_clear(struct origins *s);

#endif
