/* A WebSocket on the upstream's side (RFC 6455): a key of its own, a verified 101, then the server's messages,
 * searched for secrets, to the front, and what the judge let through as masked frames to the server. websocket.c
 *
 *   carry_websocket_begin ─► head with its key ─► 101: carry_websocket_verify, carry_websocket_switch ─►
 * carry_websocket_go, carry_websocket_frame ─► carry_websocket_over
 */
#ifndef CARRIER_WEBSOCKET_H
#define CARRIER_WEBSOCKET_H

#include "proxy/walk.h"

struct exchange;
struct frame;
struct http_head;
struct websocket;

enum {
    WEBSOCKET_SILENT_MS = 30 * 60 * 1000, /* without a byte either way: it is closed */
    WEBSOCKET_CLOSE_MS = 5 * 1000,        /* from one side's close to the other's */
};

/* The request is an upgrade: make x->websocket and its key. -1: no memory, or the request can be none. */
int carry_websocket_begin(struct exchange *x) MUSTCHECK;
void carry_websocket_free(struct websocket **s);
struct span carry_websocket_key(const struct websocket *s);
bool carry_websocket_is_on(const struct websocket *s);
/* Is this 101 the answer to that key, without extensions, with a subprotocol that was offered? */
enum walk_next carry_websocket_verify(struct exchange *x, const struct http_head *h);
enum walk_next carry_websocket_switch(struct exchange *x);
/* As far as input and credit reach. */
enum walk_next carry_websocket_go(struct exchange *x);
/* M_MESSAGE, M_WS_CLOSE. */
void carry_websocket_frame(struct exchange *x, struct frame *f);
void carry_websocket_timeout(struct exchange *x);
/* Its last words on all three sides; only from carry_end. */
void carry_websocket_over(struct exchange *x);

#endif
