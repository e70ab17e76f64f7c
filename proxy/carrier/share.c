#include "proxy/carrier/share.h"

#include <time.h>

#include "common/time/clock.h"
#include "common/log.h"
#include "proxy/carrier/exchange.h"

enum { LOOK_MS = 20 }; /* whether one that is held back may go on */

uint64_t share_clock(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000;
}

static bool has_neighbour(const struct carrier *c, const struct front *me, uint64_t now_ms)
{
    for (const struct front *f = c->fronts; f != NULL; f = f->next)
        if (f != me && timeshare_asks(&f->time, now_ms))
            return true;
    return false;
}

static bool waits(struct front *f, uint64_t now_ms)
{
    return timeshare_wait(&f->time, now_ms) > 0 && has_neighbour(f->carrier, f, now_ms);
}

uint64_t share_begin(const struct carrier *c)
{
    return c->clock();
}

void share_end(struct front *f, uint64_t began_us)
{
    uint64_t now_us = f->carrier->clock(), now_ms = now_us / 1000;
    timeshare_spend(&f->time, now_ms, now_us - began_us);
    f->time.asked_ms = now_ms;
    if (f->held_back || !waits(f, now_ms))
        return;
    f->held_back = true;
    timer_set(f->carrier->share, LOOK_MS);
    if (timeshare_to_say(&f->time, now_ms))
        log_info("front %llu asks for more of the carrier's time than its share while others ask: it waits",
                 (unsigned long long)f->instance);
}

void share_look(void *arg)
{
    struct carrier *c = arg;
    bool more = false;
    for (struct front *f = c->fronts; f != NULL; f = f->next) {
        if (f->held_back && !waits(f, c->clock() / 1000)) {
            f->held_back = false;
            carry_front_goes_on(f);
        }
        more |= f->held_back;
    }
    if (more)
        timer_set(c->share, LOOK_MS);
}
