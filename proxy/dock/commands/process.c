/* envd's Process service. */
#include "proxy/dock/commands/process.h"

#include <stdio.h>

#include "proxy/dock/ask.h"
#include "proxy/dock/record.h"
#include "proxy/dock/routes.h"

enum { OUTPUT_MAX_MIB = 1024 };

/* --- what is said ------------------------------------------------------------------- */

static void reply_done(struct call *x)
{
    struct jsonw w;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_end_object(&w);
    call_answer(x);
}

/* The command that the message names, by the number it was told of. */
static struct proc *named(const struct call *x)
{
    const struct json *which = json_get(x->json, SPAN("process"));
    struct span tag = json_text(which, SPAN("tag"));
    uint64_t pid = 0;

    if (json_u64(which, SPAN("pid"), &pid) == 0)
        return proc_find(x->dock, x->arg, pid);
    for (struct proc *p = x->dock->procs; p && tag.n; p = p->next)
        if (p->stream != 0 && span_eq(span_str(p->box), x->arg) && span_eq(span_str(p->tag), tag))
            return p;
    return NULL;
}

/* What is done with a command that x names. */
typedef void named_fn(struct call *x, struct proc *p);

struct naming {
    named_fn *fn;
};

static void found(struct call *x, unsigned status, struct span body)
{
    const struct naming *n = x->step;
    struct proc *p;

    if (!ask_own(x, status, body))
        return;
    if ((p = named(x)))
        n->fn(x, p);
    else
        reply_no(x, 404, "no command of this number runs in the sandbox");
}

/* A number is easily guessed: the desk says first whether this token opens the sandbox. asks: it is asked for what is
 * done anyway, and need not be twice by who has begun the command. */
static void with_named(struct call *x, bool asks, named_fn *fn)
{
    const struct json *j = call_message(x);
    struct naming *n = j ? arena_alloc(&x->arena, sizeof(*n)) : NULL;
    struct proc *p = j ? named(x) : NULL;

    if (!j)
        return;
    if (p && asks && span_eq_consttime(span_of(p->token.b, DIGEST_BYTES), span_of(x->token.b, DIGEST_BYTES))) {
        fn(x, p);
        return;
    }
    if (!n) {
        reply_no(x, 503, "no memory");
        return;
    }
    n->fn = fn;
    x->step = n;
    ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, found);
}

/* --- start ---------------------------------------------------------------------------- */

static const struct json *texts_ok(struct call *x, const struct json *list, enum json_type type, bool *bad)
{
    *bad |= list && list->type != JSON_NULL && list->type != type;
    if (*bad || !list || list->type == JSON_NULL)
        return NULL;
    for (const struct json *m = list->child; m; m = m->next)
        *bad |= m->type != JSON_STRING || span_index(m->text, '\0') != m->text.n ||
                (type == JSON_OBJECT && (m->key.n == 0 || span_index(m->key, '=') != m->key.n));
    return list;
}

static void put_variable(struct call *x, struct jsonw *w, const struct json *m)
{
    struct span both = arena_join(&x->arena, m->key, SPAN("="));

    jsonw_string(w, both.p ? arena_join(&x->arena, both, m->text) : SPAN_NONE);
}

/* Those of the sandbox, but for which the command has its own. */
static void put_variables(struct call *x, struct jsonw *w, const struct json *box, const struct json *own)
{
    jsonw_kv_array(w, "env");
    for (const struct json *m = box ? box->child : NULL; m; m = m->next)
        if (!json_get(own, m->key))
            put_variable(x, w, m);
    for (const struct json *m = own ? own->child : NULL; m; m = m->next)
        put_variable(x, w, m);
    jsonw_end_array(w);
}

struct starting {
    const struct json *process, *args, *envs, *pty;
    uint64_t rows, columns;
    bool input;
};

static struct span exec_json(struct call *x, const struct starting *s, const struct json *box_envs)
{
    struct span dir = json_text(s->process, SPAN("cwd"));
    struct ask_json a;

