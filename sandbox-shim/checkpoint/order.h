/* What who keeps checkpoints is told to do (M_CHECKPOINT_ORDER): one order, one answer. */
#ifndef SANDBOX_SHIM_CHECKPOINT_ORDER_H
#define SANDBOX_SHIM_CHECKPOINT_ORDER_H

#include "sandbox-shim/checkpoint/form.h"

enum order_what {
    ORDER_NONE = 0,
    ORDER_SAVE,
    ORDER_LOAD, /* called FORM_OF_UNDO: what the workspace has goes before; FORM_OF_FORK: of one that stays here */
    ORDER_LIST,
    ORDER_REMOVE,
    ORDER_SWEEP,
    ORDER_LOOK,
    ORDER_IDLE,
    ORDER_FORGET,    /* as remove, also of one that is a fork's or an idle sandbox's */
    ORDER_LOOK_STEP, /* as look, also of one that is of a step */
    ORDER_TIDY,      /* of all owners: what is to go from the store elsewhere */
    ORDERS
};

#define ORDER_NO_SUCH "there is no such checkpoint"
enum { ORDER_LIST_MAX = 200 }; /* in one answer */

/* What is of no meaning to it is empty. */
struct order {
    enum order_what what;
    struct span tenant;
    struct span owner;   /* save: whose it will be */
    struct span name;    /* save: what it is to be called; may be empty, FORM_OF_FORK, _IDLE or _UNDO; sweep:
                            FORM_OF_UNDO, those of steps: of one sandbox these alone */
    struct span which;   /* load, remove, look: its id or name; list, idle: the id behind which it goes on; sweep: a
                            sandbox; save: one that goes before, so that there is room; may be empty */
    struct span sandbox; /* save: whose files */
    struct span reach;   /* save: what it may reach */
    uint64_t generation, disk; /* save: of that sandbox; disk: bytes; sweep of steps: up to this generation */
};
void order_put(struct dynbuf *b, const struct order *o);
/* -1: it is none. */
int order_get(struct span payload, struct order *o) MUSTCHECK;

#endif
