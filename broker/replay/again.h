/* A recorded run, gone through again: this build's own machine (broker/loop) is told what it was told then, after the
 * times that it took then, by a clock that is only counted. Nothing else comes into it, so that the same set gives
 * the same to the byte, on any machine and at any time. */
#ifndef BROKER_REPLAY_AGAIN_H
#define BROKER_REPLAY_AGAIN_H

#include "broker/replay/set.h"

enum {
    AGAIN_EVENTS_MAX = 200000, /* that a run may hear, and no more: a machine that goes round for ever */
    AGAIN_WORKERS_MAX = 64,    /* one after the other, of a run with a fault */
    AGAIN_LOST_MS = 15000      /* until the claim of a worker that is lost is over */
};

/* A fault that is put into a run, once, at a place that its seed gives. */
enum replay_fault {
    REPLAY_NO_FAULT = 0,
    REPLAY_MODEL,  /* the model does not answer, up to three times in a row */
    REPLAY_TOOL,   /* a call is cut off */
    REPLAY_WORKER, /* the worker ends, whatever it is doing */
    REPLAY_FAULTS
};
/* "none", "model", "tool", "worker" */
const char *replay_fault_name(enum replay_fault f);
/* REPLAY_NO_FAULT: it is none. */
enum replay_fault replay_fault_of(struct span name);

enum again_state {
    AGAIN_NOT = 0,    /* it was not gone through: nothing, or not all of it, is recorded */
    AGAIN_ENDED,      /* the machine ended it */
    AGAIN_AS_THEN,    /* up to where its last worker was lost; it ends as it did then */
    AGAIN_UNRECORDED, /* the machine wants what was not recorded, since it went another way */
    AGAIN_ENDLESS,
    AGAIN_STATES
};

/* The first thing that is otherwise than it was. The spans live in the arena. */
struct again_difference {
    bool is;
    uint64_t step, t;
    struct span heard, then, now; /* what was heard; what was done then; what is done now */
};

struct again {
    enum again_state state;
    enum turn_end end;
    struct used used;
    uint64_t ms, model_ms, tool_ms; /* from the first begin to the end; models, and tools each for itself, in it */
    uint64_t events, thinks, runs, workers, calls, ends[CALL_ENDS];
    bool injected; /* the fault found its place */
    uint64_t repeated,
        hidden; /* calls that must not be repeated and were; that the model was told are not run, and were */
    struct again_difference differs;
};

/* NULL inject: as it was recorded, and compared with that. Else with the fault, from `plain`, which is what it gave
 * without. */
struct again_inject {
    enum replay_fault fault;
    uint64_t seed;
    const struct again *plain;
};
void again_run(const struct set_run *run, const struct again_inject *inject, struct arena *a, struct again *out);
/* Is every worker's part of it there, and so can a fault be put into it? */
bool again_is_whole(const struct set_run *run);

#endif
