/* A set that is done once more, live. */
#ifndef CLI_VERBS_REPLAY_LIVE_H
#define CLI_VERBS_REPLAY_LIVE_H

#include <signal.h>

#include "cli/verbs/replay/replay.h"

enum { PARALLEL_MAX = 16 };

/* A turn that runs. */
struct live_slot {
    bool used;
    size_t run;
    char turn[ID_TEXT + 1];
    uint64_t promised; /* millionths that it may come to */
};

struct living {
    struct replaying *x;
    char control[PATH_MAX]; /* the gateway's socket */
    struct live live;
    struct id *conversation; /* of each run; none: it was not begun */
    struct live_slot slot[PARALLEL_MAX];
    size_t parallel, next;
    uint64_t wait_ms, spent, began_ms;
    bool full;        /* the broker has no room for another one now */
    uint64_t full_ms; /* since then, by the monotonic clock; 0: it has had some */
    sigset_t ends;
    unsigned told; /* so often somebody wanted it to end */
};

/* All of its runs, so many at once; SIGINT, SIGTERM and SIGHUP (v->ends, which are blocked) cancel those that run.
 * CLI_OK: all are over, and x->set has what came of them, in the order of live_run.made. */
int live_go(struct living *v) MUSTCHECK;

#endif
