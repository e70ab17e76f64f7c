/* What is done with checkpoints, each by a process of its own that does one thing and ends. */
#ifndef SANDBOX_SHIM_CHECKPOINT_STORE_H
#define SANDBOX_SHIM_CHECKPOINT_STORE_H

#include "proxy/words.h"
#include "sandbox-shim/checkpoint/away/away.h"
#include "sandbox-shim/checkpoint/order.h"
#include "sandbox-shim/checkpoint/shelf.h"

struct store {
    int dir;
    uint64_t most;           /* bytes that are kept for one owner */
    const struct away *away; /* where all of it is as well; NULL: nowhere */
    enum store_end *how;     /* set where there is more to say of a failure than words */
};

/* All: 0, and what there is to tell in out; -1 in words. stream: where a workspace's user is (stream.h). Of a step
 * that is the head, and u64 bytes of the list of its files. */
int store_save(const struct store *s, const struct order *o, int stream, struct dynbuf *out, struct err *e) MUSTCHECK;
int store_load(const struct store *s, const struct order *o, int stream, struct dynbuf *out, struct err *e) MUSTCHECK;
/* The head of one. */
int store_look(const struct store *s, const struct order *o, struct dynbuf *out, struct err *e) MUSTCHECK;
/* Those of a tenant that somebody asked for; of ORDER_IDLE those of idle sandboxes, of all tenants. */
int store_list(const struct store *s, const struct order *o, struct dynbuf *out, struct err *e) MUSTCHECK;
int store_remove(const struct store *s, const struct order *o, struct dynbuf *out, struct err *e) MUSTCHECK;
/* Of all owners: what was half written by who was killed, and what was made for forks or steps (order.h; o->which: of
 * this sandbox of the tenant's alone), of which none is on its way when this is asked for. What is written or read
 * meanwhile stays, until the next time. */
int store_sweep(const struct store *s, const struct order *o, struct err *e) MUSTCHECK;

/* Of all owners: what went here goes from the store elsewhere as well. -1: not all of it, yet; those that are in the
 * way of nobody are done. */
int store_tidy(const struct store *s, struct err *e) MUSTCHECK;

/* list.c: shelf_find of what an order names, here or elsewhere; of an idle sandbox here alone. */
int store_find(const struct store *s, const struct order *o, struct shelf *shelf, char id[FORM_ID + 1],
               struct err *e) MUSTCHECK;

/* waste.c: while nobody else has the shelf (shelf_alone), throw away what was half written, and, if there may be some
 * or `all`, the pieces that no checkpoint needs. With a checkpoint that cannot be read none of these is known. */
int waste_clear(const struct shelf *s, bool all, struct err *e) MUSTCHECK;
/* There may be some from now on. */
int waste_mark(const struct shelf *s) MUSTCHECK;

#endif
