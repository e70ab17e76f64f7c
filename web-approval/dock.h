/* The dock, as the desk sees it: each of its requests comes on a stream of its own that was opened with a token, and
 * the desk itself looks up whose that is. So the dock can ask for nothing that no token of its callers allows. */
#ifndef WEB_APPROVAL_DOCK_H
#define WEB_APPROVAL_DOCK_H

#include "web-approval/desk.h"

enum {
    DOCK_TENANT_BOXES = 64, /* sandboxes that run, of one tenant */
    DOCK_STORES = 12,       /* what is done with checkpoints at once: fewer than the parent starts (STORES_MAX) */
    DOCK_TENANT_STORES = 3, /* of one tenant */
};

/* The channel to it, or to one of the broker's processes, which speaks as the dock does (broker/broker.h). */
void dock_peer(struct desk *d, bool broker, uint64_t instance, int fd);
/* End the streams of a key that is good for nothing any more. Set by server.c; tests set their own. */
extern void (*dock_drop)(struct server *s, struct span key);
/* May the caller do this? keys: only with a key, not with what opens one sandbox. False: answered; of what is another
 * tenant's no more is said than of what is not there. */
bool dock_admits(struct exchange *x, bool keys);
/* Is a sandbox one of x's caller's, that runs or is idle? *o, if not NULL: what its start left (JSON), in the arena,
 * and how often it was restored after it was idle. 1, 0, -1: the store cannot be read now, answered. */
struct dock_own {
    struct span note;
    uint64_t restored;
};
int dock_owns(struct exchange *x, struct span sandbox, struct dock_own *o) MUSTCHECK;

/* What the dock was told of a sandbox when it was started (JSON), in x's arena; empty: it is not the dock's. -1: the
 * store cannot be read now. */
int dock_note(struct exchange *x, struct span sandbox, struct span *note, struct err *e) MUSTCHECK;

/* The lane of what a tenant's keys start, or the broker for it; empty: none, it has no network. */
struct span dock_lane(const struct desk *d, const struct caller *c);

#endif