    ask_json_begin(&a);
    jsonw_kv_array(&a.w, "argv");
    jsonw_string(&a.w, json_text(s->process, SPAN("cmd")));
    for (const struct json *m = s->args ? s->args->child : NULL; m; m = m->next)
        jsonw_string(&a.w, m->text);
    jsonw_end_array(&a.w);
    put_variables(x, &a.w, box_envs, s->envs);
    if (dir.n)
        jsonw_kv(&a.w, "dir", dir);
    jsonw_kv_u64(&a.w, "timeout", call_timeout_s(x));
    if (s->pty) {
        jsonw_kv_bool(&a.w, "tty", true);
        jsonw_kv_u64(&a.w, "rows", s->rows);
        jsonw_kv_u64(&a.w, "columns", s->columns);
    } else {
        jsonw_kv_bool(&a.w, "input", s->input);
        jsonw_kv_u64(&a.w, "output", UINT64_C(1024) * 1024 * OUTPUT_MAX_MIB);
    }
    return ask_json_end(x, &a);
}

/* As it is listed. */
static void config_keep(const struct starting *s, struct proc *p)
{
    struct span dir = json_text(s->process, SPAN("cwd"));
    struct jsonw w;

    jsonw_begin(&w, &p->config);
    jsonw_object(&w);
    jsonw_kv(&w, "cmd", json_text(s->process, SPAN("cmd")));
    jsonw_kv_array(&w, "args");
    for (const struct json *m = s->args ? s->args->child : NULL; m; m = m->next)
        jsonw_string(&w, m->text);
    jsonw_end_array(&w);
    jsonw_key(&w, "envs");
    record_put_texts(&w, s->envs);
    if (dir.n)
        jsonw_kv(&w, "cwd", dir);
    jsonw_end_object(&w);
}

static void start_now(struct call *x, unsigned status, struct span body)
{
    const struct starting *s = x->step;
    const struct json *box = ask_own(x, status, body);
    struct proc *p;

    if (!box) /* answered, and x is gone */
        return;
    struct span tag = json_text(x->json, SPAN("tag"));
    if (!(p = proc_new(x))) {
        reply_no(x, 429, "as many commands run as may at once");
        return;
    }
    p->token = x->token;
    p->terminal = s->pty != NULL;
    (void)snprintf(p->tag, sizeof(p->tag), "%.*s", SPAN_FMT(tag));
    config_keep(s, p);
    struct span json = exec_json(x, s, json_get(json_get(box, SPAN("note")), SPAN("envs")));
    (void)proc_begin(x, ask_box(x, x->arg, "/exec"), json, p);
}

void process_start(struct call *x)
{
    struct starting *s = arena_alloc(&x->arena, sizeof(*s));
    const struct json *j = call_message(x), *stdin_is = json_get(j, SPAN("stdin"));
    bool bad = false;

    if (!j)
        return;
    if (!s) {
        reply_no(x, 503, "no memory");
        return;
    }
    s->process = json_get(j, SPAN("process"));
    s->args = texts_ok(x, json_get(s->process, SPAN("args")), JSON_ARRAY, &bad);
    s->envs = texts_ok(x, json_get(s->process, SPAN("envs")), JSON_OBJECT, &bad);
    s->pty = json_get(j, SPAN("pty"));
    s->input = !stdin_is || stdin_is->type != JSON_BOOL || stdin_is->truth;
    const struct json *size = json_get(s->pty, SPAN("size"));
    bad |=
        json_text(s->process, SPAN("cmd")).n == 0 || json_text(j, SPAN("tag")).n >= sizeof(((struct proc *)0)->tag);
    bad |= s->pty && (json_u64(size, SPAN("rows"), &s->rows) != 0 || json_u64(size, SPAN("cols"), &s->columns) != 0);
    x->step = s;
    if (bad)
        reply_no(x, 400,
                 "a command has `cmd`, `args` and `envs` as texts, a `tag` of up to 63 bytes, and a `pty` with "
                 "its `size`");
    else
        ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, start_now);
}

/* --- those that run ---------------------------------------------------------------------- */

