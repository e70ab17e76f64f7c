/* How fast the output of commands goes, and in how many frames: what nobody reads costs no more than a turn each
 * time, and what is written byte by byte is told as one piece. */
#ifndef SANDBOX_SHIM_WARDEN_FLOW_H
#define SANDBOX_SHIM_WARDEN_FLOW_H

#include "common/dynbuf.h"

struct box;
struct run;
struct timer;

enum {
    FLOW_TURN = 256 * 1024, /* bytes that nobody reads, of all commands of a sandbox, taken in ... */
    FLOW_TURN_MS = 25,
    FLOW_SMALL = 4 * 1024, /* pieces that are smaller wait for more of them when so many ... */
    FLOW_FRAMES = 16,      /* ... were told and not all of that is taken */
};

/* Of a command. */
struct flow {
    struct dynbuf waits[2]; /* of each output: that the desk is not told yet */
    uint32_t flight;        /* bytes that it is told and has not taken */
    uint32_t frames;        /* told since all was taken */
    uint32_t owed;          /* bytes that nobody is told, which may be said anew in another turn */
};

/* Of a sandbox. */
struct flow_turn {
    struct timer *timer; /* NULL: out of memory, when it was made */
    uint32_t left;       /* bytes of this turn */
    bool runs;
};

void flow_begin(struct run *r);
void flow_free(struct run *r);
/* So many bytes that were said are taken: as many more may be said. This may end its sandbox, and with it r. */
void flow_credit(struct run *r, uint32_t bytes);
/* So many bytes are dropped, or kept here: as many more may be said when it is the sandbox's turn. As above. */
void flow_drop(struct run *r, uint32_t bytes);
/* To be told, when all is heard that is there. -1: no memory. */
int flow_put(struct run *r, unsigned which, struct span bytes) MUSTCHECK;
/* The desk took bytes of it. As above. */
void flow_taken(struct run *r, uint32_t bytes);
/* Tell now what waits; all: also what is small. */
void flow_tell(struct run *r, bool all);
/* All is heard that was there: tell what waits of each command. */
void flow_tell_all(struct box *b);
/* -1: no memory. */
int flow_turn_begin(struct box *b) MUSTCHECK;
void flow_turn_free(struct box *b);

#endif
