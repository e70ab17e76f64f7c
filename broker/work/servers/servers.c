/* MCP servers, in the conversation's sandbox or over HTTP: started when a model is to be asked, so that it can be
 * told their tools (begin.c), and again when one has ended; each ends with its turn. One call of a server is in
 * flight, the others wait. */
#include "broker/work/servers/servers_in.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/work/seen/seen.h"
#include "broker/work/tools.h"
#include "common/net/loop.h"

enum {
    STARTS_MAX = 3, /* of one server in one turn */
    WINDOW = 32 * 1024,
    LAST_WORDS = SERVER_LAST_WORDS
};

static void next(struct server *s);
static void go_on(struct task *t);

/* --- its end ------------------------------------------------------------------------------------ */

static void stop(struct server *s)
{
    remote_free(&s->remote);
    errand_free(&s->errand); /* the command ends with who follows it */
    errand_free(&s->post);
    timer_free(&s->timer);
    if (s->state == SERVER_BEGINS || s->state == SERVER_RUNS) {
        sse_free(&s->sse);
        mcp_free(&s->mcp);
    }
    s->state = SERVER_NONE;
    s->stream[0] = '\0';
    s->unfed = s->sent = 0;
    s->ready = s->answered = s->broken = s->over = s->leasing = false;
}

static void say(struct server *s, const char *state, struct span why)
{
    struct task *t = s->task;
    struct dynbuf b;
    struct jsonw w;
    show_begin(&b, &w);
    jsonw_kv(&w, "turn", span_str(t->turn));
    jsonw_kv(&w, "server", s->is->name);
    jsonw_kv(&w, "state", span_str(state));
    if (why.n > 0)
        jsonw_kv(&w, "why", why);
    else {
        jsonw_kv_u64(&w, "tools", s->mcp.n);
        jsonw_kv_u64(&w, "left_out", s->mcp.left_out);
    }
    jsonw_end_object(&w);
    show(t, "tool.server", &b);
}

/* Calls that wait for one that does not come any more. Nothing of them was sent. */
static void refuse_waiting(struct server *s, struct span why)
{
    struct task *t = s->task;
    for (uint64_t i = 0; i < TURN_CALLS_MAX && !t->over; i++)
        if (s->waiting & UINT64_C(1) << i) {
            s->waiting &= ~(UINT64_C(1) << i);
            task_done(t, i, CALL_ERROR, why);
        }
}

/* It is of no use any more. What was in flight may have been done; it is started anew for the next call, unless it
 * never came to run, or ends again and again. */
void server_lost(struct server *s, const char *words, bool with_box)
{
    struct task *t = s->task;
    bool begins = s->state == SERVER_BEGINS, calls = s->calls;
    struct span why = arena_printf(&t->step_arena, "the MCP server %.*s %s%s%s", SPAN_FMT(s->is->name), words,
                                   s->words[0] ? ": " : "", s->words);
    stop(s);
    s->calls = false;
    if ((begins && !with_box) || s->starts >= STARTS_MAX)
        s->state = SERVER_FAILED;
    say(s, "failed", why);
    if (calls)
        task_done(t, s->ord, CALL_UNKNOWN, why);
    if (!t->over)
        refuse_waiting(s, why);
    if (!t->over)
        go_on(t);
}

/* --- what it is told ------------------------------------------------------------------------------ */

static void posted(void *arg, struct errand *e, enum errand_event ev)
{
    struct server *s = arg;
    unsigned status = e->status;
    if (ev == ERRAND_ROOM || s->task->over)
        return;
    errand_free(&s->post);
    if (status != 204) {
        server_lost(s, "cannot be told anything", false);
        return;
    }
    dynbuf_drop(&s->mcp.out, s->sent);
    s->sent = 0;
    server_tell(s);
}

/* As much as it may be told now. */
void server_tell(struct server *s)
{
    struct task *t = s->task;
    if (s->remote != NULL) {
        remote_tell(s->remote);
        return;
    }
    size_t n = s->mcp.out.n < WINDOW - s->unfed ? s->mcp.out.n : WINDOW - s->unfed;
    if (s->post != NULL || s->stream[0] == '\0' || n == 0)
        return;
    const struct errand_ask ask = {.tenant = span_of(t->claim.tenant, t->claim.tenant_n),
                                   .lane = span_str(t->lane),
                                   .method = "POST",
                                   .target = arena_printf(&t->step_arena, "/api/v1/streams/%s/input", s->stream),
                                   .json = span_of(s->mcp.out.p, n),
                                   .whole = true};
    s->post = ask.target.p != NULL ? errand_new(&t->w->errands, &ask, posted, s) : NULL;
    s->sent = n;
    s->unfed += n;
    if (s->post == NULL)
        server_lost(s, "cannot be told anything", false);
}

