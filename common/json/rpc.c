#include "common/json/rpc.h"

/* ---- where the id of a response stands ---- */

static void blanks(struct span *s)
{
    size_t n = 0;
    while (n < s->n && memchr(" \t\r\n", s->p[n], 4) != NULL)
        n++;
    *s = span_from(*s, n);
}

/* A text with its quotes. */
static bool take_text(struct span *s, struct span *text)
{
    size_t n = 1;
    if (s->n == 0 || s->p[0] != '"')
        return false;
    while (n < s->n && s->p[n] != '"')
        n += s->p[n] == '\\' ? 2 : 1;
    if (n >= s->n)
        return false;
    *text = span_first(*s, n + 1);
    *s = span_from(*s, n + 1);
    return true;
}

/* An object or a list with all in it, whatever that is. */
static bool take_nested(struct span *s)
{
    struct span text;
    size_t depth = 0;
    while (s->n) {
        uint8_t c = s->p[0];
        if (c == '"' && !take_text(s, &text))
            return false;
        if (c == '"')
            continue;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        *s = span_from(*s, 1);
        if (depth == 0)
            return true;
    }
    return false;
}

static bool take_value(struct span *s, struct span *value)
{
    struct span from = *s, text;
    if (s->n == 0)
        return false;
    if (s->p[0] == '{' || s->p[0] == '[') {
        if (!take_nested(s))
            return false;
    } else if (s->p[0] == '"') {
        if (!take_text(s, &text))
            return false;
    } else {
        size_t n = 0;
        while (n < s->n && memchr(" \t\r\n,}", s->p[n], 6) == NULL)
            n++;
        *s = span_from(*s, n);
    }
    *value = span_first(from, from.n - s->n);
    return value->n > 0;
}

static bool take_byte(struct span *s, uint8_t c)
{
    blanks(s);
    bool is = s->n > 0 && s->p[0] == c;
    *s = is ? span_from(*s, 1) : *s;
    blanks(s);
    return is;
}

/* Of a message that is a response with an id: where that stands. A name with escapes may be any, which is none here.
 */
static bool response_id(struct span s, struct span *id)
{
    struct span name, value;
    size_t ids = 0, answers = 0;
    bool more = take_byte(&s, '{');
    while (more) {
        if (!take_text(&s, &name) || span_index(name, '\\') < name.n || !take_byte(&s, ':') ||
            !take_value(&s, &value))
            return false;
        if (span_eq(name, SPAN("\"method\"")))
            return false;
        answers += span_eq(name, SPAN("\"result\"")) || span_eq(name, SPAN("\"error\""));
        if (span_eq(name, SPAN("\"id\""))) {
            *id = value;
            ids++;
        }
        more = take_byte(&s, ',');
    }
    if (ids != 1 || answers == 0 || !take_byte(&s, '}') || s.n != 0)
        return false;
    uint8_t c = id->p[0];
    return c == '"' || c == '-' || (c >= '0' && c <= '9');
}

/* ---- the stream ---- */

void rpc_answer_begin(struct rpc_answer *a, struct span content_type)
{
    struct span type = span_trim(span_first(content_type, span_index(content_type, ';')));
    *a = (struct rpc_answer){.events = span_ieq(type, SPAN("text/event-stream"))};
    a->is = a->events || span_ieq(type, SPAN("application/json"));
    dynbuf_init(&a->held, RPC_MESSAGE_MAX);
}

void rpc_answer_end(struct rpc_answer *a)
{
    dynbuf_free(&a->held);
}

/* What is held, and is all of a message or of a line. */
static void give(struct rpc_answer *a, struct span id, struct dynbuf *out)
{
    struct span s = dynbuf_span(&a->held), head = SPAN("data:"), was = SPAN_NONE;
    bool data = !a->events || span_starts(s, head);
    if (data && response_id(a->events ? span_from(s, head.n) : s, &was)) {
        size_t at = (size_t)(was.p - s.p);
        (void)dynbuf_add(out, span_first(s, at));
        (void)dynbuf_add(out, id);
        s = span_from(s, at + was.n);
    }
    (void)dynbuf_add(out, s);
    dynbuf_reset(&a->held);
}

/* The next piece of in, no longer than to the end of a line of events. */
static void take(struct rpc_answer *a, struct span piece, struct dynbuf *out)
{
    if (!a->passes && piece.n > RPC_MESSAGE_MAX - a->held.n) {
        (void)dynbuf_add(out, dynbuf_span(&a->held));
        dynbuf_reset(&a->held);
        a->passes = true;
    }
    (void)dynbuf_add(a->passes ? out : &a->held, piece);
}

int rpc_answer_feed(struct rpc_answer *a, struct span id, struct span in, bool last, struct dynbuf *out)
{
    while (in.n) {
        size_t n = a->events ? span_index(in, '\n') : in.n;
        bool line = n < in.n;
        n += line;
        take(a, span_first(in, n), out);
        in = span_from(in, n);
        if (line && !a->passes)
            give(a, id, out);
        if (line)
            a->passes = false;
    }
    if (last)
        give(a, id, out);
    return dynbuf_ok(out) && dynbuf_ok(&a->held) ? 0 : -1;
}
