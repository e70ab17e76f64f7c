/* Sandboxes that were paused for as long as they may be. Their files are put into a checkpoint then, and they are
 * ended: the desk does so, step by step, and asks here which they are. What fails leaves one paused, and it is tried
 * again, ever less often. */
#include "sandbox-shim/warden/warden.h"

#include <stdio.h>

#include "common/log.h"
#include "common/msg.h"

enum {
    ROWS_MAX = 32 /* in one answer: the desk takes one of them, and asks again */,
    SOON_MS = 1000,
    AGAIN_MS = 60 * 1000,
    AGAIN_MAX_MS = 60 * 60 * 1000
};

/* One that is bound to a desk is nobody's to come back to. */
void idle_begins(struct box *b)
{
    if (b->is.idle_ms == 0 || b->bound || b->idle.due_ms != 0)
        return;
    b->idle.due_ms = loop_now(b->warden->loop) + b->is.idle_ms;
}

void idle_over(struct box *b)
{
    b->idle = (struct box_idle){.due_ms = 0};
}

/* It stands still for good, or will in a moment. */
static bool waits(const struct box *b)
{
    return (b->idle.due_ms != 0 && b->state != BOX_ENDING) ||
           (b->state == BOX_PAUSING && b->is.idle_ms != 0 && !b->bound && !b->moment);
}

/* And nobody is at it. Whoever is will not say when that is over. */
static bool is_free(const struct box *b)
{
    return b->state == BOX_PAUSED && !b->saves;
}

static uint64_t due_in(const struct box *b, uint64_t now)
{
    uint64_t in = b->idle.due_ms > now ? b->idle.due_ms - now : 0;

    return is_free(b) || in > SOON_MS ? in : SOON_MS;
}

int idle_on_ask(struct warden *w, struct frame *f)
{
    struct dynbuf *m = f->payload.n == 0 ? chan_begin(w->desk, M_SB_IDLE, f->id) : NULL;
    uint64_t now = loop_now(w->loop), next = 0;
    static unsigned turn;
    unsigned all = 0;

    if (m == NULL)
        return f->payload.n == 0 ? 0 : -1;
    for (const struct box *b = w->boxes; b != NULL; b = b->next) {
        if (!waits(b))
            continue;
        uint64_t in = due_in(b, now);
        all += in == 0;
        if (in > 0 && (next == 0 || in < next))
            next = in;
    }
    unsigned n = all < ROWS_MAX ? all : ROWS_MAX, skip = all > ROWS_MAX ? turn++ * ROWS_MAX % all : 0;
    msg_put_u64(m, next);
    msg_put_u16(m, (uint16_t)n);
    for (const struct box *b = w->boxes; n > 0; b = b->next != NULL ? b->next : w->boxes) {
        if (!waits(b) || due_in(b, now) > 0 || skip > 0) {
            skip -= skip > 0 && waits(b) && due_in(b, now) == 0;
            continue;
        }
        n--;
        warden_put_row(m, b);
        msg_put_u64(m, b->cpu_percent);
        msg_put_u8(m, b->strict);
    }
    (void)chan_commit(w->desk);
    return 0;
}

int idle_on_not(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span name = msg_get_span(&m, BOX_NAME_MAX);
    uint64_t generation = msg_get_u64(&m);
    struct span why = msg_get_span(&m, CHAN_PAYLOAD_MAX);

    if (msg_end(&m) != 0)
        return -1;
    struct box *b = box_named(w, name);
    if (b == NULL || b->generation != generation || b->idle.due_ms == 0)
        return 0; /* it has gone on meanwhile, or ended */
    uint64_t in = b->is.idle_ms > AGAIN_MS ? AGAIN_MS : b->is.idle_ms;
    for (unsigned i = 0; i < b->idle.tries && in < AGAIN_MAX_MS; i++)
        in *= 2;
    b->idle.tries++;
    b->idle.due_ms = loop_now(w->loop) + (in < AGAIN_MAX_MS ? in : AGAIN_MAX_MS);
    (void)snprintf(b->idle.why, sizeof(b->idle.why), "%.*s", SPAN_FMT(why));
    log_warn("sandbox %s stays paused, and is tried to be put aside again in %llu s: %.*s", b->name,
             (unsigned long long)((b->idle.due_ms - loop_now(w->loop)) / 1000), SPAN_FMT(why));
    return 0;
}
