/* Started sandboxes that are idle, as the desk reads them (proxy/ledger/store/idle/schema_20.sql). */
#ifndef WEB_APPROVAL_STORE_IDLE_H
#define WEB_APPROVAL_STORE_IDLE_H

#include "web-approval/store/store.h"

struct idle_row {
    struct span name, tenant, checkpoint, box; /* box: wire_box */
    uint64_t cpu_percent, left_ms, since_ms;
    bool strict;
    struct span kind, session, owner, reach; /* of its row of sandbox; kind: idle, or started while it is restored */
    uint64_t generation;
};
/* 1, 0: it is not idle, -1. */
int desk_store_idle(struct desk_store *s, struct span name, struct arena *a, struct idle_row *r,
                    struct err *e) MUSTCHECK;
/* Of a tenant (empty: of all), by their names, without their reach, which is long; fn returning not 0 ends the walk.
 */
typedef int desk_store_idle_fn(void *ctx, const struct idle_row *r);
int desk_store_idles(struct desk_store *s, struct span tenant, struct arena *a, desk_store_idle_fn *fn, void *ctx,
                     struct err *e) MUSTCHECK;
/* How many a tenant has (empty: all), and at most how many bytes of a list they are (api_listed.c). */
struct idle_sum {
    uint64_t n, bytes;
};
int desk_store_idle_sum(struct desk_store *s, struct span tenant, struct arena *a, struct idle_sum *sum,
                        struct err *e) MUSTCHECK;

#endif
