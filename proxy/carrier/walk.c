/* The carrier's rows of the walk (proxy/walk.h), and the only place where the step of an exchange changes. */
#include "common/trace.h"
#include "proxy/carrier/exchange.h"
#include "proxy/carrier/share.h"

typedef enum walk_next step_fn(struct exchange *x);
static step_fn *const rows[WALK_END] = {
    [WALK_AWAIT_CREDENTIAL] = step_await_credential, [WALK_FORWARD] = step_forward, [WALK_SCRUB] = step_scrub};

/* False: it waits, and may be resumed. A code stands where something failed; so it does after a change of state that
 * cannot be. */
static bool run(struct exchange *x)
{
    enum walk_next said = x->code == NULL && rows[x->step] ? rows[x->step](x) : WALK_FAIL;
    if (x->code != NULL)
        said = WALK_FAIL;
    if (said != WALK_WAIT || x->waited != x->step) /* one mark for all its waits */
        trace_step(x->xid, walk_name(x->step), walk_next_name(said));
    x->waited = x->step;
    if (said == WALK_FAIL && x->code == NULL)
        (void)carry_fail(x, walk_code(x->step), "the carrier could not go on");
    if (said == WALK_NEXT)
        x->step++;
    else if (said == WALK_REWIND)
        x->step = WALK_AWAIT_CREDENTIAL;
    else if (said != WALK_WAIT)
        carry_end(x);
    return said == WALK_NEXT || said == WALK_REWIND;
}

void carry_resume(struct exchange *x)
{
    struct front *front = x->front;
    uint64_t began = share_begin(front->carrier);
    while (run(x))
        ;
    share_end(front, began);
}
