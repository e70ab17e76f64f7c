/* Approvals that cover more than one request (schema_8.sql). */
#ifndef PROXY_LEDGER_STORE_GRANTS_GRANTS_H
#define PROXY_LEDGER_STORE_GRANTS_GRANTS_H

#include "proxy/ledger/store/store_in.h"

enum { STORE_GRANTS_MAX = 64 /* live ones of one sandbox */ };
#define STORE_GRANTS_AGE_MAX (30ull * 24 * 3600 * 1000) /* how long one that ended is listed */

/* One that fits. Spans live until the next operation. */
struct grant {
    struct span id, by, reason;
    uint64_t uses;
};

/* A new ticket's shape, into its row. */
int grant_shape(struct store *s, struct span ticket, const struct wire_shape *shape) MUSTCHECK;
/* One that covers this pending ticket, the first to expire; policy: of now, NULL: not asked. 1, 0 there is none, -1.
 */
int grant_fits(struct store *s, struct span ticket, const struct digest *policy, struct grant *g) MUSTCHECK;
/* One use of it: r is approved by it. With the intent in one turn. */
int grant_use(struct store *s, const struct grant *g, struct row *r) MUSTCHECK;
/* r is about to be approved, and so many more of its shape are to be. 1 given, 0 it may not be, -1. */
int grant_give(struct store *s, const struct row *r, const struct store_grant *asked, struct span by,
               struct span channel, struct span reason) MUSTCHECK;
/* All of a sandbox end; all there are end. */
int grants_end_sandbox(struct store *s, struct span sandbox, const char *how) MUSTCHECK;
int grants_end_by(struct store *s, struct span who, const char *how) MUSTCHECK; /* those that they gave */
int grants_end_all(struct store *s, const char *how) MUSTCHECK;
/* Those whose time is over, and those that ended long ago. */
int grants_sweep(struct store *s) MUSTCHECK;

#endif
