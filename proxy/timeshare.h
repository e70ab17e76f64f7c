/* The time of a role that does one thing at a time for many sandboxes, as one of them may spend it: so much at once,
 * and one part in TIMESHARE_SHARE of all time for ever. Who has spent more waits while another asks. It is measured
 * by the clock and not in processor time: on a busy machine, too, it is what the others wait. */
#ifndef PROXY_TIMESHARE_H
#define PROXY_TIMESHARE_H

#include "common/span.h"

enum {
    TIMESHARE_BURST_US = 250 * 1000,
    TIMESHARE_SHARE = 4,
    TIMESHARE_DEBT_US = 2 * 1000 * 1000, /* what is owed past this is forgiven */
    TIMESHARE_NEIGHBOUR_MS = 1000,       /* who asked within this is a neighbour for whom others wait */
};

struct timeshare {
    int64_t left_us;    /* below 0 it is owed */
    uint64_t filled_ms; /* monotonic: left_us is of then */
    uint64_t said_ms;   /* when it was logged that it waits */
    uint64_t asked_ms;  /* when it last asked for anything; 0: never */
};

void timeshare_init(struct timeshare *t);
void timeshare_spend(struct timeshare *t, uint64_t now_ms, uint64_t us);
/* 0: something is left; else in how many ms there will be. */
uint64_t timeshare_wait(struct timeshare *t, uint64_t now_ms);
bool timeshare_asks(const struct timeshare *t, uint64_t now_ms);
/* That it waits is to be logged now: once a minute, for whoever wonders why an agent is slow. */
bool timeshare_to_say(struct timeshare *t, uint64_t now_ms);

#endif
