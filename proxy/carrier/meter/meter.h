/* Bytes of an exchange whose sandbox may only have so many: the judge gives it some at a time, and when it says that
 * there are no more, it ends. Counted is nothing that depends on a secret's bytes: the request's head and body as
 * they are without the credential, the answer's body as its client is given it. What has a length leaves only when
 * there is enough for all of it. */
#ifndef CARRIER_METER_H
#define CARRIER_METER_H

#include "proxy/walk.h"
#include "common/span.h"

struct exchange;
struct meter {
    bool on, asked;
    bool events;     /* the answer is a stream of events, so that its client can be told why it ends */
    int64_t left;    /* below 0: by the last piece */
    uint64_t passed; /* in all, also of a request that was sent anew */
    char code[32];   /* why there is no more; empty: there may be */
};

void meter_begin(struct exchange *x);
/* How many of n bytes may pass now. */
size_t meter_room(const struct exchange *x, size_t n);
void meter_pass(struct exchange *x, uint64_t n);
/* n bytes have to be there before any of them leaves. As meter_wait. */
enum walk_next meter_need(struct exchange *x, uint64_t n) MUSTCHECK;
/* Something is to pass, and nothing may: it is asked for. NEXT: something may; FAIL: nothing will. */
enum walk_next meter_wait(struct exchange *x) MUSTCHECK;
/* Of an answer whose length is known, all of it is asked for before any of it goes on. As meter_wait. */
enum walk_next meter_whole(struct exchange *x) MUSTCHECK;
/* M_EGRESS_GIVE */
void meter_given(struct exchange *x, struct span payload);

#endif
