/* The world of a replay: the store, the models and the tools, as the recording has them; and what is different about
 * them where a fault was put in. */
#include "broker/replay/again_in.h"

enum { SILENT_MAX = 3, SILENT_MS = 500, SILENT_MORE_MS = 2000, SILENT_WAIT_MS = 1000 };

/* splitmix64 */
uint64_t world_pick(struct world *w, uint64_t n)
{
    uint64_t z = w->dice += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return n > 0 ? z % n : 0;
}

void world_add(struct world *w, struct loop_event e, uint64_t after_ms, long row)
{
    if (w->ndue == DUE_MAX) {
        w->full = true;
        return;
    }
    if (row != NO_ROW)
        w->taken[row] = true;
    w->due[w->ndue++] = (struct due){.at = w->now + after_ms, .order = w->order++, .e = e, .row = row};
}

/* --- what was recorded ----------------------------------------------------------------------- */

static bool is_of_call(enum loop_heard h)
{
    return h == HEARD_DONE || h == HEARD_KNOWN || h == HEARD_LOOKED || h == HEARD_SETTLED;
}

static bool fits(const struct world *w, size_t i, enum loop_heard heard, uint64_t ord)
{
    const struct set_row *r = &w->run->row[i];
    bool kind = r->row.kind == TAPE_HEARD &&
                (r->row.e.heard == heard || (heard == HEARD_ANSWER && heard_of_model(r->row.e.heard)));
    return kind && r->asked && r->step == w->m.step && (!is_of_call(heard) || r->row.e.ord == ord);
}

/* The next that was heard of this kind and is not taken; while all is as it was, what this worker heard. Where the
 * machine went another way, or a fault was put in, an answer or a result may be had once more. */
static long recorded(const struct world *w, enum loop_heard heard, uint64_t ord)
{
    bool free = w->inject != NULL || w->strayed;
    const struct set_epoch *ep = &w->run->epoch[w->at];
    size_t first = w->inject != NULL ? 0 : ep->first, last = free ? w->run->rows : ep->last;
    long again = NO_ROW;
    for (size_t i = first; i < last; i++)
        if (fits(w, i, heard, ord) && !w->taken[i])
            return (long)i;
    for (size_t i = 0; free && i < w->run->rows; i++)
        if (fits(w, i, heard, ord) && (heard == HEARD_DONE || w->run->row[i].row.e.heard == HEARD_ANSWER))
            again = (long)i;
    return again;
}

static uint64_t latency(const struct world *w, long row)
{
    return row != NO_ROW ? w->run->row[row].lat : 0;
}

/* The store always answers. */
static void stored(struct world *w, struct loop_event e)
{
    long row = recorded(w, e.heard, e.ord);
    world_add(w, e, latency(w, row), row);
}

/* Whether a step is a summary went by how much had been said: as it was then, and where it is begun more often than
 * then, as it was in the end. */
static void begin(struct world *w)
{
    long row = recorded(w, HEARD_BEGUN, 0);
    w->attempts++;
    w->summary = row != NO_ROW && w->run->row[row].row.e.summary;
    for (size_t i = 0; row == NO_ROW && i < w->run->rows; i++)
        if (fits(w, i, HEARD_BEGUN, 0))
            w->summary = w->run->row[i].row.e.summary;
    world_add(w, (struct loop_event){.heard = HEARD_BEGUN, .attempts = w->attempts, .summary = w->summary},
              latency(w, row), row);
}

/* --- models ------------------------------------------------------------------------------------- */

static void think(struct world *w)
{
    bool fault = w->inject != NULL && w->inject->fault == REPLAY_MODEL;
    w->think_ms = w->now;
    if (fault && w->out->thinks == w->spot) {
        w->out->injected = true;
        w->silent = 1 + (unsigned)world_pick(w, SILENT_MAX);
    }
    w->out->thinks++;
    if (w->silent > 0) {
        const struct loop_event e = {.heard = HEARD_NO_ANSWER,
                                     .retry = true,
                                     .after_ms = (uint64_t)SILENT_WAIT_MS << (SILENT_MAX - w->silent)};
        w->silent--;
        world_add(w, e, SILENT_MS + world_pick(w, SILENT_MORE_MS), NO_ROW);
        return;
    }
    long row = recorded(w, HEARD_ANSWER, 0);
    if (row != NO_ROW)
        world_add(w, w->run->row[row].row.e, latency(w, row), row);
}

