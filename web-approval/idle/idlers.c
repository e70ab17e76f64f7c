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

void idler_park(struct idler *i, struct exchange *x, idle_fn *fn)
{
    struct idle_parked *p = arena_alloc(&x->arena, sizeof(*p));

    if (!p) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    *p = (struct idle_parked){i->parked, x, fn};
    i->parked = p;
}

/* Who waited may have less of a right by now: the name may be another tenant's, or the broker's lane another one.
 * What opened it before it was idle opens it no more. */
static bool is_still_admitted(struct exchange *x)
{
    if (x->place != PLACE_DOCK)
        return true;
    if (x->caller.box[0] == '\0')
        return dock_admits(x, false);
    reply_problem(x, 404, "No such sandbox",
                  "what opened the sandbox does not open it any more: it was idle meanwhile");
    return false;
}

void idler_go(struct exchange *x, idle_fn *fn)
{
    if (x->desk->loop) { /* it may have waited for long, and its next question has its own time */
        x->now_ms = loop_now(x->desk->loop);
        x->wall_ms = loop_wall(x->desk->loop);
    }
    if (x->left)
        reply_problem(x, 503, "Not done", "who asked has gone");
    else if (is_still_admitted(x) && !idle_wakes(x, fn))
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
        x->woke = i->woke;
        next = p->next; /* which is in the arena of an exchange that may be freed now */
        if (refused)
            reply_problem(x, 503, "Not possible now",
                          "the sandbox is idle, and could not be restored for who asked before: ask again, and it is "
                          "said why");
        else
            idler_go(x, p->fn);
        if (x->status != 0 || x->transfer)
            exchange_answered(x);
    }
}

int idle_find(struct exchange *x, struct idle_row *r)
{
    struct desk *d = x->desk;
    uint64_t all = 0;
    struct err e;

    if (d->idle_none && !d->idle_unsure)
        return 0;
    int rc = desk_store_idle(d->store, x->arg, &x->arena, r, &e);
    if (rc == 0 && !d->idlers && desk_store_idle_count(d->store, SPAN_NONE, &x->arena, &all, &e) == 0)
        d->idle_none = all == 0;
    if (rc < 0)
        reply_unable(x, &e);
    return rc;
}

bool idle_refuses(struct exchange *x)
{
    struct idle_row r;
    int rc = idle_find(x, &r);

    if (rc == 1)
        reply_problem(x, 409, "It is idle",
                      "the sandbox is idle: what ran in it ended when its files were put aside, and `countersign "
                      "sandbox resume %.*s` restores them",
                      SPAN_FMT(x->arg));
    return rc != 0;
}
