/* The sockets of answer.h: datagrams, and streams with a two-byte length before each message (RFC 1035 section 4.2,
 * RFC 7766). Whoever asks is inside a sandbox: streams are few, short-lived, and the oldest gives way to a new one.
 */
#ifndef RESOLVER_NAMES_H
#define RESOLVER_NAMES_H

#include "common/net/loop.h"

enum {
    NAMES_LISTENERS_MAX = 16,
    NAMES_STREAMS_MAX = 64,
    NAMES_IDLE_MS = 10000,
    NAMES_TURN = 64, /* datagrams, then the loop's others have their turn */
};

struct names;
struct names *names_new(struct loop *l) MUSTCHECK;
void names_free(struct names **n);
/* Bound and listening, both non-blocking; takes them over, also when it fails. -1: no memory, or too many. */
int names_listen(struct names *n, int udp, int tcp) MUSTCHECK;

#endif
