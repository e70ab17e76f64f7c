/* CHECK LEASE: what the client brings in place of a credential is one of this gateway's leases, its own, and good for
 * this request; and there is none anywhere else in it. Before anything is enforced: a lease that turns up where it
 * should not is told of, whatever the policy says of the request. A signature made with a lease's key is the keeper's
 * to look at: this step then waits, and runs again. */
#include "proxy/judge/leases/check.h"
#include "proxy/judge/leases/proof.h"
#include "proxy/judge/steps/steps.h"

enum walk_next step_check_lease(struct exchange *x)
{
    if (x->judge->config.shadow) /* it blocks nothing, and gives out no credential that a lease could stand for */
        return WALK_NEXT;
    if (x->proof > PROOF_ASKED && (x->now.image != x->judge->image || !exchange_session_lives(x)))
        return WALK_REWIND; /* while it waited */
    enum refuse_why why = lease_check(x);
    if (why == REFUSE_COUNT && x->proof == PROOF_ASKED) {
        exchange_wait(x, X_PROOF, PROOF_WAIT_MS);
        return WALK_WAIT;
    }
    if (why == REFUSE_COUNT)
        return WALK_NEXT;
    (void)refuse(x, why);
    x->cause = span_str(x->refusal.code); /* in the record also of what the policy denies anyway */
    return WALK_REPLY;
}
