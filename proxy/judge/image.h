/* The policy image: mapped from a memfd with all seals, shared by the exchanges
 * that were decided by it, gone with the last of them. With it go the numbers
 * by which the carrier knows the places this policy sends to. */
#ifndef PROXY_JUDGE_IMAGE_H
#define PROXY_JUDGE_IMAGE_H

#include "proxy/judge/state.h"

enum { UPSTREAM_BUCKETS = 256, UPSTREAMS_MAX = 65536, UPSTREAM_LIVE = 4, RELEASE_LIVE_MS = 1000 };

struct upstream_ref {
    struct upstream_ref *next;
    struct span scheme, host;
    uint16_t port;
    uint32_t number;
    uint32_t told; /* the carrier's boot in which it was told; 0: not yet */
    bool cleartext, bound;
    struct {
        uint32_t boot;
        int credential; /* -1: scrub patterns only */
        uint64_t at;
    } live[UPSTREAM_LIVE];
};

struct image {
    unsigned refs;
    struct span map;
    struct policy *policy;
    struct digest digest;
    struct arena arena;
    struct upstream_ref *upstream[UPSTREAM_BUCKETS];
    size_t nupstreams;
};

/* Map and open. fd is borrowed. NULL: not sealed, not an image, or not the one with this digest. */
struct image *image_open(int fd, const struct digest *want, struct err *e) MUSTCHECK;
struct image *image_ref(struct image *i);
void image_unref(struct image *i); /* NULL is fine */
/* The number of a place, told to the carrier if it does not know it yet. NULL: too many, or no carrier. */
struct upstream_ref *image_upstream(struct judge *j, struct image *i, const struct wire_request *r) MUSTCHECK;
/* Was this credential (-1: the scrub patterns) released for an allow less than a second ago? */
bool upstream_is_live(const struct judge *j, const struct upstream_ref *u, int credential);
void upstream_set_live(const struct judge *j, struct upstream_ref *u, int credential, bool live);

#endif
