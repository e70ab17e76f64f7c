/* The judge's rows of proxy/walk.h, one file each, and the runner. */
#ifndef PROXY_JUDGE_STEPS_H
#define PROXY_JUDGE_STEPS_H

#include "proxy/judge/exchange/exchange.h"

enum walk_next step_evaluate(struct exchange *x);      /* who asks, and what the policy says; asks for the body */
enum walk_next step_check_lease(struct exchange *x);   /* what stands for the credential, and nowhere else */
enum walk_next step_enforce(struct exchange *x);       /* refuses a denial, and what cannot be done now */
enum walk_next step_hold(struct exchange *x);          /* ticket, wait, claim */
enum walk_next step_record_intent(struct exchange *x); /* of an allowed effect, before anything leaves */
enum walk_next step_release(struct exchange *x);       /* credential to the carrier, request to the carrier */
enum walk_next step_record_result(struct exchange *x); /* the last word to the client, the outcome to the ledger */

/* Run from x->step until a step waits or the exchange is over; x may be gone after it. */
void walk_run(struct exchange *x);

/* Ask the keeper for this exchange's credential. -1: there is no keeper. */
int release_ask(struct exchange *x, uint64_t refused) MUSTCHECK;

#endif
