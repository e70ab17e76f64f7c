/* What a held request has in common with others that one grant may cover: its shape. Its operation and resource,
 * host, path (with those steps open that its pack leaves open), header fields, and the names, not the values, of its
 * query and body; where the rule has a condition on a name, that value too. Of most requests there is none, and they
 * are held for a person one by one: what is not JSON or a form through and through, has a name twice, hides
 * characters, is longer than a page shows, or says in a value what it does. Pure. */
#ifndef PROXY_JUDGE_SHAPE_H
#define PROXY_JUDGE_SHAPE_H

#include "policy/policy.h"
#include "proxy/judge/tickets/digest.h"
#include "proxy/wire_ticket.h"

enum {
    SHAPE_BODY_MAX = 64 * 1024, /* what the page of a ticket shows at once */
    SHAPE_NAMES_MAX = 64,
    SHAPE_NAME_MAX = 64,
    SHAPE_DEPTH_MAX = 8,
    SHAPE_FIXED_MAX = 512,     /* bytes of a value that is part of it */
    SHAPE_JSON_MAX = 8 * 1024, /* of what says it in words */
};

/* out: in the arena; all zero when it has none, or the policy lets no grant cover it. in: as for the digest. */
void shape_of(const struct policy *p, const struct decision *d, const struct digest_input *in, struct arena *a,
              struct wire_shape *out);

#endif
