/* One request from its arrival to its record. Found by id, resumed by id, ended in one
 * place; what it waits for is changed in one place, which logs it. */
#ifndef PROXY_JUDGE_EXCHANGE_H
#define PROXY_JUDGE_EXCHANGE_H

#include "proxy/judge/evaluation/body.h"
#include "proxy/judge/replies/dialect.h"
#include "proxy/judge/evaluation/evaluation.h"
#include "proxy/judge/accounts/upstreams.h"
#include "proxy/judge/exchange/websocket.h"
#include "proxy/walk.h"

enum x_wait {
    X_RUNS = 0,
    X_BODY,   /* the front reads the body whole */
    X_TICKET, /* the ledger opens or finds the ticket */
    X_PARKED, /* somebody decides */
    X_CLAIM,  /* the ledger takes the approval */
    X_INTENT, /* the ledger writes down what is about to happen */
    X_RESULT, /* the carrier has it */
};

struct exchange {
    uint64_t xid;
    struct exchange *next_xid, *next_timed;
    struct judge *judge;
    struct front *front; /* NULL: it is gone */
    struct sandbox *sandbox;
    enum walk_step step;
    enum x_wait wait;
    uint64_t deadline; /* monotonic ms; 0: none */
    struct arena arena;

    /* what was asked */
    struct wire_request request;
    struct span reason; /* the agent's word */
    bool has_body, body_to_come, client_gone, quiet;
    uint64_t declared, body_max, body_reserved, body_credit;
    struct body *body; /* NULL: none, or it streams; of what is held, the bytes first held */

    /* what was decided */
    struct evaluation now;
    struct exceeded *exceeded; /* NULL: of no limit is it known that it is used up */
    bool judged, held, ticket_told, facts_wanted, again;
    struct digest digest, join; /* zero until they are needed */
    struct wire_ticket_state ticket;
    struct span answer; /* of a ticket that is done: wire_answer, u64 size, span inline */
    uint8_t signature[64];
    uint64_t park_until;

    /* what happened */
    enum effect intent_effect; /* as the ledger was told, whatever the policy says by the time of the outcome */
    bool intent, intent_ok, claim_told, claimed, forwarded, finished, replied;
    bool head_relayed, kept;
    bool sent, body_ended; /* its first byte has left; the last of a body that streams was passed on */
    bool stopped;          /* by a freeze, on its way */
    uint8_t outcome;
    uint16_t status;
    uint64_t bytes_out, bytes_in;
    struct span range_sent; /* the carrier's word: what the upstream was asked for in place of the request's Range */
    struct span kept_answer;
    struct socket_state socket;
    struct upstream_ref *upstream; /* a reference; NULL until it is released */
    struct refusal refusal;
    struct span cause; /* the carrier's own code: for the audit, finer than what the client is told */
};

/* NULL: no memory, or the id is taken. */
struct exchange *exchange_new(struct judge *j, struct front *f, uint64_t xid) MUSTCHECK;
struct exchange *exchange_find(struct judge *j, uint64_t xid);
/* Go on at the step where it stands. A stale id is a line in the log, no more. */
void exchange_resume(struct judge *j, uint64_t xid);
/* The one way out. */
void exchange_end(struct exchange *x, const char *why);
/* Every change of what it waits for; ms from now, 0: no deadline. */
void exchange_wait(struct exchange *x, enum x_wait w, uint64_t ms);
/* Decide by the policy of now. *out is always filled; drop it with evaluation_drop. */
void exchange_evaluate(struct exchange *x, struct evaluation *out);
struct request exchange_asks(const struct exchange *x);
/* Decide again, at the moment of use; that decision stands from now on. True: the same verdict on the same terms
 * (rule, op, what the credential is, who approves and how: proxy/identity.h) and with the same counts. */
bool exchange_still(struct exchange *x, enum verdict verdict);
/* Call fn for each; it may end the one it is called for and no other. */
void exchange_each(struct judge *j, void (*fn)(struct exchange *x, void *arg), void *arg);
/* Is its session still that of the sandbox of this name? */
bool exchange_session_lives(const struct exchange *x);
/* Is it a write, or not known to be a read, while writes are frozen? */
bool exchange_is_frozen(const struct exchange *x);
/* An allowed read of which nothing is written down: no ticket, no intent, no limit that counts it. Only such a one
 * may be sent again without being asked for again; whatever the ledger was told of is sent at most once. */
bool exchange_is_repeatable(const struct exchange *x);
/* Is the client told that it may have been done? Not of a read that was only counted: it may ask for that again. */
bool exchange_in_doubt(const struct exchange *x);
/* Reserve bytes of body for the sandbox. False: it has too many. */
bool exchange_reserve(struct exchange *x, uint64_t bytes);
const char *exchange_wait_name(enum x_wait w);

#endif
