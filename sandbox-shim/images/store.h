/* The folder where images lie (proxy/images/images.h), for its owner: imports, lists, removals. */
#ifndef SANDBOX_SHIM_IMAGES_STORE_H
#define SANDBOX_SHIM_IMAGES_STORE_H

#include "proxy/images/images.h"

struct image_store {
    int dir, names, lock; /* -1: not open */
};
/* Made if need be. locked: nobody else changes it meanwhile; what an interrupted import left is gone. -1 in words;
 * images_close in either case. */
int images_open(struct image_store *s, const char *state_dir, bool locked, struct err *e) MUSTCHECK;
void images_close(struct image_store *s);
/* An empty folder for one, which is open (O_PATH). -1 in words. */
int images_stage(struct image_store *s, struct err *e) MUSTCHECK;
/* What was made in it is this image, of this name. *known: it was there already. -1 in words. */
int images_commit(struct image_store *s, const struct digest *d, struct span name, bool *known,
                  struct err *e) MUSTCHECK;
/* What was staged is not wanted. */
void images_discard(struct image_store *s);
/* -1 in words: there is none of this name, or a sandbox uses it. */
int images_remove(struct image_store *s, struct span name, struct err *e) MUSTCHECK;
/* By their names. since: when it got its name, in seconds. says: its image.json. */
typedef int images_fn(void *ctx, struct span name, const struct digest *d, int64_t since, struct span says);
int images_each(struct image_store *s, images_fn *fn, void *ctx, struct err *e) MUSTCHECK;

#endif
