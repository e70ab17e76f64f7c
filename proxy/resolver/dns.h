/* Asking name servers and /etc/hosts, on the loop (c-ares). Names are absolute: no search list, no aliases from the
 * environment (C15). Answers are addresses only, not looked at: the caller filters. */
#ifndef RESOLVER_DNS_H
#define RESOLVER_DNS_H

#include "common/err.h"
#include "common/net/addr.h"
#include "common/net/loop.h"

enum { DNS_ADDRS_MAX = 64 }; /* more in one answer is a failure */

enum dns_result {
    DNS_FAILED = 0, /* no server answered, or not with something that makes sense */
    DNS_NOT_FOUND,  /* there is no such name, or it has no address */
    DNS_FOUND
};

struct dns;
typedef void dns_fn(void *arg, enum dns_result r, const struct addr *addr, size_t n);

/* servers: "127.0.0.1:5353,[::1]:53" instead of those in /etc/resolv.conf; or NULL. */
struct dns *dns_new(struct loop *l, const char *servers, struct err *e) MUSTCHECK;
/* Ask these from now on, before anything was asked. -1: not a list of addresses, each with its port. */
int dns_servers(struct dns *d, const char *servers, struct err *e) MUSTCHECK;
/* Questions still open are dropped without a call. */
void dns_free(struct dns **d);
/* name: a canonical host name, NUL-terminated. fn is called exactly once, perhaps from within. */
void dns_ask(struct dns *d, const char *name, dns_fn *fn, void *arg);

#endif
