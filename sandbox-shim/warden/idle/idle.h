/* One that stands still for long (idle.c). */
#ifndef SANDBOX_SHIM_WARDEN_IDLE_H
#define SANDBOX_SHIM_WARDEN_IDLE_H

#include "common/msg.h"

struct box;
struct frame;
struct warden;

enum { BOX_IDLE_WHY = 160 /* so that all sandboxes fit into one list */ };
/* When its files are put aside, since it stands still; due_ms 0: never. tries: that failed, the last one why. */
struct box_idle {
    uint64_t due_ms;
    unsigned tries;
    char why[BOX_IDLE_WHY + 1];
};

/* M_SB_IDLE and M_SB_IDLE_NOT of the desk. -1: they cannot be read. */
int idle_on_ask(struct warden *w, struct frame *f) MUSTCHECK;
int idle_on_not(struct warden *w, struct frame *f) MUSTCHECK;
/* It stands still from now on for more than a moment, or does so no more. */
void idle_begins(struct box *b);
void idle_over(struct box *b);

/* warden.c: a row of M_SB_LISTED. */
void warden_put_row(struct dynbuf *m, const struct box *b);

#endif
