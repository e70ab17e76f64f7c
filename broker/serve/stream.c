/* GET /stream/ID: what the log has after an event, and then what comes. Only events of the log have an id,
 * <epoch>.<seq>; a reader that comes back with one misses nothing and hears nothing twice. Where that is not to be
 * had, `session_lost` says so, and what is there follows from its first event on. */
#include "broker/serve/serve.h"

#include "common/net/loop.h"

enum { PIECES = 128 * 1024 };

/* --- where to begin ------------------------------------------------------------------------- */

static bool take_id(struct span text, uint64_t *epoch, uint64_t *seq)
{
    struct span a, b;
    return span_cut(text, '.', &a, &b) && span_u64(a, INT64_MAX, epoch) == 0 && span_u64(b, INT64_MAX, seq) == 0 &&
           *epoch > 0;
}

/* Last-Event-ID, or ?after= for who cannot send that. False: answered. */
static bool begin_at(struct call *x)
{
    const struct http_field *f = http_find(&x->head, SPAN("Last-Event-ID"));
    struct span rest = x->head.query, pair, key, value, last = SPAN_NONE;
    bool more = true;
    while (more && rest.n > 0) {
        more = span_cut(rest, '&', &pair, &rest);
        (void)span_cut(pair, '=', &key, &value);
        if (span_eq(key, SPAN("after")))
            last = value;
    }
    if (f != NULL)
        last = f->value;
    if (last.n == 0 || take_id(last, &x->epoch, &x->after))
        return true;
    reply_no(x, 400, "an event's id is <epoch>.<number>, as the stream has it");
    return false;
}

/* --- what is sent ---------------------------------------------------------------------------- */

/* What could not be put together would be a gap: its reader is sent away, and comes back with its last id. */
static int send(struct call *x, struct dynbuf *b)
{
    int rc = !dynbuf_ok(b) ? -1 : b->n > 0 ? call_piece(x, dynbuf_span(b)) : 0;
    if (!dynbuf_ok(b))
        call_cut(x);
    dynbuf_free(b);
    return rc;
}

/* What was there before is flagged: who shows it may want to show it at once. */
static void put_event(struct dynbuf *b, const struct call *x, const struct bstore_log *log,
                      const struct bstore_read_event *e)
{
    bool replayed = e->seq < x->until;
    (void)dynbuf_addf(b, "id: %llu.%llu\nevent: %.*s\ndata: {\"replay\":%s,\"event\":%.*s}\n\n",
                      (unsigned long long)log->epoch, (unsigned long long)e->seq, SPAN_FMT(e->type),
                      replayed ? "true" : "false", SPAN_FMT(e->body));
}

static int say_lost(struct call *x, const struct bstore_log *log)
{
    struct dynbuf b;
    dynbuf_init(&b, 512);
    (void)dynbuf_addf(&b, "event: session_lost\ndata: {\"epoch\":%llu,\"first\":%llu,\"next\":%llu}\n\n",
                      (unsigned long long)log->epoch, (unsigned long long)log->first, (unsigned long long)log->next);
    return send(x, &b);
}

/* A page of the log. BS_OK, and *log is in a; x->after moves. */
static enum bstore_result page(struct call *x, struct arena *a, struct bstore_log *log)
{
    return bstore_events(call_store(x), call_whose(x), &x->conversation, x->epoch, x->after, a, log);
}

/* Events were dropped, or the log began anew: it is said, and what is there comes from its beginning. -1: x is gone.
 */
static int lost(struct call *x, struct arena *a, struct bstore_log *log)
{
    x->epoch = x->after = 0;
    if (page(x, a, log) != BS_OK) { /* it is asked again from the id that it had */
        call_cut(x);
        return -1;
    }
    x->until = log->next;
    return say_lost(x, log);
}

/* 1: there may be more, 0: no more now, -1: x is gone. */
static int one_page(struct call *x)
{
    struct bstore_log log;
    struct arena a;
    struct dynbuf b;
    int rc = 0;
    arena_init(&a, SERVE_ARENA_MAX);
    enum bstore_result r = page(x, &a, &log);
    if (r == BS_LOST && lost(x, &a, &log) != 0) {
        arena_free(&a);
        return -1;
    }
    dynbuf_init(&b, BSTORE_READ_BYTES_MAX + 2 * BSTORE_EVENT_MAX);
    size_t n = 0;
    for (; n < log.n && b.n < PIECES; n++) {
        put_event(&b, x, &log, &log.event[n]);
        x->epoch = log.epoch;
        x->after = log.event[n].seq;
    }
    bool idle = !log.busy && n == log.n && (r == BS_OK || r == BS_LOST);
    rc = send(x, &b) != 0 ? -1 : n > 0;
    arena_free(&a);
    if (rc >= 0 && idle) {
        call_stream_end(x);
        return -1;
    }
    return rc;
}

void stream_more(struct call *x)
{
    while (call_reads(x)) {
        if (one_page(x) <= 0)
            return;
    }
}

/* It says that it is there; without an id, since nothing happened. And what could not be read when it was written is
 * read now: nothing may follow that would have it read. */
void stream_heart(struct call *x)
{
    if (call_reads(x) && call_piece(x, SPAN("event: heartbeat\ndata: {}\n\n")) == 0)
        lanes_run(x, stream_more);
}

void stream_open(struct call *x)
{
    struct bstore_log log;
    if (id_parse(x->arg, &x->conversation) != 0) {
        reply_no(x, 404, "there is no such conversation");
        return;
    }
    if (!begin_at(x))
        return;
    struct arena a;
    arena_init(&a, SERVE_ARENA_MAX);
    enum bstore_result r = page(x, &a, &log);
    arena_free(&a); /* a stream stays for long, and keeps nothing of what was looked at to open it */
    if (r == BS_NONE) {
        reply_no(x, 404, "there is no such conversation");
        return;
    }
    if (r != BS_OK && r != BS_LOST) {
        reply_no(x, 503, "the store cannot be read at the moment; try again");
        return;
    }
    if (r == BS_OK && x->epoch != 0 && log.n == 0 && !log.busy) { /* all of it was read: who reconnects may stop */
        x->status = 204;
        call_answer(x);
        return;
    }
    x->until = r == BS_OK ? log.next : 0;
    if (call_stream(x) == 0 && call_piece(x, SPAN("retry: 1000\n\n")) == 0)
        stream_more(x);
}
