#include "proxy/timeshare.h"

enum { SAY_AGAIN_MS = 60 * 1000 };

void timeshare_init(struct timeshare *t)
{
    *t = (struct timeshare){.left_us = TIMESHARE_BURST_US};
}

static void fill(struct timeshare *t, uint64_t now_ms)
{
    const uint64_t all = (uint64_t)(TIMESHARE_DEBT_US + TIMESHARE_BURST_US) * TIMESHARE_SHARE / 1000;
    if (now_ms <= t->filled_ms) /* what is called now may be the begin of this turn */
        return;
    uint64_t ms = now_ms - t->filled_ms;
    t->left_us += (int64_t)(ms < all ? ms : all) * 1000 / TIMESHARE_SHARE;
    if (t->left_us > TIMESHARE_BURST_US)
        t->left_us = TIMESHARE_BURST_US;
    t->filled_ms = now_ms;
}

void timeshare_spend(struct timeshare *t, uint64_t now_ms, uint64_t us)
{
    const uint64_t most = TIMESHARE_BURST_US + TIMESHARE_DEBT_US;
    fill(t, now_ms);
    t->left_us -= (int64_t)(us < most ? us : most);
    if (t->left_us < -TIMESHARE_DEBT_US)
        t->left_us = -TIMESHARE_DEBT_US;
}

uint64_t timeshare_wait(struct timeshare *t, uint64_t now_ms)
{
    fill(t, now_ms);
    return t->left_us > 0 ? 0 : (uint64_t)-t->left_us * TIMESHARE_SHARE / 1000 + 1;
}

bool timeshare_asks(const struct timeshare *t, uint64_t now_ms)
{
    return t->asked_ms != 0 && now_ms - t->asked_ms < TIMESHARE_NEIGHBOUR_MS;
}

bool timeshare_to_say(struct timeshare *t, uint64_t now_ms)
{
    if (t->said_ms != 0 && now_ms - t->said_ms < SAY_AGAIN_MS)
        return false;
    t->said_ms = now_ms;
    return true;
}
