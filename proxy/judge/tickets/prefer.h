/* Prefer (RFC 7240): does the client want no connection to wait for what takes long? Pure. */
#ifndef PROXY_JUDGE_PREFER_H
#define PROXY_JUDGE_PREFER_H

#include "proxy/wire.h"

/* Is respond-async among what it prefers? *wait_ms: for how long it waits before (wait=SECONDS); 0: not at all. What
 * is not in the form of that field says nothing; of two with one name the first counts. */
bool prefer_async(const struct wire_request *r, uint64_t *wait_ms);
/* Does it say nothing but that? */
bool prefer_is_ours(const struct http_field *f);

#endif
