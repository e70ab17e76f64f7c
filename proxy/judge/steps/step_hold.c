/* HOLD: a ticket in the ledger, a wait of limited length, one claim. The client that still waits gets
 * the answer; what leaves are the bytes first held, if the policy of this moment still holds them. */
#include "common/log.h"
#include "proxy/judge/leases/check.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"
#include "proxy/judge/tickets/client.h"
#include "proxy/judge/tickets/ticket.h"

static enum walk_next no_longer(struct exchange *x);

/* A client that leads its user to the ticket does so at once, and comes again: nobody looks at a connection that
 * waits.
 */
static bool asks_its_user(const struct exchange *x)
{
    return refuse_elicits(x) && x->elicit.by != ELICIT_AGAIN && !x->later.asked;
}

static enum walk_next park(struct exchange *x)
{
    struct judge *j = x->judge;
    uint64_t now = j->ports.now(j->ports.arg);
    if (x->client == CLIENT_LATER)
        return refuse(x, REFUSE_STORE);
    /* The policy changed while its ticket was opened: nobody is to approve in vain. */
    if (x->now.image != j->image && !exchange_still(x, VERDICT_HOLD)) {
        ticket_void(x, "the policy would not hold it like this any more");
        return no_longer(x);
    }
    if (x->park_until == 0) {
        uint64_t wait = j->config.inline_wait_ms;
        if (x->now.d.inline_wait_ms < wait)
            wait = x->now.d.inline_wait_ms;
        if (x->later.asked && x->later.wait_ms < wait)
            wait = x->later.wait_ms;
        x->park_until = now + wait;
    }
    if (j->ending)
        return refuse(x, REFUSE_ENDING);
    if (now >= x->park_until || asks_its_user(x))
        return refuse(x, x->later.asked ? REFUSE_ACCEPTED : REFUSE_HELD);
    exchange_wait(x, X_PARKED, x->park_until - now);
    ticket_client_waits(x, x->park_until - now);
    return WALK_WAIT;
}

static enum walk_next no_longer(struct exchange *x)
{
    bool deny = x->now.d.verdict != VERDICT_HOLD && x->now.d.verdict != VERDICT_ALLOW;
    return deny ? refuse_denial(x) : refuse(x, REFUSE_POLICY_CHANGED);
}

static enum walk_next claim(struct exchange *x)
{
    if (!exchange_session_lives(x))
        return refuse(x, REFUSE_UNKNOWN_SANDBOX);
    if (exchange_is_frozen(x)) /* the approval stays for when it is lifted */
        return refuse(x, REFUSE_FROZEN);
    if (!exchange_still(x, VERDICT_HOLD)) {
        ticket_void(x, "the policy would not hold it like this any more");
        return no_longer(x);
    }
    enum refuse_why lease = lease_still(x);
    if (lease != REFUSE_COUNT && x->client == CLIENT_LATER) /* nobody comes again with another one */
        ticket_void(x, "the lease that it was asked with is good for it no more");
    if (lease != REFUSE_COUNT) /* nor is it used up for what would not be sent */
        return refuse(x, lease);
    return ticket_claim(x) == 0 ? WALK_WAIT : refuse(x, REFUSE_STORE);
}

/* The answer that was kept. One that another sandbox of the session had is of an address that nobody knows any more:
 * where the address decides whether this one may reach that place, it is not this one's. */
static enum walk_next done(struct exchange *x)
{
    bool reached = upstream_reach(x->now.image, x->sandbox->reach, &x->request) == REACH_YES;
    return reached && x->answer.n && ticket_replay(x) == 0 ? WALK_REPLY : refuse(x, REFUSE_EXECUTED);
}

static enum walk_next by_state(struct exchange *x)
{
    const struct wire_ticket_state *t = &x->ticket;
    switch ((enum ticket_state)t->state) {
    case TICKET_PENDING: return t->granted ? claim(x) : park(x);
    case TICKET_APPROVED: return x->claim == CLAIM_LOST ? refuse(x, REFUSE_STORE) : claim(x);
    case TICKET_DENIED: return refuse(x, REFUSE_TICKET_DENIED);
    case TICKET_EXPIRED: return refuse(x, REFUSE_TICKET_EXPIRED);
    case TICKET_CANCELLED: return refuse(x, REFUSE_TICKET_CANCELLED);
    case TICKET_EXECUTING: return refuse(x, REFUSE_EXECUTING);
    case TICKET_DONE: return done(x);
    case TICKET_FAILED: return refuse(x, REFUSE_NOT_SENT);
    case TICKET_UNKNOWN: return refuse(x, REFUSE_OUTCOME_UNKNOWN);
    case TICKET_NONE: break;
    }
    return refuse(x, span_eq(t->words, SPAN("too-many-pending")) ? REFUSE_PENDING_FULL : REFUSE_STORE);
}

/* The claim was granted: x now has the request and the body first held. They are what was shown and approved,
 * or nothing is sent. */
static enum walk_next granted(struct exchange *x)
{
    struct digest approved = x->digest;
    if (x->client != CLIENT_WAITS && x->client != CLIENT_LATER) /* too late for who asked: told so, or gone */
        return x->refusal.code ? WALK_REPLY : refuse(x, REFUSE_NOT_SENT);
    if (!exchange_session_lives(x))
        return refuse(x, REFUSE_UNKNOWN_SANDBOX);
    if (exchange_is_frozen(x))
        return refuse(x, REFUSE_FROZEN);
    if (!exchange_still(x, VERDICT_HOLD))
        return no_longer(x);
    ticket_digests(x);
    if (memcmp(&approved, &x->digest, sizeof(approved)) != 0) {
        log_exchange(LOG_ERROR, x->xid, "what the ledger kept is not what was approved; it is not sent");
        return refuse(x, REFUSE_INTERNAL);
    }
    return WALK_NEXT;
}

static enum walk_next ask(struct exchange *x)
{
    int rc = ticket_open(x);
    return rc == 0 ? WALK_WAIT : refuse(x, rc == -2 ? REFUSE_BODY_TOO_LARGE : REFUSE_STORE);
}

enum walk_next step_hold(struct exchange *x)
{
    /* What its user takes back in the agent's own client is sent by nothing that lets it go meanwhile. */
    bool held = (x->now.d.verdict == VERDICT_HOLD && !x->judge->config.shadow) || x->elicit.declined;
    if (!held && x->client != CLIENT_LATER) /* which leaves as what was approved, or not at all */
        return WALK_NEXT;
    switch (x->claim) {
    case CLAIM_NONE:
    case CLAIM_FACTS_DUE: return ask(x);
    case CLAIM_FACTS_WANTED: exchange_claim(x, CLAIM_FACTS_DUE); return WALK_REWIND;
    case CLAIM_TICKET:
    case CLAIM_LOST: return by_state(x);
    case CLAIM_GRANTED: return granted(x);
    case CLAIM_ASKED:
    case CLAIM_ASKED_AGAIN:
    case CLAIM_MADE: break; /* it waits for an answer */
    }
    return WALK_FAIL;
}
