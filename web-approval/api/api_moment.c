/* Sandboxes that stand still only for a moment, for what is done with them meanwhile: a checkpoint of their files.
 * What fails then, or who: each goes on. Not by the request that had it stand still, which may have ended at any
 * step, nor by the desk that had: the warden knows which they are, and this one asks, when such a request is over and
 * when it meets the warden, until there is none left. */
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"
#include "web-approval/api/steps.h"

enum { NOW = 1, NEVER = 0, AGAIN_MS = 1000, OWN_MAX = 64 * 1024 };

void api_moment_look(struct desk *d)
{
    d->moment_at = NOW;
}

/* A request of this desk's is at it, and its end is looked after. */
static bool is_at_work(const struct desk *d, struct span name)
{
    for (size_t i = 0; i < DESK_ASKS; i++) {
        const struct exchange *x = d->asks[i].id != 0 ? d->asks[i].x : NULL;
        if (x && x->moment && span_eq(x->arg, name))
            return true;
    }
    return false;
}

static void not_gone_on(struct exchange *x)
{
    x->desk->moment_at = x->now_ms + AGAIN_MS;
}

/* Nothing is left to do, or to do for this one. */
static void fine(struct exchange *x)
{
    x->over = NULL;
    reply_empty(x, 204);
}

static void went_on(struct exchange *x)
{
    log_info("sandbox %.*s goes on: what was done with it meanwhile is over", SPAN_FMT(x->arg));
    api_moment_look(x->desk);
    fine(x);
}

/* One at a time, and not always the first: what keeps one back need not keep back the others. */
static void heard(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    unsigned n = msg_get_u16(&m), left = 0, turn = x->desk->moment_turn++;
    char *name = arena_alloc(&x->arena, BOX_NAME_MAX + 1);
    struct pausing *p = arena_alloc(&x->arena, sizeof(*p));
    struct msg_in again = m;

    for (unsigned i = 0; i < n && !m.bad; i++)
        left += !is_at_work(x->desk, msg_get_span(&m, BOX_NAME_MAX));
    if (msg_end(&m) != 0 || !name || !p) {
        reply_problem(x, 503, "Not possible now", "the warden does not answer, or there is no memory");
        return;
    }
    if (left == 0) {
        fine(x);
        return;
    }
    for (unsigned i = turn % left + 1; i > 0;) {
        struct span one = msg_get_span(&again, BOX_NAME_MAX);
        if (is_at_work(x->desk, one))
            continue;
        (void)snprintf(name, BOX_NAME_MAX + 1, "%.*s", SPAN_FMT(one));
        i--;
    }
    x->arg = span_str(name);
    *p = (struct pausing){.then = went_on};
    x->step = p;
    api_resume_go(x);
}

struct exchange *api_own(struct desk *d, uint64_t now)
{
    struct exchange *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    *x = (struct exchange){
        .desk = d, .place = PLACE_CONTROL, .file = -1, .now_ms = now, .wall_ms = loop_wall(d->loop)};
    (void)snprintf(x->operator, sizeof(x->operator), "the gateway");
    dynbuf_init(&x->raw, OWN_MAX);
    dynbuf_init(&x->out, OWN_MAX);
    arena_init(&x->arena, DESK_ARENA_MAX);
    x->head.path = SPAN("/api/");
    return x;
}

void api_moment_due(struct desk *d, uint64_t now)
{
    struct exchange *x = d->moment_at != NEVER && now >= d->moment_at ? api_own(d, now) : NULL;

    if (!x)
        return;
    x->over = not_gone_on;
    d->moment_at = NEVER;
    if (ask_begin(x, ASK_WARDEN, M_SB_MOMENT, M_SB_MOMENT, heard))
        ask_send(x);
    if (x->status != 0)
        exchange_answered(x);
}
