/* Limits of one request on their way to the ledger and back. */
#ifndef PROXY_JUDGE_RATE_LIMIT_H
#define PROXY_JUDGE_RATE_LIMIT_H

#include "proxy/judge/exchange/exchange.h"
#include "proxy/wire_ticket.h"

/* What the decision asks to be counted, and then the lease; nothing in shadow mode. */
void rate_limit_wire(struct exchange *x, struct wire_limits *out);
/* If all of it were used up and it were held then: the join key of that ticket, else zero. */
void rate_limit_join(struct exchange *x, struct digest *join);
/* The ledger's word: what was past is remembered. -1: it is none about this decision, or no memory. */
int rate_limit_take(struct exchange *x, const struct wire_over *said) MUSTCHECK;
/* Is one of them the lease's own? */
bool rate_limit_of_lease(const struct exchange *x, const struct wire_over *said);
/* Which limit it is, in words, and seconds until there may be room (0: not known). */
struct span rate_limit_words(struct exchange *x);
unsigned rate_limit_wait(const struct exchange *x);

#endif
