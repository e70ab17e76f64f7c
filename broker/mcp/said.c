/* What we say to an MCP server, one line each. */
#include "broker/mcp/mcp_in.h"

#define ROOT "file:///workspace"
enum { NOTE_MAX = 512 };

static void begin(struct mcp *m, struct jsonw *w)
{
    jsonw_begin(w, &m->out);
    jsonw_object(w);
    jsonw_kv(w, "jsonrpc", SPAN("2.0"));
}

static void end(struct mcp *m, struct jsonw *w)
{
    jsonw_end_object(w);
    (void)dynbuf_add_byte(&m->out, '\n');
}

static void put_capabilities(struct jsonw *w)
{
    jsonw_kv_object(w, "roots");
    jsonw_end_object(w);
    jsonw_kv_object(w, "elicitation");
    jsonw_end_object(w);
}

static void put_client(struct jsonw *w)
{
    jsonw_kv(w, "name", SPAN("countersign"));
    jsonw_kv(w, "version", SPAN("1"));
}

/* What stands beside a request: the modern era says with each who asks; whose part it is, both. */
static void put_meta(const struct mcp *m, struct jsonw *w, bool modern)
{
    if (!modern && m->trace[0] == '\0')
        return;
    jsonw_kv_object(w, "_meta");
    if (modern) {
        jsonw_kv(w, "io.modelcontextprotocol/protocolVersion", MCP_MODERN);
        jsonw_kv_object(w, "io.modelcontextprotocol/clientCapabilities");
        put_capabilities(w);
        jsonw_end_object(w);
        jsonw_kv_object(w, "io.modelcontextprotocol/clientInfo");
        put_client(w);
        jsonw_end_object(w);
    }
    if (m->trace[0] != '\0')
        jsonw_kv(w, "traceparent", span_str(m->trace));
    jsonw_end_object(w);
}

/* A request with the next id, open at its params. */
static void ask(struct mcp *m, struct jsonw *w, struct span method, bool modern)
{
    begin(m, w);
    jsonw_kv_u64(w, "id", ++m->id);
    jsonw_kv(w, "method", method);
    jsonw_kv_object(w, "params");
    put_meta(m, w, modern);
}

static void asked(struct mcp *m, struct jsonw *w)
{
    jsonw_end_object(w);
    end(m, w);
    m->requests = 0;
    m->awaits = true;
}

void say_discover(struct mcp *m)
{
    struct jsonw w;
    ask(m, &w, SPAN("server/discover"), true);
    asked(m, &w);
    m->state = MCP_DISCOVERING;
}

void say_initialize(struct mcp *m)
{
    struct jsonw w;
    ask(m, &w, SPAN("initialize"), false);
    jsonw_kv(&w, "protocolVersion", MCP_LEGACY);
    jsonw_kv_object(&w, "capabilities");
    put_capabilities(&w);
    jsonw_end_object(&w);
    jsonw_kv_object(&w, "clientInfo");
    put_client(&w);
    jsonw_end_object(&w);
    asked(m, &w);
    m->state = MCP_INITIALIZING;
}

void say_initialized(struct mcp *m)
{
    struct jsonw w;
    begin(m, &w);
    jsonw_kv(&w, "method", SPAN("notifications/initialized"));
    end(m, &w);
}

void say_list(struct mcp *m, struct span cursor)
{
    struct jsonw w;
    ask(m, &w, SPAN("tools/list"), m->modern);
    if (cursor.n > 0)
        jsonw_kv(&w, "cursor", cursor);
    asked(m, &w);
    m->state = MCP_LISTING;
}

static void put_roots(struct jsonw *w)
{
    jsonw_kv_array(w, "roots");
    jsonw_object(w);
    jsonw_kv(w, "uri", SPAN(ROOT));
    jsonw_kv(w, "name", SPAN("workspace"));
    jsonw_end_object(w);
    jsonw_end_array(w);
}

/* What is given to a request: its result's members. False: nothing is. What the person was to be asked is noted for
 * the model, who can ask it in its own words. */
static bool put_given(struct mcp *m, struct jsonw *w, struct span method, const struct json *params)
{
    if (span_eq(method, SPAN("roots/list"))) {
        put_roots(w);
        return true;
    }
    if (!span_eq(method, SPAN("elicitation/create")))
        return span_eq(method, SPAN("ping"));
    struct span message = json_text(params, SPAN("message"));
    (void)dynbuf_addf(&m->notes, "[It wanted to ask the person, and was declined: %.*s]\n",
                      SPAN_FMT(span_first(message, NOTE_MAX)));
    jsonw_kv(w, "action", SPAN("decline"));
    return true;
}

static bool is_given(struct span method)
{
    return span_eq(method, SPAN("roots/list")) || span_eq(method, SPAN("elicitation/create")) ||
           span_eq(method, SPAN("ping"));
}

void say_answer(struct mcp *m, const struct json *request)
{
    struct span method = json_text(request, SPAN("method"));
    struct jsonw w;
    bool given = is_given(method);
    begin(m, &w);
    jsonw_key(&w, "id");
    jsonw_tree(&w, json_get(request, SPAN("id")));
    jsonw_kv_object(&w, given ? "result" : "error");
    if (given) {
        (void)put_given(m, &w, method, json_get(request, SPAN("params")));
    } else {
        jsonw_key(&w, "code");
        jsonw_raw(&w, SPAN("-32601"));
        jsonw_kv(&w, "message", SPAN("Method not found"));
    }
    jsonw_end_object(&w);
    end(m, &w);
}

/* Of one of the things that a call is to be given. What the gateway asks itself (it holds the call, and has its own
 * ways to ask who may decide) is only closed: nobody said no, and the call that comes again waits for the decision.
 */
static void put_response(struct mcp *m, struct jsonw *w, const struct json *wanted)
{
    if (span_eq(wanted->key, SPAN("countersign")))
        jsonw_kv(w, "action", SPAN("cancel"));
    else
        (void)put_given(m, w, json_text(wanted, SPAN("method")), json_get(wanted, SPAN("params")));
}

bool say_call(struct mcp *m, const struct json *wanted, const struct json *state)
{
    struct jsonw w;
    for (const struct json *r = wanted != NULL ? wanted->child : NULL; r != NULL; r = r->next)
        if (!is_given(json_text(r, SPAN("method"))))
            return false;
    ask(m, &w, SPAN("tools/call"), m->modern);
    jsonw_kv(&w, "name", m->called->own);
    jsonw_kv_raw(&w, "arguments", dynbuf_span(&m->args));
    if (wanted != NULL)
        jsonw_kv_object(&w, "inputResponses");
    for (const struct json *r = wanted != NULL ? wanted->child : NULL; r != NULL; r = r->next) {
        jsonw_name(&w, r->key);
        jsonw_object(&w);
        put_response(m, &w, r);
        jsonw_end_object(&w);
    }
    if (wanted != NULL)
        jsonw_end_object(&w);
    if (state != NULL) {
        jsonw_key(&w, "requestState");
        jsonw_tree(&w, state);
    }
    asked(m, &w);
    return true;
}