/* --- what it says --------------------------------------------------------------------------------- */

static void hello(struct server *s, struct span data)
{
    uint64_t n = 0;
    if (json_u64(json_parse(data, &s->task->step_arena), SPAN("stream"), &n) == 0)
        (void)snprintf(s->stream, sizeof(s->stream), "%llu", (unsigned long long)n);
}

static void feed(struct server *s, struct span data)
{
    uint8_t *bytes = malloc(data.n + 1);
    size_t n = 0;
    if (bytes == NULL || base64_decode(data, bytes, &n) != 0) {
        s->broken = true;
        (void)err_set(&s->mcp.why, "what it wrote cannot be read");
        n = 0;
    }
    enum mcp_event ev = n > 0 ? mcp_feed(&s->mcp, span_of(bytes, n)) : MCP_NOTHING;
    s->ready |= ev == MCP_READY;
    s->answered |= ev == MCP_ANSWERED;
    s->broken |= ev == MCP_BROKEN;
    free(bytes);
}

/* The end of what it wrote last, which says why it ended. */
static void keep_words(struct server *s, struct span data)
{
    uint8_t *bytes = malloc(data.n + 1);
    size_t n = 0;
    if (bytes != NULL && base64_decode(data, bytes, &n) == 0 && n > 0) {
        struct span last = n > LAST_WORDS ? span_of(bytes + n - LAST_WORDS, LAST_WORDS) : span_of(bytes, n);
        (void)snprintf(s->words, sizeof(s->words), "%.*s", SPAN_FMT(last));
    }
    free(bytes);
}

int server_event(void *ctx, const struct api_event *e)
{
    struct server *s = ctx;
    uint64_t n = 0;
    if (span_eq(e->name, SPAN("hello")))
        hello(s, e->data);
    else if (span_eq(e->name, SPAN("stdout")))
        feed(s, e->data);
    else if (span_eq(e->name, SPAN("stderr")))
        keep_words(s, e->data);
    else if (span_eq(e->name, SPAN("fed")) && span_u64(e->data, s->unfed, &n) == 0)
        s->unfed -= n;
    else if (span_eq(e->name, SPAN("exit"))) {
        s->over = true;
        if (span_eq(json_text(json_parse(e->data, &s->task->step_arena), SPAN("how")), SPAN("lost")))
            s->task->box_up = false;
    }
    return 0;
}

static void answered(struct server *s)
{
    struct task *t = s->task;
    uint64_t ord = s->ord;
    s->answered = s->calls = false;
    timer_clear(s->timer);
    task_done(t, ord, s->mcp.end, dynbuf_span(&s->mcp.result));
    if (!t->over)
        next(s);
}

static void came(struct server *s)
{
    struct task *t = s->task;
    if (s->broken) {
        struct span why = arena_printf(&t->step_arena, "is given up: %s", s->mcp.why.text); /* with a NUL */
        server_lost(s, why.p != NULL ? (const char *)why.p : "is given up", false);
    } else if (s->over) {
        server_lost(s, "has ended", !t->box_up);
    } else {
        server_tell(s);
        if (s->ready && s->state == SERVER_BEGINS) {
            s->ready = false;
            s->state = SERVER_RUNS;
            timer_clear(s->timer);
            say(s, "ready", SPAN_NONE);
            go_on(t);
            next(s);
        }
        if (s->answered && s->calls && !t->over)
            answered(s);
    }
}

void server_heard(void *arg, struct errand *e, enum errand_event ev)
{
    struct server *s = arg;
    struct task *t = s->task;
    if (t->over || ev == ERRAND_ROOM)
        return;
    if (ev == ERRAND_HEAD || ev == ERRAND_DATA) {
        if (e->status != 200) {
            t->box_up &= e->status != 404;
            server_lost(s, "cannot be started", e->status == 404);
        } else if (ev == ERRAND_DATA && sse_feed(&s->sse, e->data) < 0) {
            server_lost(s, "wrote more than can be read at once", false);
        } else if (ev == ERRAND_DATA) {
            came(s);
        }
        return;
    }
    server_lost(s, "cannot be followed any more", false);
}

