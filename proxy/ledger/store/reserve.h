/* What limits count (table reserved), in the turn's transaction. */
#ifndef PROXY_LEDGER_STORE_RESERVE_H
#define PROXY_LEDGER_STORE_RESERVE_H

#include "proxy/ledger/store/store_in.h"

/* 1: all of them are reserved for the ticket, or else the exchange; 0: not one, over says which are past.
 * What a ticket has already it is not asked for again. */
int reserve(struct store *s, const struct wire_limits *l, const struct wire_record *r, struct span ticket,
            uint64_t xid, struct wire_over *over) MUSTCHECK;
int reserve_claimed(struct store *s, struct span ticket) MUSTCHECK; /* counts from now on as of now */
int reserve_free_ticket(struct store *s, struct span ticket) MUSTCHECK;
int reserve_free_exchange(struct store *s, uint64_t xid) MUSTCHECK;
int reserve_prune(struct store *s) MUSTCHECK;

#endif
