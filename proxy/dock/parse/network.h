/* What the body of a create says of the sandbox's network. What is said in a form that is not known here is refused,
 * and never taken for nothing said: it may be a narrowing. Pure. */
#ifndef PROXY_DOCK_PARSE_NETWORK_H
#define PROXY_DOCK_PARSE_NETWORK_H

#include "common/json/json.h"

struct network {
    const struct json *allow, *deny; /* lists of texts, borrowed from the body; NULL: nothing is said */
    bool alone;                      /* without a network at all; then both are NULL */
};

/* body: the object of a create. null is nothing said, and so is a list or `rules` with nothing in it. 0, or the
 * status of a refusal, 400 or 501, in these words (static). */
unsigned network_read(const struct json *body, struct network *n, const char **words) MUSTCHECK;

#endif
