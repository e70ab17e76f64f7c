/* What the configuration has for sandboxes, by name and tenant. */
#include "proxy/parent/config/config.h"

const struct config_mount *config_mount(const struct config *c, struct span name)
{
    for (size_t i = 0; i < c->nmounts; i++)
        if (span_eq(span_str(c->mount[i].name), name))
            return &c->mount[i];
    return NULL;
}

const struct config_pool *config_pool(const struct config *c, struct span name)
{
    for (size_t i = 0; i < c->npools; i++)
        if (span_eq(span_str(c->pool[i].name), name))
            return &c->pool[i];
    return NULL;
}

bool config_is_of(const struct config_whose *w, struct span tenant)
{
    for (size_t i = 0; i < w->n; i++)
        if (span_eq(span_str(w->tenant[i]), tenant))
            return true;
    return false;
}
