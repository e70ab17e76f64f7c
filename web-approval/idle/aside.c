/* Sandboxes that were paused for as long as they may are put aside, by nobody's request; and checkpoints of theirs
 * that none of them needs are thrown away, which who was killed left behind. */
#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/api/steps.h"
#include "web-approval/idle/idle.h"
#include "web-approval/store/idle.h"

enum { NEVER = 0, NOW = 1, AGAIN_MS = 3000, WHY_MAX = 1024, SWEEP_AT_ONCE = 2 /* each is a process */ };

/* One that is put aside. */
struct putting {
    struct idler at;
    struct span box, owner, checkpoint, reach; /* box: wire_box */
    uint64_t generation, cpu_percent, left_ms, asked_ms;
    bool strict;
};

void idle_look(struct desk *d)
{
    d->idle_at = NOW;
}

void idle_met(struct desk *d)
{
    d->idle_at = d->idle_sweep_at = NOW;
}

void idle_sweep_soon(struct desk *d, uint64_t now)
{
    if (d->idle_sweep_at == NEVER)
        d->idle_sweep_at = now + AGAIN_MS;
}

static struct span keep(struct exchange *x, struct span s)
{
    return s.n > 0 ? arena_copy(&x->arena, s) : SPAN_NONE;
}

/* --- it is one of them ------------------------------------------------------------------- */

static void over(struct exchange *x)
{
    struct putting *p = x->holds;

    idler_over(x->desk, &p->at, false);
    idle_look(x->desk);
}

/* It stays paused; the warden says when it is due again. */
static void not_put(struct exchange *x, struct span why)
{
    const struct putting *p = x->holds;
    struct desk *d = x->desk;
    struct dynbuf *b = d->warden ? chan_begin(d->warden, M_SB_IDLE_NOT, ++d->last_id) : NULL;

    if (b) {
        msg_put_span(b, p->at.name);
        msg_put_u64(b, p->generation);
        msg_put_span(b, span_first(why, WHY_MAX));
        (void)chan_commit(d->warden);
    }
    reply_empty(x, 204);
}

static void ended(struct exchange *x, struct frame *f)
{
    const struct putting *p = x->holds;

    if (f)
        api_checkpoint_note(x, "sandbox-idle", p->at.name, p->checkpoint);
    reply_empty(x, 204); /* else the next one that looks goes on with it */
}

static void end(struct exchange *x)
{
    const struct putting *p = x->holds;
    struct dynbuf *b = ask_begin(x, ASK_WARDEN, M_SB_IDLE_END, M_SB_DESTROYED, ended);

    if (!b)
        return;
    ask_longer(x, DESK_START_MS);
    msg_put_span(b, p->at.name);
    msg_put_u64(b, p->generation);
    ask_send(x);
}

static void written(struct exchange *x, struct frame *f)
{
    const struct putting *p = x->holds;
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, WHY_MAX);

    if (msg_end(&m) != 0) {
        x->desk->idle_lost++;
        x->desk->idle_unsure = true; /* it may have been: then its checkpoint is all there is of it */
        not_put(x, SPAN("the ledger did not say that it is written down"));
    } else if (!ok) {
        api_checkpoint_forget(x->desk, p->at.tenant, p->checkpoint);
        not_put(x, why);
    } else {
        end(x);
    }
}

/* Who asked for something of it before this would be told of one that has ended, or lose what he was told is done. */
static bool is_asked_for(const struct exchange *x)
{
    const struct putting *p = x->holds;

    for (size_t i = 0; i < DESK_ASKS; i++) {
        const struct exchange *o = x->desk->asks[i].id != 0 ? x->desk->asks[i].x : NULL;
        if (o && o != x && span_eq(o->arg, p->at.name))
            return true;
    }
    return false;
}

static void saved(struct exchange *x, struct frame *f)
{
    struct putting *p = x->holds;
    struct span why, rest;
    enum store_end how = api_checkpoint_heard(f, &why, &rest);
    struct msg_in m = msg_in(rest);
    struct form_head h;
    struct dynbuf *b;

    if (how != STORE_DONE || form_get_head(&m, &h) != 0) {
        x->desk->idle_sweep_at = NOW; /* who kept it may have been killed */
        not_put(x, why);
        return;
    }
    if (is_asked_for(x)) {
        api_checkpoint_forget(x->desk, p->at.tenant, h.id);
        not_put(x, SPAN("somebody asked for it meanwhile"));
        return;
    }
    p->checkpoint = keep(x, h.id);
    if (p->checkpoint.n == 0 || !(b = ask_begin(x, ASK_LEDGER, M_SANDBOX_IDLE, M_SANDBOX_DONE, written))) {
        x->desk->idle_sweep_at = NOW;
        not_put(x, SPAN("there is no memory, or the ledger does not run"));
        return;
    }
    x->desk->idle_none = false;
    p->at.waits = true; /* who needs it needs to know what it is */
    msg_put_span(b, p->at.name);
    msg_put_u64(b, p->generation);
    msg_put_span(b, p->checkpoint);
    msg_put_span(b, p->box);
    msg_put_u64(b, p->cpu_percent);
    msg_put_u8(b, p->strict);
    uint64_t took = x->now_ms - p->asked_ms;
    msg_put_u64(b, p->left_ms > took ? p->left_ms - took : 1);
    ask_send(x);
}

