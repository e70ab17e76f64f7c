/* Which state may become which: all else is a bug, and is refused. */
#include "proxy/judge/exchange/states.h"

#include "common/log.h"
#include "common/state.h"
#include "common/trace.h"
#include "proxy/judge/exchange/exchange.h"
#include "proxy/judge/post.h"

static const struct state_row wait_states[] = {
    [X_RUNS] = {"runs", ~0u},
    [X_BODY] = {"body", STATE(X_RUNS)},
    [X_PROOF] = {"proof", STATE(X_RUNS)},
    [X_TICKET] = {"ticket", STATE(X_RUNS)},
    [X_PARKED] = {"parked", STATE(X_RUNS)},
    [X_CLAIM] = {"claim", STATE(X_RUNS) | STATE(X_CLAIM)},
    [X_INTENT] = {"intent", STATE(X_RUNS) | STATE(X_INTENT)},
    [X_STUB] = {"stub", STATE(X_RUNS)},
    [X_STUB_TURN] = {"stub-turn", STATE(X_RUNS)},
    [X_RESULT] = {"result", STATE(X_RUNS) | STATE(X_RESULT)},
};

static const struct state_row client_states[] = {
    [CLIENT_GONE] = {"gone", 0},
    [CLIENT_WAITS] = {"waits", STATE(CLIENT_GONE) | STATE(CLIENT_ANSWERED)},
    [CLIENT_ANSWERED] = {"answered", 0},
    [CLIENT_LATER] = {"later", 0},
};

static const struct state_row upload_states[] = {
    [UPLOAD_NONE] = {"none", STATE(UPLOAD_WHOLE) | STATE(UPLOAD_TO_COME)},
    [UPLOAD_WHOLE] = {"whole", 0},
    [UPLOAD_TO_COME] = {"to-come", STATE(UPLOAD_WHOLE) | STATE(UPLOAD_STREAMS)},
    [UPLOAD_STREAMS] = {"streams", STATE(UPLOAD_ENDED)},
    [UPLOAD_ENDED] = {"ended", 0},
};

static const struct state_row proof_states[] = {
    [PROOF_NONE] = {"none", STATE(PROOF_WANTED)},
    [PROOF_WANTED] = {"wanted", STATE(PROOF_ASKED)},
    [PROOF_ASKED] = {"asked", STATE(PROOF_WRONG) | STATE(PROOF_GIVEN)},
    [PROOF_WRONG] = {"wrong", 0},
    [PROOF_GIVEN] = {"given", 0},
};

static const struct state_row claim_states[] = {
    [CLAIM_NONE] = {"none", STATE(CLAIM_ASKED)},
    [CLAIM_FACTS_WANTED] = {"facts-wanted", STATE(CLAIM_FACTS_DUE)},
    [CLAIM_FACTS_DUE] = {"facts-due", STATE(CLAIM_ASKED_AGAIN)},
    [CLAIM_ASKED] = {"asked", STATE(CLAIM_FACTS_WANTED) | STATE(CLAIM_TICKET)},
    [CLAIM_ASKED_AGAIN] = {"asked-again", STATE(CLAIM_TICKET)},
    [CLAIM_TICKET] = {"ticket", STATE(CLAIM_MADE)},
    [CLAIM_LOST] = {"lost", 0},
    [CLAIM_MADE] = {"made", STATE(CLAIM_GRANTED) | STATE(CLAIM_LOST) | STATE(CLAIM_TICKET)},
    [CLAIM_GRANTED] = {"granted", 0},
};

static const struct state_row intent_states[] = {
    [INTENT_NONE] = {"none", STATE(INTENT_ASKED)},
    [INTENT_REFUSED] = {"refused", 0},
    [INTENT_OVER_LIMIT] = {"over-limit", STATE(INTENT_NONE)},
    [INTENT_ASKED] = {"asked", STATE(INTENT_WRITTEN) | STATE(INTENT_REFUSED) | STATE(INTENT_OVER_LIMIT)},
    [INTENT_WRITTEN] = {"written", 0},
};

#define ENDS (STATE(DELIVERY_FINISHED) | STATE(DELIVERY_RELAYED))

static const struct state_row delivery_states[] = {
    [DELIVERY_NONE] = {"none", STATE(DELIVERY_OFFERED)},
    [DELIVERY_OFFERED] = {"offered", STATE(DELIVERY_FORWARDED)},
    [DELIVERY_FORWARDED] = {"forwarded", STATE(DELIVERY_SENT) | STATE(DELIVERY_SWITCHED) | ENDS},
    [DELIVERY_SENT] = {"sent", STATE(DELIVERY_SWITCHED) | ENDS},
    [DELIVERY_SWITCHED] = {"switched", STATE(DELIVERY_CLOSED)},
    [DELIVERY_FINISHED] = {"finished", 0},
    [DELIVERY_RELAYED] = {"relayed", 0},
    [DELIVERY_CLOSED] = {"closed", 0},
};

static const struct state_row websocket_states[] = {
    [WEBSOCKET_NONE] = {"none", STATE(WEBSOCKET_ON)},
    [WEBSOCKET_ON] = {"on", STATE(WEBSOCKET_ENDING)},
    [WEBSOCKET_ENDING] = {"ending", 0},
};

/* A setter asks here first. */
static bool may(struct exchange *x, const struct state_kind *k, unsigned from, unsigned to)
{
    bool may = state_may(k, x->xid, from, to);
    if (!may)
        x->broken = x->judge->broken = true;
    return may;
}

#define SETTER(what)                                                                                                 \
    void exchange_##what(struct exchange *x, enum what##_state to)                                                   \
    {                                                                                                                \
        if (may(x, STATE_KIND(#what, what##_states), x->what, to))                                                   \
            x->what = to;                                                                                            \
    }

bool exchange_wait_may(struct exchange *x, enum x_wait to)
{
    return may(x, STATE_KIND("waits", wait_states), x->wait, to);
}

SETTER(client)
SETTER(upload)
SETTER(proof)
SETTER(claim)
SETTER(intent)
SETTER(delivery)
SETTER(websocket)

void exchange_cancel(struct exchange *x, enum cancel_state why)
{
    static const char *const names[] = {"none", "client-gone", "credential", "frozen", "lease", "policy", "broken"};
    if (x->cancel != CANCEL_NONE)
        return;
    trace_state(x->xid, "cancel", names[x->cancel], names[why]);
    x->cancel = why;
    struct dynbuf *b = post_begin(x->judge, ROLE_CARRIER, 0, M_CANCEL, x->xid);
    if (why == CANCEL_LEASE)
        msg_put_u8(b, 1);               /* streams that ride on it end with it */
    if (post_commit(x->judge, -1) != 0) /* a carrier that cannot be told has ended, and this with it */
        log_exchange(LOG_DEBUG, x->xid, "the carrier could not be told to end it");
}
