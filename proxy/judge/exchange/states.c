/* Which state may become which: all else is a bug, and is refused. */
#include "proxy/judge/exchange/states.h"

#include "common/log.h"
#include "common/trace.h"
#include "proxy/judge/exchange/exchange.h"

#define TO(state) (1u << (state))

struct state {
    const char *name;
    unsigned next;
};

static const struct state wait_states[] = {
    [X_RUNS] = {"runs", ~0u},
    [X_BODY] = {"body", TO(X_RUNS)},
    [X_TICKET] = {"ticket", TO(X_RUNS)},
    [X_PARKED] = {"parked", TO(X_RUNS)},
    [X_CLAIM] = {"claim", TO(X_RUNS) | TO(X_CLAIM)},
    [X_INTENT] = {"intent", TO(X_RUNS) | TO(X_INTENT)},
    [X_RESULT] = {"result", TO(X_RUNS) | TO(X_RESULT)},
};

static const struct state client_states[] = {
    [CLIENT_GONE] = {"gone", 0},
    [CLIENT_WAITS] = {"waits", TO(CLIENT_GONE) | TO(CLIENT_ANSWERED)},
    [CLIENT_ANSWERED] = {"answered", 0},
};

static const struct state upload_states[] = {
    [UPLOAD_NONE] = {"none", TO(UPLOAD_WHOLE) | TO(UPLOAD_TO_COME)},
    [UPLOAD_WHOLE] = {"whole", 0},
    [UPLOAD_TO_COME] = {"to-come", TO(UPLOAD_WHOLE) | TO(UPLOAD_STREAMS)},
    [UPLOAD_STREAMS] = {"streams", TO(UPLOAD_ENDED)},
    [UPLOAD_ENDED] = {"ended", 0},
};

static const struct state claim_states[] = {
    [CLAIM_NONE] = {"none", TO(CLAIM_ASKED)},
    [CLAIM_FACTS_WANTED] = {"facts-wanted", TO(CLAIM_FACTS_DUE)},
    [CLAIM_FACTS_DUE] = {"facts-due", TO(CLAIM_ASKED_AGAIN)},
    [CLAIM_ASKED] = {"asked", TO(CLAIM_FACTS_WANTED) | TO(CLAIM_TICKET)},
    [CLAIM_ASKED_AGAIN] = {"asked-again", TO(CLAIM_TICKET)},
    [CLAIM_TICKET] = {"ticket", TO(CLAIM_MADE)},
    [CLAIM_LOST] = {"lost", 0},
    [CLAIM_MADE] = {"made", TO(CLAIM_GRANTED) | TO(CLAIM_LOST)},
    [CLAIM_GRANTED] = {"granted", 0},
};

static const struct state intent_states[] = {
    [INTENT_NONE] = {"none", TO(INTENT_ASKED)},
    [INTENT_REFUSED] = {"refused", 0},
    [INTENT_OVER_LIMIT] = {"over-limit", TO(INTENT_NONE)},
    [INTENT_ASKED] = {"asked", TO(INTENT_WRITTEN) | TO(INTENT_REFUSED) | TO(INTENT_OVER_LIMIT)},
    [INTENT_WRITTEN] = {"written", 0},
};

#define ENDS (TO(DELIVERY_FINISHED) | TO(DELIVERY_RELAYED))

static const struct state delivery_states[] = {
    [DELIVERY_NONE] = {"none", TO(DELIVERY_OFFERED)},
    [DELIVERY_OFFERED] = {"offered", TO(DELIVERY_FORWARDED)},
    [DELIVERY_FORWARDED] = {"forwarded", TO(DELIVERY_SENT) | TO(DELIVERY_SWITCHED) | ENDS},
    [DELIVERY_SENT] = {"sent", TO(DELIVERY_SWITCHED) | ENDS},
    [DELIVERY_SWITCHED] = {"switched", TO(DELIVERY_CLOSED)},
    [DELIVERY_FINISHED] = {"finished", 0},
    [DELIVERY_RELAYED] = {"relayed", 0},
    [DELIVERY_CLOSED] = {"closed", 0},
};

static const struct state websocket_states[] = {
    [WEBSOCKET_NONE] = {"none", TO(WEBSOCKET_ON)},
    [WEBSOCKET_ON] = {"on", TO(WEBSOCKET_ENDING)},
    [WEBSOCKET_ENDING] = {"ending", 0},
};

static bool may(struct exchange *x, const char *what, const struct state *all, unsigned from, unsigned to)
{
    if ((all[from].next & TO(to)) == 0) {
        log_exchange(LOG_ERROR, x->xid, "at %s: \"%s\" cannot go from %s to %s: it is given up", walk_name(x->step),
                     what, all[from].name, all[to].name);
        x->broken = x->judge->broken = true;
        return false;
    }
    trace_state(x->xid, what, all[from].name, all[to].name);
    return true;
}

bool exchange_wait_may(struct exchange *x, enum x_wait to)
{
    return may(x, "waits", wait_states, x->wait, to);
}

static const struct state cancel_states[] = {
    [CANCEL_NONE] = {"none", ~TO(CANCEL_NONE)},
    [CANCEL_CLIENT_GONE] = {"client-gone", 0},
    [CANCEL_CREDENTIAL] = {"credential", 0},
    [CANCEL_FROZEN] = {"frozen", 0},
    [CANCEL_BROKEN] = {"broken", 0},
};

#define SETTER(what)                                                                                                 \
    void exchange_##what(struct exchange *x, enum what##_state to)                                                   \
    {                                                                                                                \
        if (may(x, #what, what##_states, x->what, to))                                                               \
            x->what = to;                                                                                            \
    }

SETTER(client)
SETTER(upload)
SETTER(claim)
SETTER(intent)
SETTER(delivery)
SETTER(websocket)

void exchange_cancel(struct exchange *x, enum cancel_state why)
{
    struct judge *j = x->judge;
    if (x->cancel != CANCEL_NONE || !may(x, "cancel", cancel_states, x->cancel, why))
        return;
    x->cancel = why;
    if (j->ports.begin(j->ports.arg, ROLE_CARRIER, 0, M_CANCEL, x->xid) != NULL &&
        j->ports.commit(j->ports.arg, ROLE_CARRIER, 0, -1) != 0)
        log_exchange(LOG_WARN, x->xid, "could not be cancelled at the carrier");
}
