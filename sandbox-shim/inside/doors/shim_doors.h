/* The ports of a sandbox, and the connections that came in there. libc only. */
#ifndef SANDBOX_SHIM_INSIDE_DOORS_H
#define SANDBOX_SHIM_INSIDE_DOORS_H

#include <netinet/in.h>
#include <poll.h>

#include "sandbox-shim/inside/doors/shim_steps.h"
#include "sandbox-shim/inside/shim_relay.h"

enum {
    CONNS_MAX = 256, /* past it, new connections wait in the kernel's backlog */
    DOORS_MAX = 7,
    DOORS_POLL = DOORS_MAX + 2 * CONNS_MAX
};

/* Where connections and questions come in. */
enum door_kind { DOOR_HTTP, DOOR_CAPTURED, DOOR_NAMES, DOOR_DATAGRAMS };
struct door {
    enum door_kind kind;
    int fd;
};

struct doors {
    const char *socket;  /* of the gateway: where connections are carried to */
    struct steps *steps; /* each of them is of one; NULL: of none, and nobody asks */
    struct door door[DOORS_MAX];
    size_t ndoors, most, nconns; /* most: connections at once, at most CONNS_MAX */
    int64_t accept_after;        /* 0: now */
    struct shim_conn *conn[CONNS_MAX];
};

/* Listen for who speaks to a proxy; for what rules of the network lead here. Exits when that cannot be. */
void doors_open(struct doors *d, const struct sockaddr_in *at);
void doors_capture(struct doors *d);
/* What is waited for, doors_polled of them, and for how many ms at most (-1: for ever). */
int doors_prepare(struct doors *d, struct pollfd p[DOORS_POLL]);
nfds_t doors_polled(const struct doors *d);
/* Do what can be done now. p: as prepared, and polled. */
void doors_step(struct doors *d, const struct pollfd p[DOORS_POLL]);

#endif
