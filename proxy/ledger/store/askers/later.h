/* Inside the store: tickets that the gateway sends itself (schema_13.sql). */
#ifndef PROXY_LEDGER_STORE_LATER_H
#define PROXY_LEDGER_STORE_LATER_H

#include "proxy/ledger/store/store_in.h"

/* Of so many that are on their way the judge is told of no further one: its own LATER_MAX and LATER_EACH. */
enum { LATER_SENT_MAX = 64, LATER_SENT_EACH = 8 };

/* The open ticket is such a one from now on, if l says so, with the lease that was last asked with. */
int later_ask(struct store *s, struct span ticket, const struct wire_later *l) MUSTCHECK;
/* The sandbox is no more, or begins anew. */
int later_end_sandbox(struct store *s, struct span sandbox, struct span session) MUSTCHECK;
int later_over(struct store *s, struct span ticket) MUSTCHECK;
/* A judge has come, or writes go again: it is told of all that is approved. */
int later_all_again(struct store *s) MUSTCHECK;
/* It provably was not sent: what the gateway sent itself, of itself, or for a client that left (untold), is approved
 * as it was, and tried again. 1; 0 it is none of these, a client waited and was told, a grant let it through, or its
 * time is over; -1. */
int later_back(struct store *s, struct row *r, bool untold) MUSTCHECK;

#endif
