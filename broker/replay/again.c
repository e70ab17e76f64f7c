#include "broker/replay/again_in.h"

static const char *const faults[REPLAY_FAULTS] = {
    [REPLAY_NO_FAULT] = "none", [REPLAY_MODEL] = "model", [REPLAY_TOOL] = "tool", [REPLAY_WORKER] = "worker"};

const char *replay_fault_name(enum replay_fault f)
{
    return faults[(unsigned)f < REPLAY_FAULTS ? f : REPLAY_NO_FAULT];
}

enum replay_fault replay_fault_of(struct span name)
{
    for (unsigned i = 0; i < REPLAY_FAULTS; i++)
        if (span_eq(name, span_str(faults[i])))
            return i;
    return REPLAY_NO_FAULT;
}

bool again_is_whole(const struct set_run *run)
{
    bool whole = run->epochs > 0 && !run->cut;
    for (size_t i = 0; i < run->epochs; i++)
        whole &= run->epoch[i].left == (i + 1 < run->epochs ? LEFT_BACK : LEFT_OVER) &&
                 run->row[run->epoch[i].first].row.found.epoch == i + 1;
    return whole;
}

/* --- as it was? ----------------------------------------------------------------------------- */

static struct span text_of(struct world *w, const struct loop_actions *out)
{
    struct dynbuf b;
    dynbuf_init(&b, TAPE_DID_MAX);
    tape_did(&b, out);
    return arena_keep(w->a, &b);
}

/* The first alone is told: what follows from it is none of its own. */
static void differs(struct world *w, struct span heard, struct span then, struct span now)
{
    w->strayed = true;
    w->out->differs = (struct again_difference){
        .is = true, .step = w->m.step, .t = w->now, .heard = heard, .then = then, .now = now};
}

/* What the machine was told, and what it wants then, beside the row that should come here. */
static void compare(struct world *w, const struct due *d, bool waited, const struct loop_actions *out)
{
    const struct set_epoch *ep = &w->run->epoch[w->at];
    const struct set_row *want = w->next < ep->last ? &w->run->row[w->next] : NULL;
    const struct tape_row is = {.kind = TAPE_HEARD, .e = d->e};
    if (w->inject != NULL || w->strayed || want == NULL)
        return; /* behind the last that was written down its end follows */
    struct span did = text_of(w, out), heard = span_str(tape_heard_name(&is));
    if (d->row != (long)w->next)
        differs(w, span_str(tape_heard_name(&want->row)), want->row.did,
                arena_printf(w->a, "%.*s comes before it", SPAN_FMT(heard)));
    else if (!waited)
        differs(w, heard, want->row.did, SPAN("it does not wait for this"));
    else if (!span_eq(did, want->row.did))
        differs(w, heard, want->row.did, did);
    else
        w->next++;
}

/* --- one worker ------------------------------------------------------------------------------- */

static void act(struct world *w, const struct loop_actions *out)
{
    for (size_t i = 0; i < out->n; i++)
        world_do(w, &out->a[i]);
}

/* As the store had it then: what a worker that was lost did last is known by this alone. */
static void adopt(struct world *w, const struct tape_row *row)
{
    const struct loop_found *f = &row->found;
    w->settled = f->settled;
    w->attempts = f->attempts;
    w->used = f->used;
    w->planned = f->planned;
    w->summary = f->summary;
    w->cut = f->cut;
    w->calls = f->planned ? f->n : 0;
    for (size_t i = 0; i < w->calls; i++) {
        bool as_before = row->same > 1 && f->n == w->nlast;
        w->call[i] = (struct world_call){.asked = f->asked[i], .end = f->end[i], .run = true};
        w->marks++;
        memcpy(w->call[i].asked.what.b, &w->marks, sizeof(w->marks));
        if (as_before)
            w->call[i].asked.what = w->last[i];
    }
}

static bool is_found_so(const struct world *w, const struct loop_found *f)
{
    bool same = w->settled == f->settled && w->planned == f->planned && (!w->planned || w->calls == f->n);
    for (size_t i = 0; same && w->planned && i < w->calls; i++)
        same = w->call[i].end == f->end[i] && w->call[i].asked.class == f->asked[i].class;
    return same;
}

