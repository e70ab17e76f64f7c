/* What programs share that are asked about requests by the line, each line a JSON array. */
#ifndef TESTS_POLICY_LINES_LINES_H
#define TESTS_POLICY_LINES_LINES_H

#include "common/json/json.h"
#include "policy/load/disk.h"
#include "policy/test/asked.h"

/* The policy of these files as an image, appended to one born with POLICY_IMAGE_MAX, and opened; packs are those of
 * $PACKS. NULL after words on stderr. */
struct policy *lines_policy(struct policy_place from, struct dynbuf *image) MUSTCHECK;
/* "Name: value\n...", each given to `add`. */
bool lines_each(struct asked *q, struct span fields, int (*add)(struct asked *, struct span, struct span)) MUSTCHECK;
/* v: method, url, fields, body or null, in this order from v on. -1: it is no question; else 0, and *refused: the
 * gateway would answer 400 before any policy is asked. */
int lines_request(struct asked *q, const struct json *v, bool *refused) MUSTCHECK;

#endif
