#include "common/trace.h"
#include "proxy/judge/refuse.h"
#include "proxy/judge/steps.h"

typedef enum walk_next step_fn(struct exchange *x);

/* Rows that are not the judge's are empty and passed over. */
static step_fn *const rows[WALK_END] = {
    [WALK_CLASSIFY] = step_classify,    [WALK_DECIDE] = step_decide,   [WALK_HOLD] = step_hold,
    [WALK_RECORD_INTENT] = step_record, [WALK_RELEASE] = step_release, [WALK_RECORD_RESULT] = step_result,
};

void walk_run(struct exchange *x)
{
    while (x->step < WALK_END) {
        enum walk_next next = rows[x->step] ? rows[x->step](x) : WALK_NEXT;
        if (rows[x->step] != NULL)
            trace_step(x->xid, walk_name(x->step), walk_next_name(next));
        switch (next) {
        case WALK_NEXT: x->step++; break;
        case WALK_WAIT: return;
        case WALK_FAIL:
            refuse_step(x, x->step);
            x->step = WALK_RECORD_RESULT;
            break;
        case WALK_REPLY: x->step = WALK_RECORD_RESULT; break;
        case WALK_DONE: x->step = WALK_END; break;
        }
    }
    exchange_end(x, "done");
}
