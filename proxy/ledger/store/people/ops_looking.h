/* The operation of ops.h, which includes this, on who is looking at a ticket. */
#ifndef PROXY_LEDGER_STORE_OPS_LOOKING_H
#define PROXY_LEDGER_STORE_OPS_LOOKING_H

/* Somebody says that they are looking at an open ticket, or not any more (people/schema_17.sql). */
enum looked {
    LOOKED_STORE = 0,
    LOOKED_DONE,
    LOOKED_NOT_PENDING,
    LOOKED_NO_TICKET,
    LOOKED_OTHER, /* somebody else is, and it was not said that they know */
    LOOKED_NOBODY /* there is nothing to take back */
};
enum { STORE_LOOKING_MS = 10 * 60 * 1000, STORE_LOOKING_AGAIN_MS = 30 * 1000 };
struct store_look {
    bool on, over; /* over: also from somebody else */
    struct span by, channel;
};
/* *who: whose it was before, or, of LOOKED_OTHER, is; until the next operation. Else empty. */
int store_look(struct store *s, const struct id *ticket, const struct store_look *l, enum looked *result,
               struct span *who) MUSTCHECK;

#endif
