/* Limits of one request on their way to the ledger and back. */
#ifndef PROXY_JUDGE_OVER_H
#define PROXY_JUDGE_OVER_H

#include "proxy/judge/exchange.h"
#include "proxy/wire_limit.h"

/* What the decision asks to be counted; nothing in shadow mode. */
void over_wire(const struct exchange *x, struct wire_limits *out);
/* If all of it were used up and it were held then: the join key of that ticket, else zero. */
void over_join(struct exchange *x, struct digest *join);
/* The ledger's word: what was past is remembered. -1: it is none about this decision, or no memory. */
int over_take(struct exchange *x, const struct wire_over *said) MUSTCHECK;
/* Which limit it is, in words, and seconds until there may be room (0: not known). */
struct span over_words(struct exchange *x);
unsigned over_wait(const struct exchange *x);

#endif
