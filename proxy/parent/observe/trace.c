/* One exchange, step by step: every role is asked for what it remembers, and what comes is put in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/json/json.h"
#include "common/msg.h"
#include "common/time/clock.h"
#include "common/trace.h"
#include "proxy/parent/parent.h"

enum { PATIENCE_MS = 2000, MARKS_MAX = ROLE_COUNT * TRACE_ANSWER_MARKS, JSON_MAX = CHAN_PAYLOAD_MAX - 64 };

struct seen {
    uint64_t ns;
    enum role_id role;
    size_t n; /* of several at the same time */
    char what[TRACE_WORD + 1], came[TRACE_WORD + 1];
};

struct trace_question {
    struct parent *parent;
    struct timer *patience;
    uint64_t id, exchange; /* id: the desk's */
    bool front;            /* its front still runs */
    size_t n;
    struct seen seen[MARKS_MAX];
};

/* "RUN-NUMBER" of this run, as in the audit, or the number alone. */
uint64_t parent_exchange(const struct parent *p, struct span text)
{
    struct span boot = span_str(p->boot);
    uint64_t v;
    if (text.n > boot.n && span_starts(text, boot) && text.p[boot.n] == '-')
        text = span_from(text, boot.n + 1);
    return span_u64(text, UINT64_MAX - 1, &v) == 0 && v >> XID_FRONT_SHIFT != 0 ? v : 0;
}

static int earlier(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->n < y->n ? -1 : 1;
}

static void put_marks(const struct trace_question *q, struct jsonw *w)
{
    jsonw_kv_array(w, "steps");
    for (size_t i = 0; i < q->n; i++) {
        const struct seen *s = &q->seen[i];
        jsonw_object(w);
        jsonw_kv_u64(w, "us", (s->ns - q->seen[0].ns) / 1000);
        jsonw_kv(w, "role", span_str(role_name(s->role)));
        jsonw_kv(w, "step", span_str(s->what));
        jsonw_kv(w, "result", span_str(s->came));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

/* A role that is away has forgotten, and one that is slow did not say: both are named. */
static void put_missing(const struct trace_question *q, struct jsonw *w)
{
    jsonw_kv_array(w, "missing");
    if (!q->front)
        jsonw_string(w, span_str(role_name(ROLE_FRONT)));
    for (const struct child *c = q->parent->children; c != NULL; c = c->next)
        if (c->trace_awaited)
            jsonw_string(w, span_str(role_name(c->role)));
    jsonw_end_array(w);
}

static void put(struct trace_question *q, struct dynbuf *json)
{
    struct parent *p = q->parent;
    char id[64];
    struct jsonw w;
    qsort(q->seen, q->n, sizeof(q->seen[0]), earlier);
    snprintf(id, sizeof(id), "%s-%llu", p->boot, (unsigned long long)q->exchange);
    jsonw_begin(&w, json);
    jsonw_object(&w);
    jsonw_kv(&w, "exchange", span_str(id));
    if (q->n > 0)
        jsonw_kv_u64(&w, "time_ms", loop_wall(p->loop) - (clock_ns(CLOCK_MONOTONIC) - q->seen[0].ns) / 1000000);
    put_marks(q, &w);
    put_missing(q, &w);
    jsonw_end_object(&w);
}

static void say(struct child *desk, uint64_t id, bool ok, struct span words)
{
    struct dynbuf *b = desk && desk->chan ? chan_begin(desk->chan, M_TRACE_OF, id) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, ok);
    msg_put_span(b, words);
    (void)chan_commit(desk->chan);
}

static void finish(void *arg)
{
    struct trace_question *q = arg;
    struct parent *p = q->parent;
    struct dynbuf json;
    dynbuf_init(&json, JSON_MAX);
    put(q, &json);
    bool ok = dynbuf_ok(&json);
    say(parent_child(p, ROLE_DESK, 0), q->id, ok, ok ? dynbuf_span(&json) : SPAN("more is remembered than fits"));
    dynbuf_free(&json);
    for (struct child *c = p->children; c != NULL; c = c->next)
        c->trace_awaited = false;
    timer_free(&q->patience);
    free(q);
    p->observe.question = NULL;
}

static void unless_awaited(struct trace_question *q)
{
    const struct child *c = q->parent->children;
    while (c != NULL && !c->trace_awaited)
        c = c->next;
    if (c == NULL)
        finish(q);
}

static bool ask(const struct trace_question *q, struct child *c)
{
    bool of_it = c->role != ROLE_FRONT || c->instance == q->exchange >> XID_FRONT_SHIFT;
    struct dynbuf *b = of_it && c->ready && c->chan ? chan_begin(c->chan, M_TRACE, q->exchange) : NULL;
    if (b == NULL)
        return false;
    msg_put_u64(b, q->exchange);
    return chan_commit(c->chan) == 0;
}

void parent_trace_of(struct parent *p, struct child *desk, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span text = msg_get_span(&m, OBSERVE_FOLLOW);
    uint64_t exchange = msg_end(&m) == 0 ? parent_exchange(p, text) : 0;
    struct trace_question *q = exchange != 0 && p->observe.question == NULL ? calloc(1, sizeof(*q)) : NULL;
    if (q != NULL)
        q->patience = timer_new(p->loop, finish, q);
    if (q == NULL || q->patience == NULL) {
        free(q);
        say(desk, f->id, false,
            exchange ? SPAN("another exchange is being asked about; try again")
                     : SPAN("that is no exchange of this run of the gateway: give its id as the audit and the log "
                            "have it, or the number at its end"));
        return;
    }
    q->parent = p;
    q->id = f->id;
    q->exchange = exchange;
    p->observe.question = q;
    for (struct child *c = p->children; c != NULL; c = c->next) {
        c->trace_awaited = ask(q, c);
        q->front |= c->trace_awaited && c->role == ROLE_FRONT;
    }
    timer_set(q->patience, PATIENCE_MS);
    unless_awaited(q);
}

static void word(char to[TRACE_WORD + 1], struct span s)
{
    snprintf(to, TRACE_WORD + 1, "%.*s", SPAN_FMT(s));
}

void parent_trace_came(struct parent *p, struct child *c, struct frame *f)
{
    struct trace_question *q = p->observe.question;
    struct msg_in m = msg_in(f->payload);
    if (q == NULL || !c->trace_awaited || f->id != q->exchange)
        return; /* too late */
    unsigned n = msg_get_u16(&m);
    for (unsigned i = 0; i < n && !m.bad && q->n < MARKS_MAX; i++) {
        struct seen *s = &q->seen[q->n];
        *s = (struct seen){.ns = msg_get_u64(&m), .role = c->role, .n = q->n};
        word(s->what, msg_get_span(&m, TRACE_WORD));
        word(s->came, msg_get_span(&m, TRACE_WORD));
        q->n += !m.bad;
    }
    if (msg_end(&m) != 0)
        log_error("the %s says what it remembers in a way that cannot be read", role_name(c->role));
    c->trace_awaited = false;
    unless_awaited(q);
}
