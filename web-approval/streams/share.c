#include "web-approval/streams/share.h"

#include <stdio.h>
#include <string.h>

#include "web-approval/api/api.h"

/* `last` of all are kept for sandboxes that hold fewer than two, and half as many for the others, however many
 * sandboxes one tenant has. */
static const struct {
    size_t all, one, last;
} pools[SHARES] = {[SHARE_FOLLOW] = {DESK_FOLLOWS, DESK_FOLLOWS / 2, DESK_FOLLOWS / 4},
                   [SHARE_SHORT] = {DESK_SHORT, DESK_SHORT / 4, DESK_SHORT / 4},
                   [SHARE_DOCK_FOLLOW] = {DESK_DOCK_FOLLOWS, DESK_DOCK_FOLLOWS / 6, DESK_DOCK_FOLLOWS / 3},
                   [SHARE_DOCK_SHORT] = {DESK_DOCK_SHORT, DESK_DOCK_SHORT / 4, DESK_DOCK_SHORT / 4}};

/* What the dock's callers hold keeps no operator from a place. */
static enum share_of pool_of(const struct exchange *x, enum share_of of)
{
    if (x->place != PLACE_DOCK)
        return of;
    return of == SHARE_SHORT ? SHARE_DOCK_SHORT : SHARE_DOCK_FOLLOW;
}

bool share_is_free(struct exchange *x, enum share_of of)
{
    of = pool_of(x, of);
    size_t held = x->desk->held[of], own = 0, tenants = 0;

    for (const struct share *s = x->desk->shares; s; s = s->next) {
        own += s->of == of && span_eq(span_str(s->box), x->arg);
        tenants += s->of == of && x->place == PLACE_DOCK && strcmp(s->tenant, x->caller.tenant) == 0;
    }
    bool of_one = own < pools[of].one && tenants < pools[of].all - pools[of].last / 2;
    if (of_one && held + (own < 2 ? 0 : pools[of].last) < pools[of].all)
        return true;
    reply_problem(x, 503, "Too many",
                  "%zu commands are followed or files asked for, %zu of them in this sandbox: as many as may be at "
                  "once%s; try again in a moment",
                  held, own, of_one || own >= pools[of].one ? "" : " for one tenant");
    return false;
}

void share_take(struct share *s, const struct exchange *x, enum share_of of)
{
    of = pool_of(x, of);
    *s = (struct share){.next = x->desk->shares, .desk = x->desk, .of = of};
    (void)snprintf(s->box, sizeof(s->box), "%.*s", SPAN_FMT(x->arg));
    if (x->place == PLACE_DOCK)
        (void)snprintf(s->tenant, sizeof(s->tenant), "%s", x->caller.tenant);
    x->desk->shares = s;
    x->desk->held[of]++;
}

bool share_stands_still(struct share *s, uint64_t bytes, size_t queued, uint64_t now_ms)
{
    if (s->moved.ms == 0 || bytes != s->moved.bytes || queued != s->moved.queued) {
        s->moved.bytes = bytes;
        s->moved.queued = queued;
        s->moved.ms = now_ms > s->moved.ms ? now_ms : s->moved.ms;
    }
    return now_ms >= s->moved.ms + SHARE_STILL_MS;
}

void share_free(struct share *s)
{
    if (!s->desk)
        return;
    struct share **at = &s->desk->shares;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->desk->held[s->of]--;
    *s = (struct share){0};
}
