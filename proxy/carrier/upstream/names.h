/* Where to dial: addresses from the policy or the resolver, each checked before it is used (C12-C14, C21).
 * Asks of the resolver are by id and answered once: with addresses, or with a code and words. */
#ifndef CARRIER_NAMES_H
#define CARRIER_NAMES_H

#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/carrier/upstream/upstream.h"

enum { NAMES_PENDING_MAX = 4096, NAMES_OWN_MAX = 256, NAMES_FRESH_MS = 1000, NAMES_WAIT_MS = 15000 };

struct name_ask; /* one pending question */
struct own {
    struct addr addr;
    uint16_t port;
    bool any; /* bound to every address of this machine */
};

/* u->addr holds what was found when code is empty. */
typedef void names_fn(void *arg, struct span code, struct span why);

struct names {
    struct loop *loop;
    struct chan *chan; /* to the resolver; NULL: none */
    struct name_ask *pending;
    size_t npending;
    uint64_t next_id;
    struct own own[NAMES_OWN_MAX]; /* our listeners */
    size_t nown;
    struct addr interface[NAMES_OWN_MAX];
    size_t ninterfaces;
};

void names_init(struct names *n, struct loop *l);
void names_clear(struct names *n);
/* "own": our own listeners as address:port, separated by spaces; never a destination. -1: not that.
 */
int names_own(struct names *n, struct span list) MUSTCHECK;
/* Add the addresses of this machine's interfaces (before confinement). */
int names_own_interfaces(struct names *n) MUSTCHECK;
/* The resolver's channel; NULL: it is gone, and what it was asked fails. */
void names_peer(struct names *n, struct chan *c);

/* Is this address in a network that the policy allows for the upstream? */
bool names_allowed(const struct upstream *u, const struct addr *a);

enum names_result { NAMES_REFUSED = 0, NAMES_HERE, NAMES_ASKED };
/* NAMES_HERE: u->addr is good now. NAMES_ASKED: fn follows, never from within. fresh: nothing remembered will do.
 * NAMES_REFUSED: code and why are set. */
enum names_result names_ask(struct names *n, struct upstream *u, bool fresh, names_fn *fn, void *arg,
                            struct span *code, struct span *why) MUSTCHECK;
/* The asker is gone; fn will not be called. */
void names_forget(struct names *n, void *arg);
/* A frame of the resolver. -1: it broke the contract. */
int names_frame(struct names *n, struct frame *f) MUSTCHECK;
/* Questions the resolver has not answered in time fail. */
void names_expire(struct names *n);

#endif
