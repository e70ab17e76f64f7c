/* The lobby: the outer handshake of a listener of several sandboxes. PROXY header, TLS to the proxy itself, SOCKS
 * greeting and login, or one HTTP head; then it knows whose the connection is (door.h, or the judge by a token) and
 * gives it with what was read to that sandbox's front. It sees nothing inside a tunnel and keeps nothing. */
#ifndef PROXY_LOBBY_LOBBY_H
#define PROXY_LOBBY_LOBBY_H

#include "common/net/chan.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "proxy/refusals.h"
#include "proxy/wire.h"

enum {
    LOBBY_DOORS_MAX = 16,
    LOBBY_PENDING_MAX = 512, /* past it the source address that has most of them makes room */
    LOBBY_INPUT_MAX = 64 * 1024,
    LOBBY_AUTH_MAX = 8 * 1024, /* a Proxy-Authorization value */
    LOBBY_TOKEN_MAX = 256,
    LOBBY_TRIES = 3, /* requests on one connection without a token */
    LOBBY_RELAYS_MAX = 1024,
    LOBBY_RELAYS_EACH = 256, /* of one sandbox: it fills no place but its own */
};

struct lobby_limits {
    size_t pending;
    uint64_t head_ms;  /* for all of the handshake, from the start */
    uint64_t close_ms; /* after the last byte, for the client to close first */
    uint64_t rest_ms;  /* before accept is tried again when descriptors or memory ran out */
};

struct pending;
struct relay;
struct lobby_door;
struct lobby {
    struct loop *loop;
    struct chan *parent, *judge; /* judge: NULL while it restarts */
    struct lobby_limits limits;
    struct pending *newest, *oldest;
    size_t npending;
    uint64_t questions;
    struct lobby_door *door[LOBBY_DOORS_MAX];
    size_t ndoors;
    struct relay *relays;
    struct refusals refused; /* since the parent was told last */
    struct timer *tell;
    bool telling;
    struct timer *rest;
    bool resting;  /* accept failed: descriptors or memory ran out */
    uint64_t said; /* when that was logged last */
};

/* parent may be NULL until the role is connected. -1: no memory, and lobby_done is still due. */
int lobby_init(struct lobby *l, struct loop *loop) MUSTCHECK;
/* Everything is cut, closed and given back. */
void lobby_done(struct lobby *l);
/* One more was turned away. code: a literal. */
void lobby_refused(struct lobby *l, const struct lobby_door *d, const char *code);
/* Callbacks of struct role_ops; arg is the lobby. */
void lobby_frame(void *arg, struct frame *f);
void lobby_peer(void *arg, unsigned peer, uint64_t instance, struct span info, int fd);

#endif
