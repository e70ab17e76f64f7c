/* Commands in the sandbox. Each is begun detached, so that it does not end with who began it, and its first word says
 * which call it is; then it is followed. Who takes the turn over finds it by that word (recall.c). */
#include <stdio.h>
#include <stdlib.h>

#include "broker/work/tools.h"
#include "broker/work/work.h"
#include "common/control/sse.h"
#include "common/json/json.h"
#include "common/net/loop.h"

enum {
    TIMEOUT_S = 300,
    TIMEOUT_MAX_S = 3600,
    JSON_ROOM = 60 * 1024,
    NUMBER_MAX = 48,
    SHOWN_ALL = 256 * 1024,
    PAUSE_MS = 300,
    KILL_MOST_MS = 30 * 1000,
    SAID_MOST = WORK_RESULT_MAX - 512
};

struct attach {
    struct task *task;
    uint64_t ord;
    struct errand *errand;
    struct sse sse;
    struct timer *pause, *again; /* again: it is told to end once more */
    unsigned kills;
    char number[NUMBER_MAX];
    struct span end; /* its last event; p NULL: not yet */
};

void command_mark(const struct digest *key, char out[COMMAND_MARK + 1])
{
    memcpy(out, "call-", 5);
    hex_text(span_of(key->b, DIGEST_BYTES), out + 5);
}

void tool_forget(struct work_call *c)
{
    struct attach *a = c->follows;
    dynbuf_free(&c->said);
    if (a == NULL)
        return;
    c->follows = NULL;
    errand_free(&a->errand);
    timer_free(&a->pause);
    timer_free(&a->again);
    sse_free(&a->sse);
    free(a);
}

/* --- what it says -------------------------------------------------------------------------- */

/* As much of it as there is room for. */
static void keep(struct work_call *c, struct span s)
{
    size_t room = c->said.n < SAID_MOST ? SAID_MOST - c->said.n : 0, take = s.n < room ? s.n : room;
    (void)dynbuf_add(&c->said, span_first(s, take));
    c->cut += s.n - take;
}

static void show_output(struct attach *a, const char *stream, struct span text)
{
    struct task *t = a->task;
    struct dynbuf b;
    struct jsonw w;
    show_begin(&b, &w);
    jsonw_kv(&w, "turn", span_str(t->turn));
    jsonw_kv_u64(&w, "step", t->step);
    jsonw_kv_u64(&w, "call", a->ord);
    jsonw_kv(&w, "stream", span_str(stream));
    jsonw_kv(&w, "text", text);
    jsonw_end_object(&w);
    show(t, "tool.output", &b);
}

/* In pieces that an event has room for, of whole characters; and where it is too much for readers, that it goes on.
 */
static void show_pieces(struct attach *a, const char *stream, struct span text)
{
    struct work_call *c = &a->task->call[a->ord];
    bool ends = c->shown < SHOWN_ALL && text.n >= SHOWN_ALL - c->shown;
    if (c->shown >= SHOWN_ALL)
        return;
    text = span_first(text, SHOWN_ALL - c->shown);
    c->shown += text.n;
    while (text.n > 0 && !a->task->over) {
        struct span piece = span_first(text, TOOL_SHOWN_MAX);
        if (piece.n < text.n)
            piece = whole_chars(piece);
        show_output(a, stream, piece);
        text = span_from(text, piece.n);
    }
    if (ends && !a->task->over)
        show_output(a, stream, SPAN("\n[what it says from here on is not shown]\n"));
}

static void say(struct attach *a, const char *stream, struct span data)
{
    struct work_call *c = &a->task->call[a->ord];
    uint8_t *bytes = malloc(data.n + 1);
    size_t n = 0;
    if (bytes == NULL || base64_decode(data, bytes, &n) != 0)
        n = 0;
    keep(c, span_of(bytes, n));
    show_pieces(a, stream, span_of(bytes, n));
    free(bytes);
}

