/* Tasks: /api/v1/tasks. One goes this way, and each step is asked of others and goes on when they have answered:
 *
 *   its input is held against the schema of its kind -> a sandbox is started -> the input is written there ->
 *   the command runs -> the result is read and held against its schema -> the sandbox is destroyed ->
 *   it is written down (record.c) -> the answer
 *
 * Of what the command did nothing is in the answer but a result that fits, written anew from what was checked, or how
 * it failed, in words of ours: the place and keyword of a schema, or a status. Its client ends it by leaving. */
#include <errno.h>
#include <stdio.h>

#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "web-approval/route.h"
#include "web-approval/tasks/task.h"

#define INPUT_FILE  "input.json"
#define RESULT_FILE "result.json"
#define INPUT_AT    "COUNTERSIGN_TASK_INPUT=/workspace/" INPUT_FILE
#define RESULT_AT   "COUNTERSIGN_TASK_RESULT=/workspace/" RESULT_FILE

enum {
    INPUT_MAX = 8 * DESK_BODY_MAX, /* as it is written here: an escape may be longer than what was sent */
    RESULT_MAX = 1024 * 1024,
    RESULT_WRITTEN_MAX = 7 * RESULT_MAX, /* the same; less than a client of ours takes */
    PLACES =
        DESK_FOLLOWS - DESK_FOLLOWS / 4, /* of those for what is followed: the last are for who looks at a sandbox */
    FILE_S = 60,
    MARGIN_S = 300,   /* that its sandbox lives beyond its command, if nobody ends it */
    SAFE_ATTEMPTS = 2 /* of one whose sandbox was lost before its command was ordered */
};
_Static_assert((int)BOX_NAME_MAX == (int)TASK_NAME_MAX, "an image's name is alike");

/* --- what is said of it ------------------------------------------------------------- */

static const char *verdict_word(enum schema_verdict v)
{
    static const char *const words[] = {[SCHEMA_MISFIT] = "schema_violation",
                                        [SCHEMA_NOT_JSON] = "not_json",
                                        [SCHEMA_TOO_LARGE] = "too_large",
                                        [SCHEMA_TOO_COSTLY] = "too_costly"};
    return words[v];
}

static void put_words(struct jsonw *w, const struct task *t)
{
    char words[DESK_TEXT];
    bool misfit = t->of && t->miss.keyword;

    if (misfit)
        (void)snprintf(words, sizeof(words), "the %s breaks the schema of its kind%s%.300s: %s", t->of,
                       t->miss.below     ? ", somewhere below "
                       : t->miss.path[0] ? " at "
                                         : "",
                       t->miss.path[0] || !t->miss.below ? t->miss.path : "its top", t->miss.keyword);
    else if (t->of)
        (void)snprintf(words, sizeof(words), "the %s cannot be held against the schema of its kind: %s", t->of,
                       t->error);
    else
        (void)snprintf(words, sizeof(words), "the task has no result: %s (%s %u)", t->error, api_end_word(t->how),
                       t->code);
    jsonw_kv(w, "detail", span_str(words));
    jsonw_kv(w, "error", span_str(t->error));
    if (t->of)
        jsonw_kv(w, "of", span_str(t->of));
    if (misfit) {
        jsonw_kv(w, "path", span_str(t->miss.path));
        jsonw_kv_bool(w, "below", t->miss.below);
        jsonw_kv(w, "keyword", span_str(t->miss.keyword));
    } else if (!t->of) {
        jsonw_kv_object(w, "command");
        jsonw_kv(w, "how", span_str(api_end_word(t->how)));
        jsonw_kv_u64(w, t->how == SB_SIGNALLED ? "signal" : "status", t->code);
        jsonw_end_object(w);
    }
}

/* By the run's id, which says nothing of the bytes: their digest would be chosen by what ran. */
static struct span blob_path(struct exchange *x)
{
    struct dynbuf b;

    dynbuf_init(&b, 128);
    (void)dynbuf_addf(&b, "/api/v1/runs/%.*s/output", SPAN_FMT(task_run(x)));
    return arena_keep(&x->arena, &b);
}