void server_remote(void *arg, enum mcp_event ev)
{
    struct server *s = arg;
    if (s->task->over)
        return;
    s->ready |= ev == MCP_READY;
    s->answered |= ev == MCP_ANSWERED;
    s->broken |= ev == MCP_BROKEN;
    came(s);
}

/* --- its begin -------------------------------------------------------------------------------------- */

void server_late(void *arg)
{
    struct server *s = arg;
    if (s->leasing) {
        server_lost(s, "cannot be started: its lease did not come in time", false);
        return;
    }
    if (!s->calls && !s->answers && s->mcp.state != MCP_DISCOVERING) {
        s->answers = true; /* the time was for the other era's try, and it has answered that */
        timer_set(s->timer, s->is->start_ms);
        return;
    }
    s->answers = true;
    if (s->calls)
        s->task->call[s->ord].seen.late = true;
    enum mcp_event ev = s->calls ? MCP_BROKEN : mcp_late(&s->mcp);
    if (ev != MCP_NOTHING) {
        server_lost(s, "did not answer in time", false);
        return;
    }
    timer_set(s->timer, s->is->start_ms);
    server_tell(s);
}

/* Those that do not run: inside in a sandbox that does, the others over HTTP. */
static void begin_those(struct task *t, bool inside)
{
    for (size_t i = 0; i < t->w->tools.n && t->servers->thinks && !t->over; i++) {
        struct server *s = &t->servers->server[i];
        if ((s->is->words > 0) == inside && s->state == SERVER_NONE && s->starts < STARTS_MAX)
            server_begin(s);
    }
}

static void boxed(struct task *t, uint64_t arg, unsigned status, struct span body)
{
    if (status == 200)
        begin_those(t, true);
    t->servers->boxing = false;
    go_on(t);
}

/* A model is asked once each of them runs, or has failed: its tools are then not there. */
static void go_on(struct task *t)
{
    for (size_t i = 0; i < t->w->tools.n; i++)
        if (t->servers->server[i].state == SERVER_BEGINS)
            return;
    if (!t->servers->boxing && t->servers->thinks && !t->over) {
        t->servers->thinks = false;
        think_begin(t);
    }
}

/* Which there are, none of them begun. False: there are none. */
static bool are_there(struct task *t)
{
    if (t->servers == NULL && t->w->tools.n > 0 && !t->found.replays)
        t->servers = calloc(1, sizeof(*t->servers));
    for (size_t i = 0; t->servers != NULL && i < t->w->tools.n; i++) {
        t->servers->server[i].task = t;
        t->servers->server[i].is = &t->w->tools.server[i];
    }
    return t->servers != NULL;
}

void servers_think(struct task *t)
{
    if (!are_there(t)) {
        think_begin(t);
        return;
    }
    bool inside = false;
    for (size_t i = 0; i < t->w->tools.n; i++)
        inside |= t->w->tools.server[i].words > 0;
    t->servers->thinks = t->servers->boxing = true;
    begin_those(t, false);
    if (t->over)
        return;
    if (inside) {
        box_need(t, boxed, 0);
    } else {
        t->servers->boxing = false;
        go_on(t);
    }
}

void servers_quiet(struct task *t)
{
    if (t->servers != NULL)
        t->servers->thinks = false;
}

void servers_step(struct task *t)
{
    servers_quiet(t);
    for (size_t i = 0; t->servers != NULL && i < MCP_SERVERS_MAX; i++) {
        struct server *s = &t->servers->server[i];
        s->waiting = 0;
        if (s->calls || s->leasing) /* its answer would be another call's; nobody hears of its lease any more */
            stop(s);
        s->calls = false;
    }
}

void servers_free(struct task *t)
{
    for (size_t i = 0; t->servers != NULL && i < MCP_SERVERS_MAX; i++)
        stop(&t->servers->server[i]);
    free(t->servers);
    t->servers = NULL;
}

/* --- its tools ------------------------------------------------------------------------------------------ */

