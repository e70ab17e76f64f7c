/* A task made again from its record: /api/v1/runs/ID/repeat. Its input and its kind are had by their digests, and
 * what the record says of image and limits holds as well; the output is compared by its digest. What a record does
 * not hold is not made up for: the answer says what is missing. */
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/route.h"
#include "web-approval/tasks/task.h"

/* --- what its record says ------------------------------------------------------------- */

bool task_digest_read(const struct json *what, const char *key, struct digest *d)
{
    struct span hex = json_text(what, span_str(key));

    return hex.n == 2 * (size_t)DIGEST_BYTES && hex_parse(hex, d->b, DIGEST_BYTES) == 0;
}

static bool limits_take(const struct json *limits, struct task_before *b)
{
    const struct json *strict = json_get(limits, SPAN("strict"));

    b->strict = strict && strict->truth;
    if (json_u64(limits, SPAN("egress_requests"), &b->limits.egress_requests) != 0)
        b->limits.egress_requests = 0; /* there was none */
    if (json_u64(limits, SPAN("egress_bytes"), &b->limits.egress_bytes) != 0)
        b->limits.egress_bytes = 0;
    return strict && json_u64(limits, SPAN("memory"), &b->limits.memory) == 0 &&
           json_u64(limits, SPAN("pids"), &b->limits.pids) == 0 &&
           json_u64(limits, SPAN("disk"), &b->limits.disk) == 0 &&
           json_u64(limits, SPAN("files"), &b->limits.files) == 0 &&
           json_u64(limits, SPAN("cpu_percent"), &b->cpu_percent) == 0;
}

/* Ends that are its own: nobody took its time, its sandbox or its caller away. */
static bool ended_by_itself(struct span outcome)
{
    static const char *const ends[] = {"result",   "command_failed", "no_result", "schema_violation",
                                       "not_json", "too_large",      "too_costly"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (span_eq(outcome, span_str(ends[i])))
            return true;
    return false;
}

/* NULL, or why it cannot be made again. */
static const char *record_take(struct exchange *x, const struct run_row *r, struct task_before *b)
{
    const struct json *what = json_get(json_parse(r->begin, &x->arena), SPAN("what"));
    const struct json *command = json_get(what, SPAN("command"));
    uint64_t code = 0;

    if (!span_eq(r->what, SPAN("task")))
        return "it is no task: of the files that it found, and of what it was given, its record has no bytes";
    *b = (struct task_before){.run = r->id,
                              .tenant = r->tenant,
                              .kind = json_text(what, SPAN("task")),
                              .digest = json_text(what, SPAN("digest")),
                              .outcome = json_text(what, SPAN("outcome")),
                              .output = json_text(what, SPAN("output_sha256"))};
    b->signalled = json_get(command, SPAN("signal")) != NULL;
    if (!task_digest_read(what, "kind_sha256", &b->kind_sha256) ||
        !task_digest_read(what, "input_sha256", &b->input_sha256) ||
        !limits_take(json_get(what, SPAN("limits")), b) ||
        json_u64(command, b->signalled ? SPAN("signal") : SPAN("status"), &code) != 0)
        return "its record does not say what it was made of";
    b->code = (unsigned)code;
    if (!ended_by_itself(b->outcome))
        return "it had no end of its own that another one could be compared with";
    return box_digest_ok(b->digest) ? NULL : "its record has no digest of its image";
}

static void refuse(struct exchange *x, const char *why)
{
    reply_problem(x, 409, "Not repeated", "this run cannot be made again: %s", why);
}

/* --- what the ledger has of it ---------------------------------------------------------- */

/* p NULL: answered. */
static struct span blob_take(struct exchange *x, const struct frame *f, const struct digest *sha256, const char *what)
{
    struct span bytes;

    if (task_blob_take(f, sha256, &bytes))
        return bytes;
    if (!f)
        reply_problem(x, 503, "Not possible now", "the ledger did not answer; try again in a moment");
    else
        reply_problem(x, 409, "Not repeated",
                      "this run cannot be made again: %s is not kept, or not any more (30 days at most)", what);
    return SPAN_NONE;
}

static void input_came(struct exchange *x, struct frame *f)
{
    struct task *t = x->holds;
    struct span bytes = blob_take(x, f, &t->before.input_sha256, "its input");

    if (x->status != 0)
        return;
    t->input = arena_copy(&x->arena, bytes);
    t->tenant = t->before.tenant;
    if (t->input.p)
        task_go(x, t, SPAN_NONE);
    else
        reply_problem(x, 503, "Not possible now", "no memory");
}

static void kind_came(struct exchange *x, struct frame *f)
{
    struct task *t = x->holds;
    struct span bytes = blob_take(x, f, &t->before.kind_sha256, "what its kind was");

    if (x->status != 0)
        return;
    if ((t->kind = kind_of(bytes)))
        task_blob_ask(x, t->before.tenant, &t->before.input_sha256, input_came);
    else
        refuse(x, "its kind is not understood by this version any more");
}

void api_run_repeat(struct exchange *x)
{
    struct run_row r;
    struct task *t;

    if (body_members(x, NULL, 0) != 0 || api_run_find(x, &r) != 0 || !(t = task_new(x)))
        return;
    const char *why = record_take(x, &r, &t->before);
    if (why)
        refuse(x, why);
    else
        task_blob_ask(x, t->before.tenant, &t->before.kind_sha256, kind_came);
}

/* --- the answer --------------------------------------------------------------------------- */

static void put_end(struct jsonw *w, const char *key, struct span outcome, struct span output, bool signalled,
                    unsigned code)
{
    jsonw_kv_object(w, key);
    jsonw_kv(w, "outcome", outcome);
    if (output.n)
        jsonw_kv(w, "output_sha256", output);
    jsonw_kv_u64(w, signalled ? "signal" : "status", code);
    jsonw_end_object(w);
}

void task_reply_again(struct exchange *x, const struct task *t)
{
    char hex[2 * DIGEST_BYTES + 1] = "";
    const struct task_before *b = &t->before;
    struct span outcome = span_str(task_outcome(t));
    bool signalled = t->how == SB_SIGNALLED;
    struct jsonw w;

    if (t->has_output)
        hex_text(span_of(t->output.b, DIGEST_BYTES), hex);
    bool same = span_eq(outcome, b->outcome) && span_eq(span_str(hex), b->output) && signalled == b->signalled &&
                t->code == b->code;
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "run", task_run(x));
    jsonw_kv(&w, "repeats", b->run);
    jsonw_kv(&w, "task", b->kind);
    jsonw_kv_bool(&w, "same", same);
    put_end(&w, "before", b->outcome, b->output, b->signalled, b->code);
    put_end(&w, "now", outcome, span_str(hex), signalled, t->code);
    if (!t->error)
        jsonw_kv_raw(&w, "result", t->result);
    jsonw_end_object(&w);
}
