/* The carrier, start here: what one process holds, and the three rows of the walk it runs
 * (proxy/walk.h): AWAIT_CREDENTIAL, FORWARD, SCRUB. exchange.h is one request; the rest are its tools. */
#ifndef CARRIER_CARRIER_H
#define CARRIER_CARRIER_H

#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/carrier/credential/cred.h"
#include "proxy/carrier/upstream/names.h"
#include "proxy/carrier/upstream/pool.h"
#include "proxy/carrier/upstream/upstream.h"
#include "proxy/msgs.h"
#include "proxy/timeshare.h"

enum { EXCHANGES_MAX = 4096, EXCHANGES_A_FRONT = 512, EXCHANGE_BUCKETS = 1024, FRONTS_MAX = 4096 };
/* Answers that a front may have looked into at once where that takes megabytes each (coding_is_large). */
enum { LARGE_A_FRONT_MAX = 8 };

/* Milliseconds. From the configuration, or these defaults (carrier_settings_default). */
struct settings {
    uint64_t connect_ms;    /* "connect_ms" 10 s: connect and TLS, for each address tried */
    uint64_t first_byte_ms; /* "first_byte_ms" 300 s: from the request's last byte to the answer's first */
    uint64_t idle_ms;       /* "idle_ms" 300 s: between bytes either way */
    uint64_t release_ms;    /* "release_ms" 30 s: for the keeper's credential; unclaimed ones live as long */
    uint64_t pool_idle_ms;  /* "pool_idle_ms" 30 s: a connection nobody uses */
};

/* A sandbox's front: where answers go. It may be named by an exchange before its channel is handed over. */
struct front {
    struct carrier *carrier;
    struct front *next;
    uint64_t instance;
    struct chan *chan; /* NULL: not there yet, or gone */
    size_t nexchanges, nlarge;
    struct timeshare time; /* share.h */
    bool held_back;        /* no more of its answers are read for now */
};

struct carrier {
    struct loop *loop;
    uint64_t (*clock)(void); /* share_clock; a test turns its own */
    struct settings settings;
    struct chan *judge, *keeper;
    struct front *fronts;
    size_t nfronts;
    struct exchange *bucket[EXCHANGE_BUCKETS];
    size_t nexchanges;
    struct creds creds;
    struct dynbuf signed_chunks; /* M_SIGNED: for the M_CREDENTIAL of this exchange, which comes next */
    uint64_t signed_xid;
    struct origins origins;
    struct upstreams upstreams;
    struct pool pool;
    struct names names;
    struct timer *sweep, *share;
};

/* NULL: no memory. roots: PEM of the system's trust, may be empty (then only hosts with a CA of their own work).
 * crl: PEM of revocation lists for those roots; empty: none are checked. */
struct carrier *carrier_new(struct loop *l, struct span roots, struct span crl) MUSTCHECK;
void carrier_free(struct carrier **c);
void carrier_settings_default(struct settings *s);
/* One pair of the configuration; keys it does not know are another role's. -1: a bad value. */
int carrier_config(struct carrier *c, struct span key, struct span value) MUSTCHECK;
/* A channel to a peer; replaces the one before. Takes fd over. */
void carrier_peer(struct carrier *c, unsigned peer, uint64_t instance, int fd);
/* The front of an exchange id, made known if need be; NULL: too many, or no memory. */
struct front *carrier_front(struct carrier *c, uint64_t xid) MUSTCHECK;

#endif
