/* The folder where the images of started sandboxes lie, STATE_DIR/images: one folder an image, named by its digest,
 * and names, which say a digest. An image that is there is whole, for it has its name only then; it is not changed
 * any more. Who uses one holds a lock on its folder, and who removes one needs it.
 *
 *   images/lock   images/names/NAME   images/HEX/{root/, env, image.json}   images/.new  (being made)
 *
 * Here it is read; what is put there and removed: sandbox-shim/images/store.h. */
#ifndef PROXY_IMAGES_H
#define PROXY_IMAGES_H

#include "common/dynbuf.h"
#include "common/err.h"
#include "common/id.h"

enum {
    IMAGE_NAME_MAX = 63,
    IMAGE_DIGEST_TEXT = sizeof("sha256:") - 1 + 2 * DIGEST_BYTES,
    IMAGE_SAYS_MAX = 128 * 1024, /* bytes of image.json, and of env with what it may have */
};
#define IMAGE_HOST "host" /* what the machine's own /usr is called: no image has this name */

/* 1 to IMAGE_NAME_MAX of a-z 0-9 . _ -, the first of them a letter or digit; not IMAGE_HOST. */
bool image_name_ok(struct span name);
void image_digest_text(const struct digest *d, char out[IMAGE_DIGEST_TEXT + 1]);
/* A digest's digits, in small letters, as hex_text writes them. -1: they are not that. */
int image_hex(struct span s, struct digest *d) MUSTCHECK;

/* 1, 0: there is none of this name, -1 in words. names: that folder, open; since: when it got its name, in seconds,
 * or NULL. */
int image_name_read(int names, struct span name, struct digest *d, int64_t *since, struct err *e) MUSTCHECK;
int image_find(const char *state_dir, struct span name, struct digest *d, struct err *e) MUSTCHECK;
/* The folder of an image, which stays as long as this descriptor is open. -1 in words. */
int image_hold(const char *state_dir, const struct digest *d, struct err *e) MUSTCHECK;

#endif
