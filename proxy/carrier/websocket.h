/* A WebSocket on the upstream's side (RFC 6455): a key of its own, a verified 101, then the server's messages,
 * searched for secrets, to the front, and what the judge let through as masked frames to the server. websocket.c
 *
 *   socket_begin ─► head with its key ─► 101: socket_verify, socket_switch ─► socket_go, socket_frame ─► socket_over
 */
#ifndef CARRIER_WEBSOCKET_H
#define CARRIER_WEBSOCKET_H

#include "proxy/walk.h"

struct exchange;
struct frame;
struct http_head;
struct socket;

enum {
    SOCKET_SILENT_MS = 30 * 60 * 1000, /* without a byte either way: it is closed */
    SOCKET_CLOSE_MS = 5 * 1000,        /* from one side's close to the other's */
};

/* The request is an upgrade: make x->socket and its key. -1: no memory, or the request can be none. */
int socket_begin(struct exchange *x) MUSTCHECK;
void socket_free(struct socket **s);
struct span socket_key(const struct socket *s);
bool socket_is_on(const struct socket *s);
/* Is this 101 the answer to that key, without extensions, with a subprotocol that was offered? */
enum walk_next socket_verify(struct exchange *x, const struct http_head *h);
enum walk_next socket_switch(struct exchange *x);
/* As far as input and credit reach. */
enum walk_next socket_go(struct exchange *x);
/* M_MESSAGE, M_WS_CLOSE. */
void socket_frame(struct exchange *x, struct frame *f);
void socket_timeout(struct exchange *x);
/* Its last words on all three sides; only from exchange_end. */
void socket_over(struct exchange *x);

#endif
