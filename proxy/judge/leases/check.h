/* What a request says of leases, and whether that is in order. A lease may stand in one place alone, where its
 * credential will be written; wherever else one turns up, in whatever usual coding, the request is refused. One that
 * is another sandbox's, of an earlier generation or for another host has leaked: the ledger is told, and it and all
 * its sandbox has end. */
#ifndef PROXY_JUDGE_LEASES_CHECK_H
#define PROXY_JUDGE_LEASES_CHECK_H

#include "proxy/judge/exchange/exchange.h"
#include "proxy/judge/replies/refuse.h"

enum { LEASE_WORK_MAX = 1024 * 1024 /* of what its holder made: bytes of patterns times bytes of the path */ };

/* Of the whole request, by the decision of now; once one was found in its place it is taken out of the request, and
 * x->lease says which it was. REFUSE_COUNT: nothing is wrong with it, or x->proof says that the keeper was asked
 * about its signature, and this is to be called again with the answer; else why it is refused. */
enum refuse_why lease_check(struct exchange *x);
/* At the moment of use: the lease it came with is still good for it. REFUSE_COUNT, or why not. */
enum refuse_why lease_still(struct exchange *x);
/* Bytes of a body or of messages on their way through: false, there is a lease in them, and they must not go on. What
 * ends one piece and begins the next is seen; codings that are undone in a whole body are not. */
bool lease_may_pass(struct exchange *x, struct span piece);
/* There is another policy, or a lease is dead: does what rides on its lease go on? It may be ended by this. */
void lease_again(struct exchange *x);
/* What its holder made of its lease may end before the lease does: in how many ms, at most LEASE_MAX_MS; 0: it does
 * not, or has. lease_holder_end: the same in Unix ms. */
uint64_t lease_left(const struct exchange *x);
uint64_t lease_holder_end(const struct exchange *x);
/* If that has ended by now, so does what rides on it. */
void lease_tick(struct exchange *x);
/* The ledger's word: M_LEASE. Exchanges whose lease is dead by it, or so narrow that they are outside, end. -1: it is
 * none. */
int lease_told(struct judge *j, struct span payload) MUSTCHECK;
/* What its lease counts, after the limits that are there already. */
void lease_limits(struct exchange *x, struct wire_limits *out);
/* Does it count anything? */
bool lease_counts(struct exchange *x);

#endif