static void connect_now(struct call *x, struct proc *p)
{
    (void)proc_follow(p, x);
}

void process_connect(struct call *x)
{
    with_named(x, false, connect_now);
}

static void list_now(struct call *x, unsigned status, struct span body)
{
    struct jsonw w;

    if (!ask_own(x, status, body))
        return;
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "processes");
    for (const struct proc *p = x->dock->procs; p; p = p->next) {
        if (p->stream == 0 || !span_eq(span_str(p->box), x->arg) || !dynbuf_ok(&p->config))
            continue;
        jsonw_object(&w);
        jsonw_kv_raw(&w, "config", dynbuf_span(&p->config));
        jsonw_kv_u64(&w, "pid", p->pid);
        if (p->tag[0])
            jsonw_kv(&w, "tag", span_str(p->tag));
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    call_answer(x);
}

void process_list(struct call *x)
{
    ask_desk(x, "GET", SPAN("/api/v1/sandboxes/started"), SPAN_NONE, list_now);
}

static struct span stream_of(struct call *x, const struct proc *p, const char *rest)
{
    return arena_printf(&x->arena, "/api/v1/streams/%llu/%s", (unsigned long long)p->stream, rest);
}

static void done(struct call *x, unsigned status, struct span body)
{
    if (status == 204)
        reply_done(x);
    else
        reply_desk(x, status, body);
}

static void signal_now(struct call *x, struct proc *p)
{
    const struct json *s = json_get(x->json, SPAN("signal"));
    struct ask_json a;
    uint64_t signo = 0;

    if (s && s->type == JSON_STRING)
        signo = span_eq(s->text, SPAN("SIGNAL_SIGKILL")) ? 9 : span_eq(s->text, SPAN("SIGNAL_SIGTERM")) ? 15 : 0;
    else if (json_u64(x->json, SPAN("signal"), &signo) != 0)
        signo = 0;
    if (signo == 0 || signo > 64) {
        reply_no(x, 400, "`signal` is SIGNAL_SIGTERM, SIGNAL_SIGKILL or a number");
        return;
    }
    ask_json_begin(&a);
    jsonw_kv_u64(&a.w, "signal", signo);
    struct span json = ask_json_end(x, &a);
    ask_desk(x, "POST", stream_of(x, p, "signal"), json, done);
}

void process_signal(struct call *x)
{
    with_named(x, true, signal_now);
}

static void update_now(struct call *x, struct proc *p)
{
    const struct json *size = json_get(json_get(x->json, SPAN("pty")), SPAN("size"));
    uint64_t rows, columns;
    struct ask_json a;

    if (json_u64(size, SPAN("rows"), &rows) != 0 || json_u64(size, SPAN("cols"), &columns) != 0) {
        reply_no(x, 400, "a `pty` has a `size` of `rows` and `cols`");
        return;
    }
    ask_json_begin(&a);
    jsonw_kv_u64(&a.w, "rows", rows);
    jsonw_kv_u64(&a.w, "columns", columns);
    struct span json = ask_json_end(x, &a);
    ask_desk(x, "POST", stream_of(x, p, "resize"), json, done);
}

void process_update(struct call *x)
{
    with_named(x, true, update_now);
}

static void input_now(struct call *x, struct proc *p)
{
    const struct json *in = json_get(x->json, SPAN("input"));
    struct span text = json_text(in, SPAN("stdin"));
    uint8_t *bytes;
    size_t n = 0;

    if (text.n == 0)
        text = json_text(in, SPAN("pty"));
    bytes = arena_alloc(&x->arena, text.n + 1);
    if (!bytes || base64_decode(text, bytes, &n) != 0)
        reply_no(x, 400, "`input` is `stdin` or `pty`, in base64");
    else
        input_give(p, x, span_of(bytes, n), false);
}

void process_input(struct call *x)
{
    with_named(x, true, input_now);
}

static void close_now(struct call *x, struct proc *p)
{
    input_give(p, x, SPAN_NONE, true);
}

void process_close(struct call *x)
{
    with_named(x, true, close_now);
}
