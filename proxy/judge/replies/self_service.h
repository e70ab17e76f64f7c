/* http://countersign.internal/: what a sandbox may ask about itself. Nothing here changes anything. */
#ifndef PROXY_JUDGE_SELF_SERVICE_H
#define PROXY_JUDGE_SELF_SERVICE_H

#include "proxy/judge/exchange/exchange.h"

enum { SELF_TICKET_WAIT_MS = 10 * 1000 }; /* for what the ledger says */
/* What there is to answer with. */
enum self_found {
    SELF_NOT_HERE = 0,
    SELF_NO_FORM,
    SELF_NO_ANSWER, /* of its ticket */
    SELF_NO_STORE,
    SELF_WAITS, /* it is asked for */
    SELF_ANSWERED,
    SELF_JSON,
    SELF_TEXT
};
struct jsonw;

/* self_ticket.c: of a ticket, after M_TICKET_IS. */
enum self_found self_ticket(struct exchange *x, struct jsonw *w);
int self_ticket_told(struct judge *j, struct frame *f) MUSTCHECK;
bool self_service_is(struct span host);
enum walk_next self_service_answer(struct exchange *x);

#endif