static void reply_failed(struct exchange *x, unsigned status, const struct task *t)
{
    struct jsonw w;

    reply_json(x, status, &w);
    x->type = "application/problem+json";
    jsonw_object(&w);
    jsonw_kv(&w, "title", status == 422 ? SPAN("Not begun") : SPAN("No result"));
    jsonw_kv_u64(&w, "status", status);
    jsonw_kv(&w, "task", t->kind->is.kind);
    if (t->attempts > 0) {
        jsonw_kv(&w, "id", span_str(t->id));
        jsonw_kv_u64(&w, "attempts", t->attempts);
    }
    put_words(&w, t);
    if (t->start.generation > 0) {
        jsonw_kv(&w, "sandbox", span_str(t->start.name));
        jsonw_kv_u64(&w, "generation", t->start.generation);
    }
    if (t->gone)
        jsonw_kv(&w, "run", task_run(x));
    if (t->gone && t->kept)
        jsonw_kv(&w, "blob", blob_path(x));
    jsonw_end_object(&w);
}

/* --- its way ------------------------------------------------------------------------ */

static void begin(struct exchange *x, struct task *t);

/* What was not begun can begin anew and is the same; what was may be only if its kind says so. */
static bool may_begin_anew(const struct exchange *x, const struct task *t)
{
    unsigned most = t->before.run.n ? 1 : 1 + t->kind->is.retries;

    if (!t->error || x->left || t->cancelled)
        return false;
    if (!t->ordered && t->how == SB_LOST && t->attempts < SAFE_ATTEMPTS)
        return true;
    return t->attempts < most;
}

static void begin_anew(struct exchange *x, struct task *t)
{
    t->ordered = t->ending = t->written = t->gone = t->has_output = t->kept = false;
    t->error = t->of = NULL;
    t->how = t->code = 0;
    t->miss = (struct schema_miss){.keyword = NULL};
    begin(x, t);
}

static void answer(struct exchange *x)
{
    struct task *t = x->holds;
    struct jsonw w;

    if (may_begin_anew(x, t)) {
        begin_anew(x, t);
        return;
    }
    if (t->before.run.n) {
        task_reply_again(x, t);
        return;
    }
    if (t->error) {
        reply_failed(x, 502, t);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "task", t->kind->is.kind);
    jsonw_kv(&w, "id", span_str(t->id));
    jsonw_kv_u64(&w, "attempts", t->attempts);
    jsonw_kv(&w, "sandbox", span_str(t->start.name));
    jsonw_kv_u64(&w, "generation", t->start.generation);
    jsonw_kv(&w, "run", task_run(x));
    jsonw_kv_raw(&w, "result", t->result);
    jsonw_end_object(&w);
}

/* The last: its sandbox is gone. */
static void gone(struct exchange *x)
{
    struct task *t = x->holds;

    t->gone = true;
    task_write(x, t, answer);
}

static void finish(struct exchange *x, const char *error)
{
    struct task *t = x->holds;

    t->error = error;
    if (x->left || t->cancelled)
        t->error = "cancelled";
    t->ending = true;
    api_destroy_go(x, gone);
}

/* As its schema wants it: what goes on is written from what was understood. Or t->error. */
static void take_result(struct exchange *x, struct task *t, struct span said)
{
    enum schema_verdict v = schema_validate(t->kind->output, said, &t->miss);
    struct arena a; /* not the exchange's, which waits for the sandbox's end */
    struct dynbuf b;
    struct jsonw w;

    arena_init(&a, DESK_ARENA_MAX);
    dynbuf_init(&b, RESULT_WRITTEN_MAX);
    const struct json *tree = v == SCHEMA_FITS ? json_parse(said, &a) : NULL;
    jsonw_begin(&w, &b);
    w.depth = 1; /* it will be a member of the answer */
    if (tree)
        jsonw_tree(&w, tree);
    if (tree && dynbuf_ok(&b))
        t->result = arena_copy(&x->arena, dynbuf_span(&b));
    if (!t->result.p) {
        t->kept = said.n > 0 && task_keep(x->desk, t->start.tenant, said);
        t->of = "result";
        t->error = verdict_word(v == SCHEMA_FITS ? SCHEMA_TOO_LARGE : v);
    }
    digest_of(t->result.p ? t->result : said, &t->output);
    t->has_output = true;
    dynbuf_free(&b);
    arena_free(&a);
}

static void result_read(struct exchange *x, const struct transfer_end *e)
{
    struct task *t = x->holds;

    if (e->how == SB_EXITED && e->code == 0)
        take_result(x, t, e->said);
    else
        t->error = e->how != SB_EXITED ? "lost" : e->code == EFBIG ? "too_large" : "no_result";
    finish(x, t->error);
}

/* A message about a file of its workspace. */
static struct dynbuf *file_ask(struct exchange *x, struct task *t, enum talk_file what, bool whole, struct span path)
{
    struct dynbuf *b = chore_begin(&t->chore, x, M_SB_FILES);

