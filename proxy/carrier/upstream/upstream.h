/* The upstreams the judge named (M_UPSTREAM): where a decided request may go and whom to trust there.
 * TLS settings are shared by all upstreams that trust the same. */
#ifndef CARRIER_UPSTREAM_H
#define CARRIER_UPSTREAM_H

#include "common/arena.h"
#include "common/net/addr.h"
#include "common/net/tls.h"
#include "proxy/wire.h"

enum { UPSTREAM_ADDRS = 8 };

struct roots; /* one set of trusted roots, counted */

struct upstream {
    unsigned refs;
    struct arena a;
    uint32_t number;
    struct span scheme, host;
    uint16_t port;
    bool tls, cleartext_credentials, has_secrets;
    bool literal; /* addr[0] is the policy's, or the host is itself an address: nothing to resolve */
    size_t ncidrs;
    struct cidr cidr[16];
    struct span cidr_text[16];
    struct digest bound;    /* what the policy may send there: which credential a name means */
    struct tls_trust trust; /* roots empty: the system's, with its lists */
    struct roots *roots;    /* at first use */
    /* What the resolver said last, already filtered. */
    struct addr addr[UPSTREAM_ADDRS];
    size_t naddr;
    uint64_t resolved; /* loop_now; 0: never */
};

struct upstreams {
    struct upstream *slot[WIRE_UPSTREAMS_MAX]; /* by number, modulo that */
    struct roots *roots, *warm;
    unsigned changes;                 /* of the operator's roots and lists */
    struct dynbuf system, system_crl; /* PEM */
};

void upstreams_init(struct upstreams *s, struct span system_roots, struct span system_crl);
/* Make the TLS settings of the system's roots now: what OpenSSL loads at first use cannot be loaded once confined. */
int upstreams_warm(struct upstreams *s, struct err *e) MUSTCHECK;
/* Other roots and lists of the operator's, from the next connection on; no roots: only upstreams with a CA of their
 * own are trusted. -1: they cannot be used, and the old ones are not to be used any more. */
int upstreams_system(struct upstreams *s, struct span roots, struct span crl, struct err *e) MUSTCHECK;
void upstreams_clear(struct upstreams *s);
/* Remember, in the place of the one before it (exchanges under way keep the one they began with). -1: an address that
 * is none, or no memory; e says it, and the place is empty. */
int upstreams_put(struct upstreams *s, const struct wire_upstream *w, struct err *e) MUSTCHECK;
/* A new reference, or NULL. */
struct upstream *upstreams_get(struct upstreams *s, uint32_t number) MUSTCHECK;
void upstream_unref(struct upstream **u);
/* TLS settings with this upstream's roots, made at first use; NULL: e says why. */
struct tls_client *upstream_tls(struct upstreams *s, struct upstream *u, struct err *e) MUSTCHECK;

#endif
