#include "broker/loop/loop_in.h"

#include "common/state.h"

#define STOP (STATE(LOOP_ENDING) | STATE(LOOP_STOPPED))
static const struct state_row rows[LOOP_STATES] = {
    [LOOP_NONE] = {"none", STATE(LOOP_REVOKING) | STATE(LOOP_BEGINNING) | STATE(LOOP_ACTING) | STOP},
    [LOOP_REVOKING] = {"revoking", STATE(LOOP_BEGINNING) | STATE(LOOP_ACTING) | STATE(LOOP_SETTLING) | STOP},
    [LOOP_BEGINNING] = {"beginning", STATE(LOOP_THINKING) | STOP},
    [LOOP_THINKING] = {"thinking", STATE(LOOP_BEGINNING) | STATE(LOOP_PLANNING) | STOP},
    [LOOP_PLANNING] = {"planning", STATE(LOOP_ACTING) | STATE(LOOP_SETTLING) | STATE(LOOP_STOPPED)},
    [LOOP_ACTING] = {"acting", STATE(LOOP_SETTLING) | STATE(LOOP_STOPPED)},
    [LOOP_SETTLING] = {"settling", STATE(LOOP_BEGINNING) | STOP},
    [LOOP_ENDING] = {"ending", STATE(LOOP_OVER) | STATE(LOOP_STOPPED)},
    [LOOP_OVER] = {"over", 0},
    [LOOP_STOPPED] = {"stopped", 0},
};

const char *agent_state_name(enum loop_state s)
{
    return rows[(unsigned)s < LOOP_STATES ? s : LOOP_NONE].name;
}

void agent_act(struct loop_actions *out, struct loop_action a)
{
    if (out->n < LOOP_ACTIONS_MAX)
        out->a[out->n++] = a;
}

/* What may not be is a fault of ours: the worker lets go, and the next one begins anew from the store. */
static bool enter(struct agent *l, enum loop_state to, struct loop_actions *out)
{
    bool may = state_may(STATE_KIND("turn", rows), 0, l->state, to);
    l->state = may ? to : LOOP_STOPPED;
    if (!may)
        out->n = 0;
    return may;
}

static void finish(struct agent *l, enum turn_end end, struct loop_actions *out)
{
    if (enter(l, LOOP_ENDING, out))
        agent_act(out, (struct loop_action){.what = DO_FINISH, .step = l->step, .turn = end});
}

/* Which budget is used up? */
static enum turn_end spent(const struct agent *l, uint64_t now_ms)
{
    const struct budget *b = &l->budget;
    if (l->used.steps >= b->steps)
        return END_STEPS;
    if (b->tokens && l->used.tokens >= b->tokens)
        return END_TOKENS;
    if (b->cost_micro && l->used.cost_micro >= b->cost_micro)
        return END_COST;
    if (b->wall_ms && now_ms >= l->started_ms && now_ms - l->started_ms >= b->wall_ms)
        return END_TIME;
    return END_NONE;
}

static void next_step(struct agent *l, uint64_t now_ms, struct loop_actions *out)
{
    enum turn_end end = l->wanted ? l->wanted : spent(l, now_ms);
    l->calls = 0;
    if (end != END_NONE)
        finish(l, end, out);
    else if (enter(l, LOOP_BEGINNING, out))
        agent_act(out, (struct loop_action){.what = DO_BEGIN, .step = l->step});
}

static void settle_step(struct agent *l, struct loop_actions *out)
{
    bool rewind = false;
    for (size_t i = 0; i < l->calls; i++)
        rewind |= l->call[i].end == CALL_UNKNOWN;
    if (enter(l, LOOP_SETTLING, out))
        agent_act(out, (struct loop_action){.what = DO_CHECKPOINT, .step = l->step, .rewind = rewind});
}

/* In the order in which they were asked for: what only reads runs side by side, until the first that changes
 * something; that one and each behind it waits until all before it are settled, since it was meant to find what they
 * leave. */
static bool may_begin(const struct agent *l, size_t ord)
{
    bool reads = l->call[ord].asked.class == CALL_READ;
    for (size_t i = 0; i < ord; i++)
        if (l->call[i].at != AT_END && !(reads && l->call[i].asked.class == CALL_READ))
            return false;
    return true;
}

/* Those whose turn it is; where nothing more is run, all of them. */
static void begin_calls(struct agent *l, struct loop_actions *out)
{
    for (size_t i = 0; i < l->calls; i++) {
        if (l->call[i].at != AT_REST || (!l->cut && !may_begin(l, i)))
            continue;
        if (l->call[i].found)
            agent_ask(l, i, out);
        else
            agent_run(l, i, out);
    }
}

