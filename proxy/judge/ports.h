/* What the judge needs of the world: frames out, time, one alarm. main.c makes it
 * of channels and the loop, the plays of a script and a clock they turn by hand.
 * Milliseconds everywhere. Nothing here owns anything of the judge's. */
#ifndef PROXY_JUDGE_PORTS_H
#define PROXY_JUDGE_PORTS_H

#include "common/dynbuf.h"
#include "proxy/words.h"

struct judge_ports {
    void *arg;
    /* Begin one frame to a peer (instance: 0, or the front's number) and get the buffer for its payload, or NULL when
     * there is no such peer now. One at a time per peer. */
    struct dynbuf *(*begin)(void *arg, enum role_id to, uint64_t instance, uint16_t type, uint64_t id);
    /* Send what was begun, with a descriptor (borrowed) or -1. -1: not sent. */
    int (*commit)(void *arg, enum role_id to, uint64_t instance, int fd);
    uint64_t (*now)(void *arg);  /* monotonic */
    uint64_t (*wall)(void *arg); /* Unix time */
    /* Call judge_tick in so many ms; replaces the alarm set before. UINT64_MAX: no alarm. */
    void (*wake)(void *arg, uint64_t in_ms);
    /* As commit, for what nobody waits for: it may stay here some milliseconds. NULL: commit does. */
    int (*commit_soon)(void *arg, enum role_id to, uint64_t instance);
    uint64_t (*clock)(void *arg); /* microseconds, monotonic, of this very moment: `now` may stand still for a turn */
    /* Read nothing more from this front for now (on), or go on. What it says meanwhile is kept, in order. */
    void (*hold_back)(void *arg, uint64_t instance, bool on);
};

#endif
