/* Network addresses: literals, classes and ranges.
 *
 * Literals are strict (RFC 3986 dotted decimal, RFC 4291 for IPv6): no octal, hex, short or padded forms, no zone.
 * Nothing here resolves a name. */
#ifndef COMMON_NET_ADDR_H
#define COMMON_NET_ADDR_H

#include <sys/socket.h>

#include "common/span.h"

struct addr {
    unsigned family; /* 4 or 6; 0: none */
    uint8_t b[16];   /* network order, 4 or 16 bytes */
};

/* A range; bits at most 32 or 128. */
struct cidr {
    struct addr base;
    unsigned bits;
};

enum addr_class {
    ADDR_BAD = 0,  /* not an address, or nothing one may dial: unspecified, multicast, reserved */
    ADDR_METADATA, /* instance metadata of a cloud */
    ADDR_LOOPBACK,
    ADDR_LINK_LOCAL,
    ADDR_PRIVATE, /* RFC 1918, unique local, shared (CGNAT), benchmark, documentation, protocol assignments */
    ADDR_PUBLIC,
};

/* "192.0.2.1", "2001:db8::1"; brackets around IPv6 are allowed. -1: not a literal. */
int addr_parse(struct span s, struct addr *out) MUSTCHECK;
/* What a host is wherever it is asked for: a literal, or localhost and what lies below it (RFC 6761), 127.0.0.1. -1:
 * a name. */
int addr_of_host(struct span host, struct addr *out) MUSTCHECK;
/* "10.0.0.0/8", "fd00::/8", or an address alone (its own range). No bits may be set past the prefix. */
int cidr_parse(struct span s, struct cidr *out) MUSTCHECK;
int addr_from_bytes(unsigned family, struct span bytes, struct addr *out) MUSTCHECK;
static inline size_t addr_bytes(const struct addr *a)
{
    return a->family == 4 ? 4 : a->family == 6 ? 16 : 0;
}
bool addr_eq(const struct addr *a, const struct addr *b);
bool addr_among(const struct addr *a, const struct addr *list, size_t n);

/* The IPv4 address inside a mapped, compatible, NAT64, 6to4 or Teredo address, else a itself. */
struct addr addr_unwrap(const struct addr *a);
enum addr_class addr_class(const struct addr *a);
const char *addr_class_name(enum addr_class c);
/* Both of the same family, without unwrapping. */
bool cidr_has(const struct cidr *c, const struct addr *a);
/* Has any of them? */
bool cidrs_have(const struct cidr *c, size_t n, const struct addr *a);

/* May this resolved address be dialled? Public ones may; others if a range names them (as they are, or the IPv4
 * address inside). Metadata addresses only if a range is exactly that host; ADDR_BAD never. */
bool addr_may_dial(const struct addr *a, const struct cidr *allowed, size_t n);

/* For connect(2). Returns the length, 0 for no address. */
socklen_t addr_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *out);
/* From getsockname and kin. -1: not an IP socket. */
int addr_of_sockaddr(const struct sockaddr *sa, struct addr *out, uint16_t *port) MUSTCHECK;

/* This machine's own addresses (getifaddrs): what the gateway itself may listen on. Fills up to max, returns how
 * many there are, or -1. */
int addr_own(struct addr *out, size_t max) MUSTCHECK;

#endif
