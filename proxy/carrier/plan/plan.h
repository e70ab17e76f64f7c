/* How much of what an upstream sent may go on while more can follow. Pure; from public facts only.
 *
 *   waiting: [ ............................ | \n ....... ]      the later of the two cuts: a form that begins
 *                     reach - 1 bytes from the end ^            before it has ended, so it was found
 *
 * What is seen here is the length of the longest secret, rounded up, and the upstream's own bytes. So sizes, cuts and
 * times of what a client gets are the same for all secrets of a length. */
#ifndef CARRIER_PLAN_PLAN_H
#define CARRIER_PLAN_PLAN_H

#include "common/span.h"

enum {
    PLAN_FORM_MOST = 8, /* bytes that a form takes, at most, for each byte of its secret */
    PLAN_CLASS = 64,    /* secrets' lengths are rounded up to this: what shows is which multiple */
};

/* The most bytes a form comes to when the longest secret has this length; 0 for none. */
size_t plan_reach(size_t longest_secret) MUSTCHECK;
/* How many of the first bytes of waiting may go on. No form may hold a line feed, or be longer than reach. */
size_t plan_release(size_t reach, struct span waiting) MUSTCHECK;

#endif
