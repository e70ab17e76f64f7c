/* A lease on its way between the desk, the ledger and the judge: as pairs, put and get in the same order, as in
 * proxy/wire.h. What it looks like: common/lease/lease.h.
 *
 * A lease is a row of layers, and of all of them a request must be inside: narrowing one adds a layer, and what came
 * from another lease must be inside that one as well. So nothing that is said later can widen it. */
#ifndef COMMON_LEASE_WIRE_LEASE_H
#define COMMON_LEASE_WIRE_LEASE_H

#include "common/lease/lease.h"
#include "common/msg.h"

enum {
    LEASE_LIST_MAX = 16,      /* entries of one list of bounds */
    LEASE_LAYERS_MAX = 4,     /* of one lease */
    LEASE_DEPTH_MAX = 4,      /* a lease, and what came from it, and from that */
    LEASES_MAX = 16384,       /* live, and dead ones that are still known as such */
    LEASES_EACH = 256,        /* live ones of one sandbox */
    LEASES_STUBS = 12288,     /* from so many in all on stubs get no new ones: the rest is for people */
    LEASES_ANSWERS = 8192,    /* from so many in all on answers get none: the rest is for stubs, too */
    LEASES_TAKEN_EACH = 1024, /* of tokens in answers, live or not yet forgotten, of one sandbox */
    LEASE_BOUND_BYTES = 512,
    LEASE_LAYERS_BYTES = 64 * 1024,               /* of one lease, as wire_put_layers writes them */
    LEASE_WIRE_BYTES = LEASE_LAYERS_BYTES + 4096, /* of all that wire_put_lease writes */
    LEASES_LAYERS_BYTES = 8 * 1024 * 1024,        /* of all leases: a judge that comes is told of each at once */
};
#define LEASE_MS      (3600ull * 1000) /* how long one lives, if nothing else is said */
#define LEASE_MAX_MS  (7ull * 24 * 3600 * 1000)
#define LEASE_DEAD_MS (24ull * 3600 * 1000) /* a dead one is told from chance so long */
/* Of those that stubs answer with: a sandbox gets the same one until a fifth of its time is left. */
#define LEASE_STUB_MS   (6ull * 3600 * 1000)
#define LEASE_STUB_BY   SPAN("a stub")      /* who issued it; no name of an operator has a space */
#define LEASE_RATE_MS   (60ull * 1000)      /* what `rate` counts in */
#define LEASE_BY_ANSWER "an answer"         /* who issued one that took a token's place in an answer, */
#define LEASE_BRIEF_MS  (10ull * 60 * 1000) /* and how long that one is told from chance, for there are many */

enum lease_state { LEASE_DEAD = 0, LEASE_LIVE, LEASE_EXPIRED, LEASE_REVOKED, LEASE_LEAKED };

struct wire_list {
    size_t n; /* 0: any */
    struct span v[LEASE_LIST_MAX];
};

struct wire_layer {
    struct wire_list hosts;   /* "api.github.com", "my.server:8443"; a host without a port is every port */
    struct wire_list methods; /* GET */
    struct wire_list paths;   /* / and segments, with the wildcards of a policy's path: */
    struct wire_list ops;     /* github.push, or github.* */
    uint32_t effects;         /* 1 << enum effect, or'ed; 0: any */
    uint64_t uses, rate;      /* so many in all, and in a minute; 0: not counted */
};

struct wire_lease {
    struct id id, parent; /* parent all zero: it came from none */
    struct span sandbox, session, credential, by;
    uint64_t generation;   /* of the sandbox */
    struct digest meaning; /* of the credential (proxy/identity.h) */
    struct digest text;    /* SHA-256 of the lease's text */
    struct span tag;       /* LEASE_TAG characters */
    enum lease_format format;
    enum lease_state state;
    uint64_t created_ms, expires_ms;
    uint64_t ended_ms; /* 0: it lives */
    struct span how;   /* why it ended, in words */
    size_t nlayers;
    struct wire_layer layer[LEASE_LAYERS_MAX];
};
void wire_put_lease(struct dynbuf *b, const struct wire_lease *l);
int wire_get_lease(struct msg_in *m, struct wire_lease *l) MUSTCHECK;
/* The layers alone: u8 n, n x layer. Also how the store keeps them. */
void wire_put_layers(struct dynbuf *b, const struct wire_layer *v, size_t n);
int wire_get_layers(struct msg_in *m, struct wire_layer *v, size_t *n) MUSTCHECK;
/* "live", "expired", "revoked", "leaked"; "dead" for what is none. */
const char *lease_state_name(enum lease_state s);

#endif
