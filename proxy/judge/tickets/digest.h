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
/* What of a request all that a grant covers have alike (shape.h), in place of its path, query and body. The body is
 * not looked at, and neither are fields that the join key leaves out. */
struct shape_input {
    struct span path, query, body, resource, effect;
};
void request_shape(const struct digest_input *in, const struct shape_input *s, struct digest *out);

#endif
