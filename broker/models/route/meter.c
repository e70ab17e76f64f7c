#include "broker/models/route/meter.h"

#define MILLION UINT64_C(1000000)
enum { BYTES_A_TOKEN = 3 };

/* Whole millions of tokens to *cost, what is left to *rest, which four prices cannot make overflow. */
static bool count(uint64_t tokens, uint64_t price, uint64_t *cost, uint64_t *rest)
{
    uint64_t whole;
    if (tokens > TOKENS_MAX || price > PRICE_MAX || __builtin_mul_overflow(tokens / MILLION, price, &whole) ||
        __builtin_add_overflow(*cost, whole, cost))
        return false;
    *rest += tokens % MILLION * price;
    return true;
}

int meter_cost(const struct model_price *p, const struct model_usage *u, uint64_t *cost)
{
    uint64_t sum = 0, rest = 0;
    *cost = UINT64_MAX;
    if (!count(u->input, p->input, &sum, &rest) || !count(u->cache_read, p->cache_read, &sum, &rest) ||
        !count(u->cache_write, p->cache_write, &sum, &rest) || !count(u->output, p->output, &sum, &rest))
        return -1;
    if (__builtin_add_overflow(sum, rest / MILLION + (rest % MILLION != 0), &sum))
        return -1;
    *cost = sum;
    return 0;
}

int meter_most(const struct model_price *p, uint64_t input, uint64_t output, uint64_t *cost)
{
    struct model_price dear = *p;
    if (dear.cache_write > dear.input)
        dear.input = dear.cache_write;
    if (dear.cache_read > dear.input)
        dear.input = dear.cache_read;
    return meter_cost(&dear, &(struct model_usage){.input = input, .output = output}, cost);
}

static int add(uint64_t *to, uint64_t more)
{
    if (!__builtin_add_overflow(*to, more, to))
        return 0;
    *to = UINT64_MAX;
    return -1;
}

int meter_add(struct meter *m, const struct model_usage *u, uint64_t cost)
{
    int bad = add(&m->answers, 1) | add(&m->unknown, !u->known);
    bad |= add(&m->input, u->input) | add(&m->cache_read, u->cache_read) | add(&m->cache_write, u->cache_write);
    bad |= add(&m->output, u->output) | add(&m->reasoning, u->reasoning) | add(&m->cost, cost);
    return bad ? -1 : 0;
}

bool meter_allows(uint64_t limit, uint64_t spent, uint64_t more)
{
    return spent < UINT64_MAX && more < UINT64_MAX && spent <= limit && more <= limit - spent;
}

uint64_t meter_guess(size_t bytes)
{
    return bytes / BYTES_A_TOKEN + (bytes % BYTES_A_TOKEN != 0);
}
