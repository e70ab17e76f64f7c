/* The messages of a held request: open a ticket, take its approval, give it up. */
#ifndef PROXY_JUDGE_TICKET_H
#define PROXY_JUDGE_TICKET_H

#include "proxy/judge/exchange/exchange.h"

enum { TICKET_WAIT_MS = 10 * 1000, TICKET_SUMMARY_MAX = 4000, TICKET_FACTS_MAX = 64 * 1024 };

/* Digest and join key of the request as it is in x now. */
void ticket_digests(struct exchange *x);
/* The join key it would have if it were held so; x->request stays as it is. */
void ticket_join(struct exchange *x, const struct decision *d, struct digest *join);
/* 0; -1: no ledger; -2: request and body together do not fit into one message. */
int ticket_open(struct exchange *x) MUSTCHECK;
int ticket_claim(struct exchange *x) MUSTCHECK;
/* The policy of now would not hold it so: end the ticket before anybody approves it. */
void ticket_void(struct exchange *x, const char *why);
/* The id by which its client knows the answer to what leaves, where that says another (common/json/rpc.h); else
 * empty. */
struct span ticket_answer_id(const struct exchange *x);
/* The answer that was kept for this retry, sent to the client. -1: there is none that can be given. */
int ticket_replay(struct exchange *x) MUSTCHECK;

#endif
