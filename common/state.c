#include "common/state.h"

#include "common/log.h"

static const char *name_of(const struct state_kind *k, unsigned s)
{
    return s < k->n ? k->row[s].name : "none that there is";
}

bool state_may(const struct state_kind *k, uint64_t exchange, unsigned from, unsigned to)
{
    bool may = from < k->n && to < k->n && (k->row[from].next & STATE(to)) != 0;
    log_exchange(may ? LOG_DEBUG : LOG_ERROR, exchange, "%s: %s -> %s%s", k->what, name_of(k, from), name_of(k, to),
                 may ? "" : ", which cannot be");
    return may;
}
