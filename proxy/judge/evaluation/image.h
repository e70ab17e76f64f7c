/* The policy image: mapped from a memfd with all seals, shared by the exchanges
 * that were decided by it, gone with the last of them. */
#ifndef PROXY_JUDGE_IMAGE_H
#define PROXY_JUDGE_IMAGE_H

#include "proxy/judge/state.h"

struct image {
    unsigned refs;
    struct span map;
    struct policy *policy;
    struct digest digest;
    bool answers;    /* some credential has its values from answers to others */
    uint64_t serial; /* no two policies of this process have the same */
};

/* Map and open. fd is borrowed. NULL: not sealed, not an image, or not the one with this digest. */
struct image *image_open(int fd, const struct digest *want, struct err *e) MUSTCHECK;
struct image *image_ref(struct image *i);
void image_unref(struct image *i); /* NULL is fine */

#endif
