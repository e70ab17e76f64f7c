/* What can happen to an exchange, and the steps it takes; included by exchange.h, which has the picture. */
#ifndef CARRIER_STEPS_H
#define CARRIER_STEPS_H

struct exchange;
struct state_kind;

/* exchange.c: life */
void carry_forward(struct carrier *c, struct frame *f);
void carry_resume(struct exchange *x);
void carry_end(struct exchange *x);
struct exchange *carry_find(struct carrier *c, uint64_t xid);
/* Note why; returns WALK_FAIL. why is a sentence of ours, never an upstream's bytes. */
enum walk_next carry_fail(struct exchange *x, const char *code, const char *fmt, ...) PRINTF(3, 4);
void carry_cancel(struct exchange *x, bool cut);
void carry_all_gone(struct carrier *c); /* the judge is gone */
void carry_keeper_gone(struct carrier *c);
void carry_front_gone(struct carrier *c, struct front *front);
void carry_front_goes_on(struct front *front); /* it was held back: share.h */
void carry_signed(struct carrier *c, struct frame *f);
void carry_credential(struct carrier *c, struct frame *f);

/* states.c: an impossible change is logged, is not made, and ends the exchange when its step comes back. */
bool carry_may(struct exchange *x, const struct state_kind *k, unsigned from, unsigned to) MUSTCHECK;
void carry_link(struct exchange *x, enum link_state to);
void carry_sent(struct exchange *x, enum sent_state to);
void carry_answer(struct exchange *x, enum answer_state to);
void carry_delivery(struct exchange *x, enum delivery_state to);
void carry_swap(struct exchange *x, enum swap_state to);

/* The rows of this role, run by walk.c: await_credential.c, send.c, answer.c */
enum walk_next step_await_credential(struct exchange *x);
enum walk_next step_forward(struct exchange *x);
enum walk_next step_scrub(struct exchange *x);

/* dial.c */
enum walk_next dial_go(struct exchange *x); /* NEXT: x->conn is up, verified where it must be */
/* The upstream says 401 to what may be asked twice: what the source says now is asked for, once. WAIT until it comes;
 * REWIND: it is another value; NEXT: there is no other, and the answer is handed on. */
enum walk_next dial_renew(struct exchange *x) MUSTCHECK;
/* The judge's word: what it waits for does not come. */
void dial_renew_none(struct exchange *x);
/* Ask the judge for the release of its credential. */
int carry_ask_release(const struct exchange *x) MUSTCHECK;

/* send.c */
void send_body_frame(struct exchange *x, struct frame *f);

/* part.c: a Range beside secrets. The value that leaves in its place; empty: as it came */
enum walk_next part_ask(struct exchange *x, struct span *value);
/* The head of what may answer it: refused, or understood. */
enum walk_next part_begin(struct exchange *x, const struct http_head *h);
/* The head that is handed on. */
void part_head(struct exchange *x, struct wire_answer *a);
/* Of what was searched and is ready from there on, leave what was asked. */
void part_cut(struct exchange *x, size_t from);

/* swapping.c: an answer that may have tokens is one whose tokens can be found, or it is refused. */
enum walk_next swap_head(struct exchange *x, const struct http_head *h);
/* Until its leases are in their places: WALK_WAIT, or WALK_FAIL. */
enum walk_next swap_go(struct exchange *x);
bool swap_is_open(const struct exchange *x);
void swap_keeper_said(struct carrier *c, struct frame *f);
void swap_judge_said(struct carrier *c, struct frame *f);
/* What it holds, and what the keeper holds for an answer that does not go on. */
void swap_release(struct exchange *x);

/* answer.c, delivery.c */
enum walk_next answer_head(struct exchange *x);
/* Does the field tell which bytes the body has? Then it is wrong once one of them is covered (D38, D47). */
bool answer_is_digest(struct span name);
void delivery_credit(struct exchange *x, struct frame *f);
/* Give on what is ready within the credit. -1: the front does not take it. */
int delivery_ready(struct exchange *x, bool end) MUSTCHECK;
/* Its head with this length, and without what tells of the bytes it had. -1: no memory. */
int delivery_new_length(struct exchange *x, uint64_t length) MUSTCHECK;
void delivery_cut(struct exchange *x);
void delivery_kept(struct exchange *x);

#endif
