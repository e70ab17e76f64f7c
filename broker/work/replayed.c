/* Calls of a turn that is asked once more: they give what those of the recorded turn gave, and nothing is run. */
#include "broker/work/tools.h"

/* Its end in words stands before what it said (task.c puts it there again). */
static struct span without_words(enum call_end end, struct span result)
{
    struct span words = span_str(call_end_words(end));
    if (words.n == 0 || !span_starts(result, words))
        return result;
    return span_from(result, words.n + (result.n > words.n ? 1 : 0));
}

void replay_call(struct task *t, uint64_t ord)
{
    struct work_call *c = &t->call[ord];
    struct bstore_replayed r;
    if (!task_passed(t, bstore_replayed(t->w->store, &t->claim, t->step, ord, &c->call, &t->step_arena, &r)))
        return;
    struct span said = without_words(r.end, r.result);
    if (r.end == CALL_OPEN)
        task_done(
            t, ord, CALL_ERROR,
            SPAN("This turn is a replay with recorded tools: a call has a result only if the recorded turn made "
                 "the same one, with the same arguments, as often. Nothing was run."));
    else if (r.end == CALL_UNKNOWN) {
        c->blind = true; /* recall_ask: it stays so */
        task_done(t, ord, CALL_UNKNOWN, said);
    } else
        task_done(t, ord, r.end == CALL_DONE ? CALL_DONE : CALL_ERROR, said);
}
