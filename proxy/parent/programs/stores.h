/* Checkpoints, for the warden (stores.c). */
#ifndef PROXY_PARENT_PROGRAMS_STORES_H
#define PROXY_PARENT_PROGRAMS_STORES_H

#include "proxy/parent/parent.h"

/* The listener by which checkpoints reach a store elsewhere, as any other sandbox's requests (c->away). */
int parent_away_bind(struct parent *p, struct err *e) MUSTCHECK;
/* The /proc folder (O_PATH) of the first process of the sandbox that comes from this one; -1: there is none. */
int parent_first_open(int pid);
/* M_CHECKPOINT and M_CHECKPOINT_END of the warden. */
void parent_store_start(struct parent *p, struct frame *f);
void parent_store_end(struct parent *p, struct frame *f);
/* Was it one of these? */
bool parent_store_died(struct parent *p, int pid);
/* Those of a sandbox that ends; 0: all. */
void parent_stores_end(struct parent *p, uint64_t box);

#endif
