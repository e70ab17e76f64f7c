#include "web-approval/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/memfd.h"
#include "common/net/loop.h"

struct exchange *exchange_new(struct desk *d, enum desk_place place, const char *operator,
                              const struct caller * caller)
{
    struct exchange *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->desk = d;
    x->place = place;
    x->file = -1;
    x->now_ms = loop_now(d->loop);
    x->wall_ms = loop_wall(d->loop);
    (void)snprintf(x->operator, sizeof(x->operator), "%s", operator);
    x->caller = *caller;
    dynbuf_init(&x->raw, EXCHANGE_IN_MAX);
    dynbuf_init(&x->out, DESK_ANSWER_MAX);
    arena_init(&x->arena, DESK_ARENA_MAX);
    return x;
}

void exchange_free(struct exchange *x)
{
    if (x->over)
        x->over(x);
    dynbuf_free(&x->raw);
    dynbuf_free(&x->out);
    arena_free(&x->arena);
    if (x->file >= 0)
        close(x->file);
    memfd_unmap(&x->mapped);
    free(x);
}
