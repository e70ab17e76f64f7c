/* Frames as they come in, a file a peer: decoded here, put into the exchange, which then
 * goes on. Each returns -1 when the peer broke the contract; a frame for an exchange that is
 * over is no breach, only late. */
#ifndef PROXY_JUDGE_FRAMES_H
#define PROXY_JUDGE_FRAMES_H

#include "proxy/judge/exchange/exchange.h"

int frames_parent(struct judge *j, struct frame *f) MUSTCHECK;
int frames_lobby(struct judge *j, uint64_t instance, struct frame *f) MUSTCHECK;
int frames_front(struct judge *j, struct front *front, struct frame *f) MUSTCHECK;
int frames_carrier(struct judge *j, struct frame *f) MUSTCHECK;
int frames_keeper(struct judge *j, struct frame *f) MUSTCHECK;
int frames_ledger(struct judge *j, struct frame *f) MUSTCHECK;

/* The client of this exchange is gone: M_CANCEL, or its front went. */
void frames_client_gone(struct exchange *x);

/* The upstream refused its credential, and there is no other: the carrier hands on what the upstream said. */
void frames_no_other(struct exchange *x);

/* Which step what a front says of this id is of, if that was what it said last. */
struct wire_step frames_step(const struct front *f, uint64_t xid);

/* CONNECT: the front's key, its leafs, and those who wait for one (connect.c). */
int connect_key(struct front *f, struct span payload) MUSTCHECK;
int connect_asked(struct judge *j, struct front *f, struct frame *fr) MUSTCHECK;
int connect_minted(struct judge *j, struct frame *fr) MUSTCHECK;
void connect_keeper_gone(struct judge *j);
void connect_forget(struct front *f);

#endif
