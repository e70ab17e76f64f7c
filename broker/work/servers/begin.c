/* An MCP server's begin: a command of the sandbox, with leases among its variables where the operator says so, or a
 * URL. */
#include <stdio.h>

#include "broker/work/servers/servers_in.h"
#include "broker/work/seen/seen.h"
#include "common/net/loop.h"

enum {
    DISCOVER_MS = 10 * 1000, /* then the other era is tried */
    JSON_ROOM = 60 * 1024,
    ASK_ROOM = 4096,
    LEASE_S = 4 * 3600,
    LEFT_MS = 3600 * 1000, /* a lease of which less is left is not given to a server that begins */
    OUTPUT = 1 << 30
};

static void failed(struct server *s, struct span why)
{
    (void)snprintf(s->words, sizeof(s->words), "%.*s", SPAN_FMT(span_first(why, SERVER_LAST_WORDS)));
    server_lost(s, "cannot be started", false);
}

/* --- over HTTP ---------------------------------------------------------------------------------- */

static void begin_remote(struct server *s, struct span lease)
{
    struct task *t = s->task;
    const struct wire_ask ask = {.url = s->is->url, .token = span_str(t->lane), .lease = lease};
    s->remote = remote_begin(t->w, &s->mcp, &ask, server_remote, s);
    if (s->remote == NULL)
        failed(s, SPAN("no memory"));
    else
        server_tell(s);
}

static void shown(struct task *t, uint64_t arg, unsigned status, struct span lease)
{
    struct server *s = (struct server *)(uintptr_t)arg;
    if (!s->leasing || s->state != SERVER_BEGINS)
        return;
    s->leasing = false;
    if (status == 200)
        begin_remote(s, lease);
    else
        failed(s, arena_printf(&t->step_arena, "no lease of %.*s: %.*s", SPAN_FMT(s->is->lease),
                               SPAN_FMT(desk_words(t, status, lease))));
}

/* --- in the sandbox -------------------------------------------------------------------------------- */

static const struct inside *inside_of(const struct task *t, struct span credential)
{
    const struct servers *all = t->servers;
    for (size_t i = 0; i < all->ninside; i++)
        if (span_eq(all->inside[i].credential, credential) &&
            all->inside[i].expires_ms > loop_wall(t->w->loop) + LEFT_MS)
            return &all->inside[i];
    return NULL;
}

/* A lease that its variables want and that is not there yet; empty: there is none. */
static struct span wanted(const struct server *s)
{
    for (size_t i = 0; i < s->is->variables; i++) {
        const struct mcp_variable *v = &s->is->variable[i];
        if (v->is != MCP_TEXT && inside_of(s->task, v->value) == NULL)
            return v->value;
    }
    return SPAN_NONE;
}

static void put_variables(struct server *s, struct jsonw *w)
{
    struct arena *a = &s->task->step_arena;
    jsonw_kv_array(w, "env");
    for (size_t i = 0; i < s->is->variables; i++) {
        const struct mcp_variable *v = &s->is->variable[i];
        const struct inside *in = v->is != MCP_TEXT ? inside_of(s->task, v->value) : NULL;
        struct span value = in == NULL ? v->value : v->is == MCP_LEASE ? in->lease : in->secret;
        jsonw_string(w, arena_printf(a, "%.*s=%.*s", SPAN_FMT(v->name), SPAN_FMT(value)));
    }
    jsonw_end_array(w);
}

static struct span command(struct server *s)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, JSON_ROOM);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv_array(&w, "argv");
    for (size_t i = 0; i < s->is->words; i++)
        jsonw_string(&w, s->is->word[i]);
    jsonw_end_array(&w);
    if (s->is->variables > 0)
        put_variables(s, &w);
    jsonw_kv_bool(&w, "input", true);
    jsonw_kv_u64(&w, "timeout", 86400);
    jsonw_kv_u64(&w, "output", OUTPUT);
    jsonw_end_object(&w);
    return arena_keep(&s->task->step_arena, &b);
}

static void begin_command(struct server *s)
{
    struct task *t = s->task;
    const struct errand_ask ask = {.tenant = span_of(t->claim.tenant, t->claim.tenant_n),
                                   .lane = span_str(t->lane),
                                   .method = "POST",
                                   .target = desk_box(t, "/exec", SPAN_NONE),
                                   .json = command(s)};
    if (ask.target.p != NULL && ask.json.p != NULL)
        s->errand = errand_new(&t->w->errands, &ask, server_heard, s);
    if (s->errand == NULL)
        server_lost(s, "cannot be started", false);
}

static void next_lease(struct server *s);

static void leased(struct task *t, uint64_t arg, unsigned status, struct span body)
{
    struct server *s = (struct server *)(uintptr_t)arg;
    struct servers *all = t->servers;
    const struct json *j = status == 201 ? json_parse(body, &t->step_arena) : NULL;
    struct inside in = {.lease = arena_copy(&t->arena, json_text(j, SPAN("lease"))),
                        .secret = arena_copy(&t->arena, json_text(j, SPAN("secret")))};
    if (!s->leasing || s->state != SERVER_BEGINS)
        return;
    s->leasing = false;
    in.credential = wanted(s);
    (void)!json_u64(j, SPAN("expires_ms"), &in.expires_ms);
    if (in.lease.n == 0 || in.expires_ms <= loop_wall(t->w->loop) + LEFT_MS || in.credential.n == 0 ||
        all->ninside == sizeof(all->inside) / sizeof(all->inside[0])) {
        failed(s, arena_printf(&t->step_arena, "no lease of %.*s: %.*s", SPAN_FMT(in.credential),
                               SPAN_FMT(desk_words(t, status, body))));
        return;
    }
    all->inside[all->ninside++] = in;
    next_lease(s);
}

/* One after another, and then it is run. */
static void next_lease(struct server *s)
{
    struct task *t = s->task;
    struct span credential = wanted(s);
    struct dynbuf b;
    struct jsonw w;
    if (credential.n == 0) {
        begin_command(s);
        return;
    }
    dynbuf_init(&b, ASK_ROOM);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "credential", credential);
    jsonw_kv_bool(&w, "inside", true);
    jsonw_kv_u64(&w, "expires_s", LEASE_S);
    jsonw_end_object(&w);
    s->leasing = true;
    desk_ask(t, "POST", arena_printf(&t->step_arena, "/api/v1/conversations/%s/leases", t->conversation),
             arena_keep(&t->step_arena, &b), leased, (uint64_t)(uintptr_t)s);
}

/* --- both ---------------------------------------------------------------------------------------------- */

void server_begin(struct server *s)
{
    struct task *t = s->task;
    const struct seen_parent parent = seen_turns(t);
    s->starts++;
    s->words[0] = '\0';
    s->answers = false;
    s->state = SERVER_BEGINS;
    mcp_begin(&s->mcp, s->is->name, span_str(parent.text));
    sse_init(&s->sse, server_event, s);
    s->timer = timer_new(t->w->loop, server_late, s);
    if (s->timer == NULL) {
        failed(s, SPAN("no memory"));
        return;
    }
    timer_set(s->timer, DISCOVER_MS);
    if (s->is->words > 0) {
        next_lease(s);
    } else if (s->is->lease.n > 0) {
        s->leasing = true;
        lease_need(t, s->is->lease, shown, (uint64_t)(uintptr_t)s);
    } else {
        begin_remote(s, SPAN_NONE);
    }
}
