/* The operations on started sandboxes that are idle: a part of ops.h. */
#ifndef PROXY_LEDGER_STORE_IDLE_OPS_IDLE_H
#define PROXY_LEDGER_STORE_IDLE_OPS_IDLE_H

#include "proxy/ledger/store/store.h"

struct store_idle {
    struct span name;
    uint64_t generation; /* that it was paused as */
    struct span checkpoint, box;
    uint64_t cpu_percent, left_ms;
    bool strict;
};
/* All: 0, with *why in words where it is not done, or NULL; -1: the store cannot be written to. */

/* Its files are in a checkpoint, and from when this is committed on it is idle: its leases and grants end, and what
 * opened it through the dock opens it no more. What still stands still of it is to be ended then. */
int store_sandbox_idle(struct store *s, const struct store_idle *i, const char **why) MUSTCHECK;
/* It is to be restored, as the next generation: b as for store_sandbox_put. Until store_sandbox_awake it is idle
 * again when it ends. */
int store_sandbox_wake(struct store *s, const struct wire_sandbox *b, const char **why) MUSTCHECK;
/* Of this generation it has its files: the checkpoint is of no use to it any more. Of one that is not there: nothing.
 */
int store_sandbox_awake(struct store *s, struct span name, uint64_t generation, const char **why) MUSTCHECK;
/* It was destroyed: it has ended, whatever it was. */
int store_sandbox_idle_over(struct store *s, struct span name, const char **why) MUSTCHECK;

/* Inside a change: 1 the sandbox has a row here, 0, -1. */
int idle_is(struct store *s, struct span name) MUSTCHECK;

#endif
