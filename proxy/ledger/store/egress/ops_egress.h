/* The operations on what is used of egress: a part of ops.h. */
#ifndef PROXY_LEDGER_STORE_EGRESS_OPS_EGRESS_H
#define PROXY_LEDGER_STORE_EGRESS_OPS_EGRESS_H

#include "proxy/ledger/store/store.h"

/* So much is used, or may be. Of a sandbox that is not there, or began anew since: nothing. */
int store_egress_put(struct store *s, const struct wire_egress *e) MUSTCHECK;
/* Each row; what e points to is the store's. */
int store_egress(struct store *s, void (*each)(void *arg, const struct wire_egress *e), void *arg) MUSTCHECK;
/* Inside a change: the sandbox is gone. */
int egress_forget(struct store *s, struct span sandbox) MUSTCHECK;

#endif
