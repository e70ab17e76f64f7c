#include <stdio.h>

#include "broker/mcp/mcp_in.h"

enum {
    TREE_MAX = 16 * MCP_LINE_MAX,
    TOOLS_ROOM = MCP_TOOLS_MAX * (2 * MCP_SCHEMA_MAX + MCP_WORDS_MAX + 4096),
    NOTES_MAX = 64 * 1024,
    REFUSAL_MAX = 256,
    ERROR_VERSION = 32022, /* of the modern era, as they are below zero */
    ERROR_HEADER = 32020,
    ERROR_CAPABILITY = 32021
};

static void take_trace(struct mcp *m, struct span trace)
{
    m->trace[0] = '\0';
    if (trace.n <= MCP_TRACE_MAX)
        (void)snprintf(m->trace, sizeof(m->trace), "%.*s", SPAN_FMT(trace));
}

void mcp_begin(struct mcp *m, struct span server, struct span trace)
{
    *m = (struct mcp){.state = MCP_NONE};
    take_trace(m, trace);
    (void)snprintf(m->server, sizeof(m->server), "%.*s", SPAN_FMT(server));
    arena_init(&m->arena, TOOLS_ROOM);
    dynbuf_init(&m->in, MCP_LINE_MAX);
    dynbuf_init(&m->out, MCP_OUT_MAX);
    dynbuf_init(&m->args, MCP_LINE_MAX / 2);
    dynbuf_init(&m->notes, NOTES_MAX);
    dynbuf_init(&m->result, MCP_RESULT_MAX);
    say_discover(m);
}

void mcp_free(struct mcp *m)
{
    arena_free(&m->arena);
    dynbuf_free(&m->in);
    dynbuf_free(&m->out);
    dynbuf_free(&m->args);
    dynbuf_free(&m->notes);
    dynbuf_free(&m->result);
}

enum mcp_event mcp_broken(struct mcp *m, const char *why)
{
    m->state = MCP_NONE;
    (void)err_set(&m->why, "%s", why);
    return MCP_BROKEN;
}

struct span mcp_version(const struct mcp *m)
{
    return m->modern ? MCP_MODERN : span_str(m->version);
}

const struct mcp_tool *mcp_tool_of(const struct mcp *m, struct span name)
{
    for (size_t i = 0; i < m->n; i++)
        if (span_eq(m->tool[i].name, name))
            return &m->tool[i];
    return NULL;
}

/* --- its era --------------------------------------------------------------------------------- */

static bool has(const struct json *list, struct span text)
{
    for (const struct json *v = list != NULL && list->type == JSON_ARRAY ? list->child : NULL; v != NULL; v = v->next)
        if (v->type == JSON_STRING && span_eq(v->text, text))
            return true;
    return false;
}

static bool is_modern(const struct json *result, const struct json *error)
{
    const struct json *code = json_get(error, SPAN("code")), *data = json_get(error, SPAN("data"));
    uint64_t n = 0;
    if (result != NULL)
        return has(json_get(result, SPAN("supportedVersions")), MCP_MODERN);
    if (code == NULL || code->type != JSON_NUMBER || !span_starts(code->text, SPAN("-")) ||
        span_u64(span_from(code->text, 1), UINT32_MAX, &n) != 0)
        return false;
    return n == ERROR_HEADER || n == ERROR_CAPABILITY ||
           (n == ERROR_VERSION && has(json_get(data, SPAN("supported")), MCP_MODERN));
}

static enum mcp_event discovered(struct mcp *m, const struct json *result, const struct json *error)
{
    m->modern = is_modern(result, error);
    if (m->modern)
        say_list(m, SPAN_NONE);
    else
        say_initialize(m);
    return MCP_NOTHING;
}

