/* The client of MCP servers over HTTP, as it stands in the broker, for the conformance suite of MCP: it opens the URL
 * that it is given, lists the tools, calls each of them once, and ends. What the suite wants to be called how is in
 * its MCP_CONFORMANCE_CONTEXT; else arguments are made up by the tool's schema. The suite's server stands where the
 * gateway's proxy does. Exit 1: the server was given up; why is on standard error. */
#include <stdio.h>
#include <stdlib.h>

#include "broker/work/servers/remote.h"
#include "common/json/json.h"
#include "common/net/loop.h"

enum { ARENA = 16 * 1024 * 1024, ARGS_MAX = 64 * 1024, GIVE_UP_MS = 25 * 1000 };

static struct work work;
static struct mcp mcp;
static struct remote *remote;
static struct arena arena;
static const struct json *wanted; /* the calls that the suite says, one after another */
static size_t next;               /* tool */

static void end(int status)
{
    remote_free(&remote);
    mcp_free(&mcp);
    arena_free(&arena);
    exit(status);
}

/* A value for each property, of a kind that the schema names; of an object, the schema of the first tool, which is
 * what a tool that echoes a schema is for. */
static void made_up(struct jsonw *w, const struct json *schema)
{
    const struct json *list = json_get(schema, SPAN("properties"));
    for (const struct json *p = list != NULL ? list->child : NULL; p != NULL; p = p->next) {
        struct span type = json_text(p, SPAN("type"));
        jsonw_name(w, p->key);
        if (span_eq(type, SPAN("number")) || span_eq(type, SPAN("integer")))
            jsonw_u64(w, 2);
        else if (span_eq(type, SPAN("boolean")))
            jsonw_bool(w, true);
        else if (span_eq(type, SPAN("object")))
            jsonw_raw(w, mcp.tool[0].schema);
        else
            jsonw_string(w, SPAN("some text"));
    }
}

static void call(struct span name, const struct json *args)
{
    struct dynbuf b;
    struct jsonw w;
    struct span full = arena_printf(&arena, "%s__%.*s", mcp.server, SPAN_FMT(name));
    const struct mcp_tool *tool = mcp_tool_of(&mcp, full);
    dynbuf_init(&b, ARGS_MAX);
    jsonw_begin(&w, &b);
    if (args != NULL) {
        jsonw_tree(&w, args);
    } else if (tool != NULL) {
        jsonw_object(&w);
        made_up(&w, json_parse(tool->schema, &arena));
        jsonw_end_object(&w);
    }
    if (tool == NULL || mcp_call(&mcp, tool, dynbuf_span(&b), SPAN_NONE) != 0) {
        (void)fprintf(stderr, "%.*s cannot be called\n", SPAN_FMT(name));
        end(1);
    }
    dynbuf_free(&b);
    remote_tell(remote);
}

static void goes_on(void)
{
    if (wanted != NULL && wanted->type == JSON_OBJECT) {
        const struct json *is = wanted;
        wanted = is->next;
        call(json_text(is, SPAN("name")), json_get(is, SPAN("arguments")));
    } else if (next < mcp.n && wanted == NULL && getenv("MCP_CONFORMANCE_CONTEXT") == NULL) {
        next++;
        call(mcp.tool[next - 1].own, NULL);
    } else {
        end(0);
    }
}

static void came(void *arg, enum mcp_event ev)
{
    if (ev == MCP_BROKEN) {
        (void)fprintf(stderr, "the server is given up: %s\n", mcp.why.text);
        end(1);
    }
    if (ev == MCP_READY)
        (void)printf("%zu tools, %zu left out\n", mcp.n, mcp.left_out);
    else
        (void)printf("%.*s: %.*s\n", SPAN_FMT(mcp.called->own), SPAN_FMT(dynbuf_span(&mcp.result)));
    goes_on();
}

static void late(void *arg)
{
    (void)fprintf(stderr, "no answer came in time\n");
    end(1);
}

static void begin(void *arg)
{
    remote_tell(remote);
}

int main(int argc, char **argv)
{
    const char *context = getenv("MCP_CONFORMANCE_CONTEXT");
    struct span url = argc == 2 ? span_str(argv[1]) : SPAN_NONE, host;
    size_t scheme = sizeof("http://") - 1;
    if (!span_starts(url, SPAN("http://localhost:"))) {
        (void)fprintf(stderr, "usage: mcp http://localhost:PORT/PATH\n");
        return 2;
    }
    arena_init(&arena, ARENA);
    host = span_from(url, scheme);
    host = span_first(host, span_index(host, '/'));
    (void)snprintf(work.proxy, sizeof(work.proxy), "127.0.0.1%.*s",
                   SPAN_FMT(span_from(host, sizeof("localhost") - 1)));
    if (scheme + host.n == url.n) /* a server at the root */
        url = arena_printf(&arena, "%.*s/", SPAN_FMT(url));
    if (context != NULL)
        wanted = json_get(json_parse(span_str(context), &arena), SPAN("toolCalls"));
    wanted = wanted != NULL ? wanted->child : NULL;
    work.loop = loop_new();
    struct timer *timer = work.loop != NULL ? timer_new(work.loop, late, NULL) : NULL;
    mcp_begin(&mcp, SPAN("s"), SPAN_NONE);
    const struct wire_ask ask = {.url = url, .token = SPAN("nobody")};
    remote = timer != NULL ? remote_begin(&work, &mcp, &ask, came, NULL) : NULL;
    if (remote == NULL || loop_defer(work.loop, begin, NULL) != 0)
        return 2;
    timer_set(timer, GIVE_UP_MS);
    return loop_run(work.loop) == 0 ? 0 : 2;
}
