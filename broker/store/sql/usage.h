/* What models were asked, and what that took. */
#ifndef BROKER_STORE_SQL_USAGE_H
#define BROKER_STORE_SQL_USAGE_H

#include "broker/store/sql/sq.h"

/* One more question of its turn, in the transaction that adds to what the turn has used. Whoever does has the turn's
 * row locked, and of a conversation one turn runs: nobody waits for this row. */
enum bstore_result sq_meter(struct sq *l, const struct claim *c, const struct bstore_asked *asked,
                            uint64_t cost_micro) MUSTCHECK;

/* Is one of the tenant's budgets used up (BS_SPENT)? *out: what stands of them. */
enum bstore_result sq_in_budget(struct sq *l, struct span tenant, struct budgets_stand *out) MUSTCHECK;

enum bstore_result sq_ask(struct bstore *s, const struct claim *c, uint64_t n, struct span word,
                          const struct used *most);
enum bstore_result sq_budgets(struct bstore *s, struct span tenant, struct budgets_stand *out);
enum bstore_result sq_spent(struct bstore *s, const struct claim *c, const struct used *used,
                            const struct bstore_asked *asked);
enum bstore_result sq_usage(struct bstore *s, struct span tenant, const struct bstore_usage_ask *ask, struct arena *a,
                            struct bstore_usage *out);
enum bstore_result sq_tenant_after(struct bstore *s, struct span after, struct arena *a, struct span *out);

#endif
