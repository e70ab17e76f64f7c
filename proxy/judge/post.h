/* One message out, at a time: begun, filled, sent. Where there is no such peer what is put into it goes nowhere, and
 * it is not sent; its going ends what waits for it. */
#ifndef PROXY_JUDGE_POST_H
#define PROXY_JUDGE_POST_H

#include "proxy/judge/state.h"

/* The buffer for its payload, never NULL. xid: of the exchange, or 0. */
struct dynbuf *post_begin(struct judge *j, enum role_id to, uint64_t instance, uint16_t type, uint64_t xid);
/* With a descriptor (borrowed) or -1. -1: not sent. */
int post_commit(struct judge *j, int fd) MUSTCHECK;
/* To the ledger, for what nobody waits for: it may stay here some milliseconds. */
int post_commit_soon(struct judge *j) MUSTCHECK;
/* As post_commit, for what nothing can be done about: if the peer is there, the log says what was lost. */
void post_send(struct judge *j, const char *lost);

enum { LEDGER_SILENT_MS = 5000 }; /* it speaks every second when it is spoken to */
/* The store can be written, for all the judge knows. */
bool judge_store_ok(struct judge *j);
/* The ledger said something. */
void judge_heard_ledger(struct judge *j);

#endif
