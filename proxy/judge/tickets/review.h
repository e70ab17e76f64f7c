/* Tickets nobody waits for, looked at again when the policy has changed. */
#ifndef PROXY_JUDGE_REVIEW_H
#define PROXY_JUDGE_REVIEW_H

#include "proxy/judge/exchange/exchange.h"

/* There is another policy, or another ledger: it is to show what is open. */
void review_ask(struct judge *j);
int review_ticket(struct judge *j, struct frame *f) MUSTCHECK;

#endif
