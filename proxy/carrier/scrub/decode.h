/* Looking into an answer that was encoded although identity was asked for. Pure.
 *
 * Feed what came; what may go on comes out, byte for byte as it came. Searched are both the bytes as they came (a
 * header has room for names and comments) and what they decode to. What lies before a cut of the encoding (coder.h)
 * goes on when it and all before it may, by plan/plan.h, so nothing of a secret leaves, and no cut depends on one.
 * One coding; what coder.h cannot decode is refused. */
#ifndef CARRIER_DECODE_H
#define CARRIER_DECODE_H

#include "proxy/carrier/scrub/coder.h"
#include "proxy/carrier/scrub/scrub.h"

enum {
    DECODE_HELD_MAX = 1024 * 1024,       /* encoded bytes that wait for a cut */
    DECODE_OUT_MAX = 512 * 1024 * 1024,  /* decoded, in all */
    DECODE_RATIO = 100,                  /* decoded bytes for one encoded byte ... */
    DECODE_RATIO_FROM = 4 * 1024 * 1024, /* ... counted from here on: small answers may compress better */
};

enum decode_result {
    DECODE_REFUSED = 0, /* d->why says it: a secret, not what it says it is, or over a limit */
    DECODE_OK
};

struct decode;
/* NULL: not a coding that can be decoded, or no memory. */
struct decode *decode_new(enum coding c, struct scrub *set) MUSTCHECK;
/* Append to out what may go on. last: the body is complete. */
enum decode_result decode_feed(struct decode *d, struct span in, bool last, struct dynbuf *out) MUSTCHECK;
/* Does it keep megabytes? False for NULL. */
bool decode_is_large(const struct decode *d);
const char *decode_why(const struct decode *d);
void decode_free(struct decode **d);

#endif
