/* Gates, asked for the ledger. The keeper alone says what a gate of this name is, from the policy that it has itself:
 * who holds the tickets cannot have a program of its choice run. What it is asked with passes through unread. */
#ifndef PROXY_KEEPER_GATES_GATES_H
#define PROXY_KEEPER_GATES_GATES_H

#include "proxy/keeper/keeper.h"

enum { GATES_ASKED_MOST = 8 };
/* Numbers of questions to the fetcher that are about a gate, the keeper's own; those about values have others. */
#define GATE_FETCH (UINT64_C(1) << 62)

/* M_GATE of the ledger. */
void keeper_gate(struct keeper *k, struct frame *f);
/* M_FETCHED of a question with GATE_FETCH. */
void keeper_gate_fetched(struct keeper *k, struct frame *f);
/* Nobody answers what was asked so far. */
void keeper_gates_lost(struct keeper *k);
/* Who asked has gone: nobody is told what comes. The next one numbers its own. */
void keeper_gates_forget(void);

#endif
