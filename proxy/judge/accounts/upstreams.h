/* The places that requests go to, and the numbers by which the carrier knows them. The table is of fixed size: past
 * its own share a sandbox loses the place it used longest ago, and when the table is full so does the sandbox that
 * has most of it. A place that was lost is told to the carrier anew, under another number. */
#ifndef PROXY_JUDGE_UPSTREAMS_H
#define PROXY_JUDGE_UPSTREAMS_H

#include "proxy/judge/state.h"
#include "proxy/reach/reach.h"

enum { UPSTREAM_LIVE = 4, RELEASE_LIVE_MS = 1000 };

struct account;
struct image;

struct upstream_ref {
    unsigned refs;                      /* the table's and each exchange's */
    struct upstream_ref *next;          /* in its bucket */
    struct upstream_ref *newer, *older; /* by last use */
    struct account *owner;              /* of the sandbox that was the first to go there */
    uint64_t policy;                    /* serial of the image it follows from */
    struct span scheme, host;
    uint16_t port;
    uint32_t number;
    uint32_t told; /* the carrier's boot in which it was told; 0: not yet */
    bool cleartext, bound;
    struct digest place; /* what the policy binds to it */
    struct {
        uint32_t boot;
        int credential; /* -1: scrub patterns only */
        uint64_t at;
    } live[UPSTREAM_LIVE];
    uint8_t host_bytes[];
};

struct upstreams *upstreams_new(void) MUSTCHECK;
void upstreams_free(struct upstreams **t);
/* There is another policy: no place of an earlier one is asked for again, but by what is under way. */
void upstreams_forget(struct upstreams *t);
/* The place a request goes to by this policy, told to the carrier if it does not know it yet. A new reference, or
 * NULL: no carrier, or no memory. */
struct upstream_ref *upstream_of(struct judge *j, struct image *i, struct account *a,
                                 const struct wire_request *r) MUSTCHECK;
/* May this sandbox's request go there, as far as that can be said before it is dialled? */
enum reach_said upstream_reach(struct image *i, struct span reach, const struct wire_request *r) MUSTCHECK;
void upstream_ref_drop(struct upstream_ref *u); /* NULL is fine */
/* Was this credential (-1: the scrub patterns) released for an allow less than a second ago? */
bool upstream_is_live(const struct judge *j, const struct upstream_ref *u, int credential);
void upstream_set_live(const struct judge *j, struct upstream_ref *u, int credential, bool live);

#endif
