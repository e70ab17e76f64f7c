/* Egress that is counted: requests that the policy lets through or holds, and bytes both ways of what was sent. */
#ifndef PROXY_EGRESS_EGRESS_H
#define PROXY_EGRESS_EGRESS_H

#include "common/msg.h"

enum egress_measure { EGRESS_REQUESTS = 0, EGRESS_BYTES, EGRESS_MEASURES };
/* Whose count it is: one sandbox's, from its start to its end; all of a tenant's, for a while. */
enum egress_whose { EGRESS_SANDBOX = 0, EGRESS_TENANT, EGRESS_WHOSE };

enum {
    EGRESS_NAME_MAX = 256,
    EGRESS_TENANTS_MAX = 64, /* that have limits */
    EGRESS_TENANTS_BYTES = 8192,
};

/* What one of them has used. epoch: since when; of a sandbox the generation it began with, of a tenant Unix ms.
 * Another epoch begins at nothing. */
struct wire_egress {
    uint8_t whose; /* enum egress_whose */
    struct span name;
    uint64_t epoch;
    uint64_t used[EGRESS_MEASURES];
};
void wire_put_egress(struct dynbuf *b, const struct wire_egress *e);
/* -1: not what it may be. The span is borrowed. */
int wire_get_egress(struct msg_in *m, struct wire_egress *e) MUSTCHECK;

/* The limits of tenants as settings have them, a line each: "TENANT REQUESTS BYTES MS\n"; 0: no limit. 1: one was
 * read and *rest is what follows it; 0: there is no other; -1: it is none. */
struct egress_tenant {
    struct span name;
    uint64_t most[EGRESS_MEASURES], per_ms;
};
int egress_tenant_next(struct span *rest, struct egress_tenant *t) MUSTCHECK;

#endif
