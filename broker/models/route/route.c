#include "broker/models/route/route.h"

enum {
    ANSWER_LEAST = 256, /* tokens: with less room than that no answer is worth its question */
    ROOMY_PART = 8
};

static const struct route_task *task_of(const struct route_table *t, struct span name)
{
    for (size_t i = 0; i < t->ntasks; i++)
        if (name.n > 0 && span_eq(t->task[i].name, name))
            return &t->task[i];
    return NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Of its window, for the answer. */
static uint64_t room(const struct route_model *m, const struct route_ask *ask, uint64_t want)
{
    uint64_t part = ask->roomy ? m->context / ROOMY_PART : 0;
    return least(want, part > ANSWER_LEAST ? part : ANSWER_LEAST);
}

/* May this one be asked, how long may its answer be, what may it come to? Privacy is looked at first: of a model that
 * may not see a conversation nothing else is of any account. */
static enum route_why weigh(const struct route_model *m, size_t i, const struct route_ask *ask, uint64_t *tokens,
                            uint64_t *most)
{
    uint64_t want = least(ask->output, m->output);
    if (ask->privacy == NULL || !model_may_see(ask->privacy, m->target.name))
        return ROUTE_PRIVATE;
    if (want == 0 || ask->input >= m->context || m->context - ask->input < room(m, ask, want))
        return ROUTE_TOO_LONG;
    *tokens = least(want, m->context - ask->input);
    if (meter_most(&m->price, ask->input, *tokens, most) != 0 || !meter_allows(ask->limit, ask->spent, *most))
        return ROUTE_DEAR;
    if (ask->tried >> i & 1)
        return ROUTE_TRIED;
    return ask->down != NULL && ask->down[i] > ask->now_ms ? ROUTE_DOWN : ROUTE_FOUND;
}

struct route_found route_pick(const struct route_table *t, const struct route_ask *ask)
{
    struct route_found best = {.why = ROUTE_NO_TASK};
    const struct route_task *task = task_of(t, ask->task);
    size_t found = 0;
    for (size_t i = 0; task != NULL && i < task->n; i++) {
        size_t k = task->model[i];
        uint64_t tokens = 0, most = 0;
        if (k >= t->n || k >= ROUTE_MODELS_MAX)
            continue;
        enum route_why why = weigh(&t->model[k], k, ask, &tokens, &most);
        if (why == ROUTE_DOWN && (best.until_ms == 0 || ask->down[k] < best.until_ms))
            best.until_ms = ask->down[k];
        found += why == ROUTE_FOUND;
        bool first = why == ROUTE_FOUND && best.why != ROUTE_FOUND;
        if (first || (why == ROUTE_FOUND && task->by_price && most < best.most)) {
            best.why = ROUTE_FOUND;
            best.model = k;
            best.max_tokens = tokens;
            best.most = most;
            best.input = ask->input;
        } else if (best.why != ROUTE_FOUND && why > best.why) {
            best.why = why; /* the one that came nearest to being asked */
        }
    }
    best.other = found > 1;
    return best;
}

uint64_t route_window(const struct route_table *t, const struct route_ask *ask)
{
    const struct route_task *task = task_of(t, ask->task);
    uint64_t most = 0;
    for (size_t i = 0; task != NULL && i < task->n; i++) {
        const struct route_model *m = task->model[i] < t->n ? &t->model[task->model[i]] : NULL;
        if (m != NULL && ask->privacy != NULL && model_may_see(ask->privacy, m->target.name) && m->context > most)
            most = m->context;
    }
    return most;
}

const char *route_words(enum route_why why)
{
    switch (why) {
    case ROUTE_FOUND: return "A model was found.";
    case ROUTE_PRIVATE: return "This conversation is private, and none of its models is there for this task.";
    case ROUTE_TOO_LONG: return "The conversation is longer than any model of this task takes.";
    case ROUTE_DEAR: return "The budget does not allow another request.";
    case ROUTE_DOWN: return "No model of this task can be reached now.";
    case ROUTE_TRIED: return "Each model of this task has been tried.";
    default: return "There is no model for this task.";
    }
}
