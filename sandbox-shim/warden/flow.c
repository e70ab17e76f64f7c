#include "sandbox-shim/warden/flow.h"
#include "sandbox-shim/warden/kept.h"

#include "common/msg.h"
#include "sandbox-shim/warden/cell/cell.h"
#include "sandbox-shim/warden/kept.h"

/* --- what more may be said ---------------------------------------------------------- */

void flow_credit(struct run *r, uint32_t bytes)
{
    struct dynbuf b;

    if (bytes > r->open)
        bytes = r->open;
    r->open -= bytes;
    if (r->flow.owed > r->open)
        r->flow.owed = r->open;
    dynbuf_init(&b, 64);
    if (bytes > 0 && talk_put_credit(&b, r->id, bytes) == 0)
        run_say(r, &b);
    dynbuf_free(&b);
}

/* To each that has some to get its part of the turn, so that none of them waits for another. */
static void pay(struct box *b)
{
    struct flow_turn *t = &b->turn;
    struct run *next;
    uint32_t n = 0;

    for (const struct run *r = b->runs; r != NULL; r = r->next)
        n += r->flow.owed > 0;
    for (struct run *r = b->runs; box_is_up(b) && r != NULL && t->left > 0; r = next) {
        next = r->next;
        if (r->flow.owed == 0)
            continue;
        uint32_t part = t->left / n > 0 ? t->left / n : 1;
        part = part < r->flow.owed ? part : r->flow.owed;
        r->flow.owed -= part;
        t->left -= part;
        flow_credit(r, part); /* which may end the sandbox, and with it them all */
    }
    if (box_is_up(b) && t->left < FLOW_TURN && !t->runs) {
        t->runs = true;
        timer_set(t->timer, FLOW_TURN_MS);
    }
}

static void turn_over(void *arg)
{
    struct box *b = arg;

    b->turn.runs = false;
    b->turn.left = FLOW_TURN;
    pay(b);
}

/* Who is killed is not held up: its end stands behind what it said. */
void flow_drop(struct run *r, uint32_t bytes)
{
    if (r->killed) {
        flow_credit(r, bytes);
    } else if (bytes > 0) {
        r->flow.owed += bytes;
        pay(r->box);
    }
}

int flow_turn_begin(struct box *b)
{
    b->turn = (struct flow_turn){.timer = timer_new(b->warden->loop, turn_over, b), .left = FLOW_TURN};
    return b->turn.timer != NULL ? 0 : -1;
}

void flow_turn_free(struct box *b)
{
    timer_free(&b->turn.timer);
}

/* --- what is told --------------------------------------------------------------------- */

void flow_begin(struct run *r)
{
    for (int i = 0; i < 2; i++)
        dynbuf_init(&r->flow.waits[i], SB_WINDOW);
}

void flow_free(struct run *r)
{
    for (int i = 0; i < 2; i++)
        dynbuf_free(&r->flow.waits[i]);
}

static bool tell_piece(struct run *r, unsigned which, bool all)
{
    struct warden *w = r->box->warden;
    struct flow *f = &r->flow;
    size_t n = f->waits[which].n;
    struct dynbuf *b;

    if (n == 0 || (!all && n < FLOW_SMALL && f->flight > 0 && f->frames >= FLOW_FRAMES) ||
        (b = chan_begin(w->desk, M_SB_OUTPUT, r->asker)) == NULL)
        return false;
    struct span s = span_first(dynbuf_span(&f->waits[which]), TALK_PIECE_MAX);
    msg_put_u8(b, (uint8_t)(1 + which));
    (void)dynbuf_add(b, s);
    (void)chan_commit(w->desk);
    f->flight += (uint32_t)s.n;
    f->frames++;
    dynbuf_drop(&f->waits[which], s.n);
    return true;
}

void flow_tell(struct run *r, bool all)
{
    if (r->kept != NULL) {
        kept_tell(r);
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        while (r->asker != 0 && r->box->warden->desk != NULL && tell_piece(r, i, all))
            ;
        if (r->asker == 0)
            dynbuf_reset(&r->flow.waits[i]);
    }
}

void flow_tell_all(struct box *b)
{
    for (struct run *r = b->runs; r != NULL; r = r->next)
        flow_tell(r, false);
}

int flow_put(struct run *r, unsigned which, struct span bytes)
{
    if (dynbuf_add(&r->flow.waits[which], bytes) != 0)
        return -1;
    if (r->flow.waits[which].n >= TALK_PIECE_MAX)
        flow_tell(r, false);
    return 0;
}

void flow_taken(struct run *r, uint32_t bytes)
{
    r->flow.flight -= bytes < r->flow.flight ? bytes : r->flow.flight;
    r->flow.frames = r->flow.flight > 0 ? r->flow.frames : 0;
    flow_tell(r, false);
    flow_credit(r, bytes);
}