static enum mcp_event initialized(struct mcp *m, const struct json *result)
{
    static const struct span known[] = {MCP_LEGACY, SPAN("2025-06-18"), SPAN("2025-03-26"), SPAN("2024-11-05")};
    struct span version = json_text(result, SPAN("protocolVersion"));
    bool speaks = false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        speaks |= span_eq(version, known[i]);
    if (!speaks)
        return mcp_broken(m, "it speaks no version of the protocol that is known here");
    (void)snprintf(m->version, sizeof(m->version), "%.*s", SPAN_FMT(version));
    say_initialized(m);
    if (json_get(json_get(result, SPAN("capabilities")), SPAN("tools")) == NULL) {
        m->state = MCP_AT_REST;
        return MCP_READY;
    }
    say_list(m, SPAN_NONE);
    return MCP_NOTHING;
}

/* --- what it answers --------------------------------------------------------------------------- */

static enum mcp_event listed(struct mcp *m, const struct json *result)
{
    const struct json *tools = json_get(result, SPAN("tools"));
    struct span next = json_text(result, SPAN("nextCursor"));
    if (tools == NULL || tools->type != JSON_ARRAY)
        return mcp_broken(m, "it does not say which tools it has");
    hear_tools(m, tools);
    if (next.n > 0 && ++m->pages < MCP_PAGES_MAX) {
        say_list(m, next);
        return MCP_NOTHING;
    }
    m->state = MCP_AT_REST;
    return MCP_READY;
}

/* It wants something first, and is given it, or the call ends. */
static bool goes_on(struct mcp *m, const struct json *result)
{
    const struct json *wanted = json_get(result, SPAN("inputRequests"));
    if (!m->modern || !span_eq(json_text(result, SPAN("resultType")), SPAN("input_required")))
        return false;
    if (wanted != NULL && wanted->type == JSON_OBJECT && m->rounds++ < MCP_ROUNDS_MAX &&
        say_call(m, wanted, json_get(result, SPAN("requestState"))))
        return true;
    end_call(m, CALL_ERROR, SPAN("the server asked for something that is not given here, and did not do it"));
    m->state = MCP_AT_REST;
    return false;
}

static enum mcp_event called(struct mcp *m, const struct json *result, const struct json *error)
{
    if (result != NULL && goes_on(m, result))
        return MCP_NOTHING;
    if (m->state == MCP_CALLING && result != NULL)
        hear_result(m, result);
    else if (m->state == MCP_CALLING)
        hear_refusal(m, error);
    m->state = MCP_AT_REST;
    return MCP_ANSWERED;
}

static enum mcp_event answered(struct mcp *m, const struct json *j)
{
    const struct json *result = json_get(j, SPAN("result")), *error = json_get(j, SPAN("error"));
    uint64_t id = 0;
    if (json_u64(j, SPAN("id"), &id) != 0)
        return MCP_NOTHING;
    if (m->state == MCP_INITIALIZING && m->given_up != 0 && id == m->given_up && is_modern(result, error))
        return discovered(m, result, error); /* it was slow to begin, and reads what was asked in its order */
    if (id != m->id)
        return MCP_NOTHING; /* of one that was given up, or of none */
    m->awaits = false;
    switch (m->state) {
    case MCP_DISCOVERING: return discovered(m, result, error);
    case MCP_INITIALIZING:
        return result != NULL ? initialized(m, result) : mcp_broken(m, "it does not let itself be initialized");
    case MCP_LISTING: return result != NULL ? listed(m, result) : mcp_broken(m, "it does not say which tools it has");
    case MCP_CALLING: return called(m, result, error);
    case MCP_AT_REST:
    case MCP_NONE:
    default: return MCP_NOTHING;
    }
}

/* --- its lines --------------------------------------------------------------------------------- */

