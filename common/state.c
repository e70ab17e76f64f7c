#include "common/state.h"

#include "common/log.h"
#include "common/trace.h"

static const char *name_of(const struct state_kind *k, unsigned s)
{
    return s < k->n ? k->row[s].name : "none that there is";
}

bool state_may(const struct state_kind *k, uint64_t exchange, unsigned from, unsigned to)
{
    bool may = from < k->n && to < k->n && (k->row[from].next & STATE(to)) != 0;
    if (may)
        trace_state(exchange, k->what, k->row[from].name, k->row[to].name);
    else
        log_exchange(LOG_ERROR, exchange, "%s: %s -> %s, which cannot be", k->what, name_of(k, from), name_of(k, to));
    return may;
}
