/* Approve and execute later: what a client asked for with Prefer: respond-async is sent by the gateway itself once it
 * is approved, by the policy of that moment, with the lease that it was asked with, and once. */
#ifndef PROXY_JUDGE_LATER_H
#define PROXY_JUDGE_LATER_H

#include "proxy/judge/exchange/exchange.h"

enum { LATER_MAX = 64, LATER_EACH = 8 }; /* on their way at once: of all sandboxes, and of one */

/* Does its client want that? To be asked before the request is as it leaves. */
void later_wanted(struct exchange *x);
/* What the ledger is to keep of it. */
void later_wire(const struct exchange *x, struct wire_later *l);
/* M_TICKET_LATER: send it, if that can be done now; else the ledger says it again. */
int later_begin(struct judge *j, struct frame *f) MUSTCHECK;

#endif
