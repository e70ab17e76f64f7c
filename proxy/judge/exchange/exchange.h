/* One request from its arrival to its record. Found by id, resumed by id, ended in one
 * place; what it waits for is changed in one place, which logs it. */
#ifndef PROXY_JUDGE_EXCHANGE_H
#define PROXY_JUDGE_EXCHANGE_H

#include "proxy/judge/evaluation/body.h"
#include "proxy/judge/replies/dialect.h"
#include "proxy/judge/evaluation/evaluation.h"
#include "proxy/judge/accounts/egress.h"
#include "proxy/judge/accounts/upstreams.h"
#include "proxy/judge/exchange/states.h"
#include "proxy/judge/exchange/websocket.h"
#include "proxy/walk.h"

enum { SIGNATURE_BYTES = 64, PROOF_MAX = 64 * 1024 };

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

    /* how it stands, see states.h; outside exchange_new only its functions change them */
    enum client_state client;
    enum upload_state upload;
    enum proof_state proof;
    enum claim_state claim;
    enum intent_state intent;
    enum delivery_state delivery;
    enum cancel_state cancel;
    enum websocket_state websocket;
    bool broken;

    /* what was asked */
    struct wire_step by; /* which step of its sandbox sent it; number 0: of none that is known */
    struct span lane;    /* of that step's own; empty: its sandbox's */
    bool forwarded;      /* it said that it is passed on for somebody else */
    struct span reason;  /* the agent's word */
    struct {
        bool asked;       /* no connection is to wait: the gateway sends it itself once it is approved */
        uint64_t wait_ms; /* but for so long */
    } later;
    struct elicit elicit;
    bool elicit_read; /* its body was looked at for that */
    struct egress_part egress;
    struct span own; /* what the client itself had in the slot of the credential, decoded; */
    size_t nown;     /* and so many of it: none, one, or more, of which it is the last */
    uint64_t declared, body_max, body_reserved, body_credit;
    struct body *body; /* NULL: none, or it streams; of what is held, the bytes first held */

    /* what was decided */
    struct evaluation now;
    struct exceeded *exceeded;  /* NULL: of no limit is it known that it is used up */
    struct digest digest, join; /* zero until they are needed */
    struct wire_ticket_state ticket;
    enum { TOLD_NOTHING = 0, TOLD_ASKED, TOLD_ALL } told; /* of its own ticket (replies/self_ticket.c), in answer */
    struct span answer;    /* of a ticket that is done: wire_answer, u64 size, span inline */
    struct span signature; /* the ledger's word: 64 bytes, and behind them what passkeys signed; in the arena */
    uint64_t park_until;
    bool waits;                /* parked, as the ledger was told (tickets/client.h) */
    struct span aws_signature; /* the client's own, which leaves with no request: whose words it reads */
    struct span rpc_id; /* of JSON-RPC that was held: by which this client knows the answer; empty: it is no such */

    /* what it brought in place of a credential */
    struct id lease;      /* all zero: none */
    struct span narrowed; /* the layers that its holder has added (common/lease/narrowed.h); empty: none */
    const char *unproven; /* what is wrong with its signature, for the client; NULL: nothing that was found */
    bool lease_body_seen;
    uint8_t nseam, lease_seam[15]; /* the end of what passed through: leases/search.c */

    struct {
        enum stub_kind kind; /* STUB_NONE: it is answered by no stub */
        bool asks;           /* the ledger, for its sandbox; others of it wait for their turn */
        size_t credential;
        struct id lease;
        struct span text, secret; /* text empty: there is none yet */
        uint64_t expires_ms;
    } stub;

    /* what happened */
    enum effect intent_effect; /* as the ledger was told, whatever the policy says by the time of the outcome */
    uint8_t outcome;
    uint16_t status;
    uint64_t bytes_out, bytes_in;
    struct span range_sent;  /* the carrier's word: what the upstream was asked for in place of the request's Range */
    struct span kept_answer; /* empty: none was kept for a retry */
    struct socket_state socket;
    bool renews;                   /* the keeper was asked for another value than the one that was refused */
    struct upstream_ref *upstream; /* a reference; NULL until it is released */
    struct refusal refusal;
    struct span cause; /* the carrier's own code: for the audit, finer than what the client is told */

    struct wire_request request; /* what was asked; last, for exchange_new clears all but its fields */
};

/* NULL: no memory, or the id is taken. */
struct exchange *exchange_new(struct judge *j, struct front *f, uint64_t xid) MUSTCHECK;
/* Its front is not there, or has no part in it any more. */
void exchange_front_over(struct exchange *x);
/* One that no client waits for, of an approved ticket. */
struct exchange *exchange_new_later(struct judge *j, struct sandbox *s, uint64_t xid) MUSTCHECK;
struct exchange *exchange_find(struct judge *j, uint64_t xid);
/* Go on at the step where it stands. A stale id is a line in the log, no more. */
void exchange_resume(struct judge *j, uint64_t xid);
/* The one way out. */
void exchange_end(struct exchange *x, const char *why);
/* Every change of what it waits for; ms from now, 0: no deadline. */
void exchange_wait(struct exchange *x, enum x_wait w, uint64_t ms);
bool exchange_wait_may(struct exchange *x, enum x_wait to) MUSTCHECK; /* its part in states.c */
/* The end of a turn: give up what broke in it. */
void exchange_end_broken(struct judge *j);
/* Decide by the policy of now. *out is always filled; drop it with evaluation_drop. */
void exchange_evaluate(struct exchange *x, struct evaluation *out);
struct request exchange_asks(const struct exchange *x);
/* policy_each_judged, of what was decided last. */
bool exchange_each_judged(const struct exchange *x, bool (*fn)(const struct judged *j, void *arg),
                          void *arg) MUSTCHECK;
/* Decide again, at the moment of use; that decision stands from now on. True: the same verdict on the same terms
 * (rule, op, what the credential is, who approves and how: proxy/identity.h) and with the same counts. */
bool exchange_still(struct exchange *x, enum verdict verdict);
/* Would it be decided as it was? The decision that was made stands. */
bool exchange_would_still(struct exchange *x);
/* Call fn for each; it may end the one it is called for and no other. */
void exchange_each(struct judge *j, void (*fn)(struct exchange *x, void *arg), void *arg);
/* Is its session still that of the sandbox of this name? */
bool exchange_session_lives(const struct exchange *x);
/* Is it a write, or not known to be a read, while writes are frozen, all or its sandbox's? */
bool exchange_is_frozen(const struct exchange *x);
/* An allowed read of which nothing is written down: no ticket, no intent, no limit that counts it. Only such a one
 * may be sent again without being asked for again; whatever the ledger was told of is sent at most once. */
bool exchange_is_repeatable(const struct exchange *x);
/* The ledger wrote down, or may have, that it is about to happen: it waits for what came of it. */
bool exchange_owes_outcome(const struct exchange *x);
/* Is the client told that it may have been done? Not of a read that was only counted: it may ask for that again. */
bool exchange_in_doubt(const struct exchange *x);
/* Reserve bytes of body for the sandbox. False: it has too many. */
bool exchange_reserve(struct exchange *x, uint64_t bytes);

#endif
