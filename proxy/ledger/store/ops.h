/* The operations on the store (store.h): one function for each message of
 * proxy/msgs.h that changes or reads it. */
#ifndef PROXY_LEDGER_STORE_OPS_H
#define PROXY_LEDGER_STORE_OPS_H

#include "common/lease/wire_lease.h"
#include "proxy/ledger/store/store.h"

/* The head of a kept answer or request: as wire_put_answer or wire_put_request wrote it. */
struct store_bytes {
    struct span head;
    struct dynbuf body;
};

/* state.state TICKET_NONE: refused, state.words says why; "over-limit": over says which. With state.has_answer, kept
 * is the answer. */
int store_ticket_open(struct store *s, const struct wire_ticket *t, const struct wire_limits *limits,
                      struct span body, struct wire_ticket_state *state, struct store_bytes *kept,
                      struct wire_over *over) MUSTCHECK;

struct store_claim {
    uint64_t xid;
    struct id ticket;
    struct span credential, host;
    uint16_t port;
    struct digest policy, terms;
    struct span rule;
    struct dynbuf *proof; /* of a ticket that needs passkeys, what they signed, for the keeper: u8 quorum, u8 n,
                             digest of the facts, n x (span operator, span what it signed); NULL: not wanted */
    struct wire_step by;  /* of who claims it, and the lease it brought */
    struct id lease;
};
/* *ok: it is yours, once; digest and request are filled. Else state says where the ticket stands: held on other terms
 * than the claim's, it is cancelled by this. */
int store_claim(struct store *s, const struct store_claim *c, bool *ok, uint8_t *state, struct digest *digest,
                struct store_bytes *request) MUSTCHECK;

/* over->n: nothing was written, these limits are past. */
int store_intent(struct store *s, uint64_t xid, const struct wire_record *r, const struct digest *join,
                 const struct wire_limits *limits, bool *ok, struct wire_over *over) MUSTCHECK;
/* The first byte left. It is written down with the outcome, or by the next of store_tick, store_judge_came and
 * store_sent_write. */
int store_sent(struct store *s, uint64_t xid) MUSTCHECK;
int store_sent_write(struct store *s) MUSTCHECK;

struct store_outcome {
    uint64_t xid;
    struct wire_record record;
    struct id ticket; /* none: all zero */
    enum outcome outcome;
    uint16_t status;
    uint64_t out, in;
    bool delivered, kept;
    bool untold;                          /* its client left, and was told nothing */
    struct span answer_head, answer_body; /* if kept */
};
int store_outcome(struct store *s, const struct store_outcome *o) MUSTCHECK;
struct store_websocket { /* how one ended */
    uint64_t xid;
    struct wire_record record;
    uint64_t messages_out, messages_in, out, in;
    uint16_t closed;
};
int store_websocket(struct store *s, const struct store_websocket *w) MUSTCHECK;
int store_audit(struct store *s, uint64_t xid, const struct wire_record *r) MUSTCHECK;
/* An operator's or the parent's act. json is taken as it is if it is JSON. */
int store_note(struct store *s, struct span by, struct span kind, struct span json) MUSTCHECK;

enum decide { DECIDE_NONE = 0, DECIDE_APPROVE, DECIDE_DENY, DECIDE_CANCEL };
enum decided {
    DECIDED_STORE = 0,
    DECIDED_DONE,
    DECIDED_NOT_PENDING,
    DECIDED_NO_TICKET,
    DECIDED_EXPIRED,
    DECIDED_OTHER_DIGEST,
    DECIDED_NO_REASON,
    DECIDED_NO_GRANT,
    DECIDED_AGREED,       /* written down; others must agree before it may leave */
    DECIDED_SELF,         /* it is their own */
    DECIDED_NOT_A_PERSON, /* several must agree, or with passkeys, and only people count */
    DECIDED_TWICE,        /* they have agreed already */
    DECIDED_NO_PASSKEY,
    DECIDED_GATES,     /* a gate has not answered yet */
    DECIDED_NO_DEPUTY, /* they are not the deputy of whom they say */
    DECIDED_OWN_KEY,   /* it wants a passkey: nobody gives that in another's place */
};
/* What an approval is to cover beside its ticket: so many more of the same shape, for so long. uses 0: nothing. */
struct store_grant {
    uint32_t uses;
    uint64_t for_ms;
};
struct store_decision {
    enum decide what;
    struct span by, channel, reason;
    struct span instead_of;     /* a person whose deputy they are; empty: in their own name */
    struct span how;            /* they had signed in; empty: not said */
    struct digest shown, facts; /* of the request, and wire_facts_digest; all zero: not said, and not compared */
    struct span passkey;        /* what one signed for this decision; empty: nothing */
    struct store_grant grant;
};
int store_decide(struct store *s, const struct id *ticket, const struct store_decision *d, enum decided *result,
                 uint8_t *state) MUSTCHECK;
/* From now on nothing is approved by it. *why: a sentence when there is no such grant, else NULL. */
int store_grant_revoke(struct store *s, const struct id *grant, struct span by, struct span reason,
                       const char **why) MUSTCHECK;
