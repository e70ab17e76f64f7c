/* The judge's rows of the walk (proxy/walk.h), and the only place where the step of an exchange changes. */
#include "common/trace.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"

typedef enum walk_next step_fn(struct exchange *x);

/* Rows that are not the judge's are empty and passed over. */
static step_fn *const rows[WALK_END] = {
    [WALK_EVALUATE] = step_evaluate,
    [WALK_CHECK_LEASE] = step_check_lease,
    [WALK_ENFORCE] = step_enforce,
    [WALK_HOLD] = step_hold,
    [WALK_RECORD_INTENT] = step_record_intent,
    [WALK_RELEASE] = step_release,
    [WALK_RECORD_RESULT] = step_record_result,
};

/* Where the exchange goes on after its step said so. False: it waits. */
static bool follow(struct exchange *x, enum walk_next said)
{
    static const enum walk_step to[] = {[WALK_REWIND] = WALK_EVALUATE,
                                        [WALK_REPLY] = WALK_RECORD_RESULT,
                                        [WALK_FAIL] = WALK_RECORD_RESULT,
                                        [WALK_DONE] = WALK_END};
    trace_step(x->xid, walk_name(x->step), walk_next_name(said));
    if (said == WALK_WAIT)
        return false;
    if (said == WALK_FAIL)
        refuse_step(x, x->step);
    x->step = said == WALK_NEXT ? x->step + 1 : to[said];
    return true;
}

void walk_run(struct exchange *x)
{
    while (x->step < WALK_END)
        if (rows[x->step] == NULL)
            x->step++;
        else if (!follow(x, x->broken && x->step < WALK_RECORD_RESULT ? WALK_FAIL : rows[x->step](x)))
            return;
    exchange_end(x, "done");
}

void refuse_now(struct exchange *x, enum refuse_why why)
{
    exchange_wait(x, X_RUNS, 0);
    (void)follow(x, refuse(x, why));
    walk_run(x);
}
