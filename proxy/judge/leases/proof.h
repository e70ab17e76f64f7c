/* Requests that say they are signed with the secret half of a lease: the keeper is asked whether they are, since the
 * secret is derived there alone. What it needs for that are digests, the client's signatures, and when and for what
 * they were made. */
#ifndef PROXY_JUDGE_LEASES_PROOF_H
#define PROXY_JUDGE_LEASES_PROOF_H

#include "proxy/judge/leases/brought.h"
#include "proxy/judge/leases/table.h"
#include "proxy/judge/replies/refuse.h"

enum {
    PROOF_WAIT_MS = 10 * 1000,
    PROOF_AWS_S = 15 * 60, /* how far a signature's time may be from now, as the services have it */
    PROOF_TC3_S = 5 * 60
};

/* Ask, of a request with such a claim (brought.h) and the lease of its id: REFUSE_COUNT, and x->proof says so; or why
 * it need not be asked, with words for the client in x->unproven. */
enum refuse_why proof_ask(struct exchange *x, const struct sign_claim *claim, const struct lease *l) MUSTCHECK;
/* Ask whether this text (common/lease/narrowed.h) is what was made of a lease that is known. */
enum refuse_why proof_ask_narrowed(struct exchange *x, struct span text) MUSTCHECK;
/* The keeper's word. */
void proof_found(struct exchange *x, enum wire_verified found);

#endif
