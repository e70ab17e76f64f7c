/* RECORD RESULT: always runs. The last word to the client if it had none, the outcome or the
 * refusal to the ledger. */
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"

enum walk_next step_record_result(struct exchange *x)
{
    if (x->refusal.code)
        refuse_send(x);
    bool forwarded = x->delivery >= DELIVERY_FORWARDED;
    if (forwarded && x->delivery < DELIVERY_FINISHED) {
        exchange_wait(x, X_RESULT, websocket_left(x)); /* the carrier has all other timers */
        return WALK_WAIT;
    }
    if (!forwarded)
        x->outcome = OUTCOME_NOT_SENT;
    if (x->delivery == DELIVERY_CLOSED)
        record_websocket(x);
    else if (forwarded || exchange_owes_outcome(x))
        record_outcome(x);
    else
        record_audit(x);
    return WALK_DONE;
}
