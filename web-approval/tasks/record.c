/* What is written down of a task, in one record when it is over, and kept for whoever makes it again: its input and
 * its kind, by their digests. What is not written down is not answered. */
#include "common/log.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/tasks/task.h"

enum { RECORD_MAX = 4096 };

struct writing {
    void (*then)(struct exchange *x);
    char run[ID_TEXT + 1];
};

const char *task_outcome(const struct task *t)
{
    return t->error ? t->error : t->result.p ? "result" : "not known";
}

static void put_digest(struct jsonw *w, const char *key, const struct digest *d)
{
    char hex[2 * DIGEST_BYTES + 1];

    hex_text(span_of(d->b, DIGEST_BYTES), hex);
    jsonw_kv(w, key, span_str(hex));
}

static void put_digest_of(struct jsonw *w, const char *key, struct span bytes)
{
    struct digest d;

    digest_of(bytes, &d);
    put_digest(w, key, &d);
}

static void put_limits(struct jsonw *w, const struct starting *s)
{
    jsonw_kv_object(w, "limits");
    jsonw_kv_bool(w, "strict", s->strict);
    jsonw_kv_u64(w, "memory", s->box.memory);
    jsonw_kv_u64(w, "pids", s->box.pids);
    jsonw_kv_u64(w, "cpu_percent", s->cpu_percent);
    jsonw_kv_u64(w, "disk", s->box.disk);
    jsonw_kv_u64(w, "files", s->box.files);
    if (s->box.egress_requests)
        jsonw_kv_u64(w, "egress_requests", s->box.egress_requests);
    if (s->box.egress_bytes)
        jsonw_kv_u64(w, "egress_bytes", s->box.egress_bytes);
    jsonw_end_object(w);
}

static void put_record(struct jsonw *w, const struct exchange *x, const struct task *t)
{
    jsonw_object(w);
    jsonw_kv(w, "operator", span_str(x->operator));
    jsonw_kv(w, "task", t->kind->is.kind);
    jsonw_kv(w, "id", span_str(t->id));
    jsonw_kv_u64(w, "attempt", t->attempts);
    if (t->before.run.n)
        jsonw_kv(w, "repeats", t->before.run);
    jsonw_kv(w, "sandbox", span_str(t->start.name));
    jsonw_kv_u64(w, "generation", t->start.generation);
    jsonw_kv(w, "image", t->start.image[0] ? span_str(t->start.image) : SPAN("host"));
    jsonw_kv(w, "digest", t->start.digest[0] ? span_str(t->start.digest) : SPAN("unknown"));
    if (t->start.lane[0])
        jsonw_kv(w, "lane", span_str(t->start.lane));
    put_limits(w, &t->start);
    put_digest_of(w, "kind_sha256", dynbuf_span(&t->kind->bytes));
    put_digest_of(w, "input_sha256", t->input);
    jsonw_kv(w, "outcome", span_str(task_outcome(t)));
    if (t->has_output)
        put_digest(w, "output_sha256", &t->output);
    if (t->kept)
        jsonw_kv_bool(w, "output_kept", true);
    jsonw_kv_object(w, "command");
    jsonw_kv(w, "how", span_str(api_end_word(t->how)));
    jsonw_kv_u64(w, t->how == SB_SIGNALLED ? "signal" : "status", t->code);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

static void put_message(struct dynbuf *b, const struct exchange *x, const struct task *t)
{
    struct dynbuf json;
    struct jsonw w;

    dynbuf_init(&json, RECORD_MAX);
    jsonw_begin(&w, &json);
    put_record(&w, x, t);
    msg_put_span(b, t->start.tenant);
    msg_put_span(b, span_str(t->start.name));
    msg_put_u64(b, t->start.generation);
    msg_put_span(b, dynbuf_ok(&json) ? dynbuf_span(&json) : SPAN_NONE);
    dynbuf_free(&json);
}

/* Of what is too large nothing is kept, which a repetition is told. */
bool task_keep(struct desk *d, struct span tenant, struct span bytes)
{
    struct dynbuf *b = d->ledger && bytes.n <= TASK_BLOB_MAX ? chan_begin(d->ledger, M_BLOB_PUT, ++d->last_id) : NULL;

    if (!b)
        return false;
    msg_put_span(b, tenant);
    msg_put_span(b, bytes);
    return chan_commit(d->ledger) == 0;
}

void task_blob_ask(struct exchange *x, struct span tenant, const struct digest *sha256, ask_fn *fn)
{
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_BLOB_GET, M_BLOB_IS, fn);

    if (!b)
        return;
    msg_put_span(b, tenant);
    msg_put_digest(b, sha256);
    ask_send(x);
}

bool task_blob_take(const struct frame *f, const struct digest *sha256, struct span *bytes)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool kept = msg_get_bool(&m);
    struct digest is;

    *bytes = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    digest_of(*bytes, &is);
    return msg_end(&m) == 0 && kept && memcmp(is.b, sha256->b, DIGEST_BYTES) == 0;
}

static void written(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct writing *wr = x->step;
    bool ok = msg_get_bool(&m);
    struct id id;

    msg_get_id(&m, &id);
    if (msg_end(&m) != 0 || !ok) {
        reply_problem(x, 503, "Not written",
                      "the task is over, but the ledger did not write it down, and what is not is not answered");
        return;
    }
    id_text(&id, wr->run);
    wr->then(x);
}

void task_write(struct exchange *x, struct task *t, void (*then)(struct exchange *x))
{
    struct writing *wr = arena_alloc(&x->arena, sizeof(*wr));
    struct dynbuf *b;

    t->written = true;
    if (!wr) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    wr->then = then;
    x->step = wr;
    if (!task_keep(x->desk, t->start.tenant, dynbuf_span(&t->kind->bytes)) ||
        !task_keep(x->desk, t->start.tenant, t->input))
        log_debug("what a task was made of is too large to be kept");
    if (!(b = ask_begin(x, ASK_LEDGER, M_TASK_OVER, M_TASK_WRITTEN, written)))
        return;
    put_message(b, x, t);
    ask_send(x);
}

void task_write_lost(struct exchange *x, struct task *t)
{
    struct desk *d = x->desk;
    struct dynbuf *b = d->ledger ? chan_begin(d->ledger, M_TASK_OVER, ++d->last_id) : NULL;

    t->written = true;
    if (b)
        put_message(b, x, t);
    if (!b || chan_commit(d->ledger) != 0)
        log_warn("the audit misses a task: the ledger does not take it");
}

struct span task_run(const struct exchange *x)
{
    const struct writing *wr = x->step;

    return span_str(wr->run);
}
