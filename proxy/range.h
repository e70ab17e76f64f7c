/* The range of bytes that a request asks for (RFC 9110 section 14): by one parser for the judge, which refuses in
 * time what cannot be had, and the carrier, which sends none of it. Pure. */
#ifndef PROXY_RANGE_H
#define PROXY_RANGE_H

#include "proxy/wire.h"

/* bytes=FROM-TO, bytes=FROM- (to: UINT64_MAX), or the last `from` bytes. */
struct range {
    bool suffix;
    uint64_t from, to;
};

enum range_asked {
    RANGE_BAD = 0, /* several, of another unit, malformed, or with a condition that names no one version */
    RANGE_NONE,    /* also of another method than GET: there it is none of the answer's bytes */
    RANGE_ONE
};
/* asked: filled for RANGE_ONE, its numbers at most INT64_MAX. */
enum range_asked range_of(const struct wire_request *r, struct range *asked) MUSTCHECK;
/* As the request wrote it, of several fields the first; empty: RANGE_NONE. */
struct span range_written(const struct wire_request *r);

#endif
