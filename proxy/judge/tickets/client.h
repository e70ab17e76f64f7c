/* Whether a client waits for a ticket's decision, said to the ledger: it decides what a yes does. */
#ifndef PROXY_JUDGE_TICKETS_CLIENT_H
#define PROXY_JUDGE_TICKETS_CLIENT_H

#include "proxy/judge/exchange/exchange.h"

/* It is parked, and is told to ask again after so many ms. Said once of an exchange. */
void ticket_client_waits(struct exchange *x, uint64_t ms);
/* It is over: if it was the last that waited for its ticket, nobody does. */
void ticket_client_over(struct exchange *x);
/* A ticket was opened or joined for a client that had gone before it could wait. */
void ticket_client_missed(struct judge *j, const struct wire_ticket_state *t);

#endif
