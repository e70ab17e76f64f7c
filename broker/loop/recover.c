/* A call of which the end is not known: what is done with it goes by what is known and by its class, and by nothing
 * else. */
#include "broker/loop/loop_in.h"

/* It was meant to find what those before it leave, and of one of them nobody knows that. Reading is no harm. */
static bool is_behind_unknown(const struct agent *l, uint64_t ord)
{
    for (uint64_t i = 0; i < ord && l->call[ord].asked.class != CALL_READ; i++)
        if (l->call[i].end == CALL_UNKNOWN)
            return true;
    return false;
}

void agent_run(struct agent *l, uint64_t ord, struct loop_actions *out)
{
    struct loop_call *c = &l->call[ord];
    if (l->cut || c->runs >= LOOP_RUNS_MAX ||
        is_behind_unknown(l, ord)) { /* nothing of it has left: whoever comes here knows that */
        agent_settle(l, ord, CALL_NOT_RUN, out);
        return;
    }
    c->at = AT_RUN;
    c->runs++;
    agent_act(out, (struct loop_action){.what = DO_RUN, .step = l->step, .ord = ord});
}

void agent_ask(struct agent *l, uint64_t ord, struct loop_actions *out)
{
    l->call[ord].at = AT_ASKED;
    agent_act(out, (struct loop_action){.what = DO_ASK, .step = l->step, .ord = ord});
}

void agent_settle(struct agent *l, uint64_t ord, enum call_end end, struct loop_actions *out)
{
    l->call[ord].at = AT_SETTLING;
    l->call[ord].end = end;
    agent_act(out, (struct loop_action){.what = DO_SETTLE, .step = l->step, .ord = ord, .end = end});
}

/* It may have happened. */
static void doubtful(struct agent *l, uint64_t ord, struct loop_actions *out)
{
    struct loop_call *c = &l->call[ord];
    bool again = !l->cut && c->runs < LOOP_RUNS_MAX && !is_behind_unknown(l, ord);
    if (again && (c->asked.class == CALL_READ || c->asked.class == CALL_IDEMPOTENT)) {
        agent_run(l, ord, out);
    } else if (c->asked.class == CALL_RECONCILABLE && !c->looked) {
        c->at = AT_LOOKED;
        c->looked = true;
        agent_act(out, (struct loop_action){.what = DO_LOOK, .step = l->step, .ord = ord});
    } else {
        agent_settle(l, ord, CALL_UNKNOWN, out);
    }
}

void agent_known(struct agent *l, const struct loop_event *e, struct loop_actions *out)
{
    bool waits = e->heard == HEARD_KNOWN;
    switch (e->known) {
    case KNOWN_NOT_SENT: agent_run(l, e->ord, out); break;
    case KNOWN_ANSWERED: agent_settle(l, e->ord, e->end == CALL_DONE ? CALL_DONE : CALL_ERROR, out); break;
    case KNOWN_GOING:
        if (!waits) {
            doubtful(l, e->ord, out);
            break;
        }
        l->call[e->ord].at = AT_RUN;
        l->call[e->ord].aborted = l->cut;
        agent_act(out, (struct loop_action){.what = DO_WAIT, .step = l->step, .ord = e->ord});
        if (l->cut)
            agent_act(out, (struct loop_action){.what = DO_ABORT, .step = l->step, .ord = e->ord});
        break;
    case KNOWN_SENT:
    case KNOWN_NOTHING:
    default: doubtful(l, e->ord, out);
    }
}
