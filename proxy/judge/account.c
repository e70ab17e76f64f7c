#include "proxy/judge/account.h"

#include <stdlib.h>

struct account *account_new(void)
{
    struct account *a = calloc(1, sizeof(*a));
    if (a != NULL)
        *a = (struct account){.refs = 1, .left_us = ACCOUNT_BURST_US};
    return a;
}

struct account *account_ref(struct account *a)
{
    a->refs++;
    return a;
}

void account_unref(struct account *a)
{
    if (a != NULL && --a->refs == 0)
        free(a);
}

static void fill(struct account *a, uint64_t now_ms)
{
    const uint64_t all = (uint64_t)(ACCOUNT_DEBT_US + ACCOUNT_BURST_US) * ACCOUNT_SHARE / 1000;
    if (now_ms <= a->filled_ms) /* what is called now may be the begin of this turn */
        return;
    uint64_t ms = now_ms - a->filled_ms;
    a->left_us += (int64_t)(ms < all ? ms : all) * 1000 / ACCOUNT_SHARE;
    if (a->left_us > ACCOUNT_BURST_US)
        a->left_us = ACCOUNT_BURST_US;
    a->filled_ms = now_ms;
}

void account_spend(struct account *a, uint64_t now_ms, uint64_t us)
{
    const uint64_t most = ACCOUNT_BURST_US + ACCOUNT_DEBT_US;
    fill(a, now_ms);
    a->left_us -= (int64_t)(us < most ? us : most);
    if (a->left_us < -ACCOUNT_DEBT_US)
        a->left_us = -ACCOUNT_DEBT_US;
}

uint64_t account_wait(struct account *a, uint64_t now_ms)
{
    fill(a, now_ms);
    return a->left_us > 0 ? 0 : (uint64_t)-a->left_us * ACCOUNT_SHARE / 1000 + 1;
}