/* Somebody waits for its decision, for so many ms more, or nobody does any more (askers/schema_9.sql). */
int store_asker(struct store *s, const struct id *ticket, bool waits, uint64_t ms) MUSTCHECK;
int store_void(struct store *s, const struct id *ticket, struct span why) MUSTCHECK;
/* The ids of all that are pending or approved, to be freed; *ids NULL: none. */
int store_open_tickets(struct store *s, struct id **ids, size_t *n) MUSTCHECK;
/* 1: r (but its request) and the bytes first held; 0: it is not open any more, or its bytes are gone. */
int store_review(struct store *s, const struct id *ticket, struct wire_review *r,
                 struct store_bytes *request) MUSTCHECK;
/* *ok false: no such ticket, or its body is gone. */
int store_body(struct store *s, const struct id *ticket, bool *ok, struct dynbuf *body) MUSTCHECK;

/* *why: a sentence when refused, else NULL. */
int store_sandbox_put(struct store *s, const struct wire_sandbox *b, const char **why) MUSTCHECK;
/* One more token for a sandbox that has one already; alone: the earlier ones are good no more. */
int store_sandbox_token(struct store *s, struct span name, const struct digest *hash, bool alone,
                        const char **why) MUSTCHECK;
/* The session of a token's sandbox that has no name of its own ends with it; any with end_session: open tickets are
 * cancelled, answers that nobody took forgotten. */
int store_sandbox_remove(struct store *s, struct span name, bool end_session, const char **why) MUSTCHECK;
/* A sandbox of the warden's, of this generation, is over: its leases end, and its row is of the generation that the
 * next start of the name has. Of another generation, or no such: nothing. */
int store_sandbox_ended(struct store *s, struct span name, uint64_t generation) MUSTCHECK;
/* One stands still, whose leases end at once; when it goes on it is put again, as the next generation. Of another
 * generation, or no such: nothing. */
int store_sandbox_paused(struct store *s, struct span name, uint64_t generation) MUSTCHECK;
/* What store_sandbox_ended does, of all that are not among these. */
struct store_running {
    struct span name;
    uint64_t generation;
};
int store_sandboxes_run(struct store *s, const struct store_running *r, size_t n) MUSTCHECK;

/* A row of the table of tokens (tokens/schema_5.sql). */
struct store_token {
    struct span kind, scope, name, tenant, note;
    bool has_hash;
    struct digest hash;
};
/* *why: it may not be put, in words. What opens a sandbox is put again as it is now; a key is not. */
int store_token_put(struct store *s, const struct store_token *t, const char **why) MUSTCHECK;
/* A key, and all that came of it. */
int store_key_remove(struct store *s, struct span name, const char **why) MUSTCHECK;
/* No write leaves until it is lifted; nothing happens if it is so already. */
int store_freeze(struct store *s, bool on, struct span by, struct span reason) MUSTCHECK;
/* -1: it cannot be read, and then they count as frozen. */
int store_frozen(struct store *s, bool *frozen) MUSTCHECK;

/* Leases: who has which, and what became of them. The text of one is never here, only its digest. */

/* May it be issued? l is as M_LEASE_ISSUE has it; session, generation, times and, for what came from another one, all
 * that it has of that are filled in, to live until the next operation. *why: a sentence when it may not, else NULL.
 */
int store_lease_check(struct store *s, struct wire_lease *l, const char **why) MUSTCHECK;
/* Write it down: all of the above again, for time has passed, and then id, tag and digest of the text must be there.
 */
int store_lease_put(struct store *s, struct wire_lease *l, const char **why) MUSTCHECK;
/* The lease that stubs answer a sandbox with: l says which sandbox, credential, meaning and form. *there: l is the
 * one that lives, with more than a fifth of its time or narrowed; else l may be issued, as store_lease_check says. */
int store_lease_stub(struct store *s, struct wire_lease *l, bool *there, const char **why) MUSTCHECK;
/* Add a layer, and end it sooner (expires_ms 0: as it was, and never later). *l: as it is now. */
int store_lease_narrow(struct store *s, const struct id *id, const struct wire_layer *layer, uint64_t expires_ms,
                       struct span by, struct wire_lease *l, const char **why) MUSTCHECK;
/* It and what came from it. */
int store_lease_revoke(struct store *s, const struct id *id, struct span by, struct span reason,
                       const char **why) MUSTCHECK;

struct lease_leak {
    uint64_t xid;
    struct id lease;
    struct span sandbox, session, host, what; /* who used it, for where, and what is wrong with that */
    uint16_t port;
    bool freeze;
};
/* It was used by another sandbox, generation or place than its own: it and all that its sandbox has are revoked. Of
 * one that is known to have leaked nothing more is written. */
int store_lease_leaked(struct store *s, const struct lease_leak *leak) MUSTCHECK;

/* As many as are kept, the oldest first. */
int store_leases(struct store *s, void (*each)(void *arg, const struct wire_lease *l), void *arg) MUSTCHECK;

int store_sandboxes(struct store *s, void (*each)(void *arg, const struct wire_sandbox *b), void *arg) MUSTCHECK;

#include "proxy/ledger/store/askers/ops_later.h"
#include "proxy/ledger/store/people/ops_looking.h"
#include "proxy/ledger/store/people/ops_people.h"

#endif
