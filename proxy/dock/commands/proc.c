#include <stdlib.h>
#include <stdio.h>

#include "proxy/dock/parse/envelope.h"
#include "proxy/dock/commands/process.h"

enum { FRAME_MAX = 128 * 1024, CONFIG_MAX = 256 * 1024 };

/* --- who follows ------------------------------------------------------------------ */

static bool all_read(const struct proc *p)
{
    for (size_t i = 0; i < p->ncallers; i++)
        if (!call_reads(p->caller[i]))
            return false;
    return true;
}

/* It says no more than all who follow it read; who does not is let go after a while (DOCK_SEND_MS). */
static void flow(struct proc *p)
{
    if (p->errand)
        errand_pause(p->errand, !all_read(p));
}

static void caller_gone(struct call *x)
{
    struct proc *p = x->proc;

    x->proc = NULL;
    if (!p)
        return;
    for (size_t i = 0; i < p->ncallers; i++)
        if (p->caller[i] == x) {
            p->caller[i] = p->caller[--p->ncallers];
            break;
        }
    flow(p);
}

static void caller_drained(struct call *x)
{
    if (x->proc)
        flow(x->proc);
}

static void say_all(struct proc *p, struct span json)
{
    for (size_t i = p->ncallers; i-- > 0;)
        (void)call_frame(p->caller[i], 0, json); /* who has gone is taken out by this */
    flow(p);
}

static void process_ping(struct call *x)
{
    (void)call_frame(x, 0, SPAN("{\"event\":{\"keepalive\":{}}}"));
}

static void say_start(struct proc *p, struct call *x)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "{\"event\":{\"start\":{\"pid\":%u}}}", (unsigned)p->pid);

    (void)call_frame(x, 0, span_of(text, (size_t)n));
}

bool proc_follow(struct proc *p, struct call *x)
{
    if (p->ncallers == DOCK_PROC_CALLERS) {
        reply_no(x, 429, "%d callers follow this command, as many as may at once", DOCK_PROC_CALLERS);
        return false;
    }
    p->caller[p->ncallers++] = x;
    x->proc = p;
    x->gone = caller_gone;
    x->drained = caller_drained;
    x->ping = process_ping;
    if (p->stream == 0) /* it is told when it begins */
        return true;
    if (call_stream(x, 200, "application/connect+json") != 0)
        return false;
    say_start(p, x);
    return true;
}

/* --- its life ---------------------------------------------------------------------- */

struct proc *proc_find(struct dock *d, struct span box, uint64_t pid)
{
    struct proc *p = d->procs;

    while (p && (p->pid != pid || p->stream == 0 || !span_eq(span_str(p->box), box)))
        p = p->next;
    return p;
}

void proc_free(struct proc **at)
{
    struct proc *p = *at;

    *at = NULL;
    for (struct proc **q = &p->dock->procs; *q; q = &(*q)->next)
        if (*q == p) {
            *q = p->next;
            p->dock->nprocs--;
            break;
        }
    for (size_t i = 0; i < p->ncallers; i++)
        p->caller[i]->proc = NULL;
    input_over(p);
    errand_free(&p->errand);
    sse_free(&p->sse);
    dynbuf_free(&p->config);
    free(p);
}

/* All who follow it hear how it ended, and it is forgotten. */
static void over(struct proc *p, struct span last)
{
    struct call *x;

    while (p->ncallers > 0) {
        x = p->caller[--p->ncallers];
        x->proc = NULL;
        if (call_frame(x, ENVELOPE_END, last) == 0)
            call_stream_end(x, true);
    }
    proc_free(&p);
}

/* Why it did not go on, or never began. */
static void over_no(struct proc *p, unsigned status, struct span words)
{
    struct dynbuf text;
    struct jsonw w;
    struct call *x;

    if (p->stream == 0) { /* nobody was told of it but who asked for it */
        while (p->ncallers > 0) {
            x = p->caller[--p->ncallers];
            x->proc = NULL;
            reply_no_span(x, status, words);
        }
        proc_free(&p);
        return;
    }
    dynbuf_init(&text, 16 * 1024);
    jsonw_begin(&w, &text);
    jsonw_object(&w);
    jsonw_kv_object(&w, "error");
    jsonw_kv(&w, "code", span_str(reply_code(status)));
    jsonw_kv(&w, "message", words);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    over(p, dynbuf_span(&text));
    dynbuf_free(&text);
}

/* --- what it says ------------------------------------------------------------------- */

static void hear_output(struct proc *p, const char *which, struct span base64)
{
    struct dynbuf b;

    dynbuf_init(&b, FRAME_MAX);
    (void)dynbuf_addf(&b, "{\"event\":{\"data\":{\"%s\":\"", p->terminal ? "pty" : which);
    (void)dynbuf_add(&b, base64);
    (void)dynbuf_add(&b, SPAN("\"}}}"));
    if (dynbuf_ok(&b))
        say_all(p, dynbuf_span(&b));
    dynbuf_free(&b);
}

/* A command that ended, as Go's os/exec says it, which is where envd has it from. */
static void say_end(struct proc *p, bool exited, uint64_t code)
{
    char text[256];
    int n;

    if (exited && code == 0)
        n = snprintf(text, sizeof(text),
                     "{\"event\":{\"end\":{\"exitCode\":0,\"exited\":true,\"status\":\"exit status 0\"}}}");
    else if (exited)
        n = snprintf(
            text, sizeof(text),
            "{\"event\":{\"end\":{\"exitCode\":%u,\"exited\":true,\"status\":\"exit status %u\",\"error\":\"exit "
            "status %u\"}}}",
            (unsigned)code, (unsigned)code, (unsigned)code);
    else
        n = snprintf(
            text, sizeof(text),
            "{\"event\":{\"end\":{\"exitCode\":-1,\"exited\":false,\"status\":\"signal: %u\",\"error\":\"signal: "
            "%u\"}}}",
            (unsigned)code, (unsigned)code);
    say_all(p, span_of(text, (size_t)n));
}