/* One more of it may be idle; the list of what runs and what is idle is one answer. */
static bool has_room(struct exchange *x, struct span tenant)
{
    uint64_t most = tenant.n ? IDLE_TENANT_MAX : IDLE_ALL_MAX, bytes = tenant.n ? IDLE_TENANT_BYTES : IDLE_ALL_BYTES;
    struct idle_sum is;
    struct err e;

    if (desk_store_idle_sum(x->desk->store, tenant, &x->arena, &is, &e) != 0)
        not_put(x, span_str(e.text));
    else if (is.n >= most || is.bytes >= bytes)
        not_put(x, tenant.n
                       ? SPAN("as many sandboxes of its tenant are idle as may be: one has to be destroyed first")
                       : SPAN("as many sandboxes are idle as may be: one has to be destroyed first"));
    else
        return true;
    return false;
}

static void save(struct exchange *x)
{
    const struct putting *p = x->holds;
    struct dynbuf *b;

    if (!has_room(x, p->at.tenant) || !has_room(x, SPAN_NONE))
        return;
    if ((b = ask_begin(x, ASK_WARDEN, M_SB_SNAPSHOT, M_SB_CHECKPOINT, saved))) {
        ask_longer(x, CHECKPOINT_MS);
        msg_put_span(b, p->at.name);
        msg_put_span(b, p->at.tenant);
        msg_put_span(b, p->owner);
        msg_put_span(b, FORM_OF_IDLE);
        msg_put_span(b, p->reach);
        ask_send(x);
    }
}

/* --- which are due ----------------------------------------------------------------------- */

static void later(struct exchange *x)
{
    x->desk->idle_at = x->now_ms + AGAIN_MS;
}

/* One of a tenant at a time, so that none has others wait. */
static bool is_free(const struct desk *d, struct span name, struct span tenant)
{
    for (const struct idler *i = d->idlers; i; i = i->next)
        if (span_eq(i->name, name) || (i->aside && span_eq(i->tenant, tenant)))
            return false;
    return true;
}

/* A row of M_SB_IDLE. */
struct due {
    struct started is;
    uint64_t cpu_percent;
    bool strict;
};

/* False: somebody is at it, or others of its tenant's, or nothing can be known of it now. */
static bool take(struct exchange *x, const struct due *one)
{
    const struct started *s = &one->is;
    struct putting *p = arena_alloc(&x->arena, sizeof(*p));
    struct sandbox_row row;
    struct dynbuf box;
    struct err e;

    if (!p || desk_store_sandbox(x->desk->store, s->box.name, &x->arena, &row, &e) != 1 ||
        !is_free(x->desk, row.name, row.tenant))
        return false;
    dynbuf_init(&box, 4096);
    wire_put_box(&box, &s->box);
    *p = (struct putting){.at = {.name = row.name, .tenant = row.tenant, .aside = true},
                          .owner = row.owner,
                          .reach = row.reach,
                          .box = dynbuf_ok(&box) ? keep(x, dynbuf_span(&box)) : SPAN_NONE,
                          .generation = s->generation,
                          .cpu_percent = one->cpu_percent,
                          .strict = one->strict,
                          .left_ms = s->left_ms,
                          .asked_ms = x->now_ms};
    dynbuf_free(&box);
    if (p->box.n == 0)
        return false;
    x->arg = p->at.name;
    x->holds = p;
    x->over = over;
    idler_begin(x->desk, &p->at);
    if (span_eq(row.kind, SPAN("idle")) && row.generation > s->generation) {
        p->at.waits = true; /* it was written down, and no more was done */
        x->desk->idle_none = false;
        end(x);
    } else {
        save(x);
    }
    return true;
}

/* Another one first each time: whose are always due keeps nobody else's waiting. */
static void due(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    uint64_t next = msg_get_u64(&m);
    unsigned n = msg_get_u16(&m), first = n > 0 ? x->desk->idle_turn++ % n : 0;
    struct due *all = arena_alloc(&x->arena, (n + 1) * sizeof(*all));
    bool took = false;

    for (unsigned i = 0; all && i < n && !m.bad; i++) {
        api_started_get(&m, &all[i].is);
        all[i].cpu_percent = msg_get_u64(&m);
        all[i].strict = msg_get_bool(&m);
    }
    if (!all || msg_end(&m) != 0) {
        reply_empty(x, 204); /* and asks again */
        return;
    }
    for (unsigned i = 0; i < n && !took; i++)
        took = take(x, &all[(first + i) % n]);
    x->desk->idle_at = n > took ? x->now_ms + AGAIN_MS : next ? x->now_ms + next : NEVER;
    if (took)
        return;
    x->over = NULL;
    reply_empty(x, 204);
}

/* --- what none of them needs ---------------------------------------------------------------- */

