/* What the warden is told to do in a started sandbox for an exchange that goes on when it is done: a command, or
 * something with files. All of its input is there, and so much of its output is kept. */
#ifndef WEB_APPROVAL_TASKS_CHORE_H
#define WEB_APPROVAL_TASKS_CHORE_H

#include "web-approval/streams/transfer.h"

/* How it ended; what it said is there until this returns. x may be answered then. */
typedef void chore_fn(struct exchange *x, const struct transfer_end *e);

struct chore {
    struct chore *next; /* of the desk's */
    struct exchange *x; /* NULL: it does not run */
    uint64_t id;
    struct span input; /* what it was not given yet */
    bool takes;        /* it has an input, whose end it was not told yet */
    uint32_t unfed;
    struct dynbuf said;
    chore_fn *done;
};

/* The message that it begins with, to which its fields are added; then chore_go. NULL: answered, the warden does not
 * run. c must not run, and lives as long as x. */
struct dynbuf *chore_begin(struct chore *c, struct exchange *x, unsigned type) MUSTCHECK;
/* input: borrowed until it is done; p NULL: it takes none. most: bytes of its output; more of it is an end like
 * SB_NOT_STARTED. done is called later; not at all when x is answered now, since the warden does not take more. */
void chore_go(struct chore *c, struct span input, size_t most, chore_fn *done);
/* A message of the warden's. False: it is about none of these. */
bool chore_hear(struct desk *d, const struct frame *f);
/* The warden has ended. */
void chore_gone(struct desk *d);
/* The client of x has gone: what runs for it, if anything, is done. x may be answered, and freed. */
void chore_left(struct exchange *x);
/* Nobody waits for it any more. One that does not run is fine. */
void chore_drop(struct chore *c);

#endif
