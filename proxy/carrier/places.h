/* What each place (scheme, host, port) was given: its answers are searched for all of it as long as this process
 * remembers it, whatever a later policy binds there (a host that lost a credential may still hand it back). */
#ifndef CARRIER_PLACES_H
#define CARRIER_PLACES_H

#include "proxy/carrier/scrub.h"
#include "proxy/carrier/upstream.h"

/* Past them the place that was given nothing for longest is forgotten. */
enum { PLACES_MAX = 4096, PLACES_BUCKETS = 256 };

struct place;
struct places {
    struct place *bucket[PLACES_BUCKETS];
    struct place *newest, *oldest;
    size_t n;
};

/* The place is given these: the set of all it was ever given, a reference of the caller's own. At most
 * SCRUB_SECRETS_MAX are remembered of a place, the latest, and no more than scrub_new takes. NULL: e says why. */
struct scrub *places_give(struct places *s, struct span scheme, struct span host, uint16_t port,
                          const struct span *secret, size_t n, struct err *e) MUSTCHECK;
/* What it was given, or NULL; borrowed, until the next places_give. */
struct scrub *places_find(const struct places *s, const struct upstream *u) MUSTCHECK;
void places_clear(struct places *s);

#endif