static void swept(struct exchange *x)
{
    x->desk->idle_sweeps = false;
}

static void sweep_later(struct exchange *x)
{
    swept(x);
    x->desk->idle_sweep_at = x->now_ms + AGAIN_MS;
}

static void ask_kept(struct exchange *x, struct span behind);

static void kept(struct exchange *x, struct frame *f)
{
    struct span why, rest, last = SPAN_NONE;
    enum store_end how = api_checkpoint_heard(f, &why, &rest);
    struct msg_in m = msg_in(rest);
    struct idle_row r;
    struct form_head h;
    struct err e;
    bool more = how == STORE_DONE && msg_get_bool(&m);
    unsigned forgotten = 0;

    if (x->desk->idle_fenced != x->desk->idle_lost) {
        reply_empty(x, 204); /* what is being written down since the fence may need one of these: later again */
        return;
    }
    while (how == STORE_DONE && forgotten < SWEEP_AT_ONCE && m.rest.n > 0 && form_get_head(&m, &h) == 0) {
        int rc = desk_store_idle(x->desk->store, h.sandbox, &x->arena, &r, &e);
        bool needed = rc == 1 && span_eq(r.checkpoint, h.id);
        last = h.id;
        if (rc >= 0 && !needed && !idler_of(x->desk, h.sandbox)) {
            api_checkpoint_forget(x->desk, h.tenant, h.id);
            forgotten++;
        }
    }
    if (how != STORE_DONE || m.bad || forgotten == SWEEP_AT_ONCE) {
        reply_empty(x, 204); /* later again */
        return;
    }
    if (more && last.n > 0) {
        ask_kept(x, keep(x, last));
        return;
    }
    x->over = swept;
    reply_empty(x, 204);
}

static void ask_kept(struct exchange *x, struct span behind)
{
    struct dynbuf *b = ask_begin(x, ASK_WARDEN, M_SB_CHECKPOINTS, M_SB_CHECKPOINT, kept);

    if (!b)
        return;
    ask_longer(x, CHECKPOINT_MS);
    msg_put_u8(b, ORDER_IDLE);
    msg_put_span(b, SPAN("default"));
    msg_put_span(b, behind);
    ask_send(x);
}

/* A desk before this one was killed while it restored it: nobody would do anything in it. */
static int end_half(void *ctx, const struct idle_row *r)
{
    struct desk *d = ctx;
    struct dynbuf *b = NULL;

    if (!span_eq(r->kind, SPAN("started")) || idler_of(d, r->name))
        return 0;
    api_started_over(d, r->name, r->generation);
    if (d->warden && (b = chan_begin(d->warden, M_SB_IDLE_END, ++d->last_id)) != NULL) {
        msg_put_span(b, r->name);
        msg_put_u64(b, r->generation);
        (void)chan_commit(d->warden);
    }
    return 0;
}

/* Whatever a desk before this one said to the ledger is written down by now, or never will be. */
static void fenced(struct exchange *x, struct frame *f)
{
    struct err e;

    x->desk->idle_fenced = x->desk->idle_fence;
    if (f && x->desk->idle_fenced == x->desk->idle_lost)
        x->desk->idle_unsure = false;
    x->desk->idle_none = false; /* a desk before this one may have put some aside just before it ended */
    if (f && desk_store_idles(x->desk->store, SPAN_NONE, &x->arena, end_half, x->desk, &e) == 0)
        ask_kept(x, SPAN_NONE);
    else
        reply_empty(x, 204);
}

/* --- by the clock ------------------------------------------------------------------------- */

static unsigned at_once(const struct desk *d)
{
    unsigned n = 0;

    for (const struct idler *i = d->idlers; i; i = i->next)
        n += i->aside;
    return n;
}

static void ask_due(struct desk *d, uint64_t now)
{
    struct exchange *x = api_own(d, now);

    if (!x)
        return;
    x->over = later;
    d->idle_at = NEVER;
    if (ask_begin(x, ASK_WARDEN, M_SB_IDLE, M_SB_IDLE, due))
        ask_send(x);
    if (x->status != 0)
        exchange_answered(x);
}

static void sweep(struct desk *d, uint64_t now)
{
    struct exchange *x = api_own(d, now);
    struct dynbuf *b;

    if (!x)
        return;
    x->over = sweep_later;
    d->idle_sweep_at = NEVER;
    d->idle_sweeps = true;
    d->idle_fence = d->idle_lost;
    if ((b = ask_begin(x, ASK_LEDGER, M_SANDBOX_AWAKE, M_SANDBOX_DONE, fenced))) {
        msg_put_span(b, SPAN_NONE);
        msg_put_u64(b, 0);
        ask_send(x);
    }
    if (x->status != 0)
        exchange_answered(x);
}

void idle_due(struct desk *d, uint64_t now)
{
    if (!d->idle_sweeps && d->idle_sweep_at != NEVER && now >= d->idle_sweep_at)
        sweep(d, now);
    if (d->idle_at != NEVER && now >= d->idle_at && at_once(d) < IDLE_AT_ONCE)
        ask_due(d, now);
}