    if (!b)
        return NULL;
    msg_put_span(b, span_str(t->start.name));
    msg_put_u64(b, FILE_S * 1000);
    msg_put_u8(b, (uint8_t)what);
    msg_put_u16(b, TALK_MODE_NONE);
    msg_put_u8(b, whole);
    msg_put_u64(b, 0);
    msg_put_u64(b, what == TALK_FILE_READ ? RESULT_MAX : 0);
    msg_put_span(b, path);
    msg_put_span(b, SPAN_NONE);
    return b;
}

static void command_over(struct exchange *x, const struct transfer_end *e)
{
    struct task *t = x->holds;

    t->how = e->how;
    t->code = e->code;
    if (e->how != SB_EXITED || e->code != 0)
        finish(x, e->how == SB_TIMED_OUT     ? "timed_out"
                  : e->how == SB_NOT_STARTED ? "not_started"
                  : e->how == SB_LOST        ? "lost"
                                             : "command_failed");
    else if (file_ask(x, t, TALK_FILE_READ, true, SPAN(RESULT_FILE)))
        chore_go(&t->chore, SPAN_NONE, RESULT_MAX, result_read);
}

static void input_written(struct exchange *x, const struct transfer_end *e)
{
    static const struct span env[] = {SPAN(INPUT_AT), SPAN(RESULT_AT)};
    struct task *t = x->holds;
    const struct wire_task *is = &t->kind->is;
    struct dynbuf *b;

    t->how = e->how;
    t->code = e->code;
    if (e->how != SB_EXITED || e->code != 0) {
        finish(x, "not_started");
        return;
    }
    if (!(b = chore_begin(&t->chore, x, M_SB_EXEC)))
        return;
    t->ordered = true;
    msg_put_span(b, span_str(t->start.name));
    msg_put_u64(b, is->timeout_ms);
    msg_put_u64(b, 0); /* bytes of its output: none is told */
    msg_put_u8(b, TALK_NO_INPUT);
    msg_put_u16(b, 0);
    msg_put_u16(b, 0);
    msg_put_u8(b, false);
    msg_put_u16(b, (uint16_t)is->nwords);
    msg_put_u16(b, sizeof(env) / sizeof(env[0]));
    for (size_t i = 0; i < is->nwords; i++)
        msg_put_span(b, is->word[i]);
    for (size_t i = 0; i < sizeof(env) / sizeof(env[0]); i++)
        msg_put_span(b, env[i]);
    msg_put_span(b, SPAN_NONE);
    chore_go(&t->chore, SPAN_NONE, 0, command_over);
}

static void started(struct exchange *x)
{
    struct task *t = x->holds;

    if (x->left || t->cancelled)
        finish(x, NULL);
    else if (file_ask(x, t, TALK_FILE_WRITE, false, SPAN(INPUT_FILE)))
        chore_go(&t->chore, t->input, 0, input_written);
}

/* --- its beginning ------------------------------------------------------------------- */

static void give_back(struct exchange *x)
{
    struct task *t = x->holds;

    if (t->start.generation > 0 && !t->written)
        task_write_lost(x, t);
    if (t->start.generation > 0 && !t->gone)
        api_started_not_wanted(x->desk, span_str(t->start.name));
    task_delist(t);
    chore_drop(&t->chore);
    share_free(&t->share);
    kind_drop(&t->kind);
}

/* 0 is no limit. */
static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Whatever is usual by now; but no more egress than today. */
static void as_before(struct starting *s, const struct task_before *b)
{
    s->strict = b->strict;
    s->box.memory = b->limits.memory;
    s->box.pids = b->limits.pids;
    s->box.disk = b->limits.disk;
    s->box.files = b->limits.files;
    s->box.egress_requests = lesser(s->box.egress_requests, b->limits.egress_requests);
    s->box.egress_bytes = lesser(s->box.egress_bytes, b->limits.egress_bytes);
    s->cpu_percent = b->cpu_percent;
    s->wanted = b->digest;
}

static int extras_take(struct exchange *x, struct task *t)
{
    const struct wire_task *is = &t->kind->is;
    struct wire_extras e = {
        .task = is->kind, .residency = is->residency, .nmounts = is->nmounts, .ndevices = is->ndevices};

    memcpy(e.mount, is->mount, sizeof(e.mount));
    memcpy(e.device, is->device, sizeof(e.device));
    return api_extras_give(x, &t->start, &e);
}