static void take(struct world *w, const struct set_row *row, enum turn_end ends)
{
    struct loop_asked asked[TURN_CALLS_MAX];
    enum call_end end[TURN_CALLS_MAX];
    struct loop_actions out;
    for (size_t i = 0; i < w->calls; i++) {
        asked[i] = w->call[i].asked;
        end[i] = w->call[i].end;
    }
    const struct loop_found f = {.epoch = w->epoch,
                                 .now_ms = w->now,
                                 .started_ms = 0,
                                 .settled = w->settled,
                                 .attempts = w->attempts,
                                 .cancelled = w->cancelled,
                                 .planned = w->planned,
                                 .summary = w->summary,
                                 .cut = w->cut,
                                 .ends = ends,
                                 .budget = w->run->budget,
                                 .used = w->used,
                                 .kept = span_of(w->kept, w->kept_n),
                                 .asked = asked,
                                 .end = end,
                                 .n = w->planned ? w->calls : 0};
    w->out->workers++;
    w->ndue = 0;
    w->back = w->lost = false;
    agent_begin(&w->m, &f, &out);
    struct span did = text_of(w, &out);
    if (row != NULL && !w->strayed && !span_eq(did, row->row.did))
        differs(w, SPAN("begin"), row->row.did, did);
    act(w, &out);
}

/* As the worker that is recorded did. */
static void take_recorded(struct world *w)
{
    const struct set_row *row = &w->run->row[w->run->epoch[w->at].first];
    /* Of a worker between them nothing is there if it was lost before it wrote anything down. */
    bool known = w->at > 0 && w->run->epoch[w->at - 1].left == LEFT_BACK && !w->strayed &&
                 row->row.found.epoch == w->epoch + 1;
    w->now = w->now > row->row.t ? w->now : row->row.t;
    w->epoch = row->row.found.epoch;
    w->cancelled |= row->row.found.cancelled;
    w->next = w->outside = w->run->epoch[w->at].first + 1;
    if (known && !is_found_so(w, &row->row.found))
        differs(w, SPAN("begin"), SPAN("the store had the turn otherwise"), SPAN("other steps or calls are in it"));
    if (!known && !w->strayed)
        adopt(w, &row->row);
    take(w, w->inject == NULL ? row : NULL, row->row.found.ends);
}

/* The next that is heard without that anybody asked for it; with a fault that is only that it is cancelled. */
static const struct set_row *from_outside(struct world *w)
{
    size_t last = w->inject != NULL ? w->run->rows : w->run->epoch[w->at].last;
    for (; w->outside < last; w->outside++) {
        const struct set_row *r = &w->run->row[w->outside];
        bool may = r->row.kind == TAPE_HEARD && !r->asked && r->row.e.heard >= HEARD_CANCEL;
        if (may && (w->inject == NULL || r->row.e.heard == HEARD_CANCEL))
            return r;
    }
    return NULL;
}

/* Which of what is going to be heard comes first: by the time, then as it came then. */
static size_t first_due(const struct world *w)
{
    size_t best = 0;
    for (size_t i = 1; i < w->ndue; i++) {
        const struct due *a = &w->due[i], *b = &w->due[best];
        unsigned long ra = (unsigned long)a->row, rb = (unsigned long)b->row; /* NO_ROW is behind all */
        if (a->at < b->at || (a->at == b->at && (ra < rb || (ra == rb && a->order < b->order))))
            best = i;
    }
    return best;
}

static bool next(struct world *w, struct due *out)
{
    const struct set_row *r = from_outside(w);
    uint64_t t = r != NULL && r->row.t > w->now ? r->row.t : w->now;
    size_t i = first_due(w);
    if (r == NULL && w->ndue == 0)
        return false;
    if (r != NULL &&
        (w->ndue == 0 || t < w->due[i].at || (t == w->due[i].at && w->outside < (unsigned long)w->due[i].row))) {
        *out = (struct due){.at = t, .e = r->row.e, .row = (long)w->outside};
        w->cancelled |= r->row.e.heard == HEARD_CANCEL;
        w->outside++;
    } else {
        *out = w->due[i];
        w->due[i] = w->due[--w->ndue];
    }
    w->now = out->at > w->now ? out->at : w->now;
    return true;
}

/* It ends itself when its time is over, as a tick of a worker makes it. */
static void out_of_time(struct world *w)
{
    struct loop_actions out;
    const struct loop_event e = {.heard = HEARD_TICK, .now_ms = w->now};
    uint64_t wall = w->run->budget.wall_ms;
    if (w->inject != NULL && wall > 0 && w->now >= wall && agent_hear(&w->m, &e, &out))
        act(w, &out);
}

enum left { WENT_ON = 0, LEFT };

