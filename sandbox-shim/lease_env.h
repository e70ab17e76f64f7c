/* conf/lease-env.tsv: what a provider's tools read their credential from. */
#ifndef SANDBOX_SHIM_LEASE_ENV_H
#define SANDBOX_SHIM_LEASE_ENV_H

#include "common/json/json.h"
#include "sandbox-shim/env.h"

struct lease_env {
    struct span set;               /* the name of its rows; empty: the form of the credential's leases */
    const struct json *credential; /* of /api/v1/credentials */
    struct span lease, secret;     /* secret may be empty; rows that ask for one are then left out */
    unsigned git;                  /* settings of Git's that are among the variables so far; counted on */
    env_fn *variable;              /* each variable, with a NUL-terminated value */
    env_fn *npm;                   /* each setting of npm's, which no shell takes as a variable */
    void *ctx;
};
/* -1: there is no such set, or no table; or what a function gave that had no room. With words. */
int lease_env_each(struct lease_env *l, struct err *e) MUSTCHECK;
/* That of /api/v1/credentials of which this member says so; NULL: it has none. */
const struct json *lease_env_credential(const struct json *answer, struct span key, struct span value);

#endif
