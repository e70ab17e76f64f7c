/* One byte range of an answer that has to be searched (RFC 9110 section 14): what is asked for in its place, and
 * which bytes of what comes are handed on. Pure.
 *
 *   asked           [ a ......... b ]          what the client wrote, and gets
 *   wide    [ a - more ........... b + more ]  what the upstream is asked for, and all of it is searched
 *
 * A form of a secret is at most `more` bytes long, so one that touches what is handed on was seen whole, wherever the
 * range was laid (D7, D46). */
#ifndef CARRIER_RANGE_H
#define CARRIER_RANGE_H

#include "proxy/range.h"

enum { RANGE_TEXT = 96 };

struct range range_wider(const struct range *asked, uint64_t more);
/* As the value of a Range field. */
void range_text(const struct range *r, char out[RANGE_TEXT]);

/* Of the bytes that came: pass over so many, hand on so many, forget the rest. */
struct range_part {
    uint64_t came, skip, give;
    char text[RANGE_TEXT]; /* Content-Range of what is handed on */
};
enum range_fit {
    RANGE_WRONG = 0, /* not what was asked for, or not to be told */
    RANGE_PART,
    RANGE_PAST /* the representation ends before what was asked: nothing is handed on, text has its length */
};
/* content_range: of a 206 that answers wide. */
enum range_fit range_fit(const struct range *asked, const struct range *wide, struct span content_range,
                         struct range_part *p) MUSTCHECK;

#endif
