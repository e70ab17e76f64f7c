/* One that stands still (pause.c). */
#ifndef SANDBOX_SHIM_WARDEN_PAUSE_H
#define SANDBOX_SHIM_WARDEN_PAUSE_H

#include "sandbox-shim/warden/warden.h"

/* M_SB_PAUSE, M_SB_RESUME and M_SB_MOMENT of the desk (-1: they cannot be read); what the parent did (why: its words,
 * or NULL); the desk is answered (b NULL: there is none). */
int box_on_pause(struct warden *w, struct frame *f) MUSTCHECK;
int box_on_resume(struct warden *w, struct frame *f) MUSTCHECK;
int box_on_moment(struct warden *w, struct frame *f) MUSTCHECK;
void box_paused(struct box *b, enum pause_way way, const char *why);
void box_tell_paused(struct warden *w, uint64_t asker, const struct box *b, enum sb_paused what, const char *why);

#endif
