/* In how many ways an address can be read: as it is, and as each IPv4 address that some way of the network takes it
 * for (RFC 6052, 3056, 4380, 5214; local NAT64 of RFC 8215, wherever in it the address stands). */
#ifndef PROXY_REACH_READINGS_H
#define PROXY_REACH_READINGS_H

#include "common/net/addr.h"

/* ::ffff:0:0/96 and what lies in it is IPv4, and is made so. -1: it has IPv4 in this form and other addresses, so
 * that nobody can tell whether IPv4 is meant; all of IPv6 is IPv6. */
int readings_spell(struct cidr *c) MUSTCHECK;
/* Is any reading of the address in any reading of the range? For what must not be reached. */
bool readings_in(const struct cidr *c, const struct addr *a);
/* Is it in the range as both are written? For what may be. */
bool readings_is_in(const struct cidr *c, const struct addr *a);

#endif