/* It has ended: how, and what it said. */
static void finish(struct attach *a, struct span data)
{
    struct task *t = a->task;
    uint64_t ord = a->ord;
    struct work_call *c = &t->call[ord];
    const struct json *j = json_parse(data, &t->step_arena);
    struct span how = json_text(j, SPAN("how"));
    struct dynbuf out;
    uint64_t n = 0, missing = 0;
    bool exited = span_eq(how, SPAN("exited"));
    dynbuf_init(&out, WORK_RESULT_MAX + 512);
    if (exited && json_u64(j, SPAN("status"), &n) == 0)
        (void)dynbuf_addf(&out, "exit status %llu\n", (unsigned long long)n);
    else
        (void)dynbuf_addf(&out, "it ended: %.*s\n", SPAN_FMT(how));
    (void)dynbuf_add(&out, dynbuf_span(&c->said));
    if (json_u64(j, SPAN("cut"), &missing) == 0)
        c->cut += missing;
    if (c->cut > 0)
        (void)dynbuf_addf(&out, "\n[%llu bytes more were not kept]", (unsigned long long)c->cut);
    struct span text = arena_keep(&t->step_arena, &out);
    bool lost = span_eq(how, SPAN("lost"));
    c->seen.late = span_eq(how, SPAN("timed-out"));
    c->effect = arena_printf(&t->arena, "command %s", a->number);
    if (lost)
        t->box_up = false;
    task_done(t, ord, lost ? CALL_UNKNOWN : exited && n == 0 ? CALL_DONE : CALL_ERROR, text);
}

/* It said more than was taken from it in time; how much in all, its end says. */
static void gap(struct work_call *c)
{
    if (c->said.n < SAID_MOST)
        (void)dynbuf_add(&c->said, span_first(SPAN("\n[some is missing here]\n"), SAID_MOST - c->said.n));
}

static int on_event(void *ctx, const struct api_event *e)
{
    struct attach *a = ctx;
    if (span_eq(e->name, SPAN("stdout")))
        say(a, "stdout", e->data);
    else if (span_eq(e->name, SPAN("stderr")))
        say(a, "stderr", e->data);
    else if (span_eq(e->name, SPAN("cut")))
        gap(&a->task->call[a->ord]);
    else if (span_eq(e->name, SPAN("exit"))) {
        a->end = arena_copy(&a->task->step_arena, e->data);
        return 1;
    }
    return a->task->over ? 1 : 0;
}

static void cut_off(void *arg)
{
    struct attach *a = arg;
    struct task *t = a->task;
    uint64_t ord = a->ord;
    task_done(t, ord, CALL_UNKNOWN, SPAN_NONE);
}

/* It cannot be followed now: what became of it is asked a moment later, and not as fast as that can be answered. */
static void refused(struct attach *a)
{
    errand_free(&a->errand);
    if ((a->pause = timer_new(a->task->w->loop, cut_off, a)) != NULL)
        timer_set(a->pause, PAUSE_MS);
    else
        cut_off(a);
}

static void heard(void *arg, struct errand *e, enum errand_event ev)
{
    struct attach *a = arg;
    if (a->task->over)
        return;
    switch (ev) {
    case ERRAND_HEAD: break;
    case ERRAND_DATA:
        if (e->status != 200)
            break;
        if (sse_feed(&a->sse, e->data) < 0)
            cut_off(a);
        else if (a->end.p != NULL && !a->task->over)
            finish(a, a->end);
        break;
    case ERRAND_ROOM: break;
    case ERRAND_END:
    case ERRAND_NONE:
    default: refused(a);
    }
}

void command_follow(struct task *t, uint64_t ord, struct span number)
{
    struct work_call *c = &t->call[ord];
    struct attach *a = calloc(1, sizeof(*a));
    struct errand_ask ask = {.tenant = span_of(t->claim.tenant, t->claim.tenant_n),
                             .lane = span_str(t->lane),
                             .method = "POST",
                             .target = desk_box(t, "/attach", SPAN_NONE),
                             .json = arena_printf(&t->step_arena, "{\"command\":\"%.*s\"}", SPAN_FMT(number))};
    if (a == NULL || ask.target.p == NULL || ask.json.p == NULL) {
        free(a);
        task_done(t, ord, CALL_UNKNOWN, SPAN_NONE);
        return;
    }
    tool_forget(c);
    dynbuf_init(&c->said, WORK_RESULT_MAX);
    *a = (struct attach){.task = t, .ord = ord};
    (void)snprintf(a->number, sizeof(a->number), "%.*s", SPAN_FMT(number));
    sse_init(&a->sse, on_event, a);
    c->follows = a;
    a->errand = errand_new(&t->w->errands, &ask, heard, a);
    if (a->errand == NULL)
        refused(a);
    else if (c->abort)
        command_abort(t, ord);
}

