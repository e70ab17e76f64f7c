/* Inside the store: what else must have been asked before a person may approve. */
#ifndef PROXY_LEDGER_STORE_GATES_GATES_H
#define PROXY_LEDGER_STORE_GATES_GATES_H

#include "proxy/ledger/store/store_in.h"

/* Of a ticket that was just added. */
int gates_set(struct store *s, struct span ticket, const struct wire_gates *g) MUSTCHECK;
/* How many of its gates have not answered yet; -1. */
int gates_open(struct store *s, struct span ticket) MUSTCHECK;
/* Those that were being asked by a process that has ended: they said nothing, and are not asked again. */
int gates_lost(struct store *s, struct span why) MUSTCHECK;

#endif
