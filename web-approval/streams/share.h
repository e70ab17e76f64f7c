/* What is followed of sandboxes, and what is done with their files, at once: so much of it, and no sandbox all of it.
 * What runs in a sandbox decides how long a place is held, so that one of them alone could keep all others' from
 * being asked anything. */
#ifndef WEB_APPROVAL_STREAMS_SHARE_H
#define WEB_APPROVAL_STREAMS_SHARE_H

#include "web-approval/desk.h"

/* A place that is held; zeros: none. */
struct share {
    struct share *next; /* of the desk's */
    struct desk *desk;
    enum share_of of;
    char box[64]; /* whose */
};

/* Is there a place for one more of this sandbox's? False: answered, and nothing has begun. */
bool share_is_free(struct exchange *x, enum share_of of) MUSTCHECK;
/* For x, which was asked about; once, and as soon as it has begun. */
void share_take(struct share *s, const struct exchange *x, enum share_of of);
/* One that holds none is fine. */
void share_free(struct share *s);

#endif
