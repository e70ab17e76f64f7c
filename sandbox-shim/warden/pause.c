/* Sandboxes that stand still, and go on as another generation of themselves: what they were given before is worth
 * nothing then. Their time goes on meanwhile, and ends them. */
#include "common/log.h"
#include "common/msg.h"
#include "sandbox-shim/warden/cell/cell.h"
#include "sandbox-shim/warden/checkpoint.h"
#include "sandbox-shim/warden/pause.h"

void box_tell_paused(struct warden *w, uint64_t asker, const struct box *b, enum sb_paused what, const char *why)
{
    struct dynbuf *m = w->desk != NULL && asker != 0 ? chan_begin(w->desk, M_SB_PAUSED, asker) : NULL;

    if (m == NULL)
        return;
    msg_put_u8(m, (uint8_t)what);
    msg_put_u8(m, b != NULL ? (uint8_t)b->way : PAUSE_NONE);
    msg_put_u64(m, b != NULL ? b->generation : 0);
    msg_put_span(m, why != NULL ? span_str(why) : SPAN_NONE);
    (void)chan_commit(w->desk);
}

/* Why it cannot be asked to now; NULL: it can. */
static const char *busy(const struct box *b)
{
    switch (b->state) {
    case BOX_PAUSING:
    case BOX_RESUMING: return "it is being paused or goes on just now; ask again in a moment";
    case BOX_RUNS:
        if (b->version == 0 && cell_runs(b))
            return "a command with a lane of its own runs in it, which without a cgroup cannot be stopped with the "
                   "others; "
                   "it can be paused when that has ended";
        return b->saves ? "its files are being kept for a step, or put back; ask again in a moment" : NULL;
    case BOX_PAUSED: return NULL;
    default: return "it does not run yet";
    }
}

static void ask_parent(struct box *b, bool on, uint64_t asker)
{
    struct dynbuf *m =
        box_set(b, on ? BOX_PAUSING : BOX_RESUMING) ? chan_begin(b->warden->parent, M_BOX_PAUSE, b->id) : NULL;

    b->pauser = asker;
    if (m == NULL)
        return;
    msg_put_u8(m, on);
    (void)chan_commit(b->warden->parent);
}

/* What is asked for by itself outlasts a moment; one that is paused already is not let go on after one. */
int box_on_pause(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    bool moment = msg_get_bool(&m);

    if (msg_end(&m) != 0 || f->id == 0)
        return -1;
    struct box *b = box_named(w, name);
    const char *why = b != NULL ? busy(b) : NULL;
    if (b == NULL)
        box_tell_paused(w, f->id, NULL, SB_PAUSE_NOBODY, NULL);
    else if (why != NULL)
        box_tell_paused(w, f->id, b, SB_PAUSE_NOT, why);
    else if (b->state == BOX_PAUSED) {
        b->moment &= moment;
        if (!b->moment)
            idle_begins(b);
        box_tell_paused(w, f->id, b, SB_PAUSE_DONE, NULL);
    } else {
        b->moment = moment;
        ask_parent(b, true, f->id);
    }
    return 0;
}

static bool could_go_on(const struct box *b)
{
    return b->moment && (b->state == BOX_PAUSING || b->state == BOX_PAUSED) && !b->saves;
}

int box_on_moment(struct warden *w, struct frame *f)
{
    struct dynbuf *m = f->payload.n == 0 ? chan_begin(w->desk, M_SB_MOMENT, f->id) : NULL;
    uint16_t n = 0;

    if (m == NULL)
        return f->payload.n == 0 ? 0 : -1;
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        n += could_go_on(b);
    msg_put_u16(m, n);
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if (could_go_on(b))
            msg_put_span(m, span_str(b->name));
    (void)chan_commit(w->desk);
    return 0;
}

int box_on_resume(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    uint64_t generation = msg_get_u64(&m);

    if (msg_end(&m) != 0 || f->id == 0)
        return -1;
    struct box *b = box_named(w, name);
    if (b != NULL && b->saves && generation > b->generation)
        checkpoint_idle_stops(b); /* who comes back does not wait for that */
    const char *why = b == NULL              ? NULL
                      : b->state == BOX_RUNS ? "it is not paused"
                      : busy(b) != NULL      ? busy(b)
                      : b->saves             ? "its files are being read for a checkpoint; ask again in a moment"
                      : generation <= b->generation ? "it would go on as what it was before"
                                                    : NULL;
    if (b == NULL || why != NULL) {
        box_tell_paused(w, f->id, b, b != NULL ? SB_PAUSE_NOT : SB_PAUSE_NOBODY, why);
        return 0;
    }
    b->generation = generation; /* the ledger's already: it ends as this one, too */
    ask_parent(b, false, f->id);
    return 0;
}

static const char *way_words(enum pause_way way)
{
    return way == PAUSE_CGROUP_1   ? "it was paused: frozen by cgroup v1"
           : way == PAUSE_CGROUP_2 ? "it was paused: frozen by cgroup v2"
                                   : "it was paused: each of its processes was stopped by a signal";
}

void box_paused(struct box *b, enum pause_way way, const char *why)
{
    bool pauses = b->state == BOX_PAUSING, still = way != PAUSE_NONE;
    uint64_t asker = b->pauser;

    if ((!pauses && b->state != BOX_RESUMING) || !box_set(b, still ? BOX_PAUSED : BOX_RUNS)) {
        log_debug("sandbox %s ends, and does not pause", b->name);
        return;
    }
    b->way = way;
    b->pauser = 0;
    b->moment &= still;
    if (!still)
        idle_over(b);
    else if (!b->moment)
        idle_begins(b);
    if (pauses == still)
        box_note(b, still ? "sandbox-paused" : "sandbox-resumed", still ? way_words(way) : "it goes on");
    box_tell_paused(b->warden, asker, b, pauses == still ? SB_PAUSE_DONE : SB_PAUSE_NOT, why);
    if (!still)
        runs_go_on(b); /* which may end it */
}
