/* RECORD RESULT: always runs. The last word to the client if it had none, the outcome or the
 * refusal to the ledger. */
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"

enum walk_next step_record_result(struct exchange *x)
{
    if (x->refusal.code && !x->replied)
        refuse_send(x);
    if (x->forwarded && !x->finished) {
        exchange_wait(x, X_RESULT, websocket_left(x)); /* the carrier has all other timers */
        return WALK_WAIT;
    }
    if (!x->forwarded)
        x->outcome = OUTCOME_NOT_SENT;
    if (x->socket.switched)
        record_websocket(x);
    else if (x->forwarded || x->intent || x->claimed)
        record_outcome(x);
    else if (!x->quiet)
        record_audit(x);
    return WALK_DONE;
}
