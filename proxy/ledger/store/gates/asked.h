/* What the ledger does with gates. */
#ifndef PROXY_LEDGER_STORE_GATES_ASKED_H
#define PROXY_LEDGER_STORE_GATES_ASKED_H

#include "proxy/ledger/store/store.h"

/* The next one to be asked, which it is from then on: 1, 0 there is none, -1. First those of sandboxes of which none
 * is being asked, of these the oldest; of one of which `each` are being asked none. The spans live until the next
 * operation; what it is asked with is added to input and body. */
struct store_gate {
    unsigned each;
    struct span ticket, name;
    struct digest of;     /* what the policy that it was held by means by the name */
    struct dynbuf *input; /* JSON, without its end: M_GATE */
    struct dynbuf *body;  /* in base64; empty: there is none, or it is too large */
    bool complete;        /* that is all of it */
};
int store_gate_next(struct store *s, struct store_gate *g) MUSTCHECK;
int store_gate_answered(struct store *s, const struct id *ticket, struct span name, enum gate_said said,
                        struct span words) MUSTCHECK;
/* It could not be asked: it is due again, a little later each time, and has failed when that was too often. */
int store_gate_later(struct store *s, const struct id *ticket, struct span name, struct span why) MUSTCHECK;
/* Number i of those that are being asked, the first one first: 1, 0 there is none, -1. The spans live until the next
 * operation. */
int store_gate_asked(struct store *s, unsigned i, struct span *ticket, struct span *name) MUSTCHECK;

#endif
