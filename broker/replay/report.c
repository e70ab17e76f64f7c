#include "broker/replay/report.h"

#include <stdio.h>

#include "common/text/visible.h"

const char *report_mode(const struct score *s)
{
    return s->live != NULL ? "live" : s->then == NULL ? "strict" : "tools-recorded";
}

const char *report_words(const struct score *s)
{
    if (s->live != NULL)
        return "live: models are asked now, and tools are run, for each run in a sandbox of its own.";
    return s->then == NULL
               ? "strict: what models answered, what tools gave and how long both took is as it was recorded."
               : "with recorded tools: models are asked now, and calls give at once what the same calls gave then.";
}

uint64_t report_turns(const struct score *s)
{
    return s->live != NULL ? s->live->set->n : s->set->n;
}

const char *report_live_state(enum live_state state)
{
    return state == LIVE_RAN ? "ran" : state == LIVE_LOST ? "lost" : "not-begun";
}

uint64_t report_same_ends(const struct score *s)
{
    uint64_t n = 0;
    for (size_t i = 0; s->then != NULL && i < s->set->n && i < s->then->set->n; i++)
        n += s->set->run[i].end == s->then->set->run[i].end;
    return n;
}

struct span report_end(const struct again *r, char room[96])
{
    static const char *const states[AGAIN_STATES] = {[AGAIN_NOT] = "not gone through",
                                                     [AGAIN_ENDED] = "",
                                                     [AGAIN_AS_THEN] = "as recorded: ",
                                                     [AGAIN_UNRECORDED] = "beyond what is recorded",
                                                     [AGAIN_ENDLESS] = "without an end"};
    bool named = r->state == AGAIN_ENDED || r->state == AGAIN_AS_THEN;
    (void)snprintf(room, 96, "%s%s", states[r->state], named ? turn_end_name(r->end) : "");
    return span_str(room);
}

const char *report_share(uint64_t n, uint64_t of, char room[32])
{
    uint64_t t = of > 0 ? n * 1000 / of : 0;
    if (of > 0)
        (void)snprintf(room, 32, "%llu.%llu %%", (unsigned long long)(t / 10), (unsigned long long)(t % 10));
    else
        (void)snprintf(room, 32, "-");
    return room;
}

const char *report_quotient(uint64_t n, uint64_t by, char room[32])
{
    uint64_t h = by > 0 ? n * 100 / by : 0;
    if (by > 0)
        (void)snprintf(room, 32, "%llu.%02llu", (unsigned long long)(h / 100), (unsigned long long)(h % 100));
    else
        (void)snprintf(room, 32, "-");
    return room;
}
