/* What the files of a replay share. */
#ifndef BROKER_REPLAY_AGAIN_IN_H
#define BROKER_REPLAY_AGAIN_IN_H

#include "broker/replay/again.h"

enum { DUE_MAX = TURN_CALLS_MAX * 2 + 8, NO_ROW = -1 };

/* Something that is going to be heard. */
struct due {
    uint64_t at, order;
    struct loop_event e;
    long row; /* which of the recording it is, or NO_ROW */
    bool cut; /* REPLAY_TOOL: it is heard as cut off */
};

/* A call of the step at hand, as the store has it and as it really is. */
struct world_call {
    struct loop_asked asked;
    enum call_end end;
    bool run, faulted, happened; /* faulted: a fault touched it, and what is known of it is `truth` */
    bool flies;                  /* it was run, and nothing came yet */
    enum known truth;
    enum call_end will; /* what came or comes of it */
    uint64_t began, until;
    unsigned effects;
};

struct world {
    const struct set_run *run;
    const struct again_inject *inject;
    struct arena *a;
    struct again *out;
    struct agent m;
    uint64_t now, epoch, order, marks, dice;
    size_t at, next, outside; /* the worker that is recorded; the row that is to be heard next; the next of those that
                                 nobody asked for */
    bool strayed, back, lost, full;   /* back, lost: nobody has it now */
    uint64_t back_ms, think_ms, spot; /* spot: REPLAY_*: the how many-th it is */
    unsigned silent;                  /* so many times more the model does not answer */
    bool *taken;
    struct due due[DUE_MAX];
    size_t ndue;
    /* the store */
    uint64_t settled, attempts;
    bool planned, cut, cancelled, summary;
    struct used used, answer_used;
    uint8_t kept[LOOP_KEPT_MAX];
    size_t kept_n;
    struct world_call call[TURN_CALLS_MAX];
    size_t calls;
    struct loop_asked asked[TURN_CALLS_MAX]; /* of the answer that is being heard */
    struct digest last[TURN_CALLS_MAX];      /* what the step before asked for */
    size_t nlast;
};

/* again_world.c: what is wanted is done */
void world_do(struct world *w, const struct loop_action *a);
/* What comes of it being heard, before the machine hears it: e is made whole. */
void world_heard(struct world *w, struct due *d);
/* The worker is lost, and with it what it was about to hear. */
void world_lose(struct world *w);
void world_add(struct world *w, struct loop_event e, uint64_t after_ms, long row);
uint64_t world_pick(struct world *w, uint64_t n);

#endif