static struct server *server_of(const struct task *t, struct span tool)
{
    const struct mcp_server *is = t->servers != NULL ? mcp_server_of(&t->w->tools, tool) : NULL;
    return is != NULL ? &t->servers->server[is - t->w->tools.server] : NULL;
}

bool servers_know(struct task *t, struct span name, struct span *kept, enum call_class *class)
{
    const struct server *s = server_of(t, name);
    const struct mcp_tool *tool = s != NULL && s->state == SERVER_RUNS ? mcp_tool_of(&s->mcp, name) : NULL;
    if (tool == NULL)
        return false;
    *kept = arena_copy(&t->step_arena, tool->name);
    *class = mcp_class(s->is, tool);
    return kept->p != NULL;
}

size_t servers_tools(const struct task *t, struct model_tool *out, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; t->servers != NULL && i < t->w->tools.n; i++) {
        const struct server *s = &t->servers->server[i];
        for (size_t j = 0; s->state == SERVER_RUNS && j < s->mcp.n && n < most; j++)
            out[n++] = (struct model_tool){s->mcp.tool[j].name, s->mcp.tool[j].description, s->mcp.tool[j].schema};
    }
    return n;
}

/* --- calls ------------------------------------------------------------------------------------------------ */

/* One line, however the model wrote it. */
static struct span one_line(struct task *t, const struct json *args)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, MCP_LINE_MAX / 2);
    jsonw_begin(&w, &b);
    jsonw_tree(&w, args);
    return arena_keep(&t->step_arena, &b);
}

static void send(struct server *s, uint64_t ord)
{
    struct task *t = s->task;
    const struct mcp_tool *tool = mcp_tool_of(&s->mcp, t->call[ord].call.tool);
    const struct json *args = json_parse(t->call[ord].call.args, &t->step_arena);
    struct span line = args != NULL ? one_line(t, args) : SPAN_NONE;
    const struct seen_parent parent = seen_calls(t, ord);
    if (tool == NULL || line.p == NULL || mcp_call(&s->mcp, tool, line, span_str(parent.text)) != 0) {
        task_done(t, ord, CALL_ERROR,
                  tool == NULL ? SPAN("the server has no tool of that name any more")
                               : SPAN("the arguments are larger than a server is told"));
        if (!t->over)
            next(s);
        return;
    }
    s->calls = true;
    s->ord = ord;
    run_begins(t, ord);
    t->call[ord].seen.request = s->mcp.id;
    t->call[ord].seen.remote = s->is->words == 0;
    (void)snprintf(t->call[ord].seen.version, sizeof(t->call[ord].seen.version), "%.*s",
                   SPAN_FMT(mcp_version(&s->mcp)));
    timer_set(s->timer, s->is->timeout_ms);
    server_tell(s);
}

static void next(struct server *s)
{
    uint64_t ord = 0;
    if (s->waiting == 0 || s->calls || s->task->over)
        return;
    if (s->state == SERVER_NONE)
        server_begin(s);
    if (s->state != SERVER_RUNS)
        return;
    while (!(s->waiting & UINT64_C(1) << ord))
        ord++;
    s->waiting &= ~(UINT64_C(1) << ord);
    send(s, ord);
}

bool servers_outside(const struct task *t, struct span tool)
{
    const struct mcp_server *is = mcp_server_of(&t->w->tools, tool);
    return is != NULL && is->words == 0;
}

/* Whoever took the turn over, to make such a call again, has asked no model yet, and so has begun no server. */
bool servers_call(struct task *t, uint64_t ord)
{
    struct server *s = are_there(t) ? server_of(t, t->call[ord].call.tool) : NULL;
    if (s == NULL)
        return false;
    if (s->state == SERVER_FAILED) {
        task_done(t, ord, CALL_ERROR, SPAN("its MCP server does not run, and nothing was done"));
        return true;
    }
    s->waiting |= UINT64_C(1) << ord;
    next(s);
    return true;
}

bool servers_abort(struct task *t, uint64_t ord)
{
    struct server *s = server_of(t, t->call[ord].call.tool);
    if (s == NULL)
        return false;
    if (s->waiting & UINT64_C(1) << ord) {
        s->waiting &= ~(UINT64_C(1) << ord);
        task_done(t, ord, CALL_ERROR, SPAN("it was cancelled before it was run"));
    } else if (s->calls && s->ord == ord) {
        server_lost(s, "was ended, since the turn was cancelled", false);
    }
    return true;
}
