/* The refusals of this gateway, one row each: status, code, words. */
#ifndef PROXY_JUDGE_REFUSE_H
#define PROXY_JUDGE_REFUSE_H

#include "proxy/judge/exchange/exchange.h"

enum refuse_why {
    REFUSE_INTERNAL = 0,
    REFUSE_DENIED,
    REFUSE_UNCLASSIFIED,
    REFUSE_OVER_LIMIT,
    REFUSE_EGRESS,
    REFUSE_REACH,
    REFUSE_UNKNOWN_SANDBOX,
    REFUSE_NO_POLICY,
    REFUSE_STORE,
    REFUSE_TOO_MANY,
    REFUSE_BODY_TOO_LARGE,
    REFUSE_BODY_BAD,
    REFUSE_BODIES,
    REFUSE_HELD,
    REFUSE_ACCEPTED,
    REFUSE_TICKET_DENIED,
    REFUSE_TICKET_EXPIRED,
    REFUSE_TICKET_CANCELLED,
    REFUSE_EXECUTING,
    REFUSE_EXECUTED,
    REFUSE_NOT_SENT,
    REFUSE_OUTCOME_UNKNOWN,
    REFUSE_PENDING_FULL,
    REFUSE_POLICY_CHANGED,
    REFUSE_CREDENTIAL,
    REFUSE_SLOT,
    REFUSE_LEASE_REQUIRED,
    REFUSE_LEASE_UNKNOWN,
    REFUSE_LEASE_ENDED,
    REFUSE_LEASE_BOUNDS,
    REFUSE_LEASE_UNPROVEN,
    REFUSE_LEASE_MISPLACED,
    REFUSE_LEASE_LEAKED,
    REFUSE_LEASE_USED_UP,
    REFUSE_STUB_TOKEN,
    REFUSE_STUB_FLAVOR,
    REFUSE_STUB_FORWARDED,
    REFUSE_STUB_METHOD,
    REFUSE_STUB_BAD,
    REFUSE_STUB_NOT_HERE,
    REFUSE_STUB_NONE,
    REFUSE_STUB_OVER,
    REFUSE_SIGN,
    REFUSE_CARRIER,
    REFUSE_ENDING,
    REFUSE_FROZEN,
    REFUSE_SANDBOX_FROZEN,
    REFUSE_UPSTREAM,
    REFUSE_UPSTREAM_SLOW,
    REFUSE_ANSWER,
    REFUSE_RANGE,
    REFUSE_PART,
    REFUSE_LEAF,
    REFUSE_LEAF_BUDGET,
    REFUSE_METHOD,
    REFUSE_NOT_HERE,
    REFUSE_NO_ANSWER,
    REFUSE_NO_FORM,
    REFUSE_COUNT
};

/* Set the exchange's refusal, with the words of its decision or ticket. Always WALK_REPLY. */
enum walk_next refuse(struct exchange *x, enum refuse_why why);
/* Which denial its decision is, by its code. */
/* The words of its row alone. */
void refuse_words(enum refuse_why why, struct refusal *r);
enum refuse_why refuse_why_of(const struct exchange *x);
enum walk_next refuse_denial(struct exchange *x);
/* As the code of a step, for a step that said no more than FAIL. */
enum walk_next refuse_step(struct exchange *x, enum walk_step s);
/* Set it, send it and record it: for what happens while the exchange waits. */
void refuse_now(struct exchange *x, enum refuse_why why);
/* The status of what was carried out, or may have been: SDKs, and curl with --retry, send again by themselves what
 * got a 5xx. */
enum { REFUSE_CARRIED_OUT = 409 };
#define REFUSE_CHECK "Check at the upstream whether it happened before you send it again."
/* Is who is told that it is held an agent's client that can ask its user (tickets/elicit.h)? */
bool refuse_elicits(const struct exchange *x);
/* What one is told whose sandbox is not known: a judge that was not told yet who there is cannot say that it is none.
 */
enum refuse_why refuse_unknown(const struct judge *j);
/* The reply alone, after which the connection ends, and its code: of a CONNECT, or where an exchange has no room. Its
 * words are in a, which is the caller's to free. */
const char *refuse_bare(enum refuse_why why, struct arena *a, struct wire_reply *out);
/* Whom a refusal is told, as far as the exchange knows; borrows from it. */
struct dialect_client refuse_client(const struct exchange *x);
/* Before anything is taken out of the request: with what AWS's clients sign, they say whose words they read. */
void refuse_keep_signature(struct exchange *x);
/* Send x->refusal to the front, in the client's dialect. */
void refuse_send(struct exchange *x);
/* Answer the exchange's client, if it still waits, with this. */
void reply_own(struct exchange *x, const struct wire_reply *r);
/* Send a reply that was made already. */
void reply_send(struct judge *j, uint64_t instance, uint64_t xid, const struct wire_reply *r);

#endif
