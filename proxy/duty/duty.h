/* What a process of the broker does: one of these each (`countersign-broker --only`); which of them a gateway's
 * broker does at all, its configuration says (`broker: only:`). */
#ifndef PROXY_DUTY_DUTY_H
#define PROXY_DUTY_DUTY_H

#include "common/err.h"
#include "common/span.h"

enum duty {
    DUTY_STREAM = 1, /* HTTP: conversations are had, and shown */
    DUTY_TURN = 2,   /* turns are run */
    DUTY_ALL = DUTY_STREAM | DUTY_TURN
};

/* Of the broker's processes of a gateway: the first one serves, whatever else there is. */
static inline unsigned duty_of(uint64_t instance)
{
    return instance == 0 ? DUTY_STREAM : DUTY_TURN;
}

/* The words of those in it, parted by commas. */
const char *duty_words(unsigned duties);
/* The one that is done here alone; empty: both are, or neither, where there is no broker. */
const char *duty_alone(unsigned duties);
/* One more of them, by its word. -1, in words: there is none like that, it cannot be done by itself, or it is there
 * already. */
int duty_add(struct span word, unsigned *duties, struct err *e) MUSTCHECK;
/* A list of them, parted by commas. */
int duty_read(struct span list, unsigned *duties, struct err *e) MUSTCHECK;

#endif
