/* The ledger's record of a command: it is asked to write down what is to run, and only when it has is that ordered;
 * when it has ended, the ledger is told how. What is said to the command meanwhile waits behind its order. */
#ifndef SANDBOX_SHIM_WARDEN_RECORD_H
#define SANDBOX_SHIM_WARDEN_RECORD_H

#include "sandbox-shim/warden/warden.h"

enum {
    RECORD_MS = 8 * 1000,             /* as long as the ledger may take; the desk waits longer */
    RECORD_WAITING_MAX = 1024 * 1024, /* bytes of an order, and of what waits behind it */
};

struct record;

/* Ask for it. order: what is said to the sandbox when it is there; desk: who is told of a detached command, or 0.
 * Why not, or NULL. */
const char *record_begin(struct run *r, const struct run_order *o, const struct dynbuf *order,
                         uint64_t desk) MUSTCHECK;
/* Is it not ordered yet? */
bool record_waits(const struct run *r);
/* To its sandbox, behind the order. This may end the sandbox, and with it r. -1: too much waits. */
int record_say(struct run *r, const struct dynbuf *frame) MUSTCHECK;
/* So much of an output was delivered; of a detached command: said. */
void record_said(struct run *r, unsigned which, struct span bytes);
/* It has ended. */
void record_end(struct run *r, enum sb_end how, const struct talk *t);
/* One that waits is not begun: tell who asked, and forget it. */
void record_refuse(struct run *r, const char *why);
void record_free(struct run *r);

/* The ledger has answered; has gone; which runs it will be told the end of (M_SANDBOX_RUN). */
int record_answered(struct warden *w, struct frame *f) MUSTCHECK;
void record_ledger_gone(struct warden *w);
/* Who asked has gone: nobody is told that a detached command has begun. */
void record_desk_gone(struct warden *w);
void record_put_open(struct dynbuf *m, const struct warden *w);

/* warden.c: M_SB_DETACHED. number 0: it was not begun, why. */
void warden_tell_detached(struct warden *w, uint64_t asker, uint64_t born, uint32_t number, const char *why);

#endif
