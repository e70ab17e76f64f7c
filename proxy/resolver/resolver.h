/* The resolver: names to addresses, every one of which may be dialled, or a refusal of the whole name (C12-C14).
 * Each question is asked afresh; only "there is no such name" is remembered, for 5 s. */
#ifndef RESOLVER_RESOLVER_H
#define RESOLVER_RESOLVER_H

#include "common/http/http.h"
#include "common/net/addr.h"
#include "common/net/chan.h"
#include "proxy/resolver/dns.h"

enum {
    ASKS_MAX = 1024,
    CIDRS_MAX = 16,
    ANSWER_ADDRS = 8,
    MISSING_MAX = 256,
    MISSING_MS = 5000,
    ASK_MS = 12000,
    OWN_MAX = 256,
    RESOLVER_PEERS = 2 /* who asks: the carrier and the fetcher */
};

struct ask;
struct missing {
    char name[HTTP_HOST_MAX + 1];
    uint64_t until;
};

struct resolver {
    struct loop *loop;
    struct dns *dns;
    struct chan *peer[RESOLVER_PEERS];
    struct ask *asks;
    size_t nasks;
    struct missing missing[MISSING_MAX]; /* by a hash of the name; a newer one takes the place */
    struct addr own[OWN_MAX];
    size_t nown;
    struct timer *sweep;
};

/* servers: as dns_new. NULL: e says why. Takes this machine's addresses down as its own. */
struct resolver *resolver_new(struct loop *l, const char *servers, struct err *e) MUSTCHECK;
void resolver_free(struct resolver **r);
/* Another address that is ours: "192.0.2.1" or "192.0.2.1:8080", several separated by spaces. -1: not that. */
int resolver_own(struct resolver *r, struct span list) MUSTCHECK;
/* The channel of one who asks; replaces the one before. Takes fd over. */
void resolver_peer(struct resolver *r, unsigned who, int fd);

enum verdict { VERDICT_PRIVATE = 0, VERDICT_FINE };
/* Pure: may all of these be dialled? */
enum verdict resolver_judge(const struct resolver *r, const struct addr *a, size_t n, const struct cidr *allowed,
                            size_t ncidrs);

#endif
