/* What readers see: kept for a moment, and written down together before anybody is shown it. */
#include "broker/work/work.h"
#include "common/net/loop.h"

enum {
    FLUSH_MS = 30,
    FLUSH_BYTES = 48 * 1024,
    DELTA_MAX = 10 * 1024 /* JSON may need six bytes for one */,
    EVENTS_BYTES = 4 << 20
};

void show_begin(struct dynbuf *b, struct jsonw *w)
{
    dynbuf_init(b, BSTORE_EVENT_MAX);
    jsonw_begin(w, b);
    jsonw_object(w);
}

static void forget(struct task *t)
{
    t->events = t->event_bytes = 0;
    arena_free(&t->event_arena);
    arena_init(&t->event_arena, EVENTS_BYTES);
}

static void add(struct task *t, const char *type, struct dynbuf *body)
{
    size_t n = body->n;
    struct span text = dynbuf_ok(body) ? arena_keep(&t->event_arena, body) : SPAN_NONE;
    dynbuf_free(body);
    if (text.p == NULL || t->events == BSTORE_EVENTS_MAX)
        return; /* one that is larger than an event may be says nothing */
    t->event[t->events++] = (struct bstore_event){span_str(type), text};
    t->event_bytes += n;
}

static void end_delta(struct task *t)
{
    struct dynbuf b;
    struct jsonw w;
    if (t->delta.n == 0)
        return;
    show_begin(&b, &w);
    jsonw_kv(&w, "turn", span_str(t->turn));
    jsonw_kv_u64(&w, "step", t->step);
    jsonw_kv_u64(&w, "attempt", t->agent.attempts);
    jsonw_kv_u64(&w, "piece", t->delta_piece);
    jsonw_kv(&w, "text", dynbuf_span(&t->delta));
    jsonw_end_object(&w);
    dynbuf_reset(&t->delta);
    add(t, t->delta_type, &b);
}

bool show_flush(struct task *t)
{
    uint64_t seq;
    end_delta(t);
    timer_clear(t->flush);
    if (t->events == 0)
        return true;
    enum bstore_result r = bstore_log(t->w->store, &t->claim, t->event, t->events, &seq);
    forget(t);
    return task_passed(t, r);
}

static void soon(struct task *t)
{
    if (t->event_bytes + t->delta.n >= FLUSH_BYTES || t->events + 2 >= BSTORE_EVENTS_MAX)
        (void)!show_flush(t);
    else
        timer_set(t->flush, FLUSH_MS);
}

void show(struct task *t, const char *type, struct dynbuf *body)
{
    end_delta(t);
    add(t, type, body);
    soon(t);
}

void show_delta(struct task *t, const char *type, uint64_t piece, struct span text)
{
    if (t->delta.n > 0 && (t->delta_type != type || t->delta_piece != piece || t->delta.n + text.n > DELTA_MAX))
        end_delta(t);
    t->delta_type = type;
    t->delta_piece = piece;
    for (struct span part; text.n > 0; text = span_from(text, part.n)) {
        part = span_first(text, DELTA_MAX);
        while (part.n < text.n && part.n > 1 && (text.p[part.n] & 0xc0) == 0x80) /* whole characters */
            part.n--;
        (void)dynbuf_add(&t->delta, part);
        if (part.n < text.n)
            end_delta(t);
    }
    soon(t);
}
