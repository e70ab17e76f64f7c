/* Checkpoints of sandboxes' files (checkpoint.c). */
#ifndef SANDBOX_SHIM_WARDEN_CHECKPOINT_H
#define SANDBOX_SHIM_WARDEN_CHECKPOINT_H

#include "sandbox-shim/checkpoint/order.h"
#include "sandbox-shim/warden/warden.h"

/* M_SB_SNAPSHOT, M_SB_CHECKPOINTS and M_SB_START_FROM of the desk. -1: they cannot be read. */
int checkpoint_on_snapshot(struct warden *w, struct frame *f) MUSTCHECK;
int checkpoint_on_list(struct warden *w, struct frame *f) MUSTCHECK;
int checkpoint_on_start(struct warden *w, struct frame *f) MUSTCHECK;
/* For undo.h. One thing is done for the desk's asker, or, 0, for nobody. Why not, or NULL: begun. */
const char *checkpoint_begin(struct warden *w, uint64_t asker, struct box *b, const struct order *o) MUSTCHECK;
/* M_SB_CHECKPOINT. */
void checkpoint_tell(struct warden *w, uint64_t asker, enum store_end how, struct span why, struct span rest);
/* What wardens before this one kept of steps is being removed. */
bool checkpoint_clears(const struct warden *w);
/* Checkpoints are elsewhere as well: from now on what is removed here goes from there, by a task of nobody's, one at
 * a time. -1: no memory. */
int checkpoint_tidies(struct warden *w) MUSTCHECK;
/* M_CHECKPOINT_NONE of the parent. */
void checkpoint_on_none(struct warden *w, struct frame *f);
/* Its workspace is to have the files that it is started from; box_filled is called then. Why not, or NULL: begun. */
const char *checkpoint_fill(struct box *b) MUSTCHECK;
/* If its files are read only so that it can be ended, that is over. */
void checkpoint_idle_stops(const struct box *b);
/* Its sandbox ends; the desk is gone: what is done for them ends. */
void checkpoint_box_ends(const struct box *b, const char *why);
void checkpoint_desk_gone(struct warden *w);

#endif
