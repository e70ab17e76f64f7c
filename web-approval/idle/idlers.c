/* Sandboxes at which this desk is, and who waits for them meanwhile. */
#include "common/net/loop.h"
#include "web-approval/ask.h"
#include "web-approval/dock.h"
#include "web-approval/idle/idle.h"
#include "web-approval/store/idle.h"

void idler_begin(struct desk *d, struct idler *i)
{
    i->next = d->idlers;
    d->idlers = i;
}

struct idler *idler_of(const struct desk *d, struct span name)
{
    struct idler *i = d->idlers;

    while (i && !span_eq(i->name, name))
        i = i->next;
    return i;
}

void idler_park(struct idler *i, struct exchange *x, idle_fn *fn, bool ran)
{
    struct idle_parked *p = arena_alloc(&x->arena, sizeof(*p)), **at = &i->parked;

    if (!p) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    *p = (struct idle_parked){NULL, x, fn, ran};
    while (*at)
        at = &(*at)->next;
    *at = p;
}

/* Who waited may have less of a right by now: the name may be another tenant's, the broker's lane another one, or
 * what opened it be of before it was idle. */
static bool is_still_admitted(struct exchange *x)
{
    return x->place != PLACE_DOCK || dock_admits(x, false);
}

void idler_go(struct exchange *x, idle_fn *fn, bool ran)
{
    if (x->desk->loop) { /* it may have waited for long, and its next question has its own time */
        x->now_ms = loop_now(x->desk->loop);
        x->wall_ms = loop_wall(x->desk->loop);
    }
    if (x->left)
        reply_problem(x, 503, "Not done", "who asked has gone");
    else if (is_still_admitted(x) && !(ran ? idle_refuses(x, fn) : idle_wakes(x, fn)))
        fn(x);
    if (x->status != 0 && !dynbuf_ok(&x->out))
        reply_problem(x, 500, "Too large", "the answer is larger than the desk gives out");
}

void idler_over(struct desk *d, struct idler *i, bool refused)
{
    struct idler **at = &d->idlers;
    struct idle_parked *p = i->parked, *next;

    while (*at && *at != i)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = i->next;
    i->parked = NULL;
    for (; p; p = next) {
        struct exchange *x = p->x;
        bool same = span_eq(x->arg, i->name); /* else it waits for a place alone */
        x->woke = same ? i->woke : 0;
        x->another = same && i->another;
        next = p->next; /* which is in the arena of an exchange that may be freed now */
        if (refused && same)
            reply_problem(x, 503, "Not possible now",
                          "the sandbox is idle, and could not be restored for who asked before: ask again, and it is "
                          "said why");
        else
            idler_go(x, p->fn, p->ran);
        if (x->status != 0 || x->transfer)
            exchange_answered(x);
    }
}

int idle_find(struct exchange *x, struct idle_row *r)
{
    struct desk *d = x->desk;
    struct idle_sum all;
    struct err e;

    if (d->idle_none && !d->idle_unsure)
        return 0;
    int rc = desk_store_idle(d->store, x->arg, &x->arena, r, &e);
    if (rc == 0 && !d->idlers && desk_store_idle_sum(d->store, SPAN_NONE, &x->arena, &all, &e) == 0)
        d->idle_none = all.n == 0;
    if (rc < 0)
        reply_unable(x, &e);
    return rc;
}

bool idle_refuses(struct exchange *x, idle_fn *fn)
{
    struct idler *at = idler_of(x->desk, x->arg);
    struct idle_row r;

    if (at && at->waits) { /* else what is said of it now would be lost with what it is ended as */
        idler_park(at, x, fn, true);
        return true;
    }
    int rc = idle_find(x, &r);

    if (rc == 1)
        reply_problem(x, 409, "It is idle",
                      "the sandbox is idle: what ran in it ended when its files were put aside, and `countersign "
                      "sandbox resume %.*s` restores them",
                      SPAN_FMT(x->arg));
    return rc != 0;
}
