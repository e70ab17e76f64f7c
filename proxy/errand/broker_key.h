/* What the ledger keeps of a key for the broker: a hash in which the broker is named, so that no row of its keys is
 * ever found by what somebody brings to the sandbox API, nor the other way round, though all of them are of one kind.
 */
#ifndef PROXY_ERRAND_BROKER_KEY_H
#define PROXY_ERRAND_BROKER_KEY_H

#include "common/id.h"

static inline void broker_key_digest(struct span key, struct digest *out)
{
    struct digest_ctx *d = digest_begin();

    digest_add_field(d, SPAN("a key for the broker"));
    digest_add_field(d, key);
    digest_end(d, out);
}

#endif