static int start_take(struct exchange *x, struct task *t)
{
    const struct member name = {.name = "name"}, session = {.name = "session"}, limits = {.name = "limits"},
                        timeout = {.name = "timeout"};
    const struct wire_task *is = &t->kind->is;
    struct starting *s = &t->start;

    api_start_begin(x->desk, s);
    if (api_start_take(x, s, &name, &session, &limits, &timeout) != 0)
        return -1;
    s->tenant = t->tenant;
    if (is->limits != TASK_LIMITS_USUAL)
        s->strict = is->limits == TASK_STRICT;
    s->box.memory = is->memory ? is->memory : s->box.memory;
    s->box.pids = is->pids ? is->pids : s->box.pids;
    s->box.disk = is->disk ? is->disk : s->box.disk;
    s->box.files = is->files ? is->files : s->box.files;
    s->box.egress_requests = is->egress_requests ? is->egress_requests : s->box.egress_requests;
    s->box.egress_bytes = is->egress_bytes ? is->egress_bytes : s->box.egress_bytes;
    s->cpu_percent = is->cpu_percent ? is->cpu_percent : s->cpu_percent;
    if (t->before.run.n)
        as_before(s, &t->before);
    s->timeout_s = is->timeout_ms / 1000 + MARGIN_S;
    (void)snprintf(s->image, sizeof(s->image), "%.*s", SPAN_FMT(is->image));
    (void)snprintf(s->lane, sizeof(s->lane), "%.*s", SPAN_FMT(is->lane));
    s->box.lane = span_str(s->lane);
    s->then = started;
    s->bound = true;
    x->arg = span_str(s->name);
    return extras_take(x, t);
}

/* As it is written into its file; p NULL: there is no room for it. */
static struct span input_text(struct exchange *x, const struct json *value)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, INPUT_MAX);
    jsonw_begin(&w, &b);
    jsonw_tree(&w, value);
    return arena_keep(&x->arena, &b);
}

struct task *task_new(struct exchange *x)
{
    struct task *t = arena_alloc(&x->arena, sizeof(*t));

    if (!t) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return NULL;
    }
    x->holds = t;
    x->over = give_back;
    return t;
}

static void begin(struct exchange *x, struct task *t)
{
    x->step = &t->start;
    if (start_take(x, t) != 0)
        return;
    t->attempts++;
    api_start_go(x);
}

void task_go(struct exchange *x, struct task *t, struct span id)
{
    enum schema_verdict v = schema_validate(t->kind->input, t->input, &t->miss);

    x->step = &t->start;
    if (v != SCHEMA_FITS) {
        t->of = "input";
        t->error = verdict_word(v);
        reply_failed(x, 422, t);
    } else if (x->desk->held[SHARE_FOLLOW] >= PLACES) {
        reply_problem(x, 503, "Too many",
                      "as many tasks run, or commands are followed, as may at once; try again in a moment");
    } else if (start_take(x, t) == 0 && share_is_free(x, SHARE_FOLLOW) && task_enlist(x, t, id) == 0) {
        share_take(&t->share, x, SHARE_FOLLOW);
        x->ends = true;
        t->attempts++;
        api_start_go(x);
    }
}

void api_task_run(struct exchange *x)
{
    struct member f[] = {{"kind", JSON_STRING, true, NULL},
                         {"input", JSON_BAD, true, NULL},
                         {"tenant", JSON_STRING, false, NULL},
                         {"id", JSON_STRING, false, NULL}};
    struct task *t;

    if (body_members(x, f, sizeof(f) / sizeof(f[0])) != 0 || !(t = task_new(x)))
        return;
    t->tenant = f[2].value ? f[2].value->text : api_tenant(x);
    if (!box_name_ok(t->tenant) || (f[3].value && !box_name_ok(f[3].value->text)))
        reply_problem(x, 400, "Bad request",
                      "`tenant` and `id` have 1 to %d of a-z 0-9 - . _ and begin with a letter or digit",
                      BOX_NAME_MAX);
    else if (!(t->input = input_text(x, f[1].value)).p)
        reply_problem(x, 503, "Not possible now", "no memory");
    else if (!(t->kind = kind_use(&x->desk->kinds, f[0].value->text, t->tenant)))
        reply_problem(
            x, 404, "No such task",
            "there is no kind of task of this name for this tenant: `tasks:` of the configuration has those there "
            "are");
    else
        task_go(x, t, f[3].value ? f[3].value->text : SPAN_NONE);
}
