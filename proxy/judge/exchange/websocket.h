/* A WebSocket after its upgrade was let through: each message of the sandbox is asked about against the terms of the
 * rule (struct ws_terms), counted, and passed to the carrier or refused, which ends the connection. websocket.c */
#ifndef PROXY_JUDGE_WEBSOCKET_H
#define PROXY_JUDGE_WEBSOCKET_H

#include "common/http/ws.h"
#include "proxy/wire.h"

struct exchange;
struct frame;

struct socket_state {
    int64_t credit;
    uint64_t since, bytes, control; /* monotonic ms; bytes of messages, and of ping, pong and close */
    uint64_t messages_out, messages_in;
    uint16_t closed;  /* with what the carrier closed it */
    const char *code; /* why the judge ended it, for the record */
};

/* Of an upgrade that is let through: only the subprotocols that may leave stay in it. -1: no memory. */
int websocket_offer(struct exchange *x) MUSTCHECK;
/* What the sandbox may send once it is open, as a sentence for who approves it. */
struct span websocket_words(struct exchange *x);
/* The carrier has it. */
void websocket_begin(struct exchange *x);
/* M_MESSAGE. -1: the front broke the contract. */
int websocket_message(struct exchange *x, struct frame *f) MUSTCHECK;
/* M_SWITCHED, M_WS_ENDED. */
int websocket_frame(struct exchange *x, struct frame *f) MUSTCHECK;
/* How long it may go on, WebSocket or not, in ms; 0: for as long as it likes. */
uint64_t websocket_left(const struct exchange *x);
/* Its time may be up. What its lease has to say of that was said. */
/* Its sandbox has no egress left. True: it is a WebSocket, and its client is told. */
bool websocket_spent(struct exchange *x, const char *code);
void websocket_tick(struct exchange *x);
/* There is another policy, the sandbox is gone, writes are frozen (all, or its sandbox's), or this judge ends: does
 * it stay? */
void websocket_again(struct exchange *x);

#endif
