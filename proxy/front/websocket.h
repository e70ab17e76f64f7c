/* A WebSocket on the client's side (RFC 6455): whether a request asks for one, and after the carrier's M_SWITCH its
 * messages, parsed here and given to the judge, and the server's, written as frames. websocket.c */
#ifndef PROXY_FRONT_WEBSOCKET_H
#define PROXY_FRONT_WEBSOCKET_H

#include "common/http/ws.h"
#include "common/id.h"

struct client;
struct frame;
struct http_head;
struct wire_request;

/* Lives in the exchange. */
struct websocket {
    char accept[WS_ACCEPT_TEXT + 1]; /* what the client's own key is answered with; empty: no upgrade was asked for */
    bool closed_in, closed_out;      /* a close frame came, and one was written */
    struct ws_reader reader;
    int64_t credit;
};

/* Is it a proper upgrade? Then accept is filled. All others are requests whose Upgrade field is dropped. */
bool front_websocket_asked(const struct http_head *h, char accept[WS_ACCEPT_TEXT + 1]);
void front_switch(struct client *c, struct frame *f);
void front_websocket_go_on(struct client *c);
void front_websocket_credit(struct client *c, uint32_t more);
void front_websocket_message(struct client *c, struct span payload);
void front_websocket_free(struct websocket *s);

#endif
