/* Sandboxes that wait for whoever asks for one (pool.c). */
#ifndef SANDBOX_SHIM_WARDEN_POOL_H
#define SANDBOX_SHIM_WARDEN_POOL_H

#include "sandbox-shim/warden/warden.h"

enum {
    POOL_ROWS_MAX = 16,
    POOL_MAX = 64, /* that wait, of all rows; they are among WARDEN_BOXES_MAX, and give way to those asked for */
    POOL_AGAIN_MS = 5 * 1000, /* after one that could not be started, or did not last */
    POOL_SETTLE_MS = 100,     /* after all else that is going on: who asked has its first command to run */
    POOL_NEXT_MS = 5,         /* after the one before of ours */
};

/* -1: no memory. */
int pool_begin(struct warden *w) MUSTCHECK;
/* M_POOL of the parent: what is to wait from now on; what is none of that ends. */
void pool_told(struct warden *w, struct frame *f);
/* M_BOX_IMAGE of the parent: is it the answer to a question of ours? */
bool pool_image(struct warden *w, struct frame *f) MUSTCHECK;
/* Something began or ended (0); one of ours waits now; one that waited is not any more, and nobody has it. There may
 * be some to start. */
enum pool_why { POOL_ANY = 0, POOL_WAITS, POOL_FAILED };
void pool_look(struct warden *w, enum pool_why why);
/* One that waits becomes what is asked for. False: none is like that. */
bool pool_claim(struct warden *w, uint64_t asker, const struct box_order *o) MUSTCHECK;
/* Is there room for one more, that waits or is asked for? For that, one that waits ends. */
bool pool_room(struct warden *w, bool waits) MUSTCHECK;

#endif
