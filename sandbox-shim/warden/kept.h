/* Detached commands: kept for whoever asks for them, until they are forgotten. */
#ifndef SANDBOX_SHIM_WARDEN_KEPT_H
#define SANDBOX_SHIM_WARDEN_KEPT_H

#include "sandbox-shim/warden/warden.h"

/* Of a detached command, which nobody need wait for: what it said last, how it ended. */
struct kept {
    struct ring out[2];
    uint64_t at[2]; /* how far the asker of now was told */
    uint32_t open;  /* bytes that it was told and has not taken yet */
    bool ended;
    enum sb_end how;
    struct talk end; /* its words are these: */
    char why[TALK_WHY_MAX];
};

/* Why there is no room for one more in this sandbox, or NULL. */
const char *kept_room(struct box *b) MUSTCHECK;
/* r is one from now on. -1: no memory. */
int kept_begin(struct run *r) MUSTCHECK;
void kept_free(struct run *r);
/* Of one: its output, its end; its asker took bytes, or waits no longer; what may be told is. */
void kept_tell(struct run *r);
void kept_heard(struct run *r, const struct talk *t);
void kept_end(struct run *r, enum sb_end how, const struct talk *t);
void kept_taken(struct run *r, uint32_t bytes);
/* M_SB_COMMANDS, M_SB_ATTACH, M_SB_LOG and M_SB_SIGNAL of the desk. -1: they cannot be read. */
int kept_list(struct warden *w, struct frame *f) MUSTCHECK;
int kept_attach(struct warden *w, struct frame *f) MUSTCHECK;
int kept_log(struct warden *w, struct frame *f) MUSTCHECK;
int kept_signal(struct warden *w, struct frame *f) MUSTCHECK;

#endif