static enum mcp_event heard(struct mcp *m, struct span line)
{
    struct arena a;
    enum mcp_event ev = MCP_NOTHING;
    arena_init(&a, TREE_MAX);
    const struct json *j = json_parse(line, &a);
    bool request = j != NULL && json_get(j, SPAN("method")) != NULL, id = json_get(j, SPAN("id")) != NULL;
    if (j == NULL || j->type != JSON_OBJECT)
        ev = ++m->strays > MCP_STRAYS_MAX ? mcp_broken(m, "what it writes is not the protocol") : MCP_NOTHING;
    else if (request && id && ++m->requests > MCP_REQUESTS_MAX)
        ev = mcp_broken(m, "it asks for more than is answered");
    else if (request && id)
        say_answer(m, j);
    else if (!request && id)
        ev = answered(m, j);
    arena_free(&a);
    if (!dynbuf_ok(&m->out) && m->state != MCP_NONE)
        ev = mcp_broken(m, "it does not read what it is told");
    return ev;
}

enum mcp_event mcp_take(struct mcp *m, struct span message)
{
    if (m->state == MCP_NONE)
        return MCP_NOTHING;
    return message.n <= MCP_LINE_MAX ? heard(m, message)
                                     : mcp_broken(m, "what it says is longer than a message may be");
}

enum mcp_event mcp_refused(struct mcp *m, unsigned status, struct span body)
{
    struct arena a;
    enum mcp_event ev = MCP_NOTHING;
    uint64_t n = 0;
    arena_init(&a, TREE_MAX);
    const struct json *j = json_parse(body, &a), *error = json_get(j, SPAN("error")), *id = json_get(j, SPAN("id"));
    bool ours = id == NULL || id->type == JSON_NULL || (json_u64(j, SPAN("id"), &n) == 0 && n == m->id);
    if (error == NULL || error->type != JSON_OBJECT || !ours)
        error = NULL;
    if (m->state != MCP_NONE)
        m->awaits = false;
    if (m->state == MCP_DISCOVERING) {
        ev = discovered(m, NULL, error);
    } else if (m->state == MCP_CALLING) {
        hear_status(m, status, error, body);
        m->state = MCP_AT_REST;
        ev = MCP_ANSWERED;
    } else if (m->state != MCP_NONE) {
        struct span words = error != NULL ? json_text(error, SPAN("message")) : SPAN_NONE;
        m->state = MCP_NONE;
        (void)err_set(&m->why, "it was answered with status %u%s%.*s", status, words.n > 0 ? ": " : "",
                      SPAN_FMT(span_first(words, REFUSAL_MAX)));
        ev = MCP_BROKEN;
    }
    arena_free(&a);
    return ev;
}

enum mcp_event mcp_feed(struct mcp *m, struct span bytes)
{
    enum mcp_event first = MCP_NOTHING;
    while (bytes.n > 0 && m->state != MCP_NONE) {
        size_t at = span_index(bytes, '\n');
        if (dynbuf_add(&m->in, span_first(bytes, at)) != 0)
            return mcp_broken(m, "it wrote a line that is longer than a message may be");
        if (at == bytes.n)
            break;
        bytes = span_from(bytes, at + 1);
        struct span line = span_trim(dynbuf_span(&m->in));
        enum mcp_event ev = line.n > 0 ? heard(m, line) : MCP_NOTHING;
        dynbuf_reset(&m->in);
        if (first == MCP_NOTHING || ev == MCP_BROKEN)
            first = ev;
    }
    return first;
}

enum mcp_event mcp_late(struct mcp *m)
{
    if (m->state != MCP_DISCOVERING)
        return mcp_broken(m, "it did not answer in time");
    m->given_up = m->id;
    say_initialize(m);
    return MCP_NOTHING;
}

int mcp_call(struct mcp *m, const struct mcp_tool *tool, struct span args, struct span trace)
{
    if (m->state != MCP_AT_REST)
        return -1;
    dynbuf_reset(&m->args);
    dynbuf_reset(&m->notes);
    dynbuf_reset(&m->result);
    if (span_index(args, '\n') < args.n || dynbuf_add(&m->args, args) != 0)
        return -1;
    take_trace(m, args.n <= MCP_TRACED_MAX ? trace : SPAN_NONE);
    m->called = tool;
    m->rounds = 0;
    m->end = CALL_OPEN;
    m->state = MCP_CALLING;
    return say_call(m, NULL, NULL) && dynbuf_ok(&m->out) ? 0 : -1;
}
