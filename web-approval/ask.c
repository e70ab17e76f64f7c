#include "web-approval/ask.h"

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"

enum { PARTS_MAX = 1024 * 1024 };

void (*exchange_answered)(struct exchange *x);

/* Callers of the dock leave places to operators, and each tenant of theirs some to the others: the last of theirs are
 * for tenants that hold next to none. */
static bool ask_is_free(const struct exchange *x)
{
    size_t all = 0, own = 0;

    for (size_t i = 0; i < DESK_ASKS && x->place == PLACE_DOCK; i++) {
        const struct exchange *o = x->desk->asks[i].id != 0 ? x->desk->asks[i].x : NULL;
        if (o == NULL || o->place != PLACE_DOCK)
            continue;
        all++;
        own += span_eq(span_str(o->caller.tenant), span_str(x->caller.tenant));
    }
    return own < DESK_TENANT_ASKS && all + (own < 2 ? 0 : DESK_DOCK_ASKS / 4) < DESK_DOCK_ASKS;
}

static struct ask *ask_free_slot(const struct exchange *x)
{
    struct desk *d = x->desk;

    for (size_t i = ask_is_free(x) ? 0 : DESK_ASKS; i < DESK_ASKS; i++)
        if (d->asks[i].id == 0)
            return &d->asks[i];
    return NULL;
}

static struct chan *chan_of(const struct desk *d, enum ask_whom whom)
{
    return whom == ASK_PARENT   ? d->parent
           : whom == ASK_WARDEN ? d->warden
           : whom == ASK_KEEPER ? d->keeper
                                : d->ledger;
}

static const char *absent(enum ask_whom whom)
{
    return whom == ASK_PARENT   ? "the gateway is ending"
           : whom == ASK_WARDEN ? "the warden does not run at the moment"
           : whom == ASK_KEEPER ? "the keeper does not run at the moment"
                                : "the ledger does not run at the moment";
}

struct dynbuf *ask_begin(struct exchange *x, enum ask_whom whom, uint16_t type, uint16_t want, ask_fn *fn)
{
    struct desk *d = x->desk;
    struct chan *c = chan_of(d, whom);
    struct ask *a = ask_free_slot(x);
    struct dynbuf *b = c && a ? chan_begin(c, type, d->last_id + 1) : NULL;

    if (!b) {
        reply_problem(x, 503, "Not possible now", "%s; try again in a moment",
                      !c   ? absent(whom)
                      : !a ? "too much is asked at once"
                           : "the other process does not take more");
        return NULL;
    }
    bool starts = want == M_SB_STARTED || want == M_SB_PAUSED;
    uint64_t most = want == M_RELOADED ? DESK_RELOAD_MS : starts ? DESK_START_MS : DESK_ASK_MS;
    *a = (struct ask){++d->last_id, x->now_ms + most, whom, want, x, fn};
    return b;
}

void ask_longer(struct exchange *x, uint64_t ms)
{
    struct desk *d = x->desk;

    for (size_t i = 0; i < DESK_ASKS; i++)
        if (d->asks[i].id == d->last_id)
            d->asks[i].until_ms = x->now_ms + ms;
}

/* False: it is longer than anybody's answer, or there is no memory for it. */
static bool ask_part(struct exchange *x, struct span more)
{
    x->parts = x->nparts == 0 ? arena_alloc(&x->arena, PARTS_MAX) : x->parts;
    if (!x->parts || more.n > PARTS_MAX - x->nparts)
        return false;
    memcpy(x->parts + x->nparts, more.p, more.n);
    x->nparts += more.n;
    return true;
}

static void ask_finish(struct ask *a, struct frame *f)
{
    struct exchange *x = a->x;
    ask_fn *fn = a->fn;

    *a = (struct ask){0};
    x->nparts = 0;
    if (x->desk->loop) {
        x->now_ms = loop_now(x->desk->loop);
        x->wall_ms = loop_wall(x->desk->loop);
    }
    fn(x, f);
    if (x->status != 0 || x->transfer)
        exchange_answered(x);
}

void ask_send(struct exchange *x)
{
    struct desk *d = x->desk;

    for (size_t i = 0; i < DESK_ASKS; i++) {
        struct ask *a = &d->asks[i];
        if (a->id != d->last_id)
            continue;
        if (chan_commit(chan_of(d, a->whom)) == 0)
            return;
        ask_fn *fn = a->fn;
        *a = (struct ask){0};
        fn(x, NULL); /* the caller hands the answer on, as for any handler */
        return;
    }
}

bool ask_answer(struct desk *d, enum ask_whom whom, struct frame *f)
{
    for (size_t i = 0; i < DESK_ASKS; i++) {
        struct ask *a = &d->asks[i];
        if (a->id == 0 || a->id != f->id || a->whom != whom)
            continue;
        bool part = f->type == M_SB_PART && whom == ASK_WARDEN;
        if ((part || a->x->nparts > 0) && !ask_part(a->x, f->payload)) {
            ask_finish(a, NULL);
            return true;
        }
        if (part)
            return true;
        struct span last = f->payload;
        if (a->x->nparts > 0)
            f->payload = span_of(a->x->parts, a->x->nparts);
        ask_finish(a, a->want == f->type ? f : NULL); /* the frame itself: who takes its descriptor has it alone */
        f->payload = last;
        return true;
    }
    return false;
}

void ask_expire(struct desk *d, uint64_t now)
{
    for (size_t i = 0; i < DESK_ASKS; i++)
        if (d->asks[i].id && d->asks[i].until_ms <= now)
            ask_finish(&d->asks[i], NULL);
}

void ask_gone(struct desk *d, enum ask_whom whom)
{
    for (size_t i = 0; i < DESK_ASKS; i++)
        if (d->asks[i].id && d->asks[i].whom == whom)
            ask_finish(&d->asks[i], NULL);
}

void ask_note(struct desk *d, const char *kind, struct span json)
{
    struct dynbuf *b = d->ledger ? chan_begin(d->ledger, M_NOTE, ++d->last_id) : NULL;

    if (!b) {
        log_warn("the audit misses an operator's act (%s): the ledger does not run", kind);
        return;
    }
    msg_put_span(b, span_str(kind));
    msg_put_span(b, json);
    (void)chan_commit(d->ledger);
}

void ask_note_operator(struct exchange *x, const char *kind)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, 1024);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    jsonw_kv(&w, "channel", x->place == PLACE_PAGE ? SPAN("page") : SPAN("cli"));
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, kind, dynbuf_span(&b));
    dynbuf_free(&b);
}
