/* What is followed of sandboxes, and what is done with their files, at once: so much of it, and no sandbox all of it.
 * What runs in a sandbox decides how long a place is held, so that one of them alone could keep all others' from
 * being asked anything. */
#ifndef WEB_APPROVAL_STREAMS_SHARE_H
#define WEB_APPROVAL_STREAMS_SHARE_H

#include "web-approval/desk.h"

/* What is done with files keeps its place while something of it moves, and so long after that: a client that reads
 * nothing, or a file that gives nothing, keeps nobody else's for hours. */
enum { SHARE_STILL_MS = 60 * 1000 };

/* A place that is held; zeros: none. */
struct share {
    struct share *next; /* of the desk's */
    struct desk *desk;
    enum share_of of;
    char box[64];                   /* whose */
    char tenant[CALLER_TENANT + 1]; /* of the dock's callers */
    struct {
        uint64_t bytes, ms;
        size_t queued;
    } moved; /* what was found last, and when it was another than before */
};

/* Is there a place for one more of this sandbox's? False: answered, and nothing has begun. */
bool share_is_free(struct exchange *x, enum share_of of) MUSTCHECK;
/* For x, which was asked about; once, and as soon as it has begun. */
void share_take(struct share *s, const struct exchange *x, enum share_of of);
/* Of files: bytes that have come and gone for it, and those that wait for its client. Is it as it was SHARE_STILL_MS
 * ago? Asked from time to time. */
bool share_stands_still(struct share *s, uint64_t bytes, size_t queued, uint64_t now_ms);
/* One that holds none is fine. */
void share_free(struct share *s);

#endif
