#include "tests/play/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A turn takes some microseconds: what is more was not the play's. */
enum { TURN_NS = 100 * 1000, SECOND_NS = 1000 * 1000 * 1000 };

static int64_t stood; /* nanoseconds that did not count */
static int64_t last;
static bool waits;

static int64_t machine(void)
{
    struct timespec t;

    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)SECOND_NS + t.tv_nsec;
}

void clock_turn(void)
{
    int64_t now = machine();

    if (last != 0 && !waits && now - last > TURN_NS)
        stood += now - last - TURN_NS;
    last = now;
    waits = false;
}

void clock_waits(void)
{
    clock_turn();
    waits = true;
}

/* In place of the C library's, for everything in this program that asks: libevent, our loop and the play itself. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    if (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE)
        return (int)syscall(SYS_clock_gettime, id, t);
    int64_t now = last != 0 && !waits ? last : machine();
    now -= stood;
    t->tv_sec = now / SECOND_NS;
    t->tv_nsec = now % SECOND_NS;
    return 0;
}