static enum left hear(struct world *w)
{
    struct due d;
    struct loop_actions out = {.n = 0};
    const struct set_epoch *ep = &w->run->epoch[w->at];
    bool as_then = w->inject == NULL && !w->strayed;
    if (as_then && w->next == ep->last && ep->left == LEFT_LOST)
        return LEFT;
    if (w->inject != NULL && w->inject->fault == REPLAY_WORKER && !w->out->injected && w->out->events == w->spot) {
        w->out->injected = true;
        world_lose(w);
        w->lost = true;
        return LEFT;
    }
    if (!next(w, &d))
        return LEFT;
    w->out->events++;
    world_heard(w, &d);
    bool waited = agent_hear(&w->m, &d.e, &out);
    compare(w, &d, waited, &out);
    act(w, &out);
    out_of_time(w);
    return WENT_ON;
}

/* --- a run --------------------------------------------------------------------------------------- */

static void one_worker(struct world *w)
{
    while (w->m.state != LOOP_OVER && w->m.state != LOOP_STOPPED && w->out->events < AGAIN_EVENTS_MAX && !w->full)
        if (hear(w) == LEFT)
            break;
}

/* Nobody has it; who takes it next? False: nobody does. */
static bool next_worker(struct world *w)
{
    const struct set_run *r = w->run;
    bool lost = w->inject == NULL && !w->strayed && w->next == r->epoch[w->at].last;
    if (w->inject == NULL && (lost || w->back) && w->at + 1 < r->epochs) {
        w->at++;
        take_recorded(w);
        return true;
    }
    if ((!w->back && !w->lost) || w->out->workers >= AGAIN_WORKERS_MAX)
        return false;
    if (w->inject == NULL && !w->strayed)
        return false; /* it was given back, and nobody took it since */
    w->now += w->back ? w->back_ms : AGAIN_LOST_MS;
    w->epoch++;
    take(w, NULL, END_NONE);
    return true;
}

static void place(struct world *w)
{
    const struct again_inject *in = w->inject;
    uint64_t n = in->fault == REPLAY_MODEL  ? in->plain->thinks
                 : in->fault == REPLAY_TOOL ? in->plain->runs
                                            : in->plain->events;
    w->dice = in->seed * 0x2545f4914f6cdd1du + (uint64_t)in->fault;
    for (size_t i = 0; i < ID_BYTES; i++)
        w->dice = (w->dice ^ w->run->turn.b[i]) * 0x100000001b3u;
    w->spot = n > 0 ? world_pick(w, n) : UINT64_MAX;
}

static void conclude(struct world *w)
{
    struct again *out = w->out;
    const struct set_run *r = w->run;
    bool as_then = w->inject == NULL && !w->strayed && w->next == r->epoch[w->at].last;
    out->ms = w->now - r->row[0].row.t;
    out->used = w->used;
    out->state = w->m.state == LOOP_OVER                                                           ? AGAIN_ENDED
                 : out->events >= AGAIN_EVENTS_MAX || out->workers >= AGAIN_WORKERS_MAX || w->full ? AGAIN_ENDLESS
                 : as_then                                                                         ? AGAIN_AS_THEN
                                                                                                   : AGAIN_UNRECORDED;
    if (out->state == AGAIN_AS_THEN)
        out->end = r->end;
    else if (out->state != AGAIN_ENDED)
        out->end = END_NONE;
    if (out->state == AGAIN_ENDED && w->inject == NULL && !w->strayed &&
        (out->end != r->end || out->used.steps != r->used.steps || out->used.tokens != r->used.tokens ||
         out->used.cost_micro != r->used.cost_micro))
        differs(w, SPAN("ended"),
                arena_printf(w->a, "%s, %llu steps, %llu tokens, %llu millionths", turn_end_name(r->end),
                             (unsigned long long)r->used.steps, (unsigned long long)r->used.tokens,
                             (unsigned long long)r->used.cost_micro),
                arena_printf(w->a, "%s, %llu steps, %llu tokens, %llu millionths", turn_end_name(out->end),
                             (unsigned long long)out->used.steps, (unsigned long long)out->used.tokens,
                             (unsigned long long)out->used.cost_micro));
}

void again_run(const struct set_run *run, const struct again_inject *inject, struct arena *a, struct again *out)
{
    struct world *w = arena_alloc(a, sizeof(*w));
    *out = (struct again){.state = AGAIN_NOT};
    if (w == NULL || run->epochs == 0 || run->cut || (inject != NULL && !again_is_whole(run)))
        return;
    *w = (struct world){.run = run, .inject = inject, .a = a, .out = out};
    if ((w->taken = arena_alloc(a, run->rows * sizeof(*w->taken))) == NULL)
        return;
    if (inject != NULL)
        place(w);
    take_recorded(w);
    do
        one_worker(w);
    while (w->m.state != LOOP_OVER && next_worker(w));
    conclude(w);
}
