/* Who watches is shown what happens, and that nothing does. */
#include "broker/serve/caller.h"

#include "common/net/loop.h"

/* Something was written by a worker: whoever watches is shown it. */
static void pulse(void *arg)
{
    struct serve *s = arg;
    uint64_t now = lanes_pulse(s);
    bool changed = now != s->last_pulse;
    s->last_pulse = now;
    s->watched = false;
    for (struct caller *c = s->callers, *next; c != NULL; c = next) {
        next = c->next;
        if (c->x == NULL || !c->x->streams)
            continue;
        s->watched = true;
        if (changed && call_reads(c->x))
            lanes_run(c->x, stream_more);
    }
    if (s->watched)
        timer_set(s->pulse, SERVE_PULSE_MS);
}

static void heart(void *arg)
{
    struct serve *s = arg;
    uint64_t now = loop_now(s->loop);
    for (struct caller *c = s->callers, *next; c != NULL; c = next) {
        next = c->next;
        if (c->x == NULL || !c->x->streams)
            continue;
        if (!caller_is_known(c) && now - c->known_ms >= SERVE_UNSURE_MS) { /* it may have been taken back since */
            caller_drop(c, false);
            continue;
        }
        if (!caller_is_known(c) && c->asks == 0 && now - c->asked_ms >= SERVE_WHO_MS)
            c->again = caller_ask(c);
        stream_heart(c->x);
    }
    (void)lanes_pulse(s); /* what the others tell is taken in though nobody watches: it would only grow */
    lanes_sweep(s);
    timer_set(s->heart, SERVE_HEART_MS);
}

int serve_begin(struct serve *s)
{
    s->pulse = timer_new(s->loop, pulse, s);
    s->heart = timer_new(s->loop, heart, s);
    if (s->pulse == NULL || s->heart == NULL || lanes_begin(s) != 0)
        return -1;
    timer_set(s->heart, SERVE_HEART_MS);
    return 0;
}