static void settle_if_all(struct agent *l, struct loop_actions *out)
{
    for (size_t i = 0; i < l->calls; i++)
        if (l->call[i].at != AT_END)
            return;
    settle_step(l, out);
}

/* The calls of this step are known: is there a reason to run none of them? It depends on what is written down alone,
 * so that who takes the turn over finds the same. A summary between two steps is none, and changes nothing of what
 * the model asked for before it. */
static void judge(struct agent *l)
{
    struct digest batch = agent_batch(l);
    struct used before = l->used;
    if (l->summary)
        return;
    if (l->calls == 0)
        l->same = 0;
    else
        l->same = memcmp(batch.b, l->last.b, DIGEST_BYTES) == 0 ? l->same + 1 : 1;
    if (l->wanted == END_NONE && l->calls && l->same >= l->budget.same_calls)
        l->wanted = END_SAME_CALLS;
    l->used.steps = 0; /* the last step that may be taken runs its calls */
    if (l->wanted == END_NONE && l->calls)
        l->wanted = spent(l, l->started_ms);
    l->used = before;
    l->cut |= l->wanted != END_NONE;
}

/* Cancelled, or out of time. What runs is told to end and is settled; nothing more is begun. */
static void stop(struct agent *l, enum turn_end end, struct loop_actions *out)
{
    if (l->wanted == END_NONE)
        l->wanted = end;
    l->cut = true;
    if (l->state == LOOP_THINKING) {
        agent_act(out, (struct loop_action){.what = DO_NOT_THINK, .step = l->step});
        finish(l, l->wanted, out);
    }
    for (size_t i = 0; l->state == LOOP_ACTING && i < l->calls; i++)
        if (l->call[i].at == AT_RUN && !l->call[i].aborted) {
            l->call[i].aborted = true;
            agent_act(out, (struct loop_action){.what = DO_ABORT, .step = l->step, .ord = i});
        }
    if (l->state == LOOP_ACTING)
        begin_calls(l, out);
}

/* --- begun ------------------------------------------------------------------------------ */

/* Nobody else can send for this turn any more. */
static void go_on(struct agent *l, bool planned, uint64_t now_ms, struct loop_actions *out)
{
    if (!planned) {
        next_step(l, now_ms, out);
        return;
    }
    if (!enter(l, LOOP_ACTING, out))
        return;
    begin_calls(l, out);
    settle_if_all(l, out);
}

void agent_begin(struct agent *l, const struct loop_found *f, struct loop_actions *out)
{
    out->n = 0;
    *l = (struct agent){.budget = f->budget,
                        .used = f->used,
                        .started_ms = f->started_ms,
                        .step = f->settled + 1,
                        .attempts = f->attempts,
                        .planned = f->planned,
                        .summary = f->planned && f->summary};
    for (size_t i = 0; f->planned && i < f->n && i < TURN_CALLS_MAX; i++)
        l->call[l->calls++] = (struct loop_call){
            .asked = f->asked[i], .at = f->end[i] != CALL_OPEN ? AT_END : AT_REST, .end = f->end[i], .found = true};
    bool ours = agent_load(l, f->kept);
    if (f->planned)
        judge(l);
    if (f->planned && l->calls == 0 && !l->summary)
        l->wanted = f->cut ? END_CUT : END_COMPLETED;
    if (!ours) {
        l->wanted = END_STUCK; /* its calls are settled as they are known to be, and nothing more is run */
        l->cut = true;
    }
    if (f->cancelled)
        stop(l, END_CANCELLED, out);
    if (f->ends != END_NONE)
        stop(l, f->ends, out);
    if (f->epoch > 1) {
        if (enter(l, LOOP_REVOKING, out))
            agent_act(out, (struct loop_action){.what = DO_REVOKE, .step = l->step});
    } else {
        go_on(l, f->planned, f->now_ms, out);
    }
}

/* --- heard ------------------------------------------------------------------------------ */

static bool begun(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    l->attempts = e->attempts;
    l->summary = e->summary;
    if (l->wanted != END_NONE)
        finish(l, l->wanted, out);
    else if (e->attempts > LOOP_ATTEMPTS_MAX)
        finish(l, END_MODEL, out);
    else if (enter(l, LOOP_THINKING, out))
        agent_act(out, (struct loop_action){.what = DO_THINK, .step = l->step});
    return true;
}