/* Calls are told apart by marks; that they are those of the step before is all that matters of what they ask for. */
static void mark(struct world *w, const struct loop_asked *asked, size_t n, uint64_t same, struct loop_asked *out)
{
    bool as_before = same > 1 && n == w->nlast;
    for (size_t i = 0; i < n; i++) {
        out[i] = (struct loop_asked){.class = asked[i].class};
        w->marks++;
        memcpy(out[i].what.b, &w->marks, sizeof(w->marks));
        if (as_before)
            out[i].what = w->last[i];
    }
}

static void not_think(struct world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->ndue; i++) {
        enum loop_heard h = w->due[i].e.heard;
        if (!heard_of_model(h))
            w->due[n++] = w->due[i];
        else if (w->due[i].row != NO_ROW)
            w->taken[w->due[i].row] = false;
    }
    w->ndue = n;
    w->out->model_ms += w->now - w->think_ms;
}

/* --- calls ---------------------------------------------------------------------------------------- */

/* It was cut off: what is true of it. */
static void cut_off(struct world *w, struct world_call *c)
{
    static const enum known truths[] = {KNOWN_NOT_SENT, KNOWN_SENT, KNOWN_ANSWERED, KNOWN_GOING};
    c->truth = truths[world_pick(w, 4)];
    c->faulted = true;
    c->flies = false;
    c->happened =
        c->truth == KNOWN_ANSWERED || c->truth == KNOWN_GOING || (c->truth == KNOWN_SENT && world_pick(w, 2));
    c->effects += c->happened;
}

static void run(struct world *w, uint64_t ord, bool waits)
{
    struct world_call *c = &w->call[ord];
    long row = recorded(w, HEARD_DONE, ord);
    bool fault = w->inject != NULL && w->inject->fault == REPLAY_TOOL && !waits && w->out->runs == w->spot;
    w->out->runs += !waits;
    c->run = true;
    c->flies = !waits || !c->faulted; /* one that went on by itself had its effect counted when it was cut off */
    c->began = w->now;
    if (row == NO_ROW)
        return;
    struct loop_event e = w->run->row[row].row.e;
    uint64_t lat = latency(w, row);
    c->will = e.end;
    c->until = w->now + lat;
    if (fault)
        e.end = CALL_UNKNOWN;
    world_add(w, e, fault ? lat / 2 : lat, row);
    if (fault) {
        w->out->injected = true;
        w->due[w->ndue - 1].cut = true;
    }
}

static void ask(struct world *w, uint64_t ord, enum loop_heard heard)
{
    const struct world_call *c = &w->call[ord];
    long row = c->faulted ? NO_ROW : recorded(w, heard, ord);
    struct loop_event e = {.heard = heard, .ord = ord, .end = c->will};
    if (row != NO_ROW)
        e = w->run->row[row].row.e;
    else if (w->inject == NULL && !w->strayed)
        return;
    else if (heard == HEARD_LOOKED)
        e.known = c->happened ? KNOWN_ANSWERED : KNOWN_NOT_SENT;
    else
        e.known = c->faulted ? c->truth : c->run ? KNOWN_NOTHING : KNOWN_NOT_SENT;
    world_add(w, e, latency(w, row), row);
}

static void settle(struct world *w, const struct loop_action *a)
{
    struct world_call *c = &w->call[a->ord];
    bool once = c->asked.class == CALL_UNSAFE || c->asked.class == CALL_RECONCILABLE;
    if (c->end == CALL_OPEN) {
        w->out->calls++;
        w->out->ends[a->end]++;
        w->out->repeated += once && c->effects > 1;
        w->out->hidden += a->end == CALL_NOT_RUN && c->effects > 0;
    }
    c->end = a->end;
    stored(w, (struct loop_event){.heard = HEARD_SETTLED, .ord = a->ord});
}

/* --- steps ----------------------------------------------------------------------------------------- */

