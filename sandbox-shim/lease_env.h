/* conf/lease-env.tsv: which variables a provider's tools read their credential from. */
#ifndef SANDBOX_SHIM_LEASE_ENV_H
#define SANDBOX_SHIM_LEASE_ENV_H

#include "sandbox-shim/env.h"

/* Called for each variable of the set with a NUL-terminated value: lease and secret stand where the table says.
 * secret may be empty; a row that asks for one is then left out. -1: there is no such set, no table, or what fn gave.
 */
int lease_env_each(struct span set, struct span lease, struct span secret, env_fn *fn, void *ctx,
                   struct err *e) MUSTCHECK;

#endif
