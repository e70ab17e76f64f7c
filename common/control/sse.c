#include "common/control/sse.h"

enum { SSE_WORD_MAX = 256 };

void sse_init(struct sse *s, api_event_fn *fn, void *ctx)
{
    sse_init_max(s, API_EVENT_MAX, fn, ctx);
}

void sse_init_max(struct sse *s, size_t event_max, api_event_fn *fn, void *ctx)
{
    *s = (struct sse){.fn = fn, .ctx = ctx};
    dynbuf_init(&s->line, event_max);
    dynbuf_init(&s->data, event_max);
    dynbuf_init(&s->name, SSE_WORD_MAX);
    dynbuf_init(&s->id, SSE_WORD_MAX);
}

void sse_free(struct sse *s)
{
    dynbuf_free(&s->line);
    dynbuf_free(&s->data);
    dynbuf_free(&s->name);
    dynbuf_free(&s->id);
}

static int sse_dispatch(struct sse *s)
{
    struct api_event ev = {dynbuf_span(&s->id), s->name.n ? dynbuf_span(&s->name) : SPAN("message"),
                           dynbuf_span(&s->data)};
    int rc = 0;

    if (ev.data.n > 0) {
        ev.data.n--; /* the line end of the last data line */
        rc = s->fn(s->ctx, &ev);
    }
    dynbuf_reset(&s->data);
    dynbuf_reset(&s->name);
    return rc;
}

static int sse_line(struct sse *s, struct span line)
{
    struct span field, value;

    if (line.n == 0)
        return sse_dispatch(s);
    if (!span_cut(line, ':', &field, &value))
        value = SPAN_NONE;
    if (value.n > 0 && value.p[0] == ' ')
        value = span_from(value, 1);
    if (span_eq(field, SPAN("data"))) {
        (void)dynbuf_add(&s->data, value);
        return dynbuf_add_byte(&s->data, '\n');
    }
    if (span_eq(field, SPAN("event"))) {
        dynbuf_reset(&s->name);
        return dynbuf_add(&s->name, value);
    }
    if (span_eq(field, SPAN("id"))) {
        dynbuf_reset(&s->id);
        return dynbuf_add(&s->id, value);
    }
    uint64_t ms = 0;
    if (span_eq(field, SPAN("retry")) && span_u64(value, UINT32_MAX, &ms) == 0)
        s->retry_ms = ms;
    return 0; /* a comment, or a field we do not know */
}

int sse_feed(struct sse *s, struct span bytes)
{
    while (bytes.n > 0) {
        size_t n = span_index(bytes, '\n');
        if (dynbuf_add(&s->line, span_first(bytes, n)) != 0)
            return -1;
        if (n == bytes.n)
            return 0;
        bytes = span_from(bytes, n + 1);
        struct span line = dynbuf_span(&s->line);
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        int rc = sse_line(s, line);
        if (rc != 0)
            return rc;
        dynbuf_reset(&s->line);
    }
    return 0;
}
