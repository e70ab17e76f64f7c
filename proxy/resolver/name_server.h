/* The sockets of answer.h: datagrams, and streams with a two-byte length before each message (RFC 1035 section 4.2,
 * RFC 7766). Whoever asks is inside a sandbox: streams are few, short-lived, and the oldest gives way to a new one.
 */
#ifndef RESOLVER_NAME_SERVER_H
#define RESOLVER_NAME_SERVER_H

#include "common/net/loop.h"

enum {
    NAME_SERVER_LISTENERS_MAX = 16,
    NAME_SERVER_STREAMS_MAX = 64,
    NAME_SERVER_IDLE_MS = 10000,
    NAME_SERVER_TURN = 64, /* datagrams, then the loop's others have their turn */
};

struct name_server;
struct name_server *name_server_new(struct loop *l) MUSTCHECK;
void name_server_free(struct name_server **n);
/* Bound and listening, both non-blocking; takes them over, also when it fails. -1: no memory, or too many. */
int name_server_listen(struct name_server *n, int udp, int tcp) MUSTCHECK;

#endif
