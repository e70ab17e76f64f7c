/* What an approval covers, and what makes a retry the same request. */
#ifndef PROXY_JUDGE_DIGEST_H
#define PROXY_JUDGE_DIGEST_H

#include "common/id.h"
#include "proxy/wire.h"

struct digest_input {
    struct span session, credential; /* credential: its name, empty for none */
    const struct wire_request *request;
    struct span body;
    bool has_join_body;
    struct span join_body; /* what of the body a retry repeats exactly */
    struct span rule, op; /* join key only: an approval asked for by another rule, or as another op, is another one */
    struct span approve_by; /* join key only, of what is past a limit: other rules may hold it the next time */
};

/* SHA-256 over every field with its length before it. Header fields are taken by name in sorted order, so that their
 * order and the case of their names do not matter; which ones count is one table in digest.c. */
void request_digest(const struct digest_input *in, struct digest *out);
void request_join_key(const struct digest_input *in, struct digest *out);

#endif
