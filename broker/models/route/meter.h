/* What was used and what it costs, in whole millionths of the unit that prices are in. What cannot be counted costs
 * more than any budget has. */
#ifndef BROKER_MODELS_ROUTE_METER_H
#define BROKER_MODELS_ROUTE_METER_H

#include "broker/models/model.h"

#define PRICE_MAX  UINT64_C(1000000000000) /* millionths for a million tokens */
#define TOKENS_MAX (UINT64_C(1) << 53)     /* that are believed, of any kind in one answer */

/* Millionths for a million tokens: 15 of a currency for a million is 15,000,000. Each at most PRICE_MAX. */
struct model_price {
    uint64_t input, cache_read, cache_write, output;
};

struct meter {
    uint64_t answers, unknown; /* unknown: of them those whose provider did not say what they used */
    uint64_t input, cache_read, cache_write, output, reasoning, cost;
};

/* Of one answer, rounded up. -1: past what can be counted; *cost is UINT64_MAX. */
int meter_cost(const struct model_price *p, const struct model_usage *u, uint64_t *cost) MUSTCHECK;
/* The most that a request may come to: nothing of its input is in a cache, and its answer is as long as it may be. */
int meter_most(const struct model_price *p, uint64_t input, uint64_t output, uint64_t *cost) MUSTCHECK;
/* One more answer. -1: a sum is past what can be counted, and stands at UINT64_MAX from now on. */
int meter_add(struct meter *m, const struct model_usage *u, uint64_t cost) MUSTCHECK;
/* May so much more be spent? limit UINT64_MAX: there is none, but for what cannot be counted. */
bool meter_allows(uint64_t limit, uint64_t spent, uint64_t more);
/* About how many tokens a text is, rather too many than too few. */
uint64_t meter_guess(size_t bytes);

#endif
