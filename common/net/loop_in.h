/* Inside common/net only: the event base behind a loop, its end-of-turn tasks
 * and the buffers its connections share. Tasks are embedded in what they
 * belong to, so queueing one cannot fail and freeing the owner can take it back. */
#ifndef COMMON_NET_LOOP_IN_H
#define COMMON_NET_LOOP_IN_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/net/loop.h"

struct task {
    void (*fn)(void *arg);
    void *arg;
    struct task *next, *prev; /* NULL while not queued */
};

enum {
    LOOP_IN_BYTES = 64 * 1024,  /* one read from a socket */
    LOOP_OUT_BYTES = 96 * 1024, /* one turn's TLS records on their way out */
    LOOP_SPARE_BYTES = 16 * 1024,
};

struct loop {
    struct event_base *base;
    struct task later, flush; /* heads of rings */
    struct task mark;         /* where a round ends */
    struct signal_watch *signals;
    uint64_t now; /* 0: not yet read in this turn */
    bool stopped;
    /* Shared by all connections of the loop: valid within one callback only. */
    uint8_t *in, *out;
    size_t out_n;
    uint8_t *spare; /* an input buffer between two connections, or NULL: most hold one for a moment only */
};

void task_init(struct task *t, void (*fn)(void *arg), void *arg);
/* Before the flush of this turn; from within the flush: in the next turn, which then does not wait. */
void task_later(struct loop *l, struct task *t);
/* In the flush of this turn. Twice is once. */
void task_flush(struct loop *l, struct task *t);
void task_cancel(struct task *t);

/* Add or take away a persistent event as wanted says; no call when it stands so already. */
void event_want(struct event *ev, bool wanted);

#endif
