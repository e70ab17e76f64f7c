/* Grants, as the desk reads them. */
#ifndef WEB_APPROVAL_STORE_GRANTS_H
#define WEB_APPROVAL_STORE_GRANTS_H

#include "web-approval/store/store.h"

struct grant_row {
    struct span id, ticket, sandbox, session, tenant;
    struct span state; /* as it is written down: one whose time is over may still be called live */
    struct span by, channel, reason, how, policy; /* policy: digest */
    struct span method, scheme, host, op, effect, rule_id, summary, credential, shape_json;
    uint64_t port, uses, uses_max, created_ms, expires_ms, ended_ms;
};
typedef int desk_store_grant_fn(void *ctx, const struct grant_row *g);
/* Those that live first, then the newest; prefix: of the id, empty: any. */
int desk_store_grants(struct desk_store *s, struct span prefix, size_t limit, struct arena *a,
                      desk_store_grant_fn *fn, void *ctx, struct err *e) MUSTCHECK;

/* What a grant with this ticket could cover. */
struct grant_offer {
    struct span shape_json; /* empty: nothing */
    struct span used;       /* the grant it was itself approved by; or empty */
    uint64_t uses, within_ms;
};
int desk_store_grant_offer(struct desk_store *s, struct span ticket, struct arena *a, struct grant_offer *o,
                           struct err *e) MUSTCHECK;

#endif
