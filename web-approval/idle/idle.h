/* Started sandboxes that are idle: put aside when they were paused for long, and restored for who needs them. */
#ifndef WEB_APPROVAL_IDLE_IDLE_H
#define WEB_APPROVAL_IDLE_IDLE_H

#include "web-approval/desk.h"

enum {
    IDLE_AT_ONCE = 3,      /* that are put aside at once, of each tenant one */
    IDLE_TENANT_MAX = 256, /* that a tenant has: past them, one that is due stays paused */
    IDLE_ALL_MAX = 2048, /* of all tenants: half of the names that the ledger keeps, so that others can still start */
    /* of a list, in which what runs is as well, and of which whoever asks for it takes 8 MiB (ERRAND_ANSWER_MAX,
     * API_ANSWER_MAX): each of the DOCK_TENANT_BOXES that run for a tenant may have a note of DESK_BODY_MAX, which
     * the list of an operator has not */
    IDLE_TENANT_BYTES = 2 * 1024 * 1024,
    IDLE_ALL_BYTES = 5 * 1024 * 1024
};

typedef void idle_fn(struct exchange *x);

/* x->arg is restored if it is idle, and fn is called then, with x->woke; or x is answered. False: it is not idle, and
 * nothing was done. */
bool idle_wakes(struct exchange *x, idle_fn *fn) MUSTCHECK;
/* It is idle, and what is asked for needs what ran in it: answered; or it is being put aside or restored, and fn is
 * called when that is over, if it is not idle then. */
bool idle_refuses(struct exchange *x, idle_fn *fn) MUSTCHECK;
/* 1, 0: x->arg is not idle, -1: that cannot be read now, answered. */
struct idle_row;
int idle_find(struct exchange *x, struct idle_row *r) MUSTCHECK;

/* Somebody may be due from now on; the desk has met a warden; do what is due by now. */
void idle_look(struct desk *d);
void idle_met(struct desk *d);
/* Something may be there that nobody needs: looked for in a few seconds, one such look at a time. */
void idle_sweep_soon(struct desk *d, uint64_t now_ms);
void idle_due(struct desk *d, uint64_t now_ms);

/* --- idlers.c: what is at work on one. In the arena of who does it. --------------------- */

struct idle_parked {
    struct idle_parked *next;
    struct exchange *x;
    idle_fn *fn;
    bool ran; /* it needs what runs in it: it is not restored for that */
};
struct idler {
    struct idler *next;
    struct span name, tenant;
    bool waits;    /* who needs it waits until this is over; else that goes first */
    bool aside;    /* it is put aside, and not restored */
    uint64_t woke; /* it was restored, as this generation */
    bool another;  /* with another image than it had */
    struct idle_parked *parked;
};
void idler_begin(struct desk *d, struct idler *i);
/* Who waits goes on; or, refused, is told that it cannot be had. Of one that is over, nothing. */
void idler_over(struct desk *d, struct idler *i, bool refused);
struct idler *idler_of(const struct desk *d, struct span name);
/* Until it is over. */
void idler_park(struct idler *i, struct exchange *x, idle_fn *fn, bool ran);
/* Do it, after what made x wait; unless its client has gone, or may not any more. */
void idler_go(struct exchange *x, idle_fn *fn, bool ran);

#endif