static bool answered(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    if (e->n > (l->summary ? 0 : TURN_CALLS_MAX)) {
        finish(l, END_BAD_MODEL, out);
        return true;
    }
    l->used.tokens += e->used.tokens;
    l->used.cost_micro += e->used.cost_micro;
    l->calls = 0;
    for (size_t i = 0; i < e->n; i++)
        l->call[l->calls++] = (struct loop_call){.asked = e->asked[i]};
    if (e->n == 0 && !l->summary)
        l->wanted = e->cut ? END_CUT : END_COMPLETED;
    judge(l);
    if (enter(l, LOOP_PLANNING, out))
        agent_act(out, (struct loop_action){.what = DO_PLAN, .step = l->step, .n = l->calls});
    return true;
}

static bool no_answer(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    if (!e->retry || l->attempts >= LOOP_ATTEMPTS_MAX)
        finish(l, END_MODEL, out);
    else if (enter(l, LOOP_STOPPED, out))
        agent_act(out, (struct loop_action){.what = DO_GIVE_BACK, .step = l->step, .after_ms = e->after_ms});
    return true;
}

/* What it has wasted by then stands in the price of its answer, or of none. */
static bool begin_again(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    if (l->budget.tokens && l->used.tokens + e->used.tokens >= l->budget.tokens)
        finish(l, END_TOKENS, out);
    else if (enter(l, LOOP_BEGINNING, out))
        agent_act(out, (struct loop_action){.what = DO_BEGIN, .step = l->step});
    return true;
}

static bool written(struct agent *l, struct loop_actions *out)
{
    if (l->calls == 0) {
        settle_step(l, out);
        return true;
    }
    if (enter(l, LOOP_ACTING, out))
        begin_calls(l, out);
    return true;
}

/* Of a call: is it one that waits for this? */
static bool of_call(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    if (e->ord >= l->calls)
        return false;
    struct loop_call *c = &l->call[e->ord];
    if (e->heard == HEARD_DONE && c->at == AT_RUN) {
        if (e->end == CALL_DONE || e->end == CALL_ERROR)
            agent_settle(l, e->ord, e->end, out);
        else
            agent_ask(l, e->ord, out); /* it was cut off: whether it had left, others know */
        return true;
    }
    if ((e->heard == HEARD_KNOWN && c->at == AT_ASKED) || (e->heard == HEARD_LOOKED && c->at == AT_LOOKED)) {
        agent_known(l, e, out);
        return true;
    }
    if (e->heard == HEARD_SETTLED && c->at == AT_SETTLING) {
        c->at = AT_END;
        begin_calls(l, out);
        settle_if_all(l, out);
        return true;
    }
    return false;
}

static bool step_over(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    l->last = agent_batch(l);
    l->summary = false;
    l->used.steps++;
    l->step++;
    l->attempts = 0;
    next_step(l, e->now_ms, out);
    return true;
}

/* What may come at any time. */
static bool any_time(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    const struct budget *b = &l->budget;
    if (l->state == LOOP_OVER || l->state == LOOP_STOPPED || l->state == LOOP_NONE)
        return e->heard == HEARD_TICK;
    if (e->heard == HEARD_FENCED || e->heard == HEARD_FAILED)
        (void)enter(l, LOOP_STOPPED, out);
    else if (e->heard == HEARD_CANCEL)
        stop(l, END_CANCELLED, out);
    else if (b->wall_ms && e->now_ms >= l->started_ms && e->now_ms - l->started_ms >= b->wall_ms)
        stop(l, END_TIME, out);
    return true;
}

static bool of_model(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    switch (e->heard) {
    case HEARD_ANSWER: return answered(l, e, out);
    case HEARD_LONG: return begin_again(l, e, out);
    case HEARD_BUDGET: finish(l, END_BUDGET, out); return true;
    default: return no_answer(l, e, out);
    }
}

bool agent_hear(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    out->n = 0;
    if (e->heard >= HEARD_CANCEL)
        return any_time(l, e, out);
    switch (l->state) {
    case LOOP_REVOKING:
        if (e->heard == HEARD_REVOKED)
            go_on(l, l->planned, e->now_ms, out);
        return e->heard == HEARD_REVOKED;
    case LOOP_BEGINNING: return e->heard == HEARD_BEGUN && begun(l, e, out);
    case LOOP_THINKING: return heard_of_model(e->heard) && of_model(l, e, out);
    case LOOP_PLANNING: return e->heard == HEARD_PLANNED && written(l, out);
    case LOOP_ACTING: return of_call(l, e, out);
    case LOOP_SETTLING: return e->heard == HEARD_STEP && step_over(l, e, out);
    case LOOP_ENDING: return e->heard == HEARD_ENDED && enter(l, LOOP_OVER, out);
    case LOOP_NONE:
    case LOOP_OVER:
    case LOOP_STOPPED:
    default: return false;
    }
}