static void plan(struct world *w, size_t n)
{
    w->planned = true;
    w->calls = n;
    for (size_t i = 0; i < n; i++)
        w->call[i] = (struct world_call){.asked = w->asked[i]};
    w->used.tokens += w->answer_used.tokens;
    w->used.cost_micro += w->answer_used.cost_micro;
    stored(w, (struct loop_event){.heard = HEARD_PLANNED});
}

static void checkpoint(struct world *w, uint64_t step)
{
    struct dynbuf b;
    dynbuf_init(&b, LOOP_KEPT_MAX);
    agent_save(&w->m, &b);
    w->kept_n = dynbuf_ok(&b) ? b.n : 0;
    if (w->kept_n > 0)
        memcpy(w->kept, b.p, w->kept_n);
    dynbuf_free(&b);
    w->nlast = w->summary ? w->nlast : w->calls;
    for (size_t i = 0; i < w->calls; i++)
        w->last[i] = w->call[i].asked.what;
    w->settled = step;
    w->used.steps++;
    w->planned = w->cut = w->summary = false;
    w->attempts = 0;
    stored(w, (struct loop_event){.heard = HEARD_STEP});
}

void world_do(struct world *w, const struct loop_action *a)
{
    switch (a->what) {
    case DO_REVOKE: stored(w, (struct loop_event){.heard = HEARD_REVOKED}); break;
    case DO_BEGIN: begin(w); break;
    case DO_THINK: think(w); break;
    case DO_NOT_THINK: not_think(w); break;
    case DO_PLAN: plan(w, a->n); break;
    case DO_RUN: run(w, a->ord, false); break;
    case DO_WAIT: run(w, a->ord, true); break;
    case DO_ASK: ask(w, a->ord, HEARD_KNOWN); break;
    case DO_LOOK: ask(w, a->ord, HEARD_LOOKED); break;
    case DO_SETTLE: settle(w, a); break;
    case DO_CHECKPOINT: checkpoint(w, a->step); break;
    case DO_FINISH:
        w->out->end = a->turn;
        stored(w, (struct loop_event){.heard = HEARD_ENDED});
        break;
    case DO_GIVE_BACK:
        w->back = true;
        w->back_ms = a->after_ms;
        break;
    case DO_ABORT: /* what it was doing ends when it did then */
    case DO_NOTHING:
    default: break;
    }
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void world_heard(struct world *w, struct due *d)
{
    struct loop_event *e = &d->e;
    const struct set_row *r = d->row != NO_ROW ? &w->run->row[d->row] : NULL;
    struct world_call *c = e->ord < TURN_CALLS_MAX ? &w->call[e->ord] : NULL;
    e->now_ms = w->now;
    if (r != NULL) {
        w->used.tokens += r->wasted.tokens;
        w->used.cost_micro += r->wasted.cost_micro;
    }
    if (heard_of_model(e->heard))
        w->out->model_ms += w->now - w->think_ms;
    if (e->heard == HEARD_ANSWER && r != NULL) {
        if (e->n <= TURN_CALLS_MAX)
            mark(w, r->row.e.asked, e->n, r->row.same, w->asked);
        e->asked = w->asked;
        w->cut = e->cut;
        w->answer_used = (struct used){.tokens = less(e->used.tokens, r->wasted.tokens),
                                       .cost_micro = less(e->used.cost_micro, r->wasted.cost_micro)};
    } else if (e->heard == HEARD_DONE && c != NULL) {
        w->out->tool_ms += w->now - c->began;
        if (d->cut)
            cut_off(w, c);
        else if (c->flies)
            c->effects += e->end == CALL_DONE || e->end == CALL_ERROR;
        c->flies = false;
        if (!d->cut && c->faulted) /* it does not go on any more */
            c->truth = e->end == CALL_UNKNOWN ? KNOWN_SENT : KNOWN_ANSWERED;
    }
}

void world_lose(struct world *w)
{
    for (size_t i = 0; i < w->ndue; i++)
        if (w->due[i].row != NO_ROW)
            w->taken[w->due[i].row] = false;
    w->ndue = 0;
    for (size_t i = 0; i < w->calls; i++)
        if (w->call[i].end == CALL_OPEN && w->call[i].flies)
            cut_off(w, &w->call[i]);
}
