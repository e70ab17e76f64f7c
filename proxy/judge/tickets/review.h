/* Tickets nobody waits for, looked at again when the policy has changed. */
#ifndef PROXY_JUDGE_REVIEW_H
#define PROXY_JUDGE_REVIEW_H

#include "proxy/judge/exchange/exchange.h"

/* There is another policy, or another ledger: it is to show what is open. */
void review_ask(struct judge *j);
/* What was held for being past a limit, and would be allowed now (v): *over, whose limits make of it what was held.
 */
bool review_past(struct judge *j, const struct sandbox *s, const struct request *r, const struct evaluation *v,
                 const struct wire_review *w, struct exceeded *over);
int review_ticket(struct judge *j, struct frame *f) MUSTCHECK;

#endif
