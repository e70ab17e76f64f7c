/* Steps that can be undone (undo.c): commands before which the files of their sandbox were kept. */
#ifndef SANDBOX_SHIM_WARDEN_UNDO_UNDO_H
#define SANDBOX_SHIM_WARDEN_UNDO_UNDO_H

#include "sandbox-shim/checkpoint/order.h"
#include "sandbox-shim/warden/warden.h"

/* M_SB_LAYER, M_SB_LAYERS and M_SB_UNDO of the desk. -1: they cannot be read. */
int undo_on_layer(struct warden *w, struct frame *f) MUSTCHECK;
int undo_on_list(struct warden *w, struct frame *f) MUSTCHECK;
int undo_on_undo(struct warden *w, struct frame *f) MUSTCHECK;

/* checkpoint.c says what came of that. Files were kept: their head goes into the list of b's steps, and told gets the
 * number of the step. -1: there is no such head. */
int undo_kept(struct box *b, struct span head, uint32_t *step) MUSTCHECK;
/* They could not be, since their owner has as many as may be: they are once more, in place of the first of b's steps,
 * and asker is told later. False: b has none, or it cannot be asked for. */
bool undo_makes_room(struct box *b, uint64_t asker) MUSTCHECK;
/* They were put back, or not. */
void undo_done(struct box *b, enum store_end how);
/* What nobody needs any more was removed, or not. */
void undo_wasted(struct warden *w, bool done);

/* Has any sandbox steps that can be undone? */
bool undo_any(const struct warden *w);
/* It ends, and what is kept of its steps goes; it is forgotten. */
void undo_box_ends(struct box *b);
void undo_free(struct box *b);

#endif