static void kill_again(void *arg)
{
    struct attach *a = arg;
    command_abort(a->task, a->ord);
}

/* Unless it was told, or has nothing to be told any more, it is told once more, later each time: what was cancelled
 * does not run on because the sandbox is paused, or because nobody was there to ask. */
static void signalled(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    struct attach *a = t->call[ord].follows;
    struct span title = json_text(json_parse(body, &t->step_arena), SPAN("title"));
    if (a == NULL || status == 204 || (status == 409 && span_eq(title, SPAN("It has ended"))))
        return;
    uint64_t wait_ms = (uint64_t)WORK_TICK_MS << (a->kills < 5 ? a->kills : 5);
    a->kills++;
    if (a->again == NULL)
        a->again = timer_new(t->w->loop, kill_again, a);
    if (a->again != NULL)
        timer_set(a->again, wait_ms < KILL_MOST_MS ? wait_ms : KILL_MOST_MS);
}

/* Its end comes all the same. */
void command_abort(struct task *t, uint64_t ord)
{
    const struct attach *a = t->call[ord].follows;
    if (a != NULL)
        desk_ask(t, "POST", desk_box(t, "/signal", SPAN_NONE),
                 arena_printf(&t->step_arena, "{\"command\":\"%s\",\"signal\":9}", a->number), signalled, ord);
}

/* --- it is begun ---------------------------------------------------------------------------- */

static void begun(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    struct span number = status == 201 ? json_text(json_parse(body, &t->step_arena), SPAN("command")) : SPAN_NONE;
    if (number.n > 0 && number.n < NUMBER_MAX)
        command_follow(t, ord, number);
    else if (status == 503 || status == 201)
        task_done(t, ord, CALL_UNKNOWN, SPAN_NONE); /* whether it was begun, others know */
    else {
        if (status == 404)
            t->box_up = false;
        task_done(t, ord, CALL_ERROR, desk_words(t, status, body));
    }
}

void run_command(struct task *t, uint64_t ord, const struct json *args)
{
    char mark[COMMAND_MARK + 1];
    struct span command = json_text(args, SPAN("command")), dir = json_text(args, SPAN("dir"));
    uint64_t timeout = TIMEOUT_S;
    struct dynbuf b;
    struct jsonw w;
    if (command.n == 0 ||
        (json_get(args, SPAN("timeout")) != NULL && json_u64(args, SPAN("timeout"), &timeout) != 0)) {
        task_done(t, ord, CALL_ERROR, SPAN("command is a text, and timeout a whole number"));
        return;
    }
    command_mark(&t->call[ord].key, mark);
    dynbuf_init(&b, JSON_ROOM);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv_array(&w, "argv");
    jsonw_string(&w, SPAN("/bin/sh"));
    jsonw_string(&w, SPAN("-c"));
    jsonw_string(&w, SPAN("eval \"$1\""));
    jsonw_string(&w, span_str(mark));
    jsonw_string(&w, command);
    jsonw_end_array(&w);
    if (dir.n > 0)
        jsonw_kv(&w, "dir", dir);
    jsonw_kv_bool(&w, "detach", true);
    jsonw_kv_u64(&w, "timeout", timeout == 0 ? 1 : timeout < TIMEOUT_MAX_S ? timeout : TIMEOUT_MAX_S);
    jsonw_end_object(&w);
    struct span json = arena_keep(&t->step_arena, &b);
    if (json.p == NULL)
        task_done(t, ord, CALL_ERROR, SPAN("the command is longer than 60 KB: write it into a file, and run that"));
    else
        desk_ask(t, "POST", desk_box(t, "/exec", SPAN_NONE), json, begun, ord);
}