static void why_set(struct proc *p, unsigned status, struct span words)
{
    p->status = status;
    (void)snprintf(p->why, sizeof(p->why), "%.*s", SPAN_FMT(span_first(words, sizeof(p->why) - 1)));
}

static void hear_exit(struct proc *p, struct span data)
{
    struct arena a;
    uint64_t code = 0;

    arena_init(&a, 64 * 1024);
    const struct json *j = json_parse(data, &a);
    struct span how = json_text(j, SPAN("how")), why = json_text(j, SPAN("why"));
    bool exited = span_eq(how, SPAN("exited")), signalled = span_eq(how, SPAN("signalled"));
    if (exited || signalled)
        say_end(p, exited, json_u64(j, exited ? SPAN("status") : SPAN("signal"), &code) == 0 ? code : 0);
    else if (span_eq(how, SPAN("timed-out")))
        why_set(p, 408, SPAN("its time was over"));
    else
        why_set(p, span_eq(how, SPAN("not-started")) ? 400 : 502, why.n ? why : SPAN("the sandbox ended"));
    p->ended = true;
    arena_free(&a);
}

/* The desk has begun it. */
static void hear_hello(struct proc *p, struct span data)
{
    struct arena a;

    arena_init(&a, 4096);
    const struct json *j = json_parse(data, &a);
    if (json_u64(j, SPAN("stream"), &p->stream) != 0 || json_u64(j, SPAN("input"), &p->window) != 0)
        p->stream = 0;
    arena_free(&a);
    for (size_t i = p->ncallers; i-- > 0 && p->stream != 0;) {
        struct call *x = p->caller[i];
        if (call_stream(x, 200, "application/connect+json") == 0)
            say_start(p, x);
    }
}

static int heard(void *ctx, const struct api_event *ev)
{
    struct proc *p = ctx;
    uint64_t n;

    if (p->stream == 0 && span_eq(ev->name, SPAN("hello")))
        hear_hello(p, ev->data);
    else if (span_eq(ev->name, SPAN("stdout")) || span_eq(ev->name, SPAN("stderr")))
        hear_output(p, span_eq(ev->name, SPAN("stdout")) ? "stdout" : "stderr", ev->data);
    else if (span_eq(ev->name, SPAN("fed")) && span_u64(ev->data, UINT32_MAX, &n) == 0) {
        p->unfed -= n < p->unfed ? (uint32_t)n : p->unfed;
        input_go(p);
    } else if (span_eq(ev->name, SPAN("exit")))
        hear_exit(p, ev->data);
    return p->ended ? 1 : 0;
}

/* In the desk's words. */
static void refused(struct proc *p, const struct errand *e)
{
    struct arena a;

    arena_init(&a, DOCK_ARENA_MAX);
    struct span words = json_text(json_parse(e->data, &a), SPAN("detail"));
    over_no(p, e->status, words.n ? words : SPAN("the gateway did not say why"));
    arena_free(&a);
}

static void event(void *arg, struct errand *e, enum errand_event ev)
{
    struct proc *p = arg;

    switch (ev) {
    case ERRAND_HEAD: e->whole = e->status != 200; break; /* then: words, to be handed on */
    case ERRAND_DATA:
        if (e->status != 200)
            refused(p, e);
        else if (sse_feed(&p->sse, e->data) < 0)
            over_no(p, 503, SPAN("what the gateway said cannot be read"));
        else if (p->ended && p->status != 0)
            over_no(p, p->status, span_str(p->why));
        else if (p->ended)
            over(p, SPAN("{}"));
        break;
    case ERRAND_NONE:
        over_no(p, e->status == 401 ? 502 : e->status,
                e->status == 401 ? SPAN("the sandbox does not run, or this token does not open it")
                                 : span_str(e->why));
        break;
    case ERRAND_END: over_no(p, 503, SPAN("the gateway cut it off")); break;
    default: break;
    }
}

struct proc *proc_new(struct call *x)
{
    struct dock *d = x->dock;
    struct proc *p = NULL;
    size_t own = 0;

    for (const struct proc *o = d->procs; o; o = o->next)
        own += memcmp(&o->tenant, call_tenant(x), sizeof(o->tenant)) == 0;
    if (d->nprocs < DOCK_PROCS && own < DOCK_TENANT_PROCS)
        p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->dock = d;
    p->tenant = *call_tenant(x);
    (void)snprintf(p->box, sizeof(p->box), "%.*s", SPAN_FMT(x->arg));
    dynbuf_init(&p->config, CONFIG_MAX);
    sse_init(&p->sse, heard, p);
    do
        p->pid = ++d->last_pid;
    while (p->pid == 0);
    p->next = d->procs;
    d->procs = p;
    d->nprocs++;
    return p;
}

bool proc_begin(struct call *x, struct span target, struct span json, struct proc *p)
{
    const struct errand_ask ask = {
        .token = &x->token, .box = x->arg, .method = "POST", .target = target, .json = json};

    p->errand = target.p && json.p ? errand_new(&x->dock->errands, &ask, event, p) : NULL;
    if (!p->errand) {
        proc_free(&p);
        reply_no(x, 503, "the gateway cannot be asked at the moment; try again");
        return false;
    }
    return proc_follow(p, x);
}
