#include "broker/mcp/http.h"

#include <stdio.h>

#include "broker/mcp/mcp_in.h"

enum { FIELDS_ROOM = 256 * 1024, TREE_MAX = 16 * MCP_LINE_MAX, REFUSAL_MAX = 16 * 1024 };

static int on_event(void *ctx, const struct api_event *e);

void mcp_http_begin(struct mcp_http *h, struct mcp *m)
{
    *h = (struct mcp_http){.m = m};
    m->http = true;
    arena_init(&h->arena, FIELDS_ROOM);
    dynbuf_init(&h->text, MCP_LINE_MAX);
    sse_init_max(&h->sse, MCP_LINE_MAX, on_event, h);
}

void mcp_http_free(struct mcp_http *h)
{
    arena_free(&h->arena);
    dynbuf_free(&h->text);
    sse_free(&h->sse);
}

/* --- what is sent ---------------------------------------------------------------------------- */

static bool put(struct mcp_request *r, struct span name, struct span value)
{
    bool ok = r->n < MCP_FIELDS_MAX && name.p != NULL && value.p != NULL;
    if (ok)
        r->field[r->n++] = (struct http_field){name, value};
    return ok;
}

/* Is it as it is in a field, or in base64? */
static bool is_plain(struct span s)
{
    bool plain = s.n == 0 || (s.p[0] != ' ' && s.p[s.n - 1] != ' ');
    for (size_t i = 0; i < s.n; i++)
        plain &= s.p[i] >= ' ' && s.p[i] <= '~';
    return plain && !(span_starts(s, SPAN("=?base64?")) && span_ends(s, SPAN("?=")));
}

static struct span encoded(struct arena *a, struct span s)
{
    static const char before[] = "=?base64?", after[] = "?=";
    if (is_plain(s))
        return s.n > 0 ? s : SPAN("");
    char *text = arena_alloc(a, 4 * (s.n / 3 + 1) + sizeof(before) + sizeof(after));
    if (text == NULL)
        return SPAN_NONE;
    size_t n = sizeof(before) - 1;
    memcpy(text, before, n);
    n += base64_encode(s, text + n);
    memcpy(text + n, after, sizeof(after) - 1);
    return span_of(text, n + sizeof(after) - 1);
}

struct putting {
    struct mcp_http *h;
    struct mcp_request *r;
    const struct json *args;
};

/* What has no value, or one of another kind than the tool says, stands in none. */
static bool put_param(void *ctx, const struct mcp_param *p)
{
    struct putting *to = ctx;
    struct arena *a = &to->h->arena;
    const struct json *v = to->args;
    for (size_t i = 0; i < p->depth; i++)
        v = json_get(v, p->path[i]);
    if (v == NULL || (v->type != JSON_STRING && v->type != JSON_NUMBER && v->type != JSON_BOOL))
        return true;
    struct span is = v->type == JSON_BOOL ? (v->truth ? SPAN("true") : SPAN("false")) : v->text;
    struct span value = is.n <= MCP_PARAM_MAX ? encoded(a, is) : SPAN_NONE;
    return value.n <= MCP_PARAM_MAX && put(to->r, arena_printf(a, "Mcp-Param-%.*s", SPAN_FMT(p->header)), value);
}

static bool put_called(struct mcp_http *h, struct mcp_request *r, const struct json *message, struct arena *a)
{
    const struct json *params = json_get(message, SPAN("params"));
    struct span name = json_text(params, SPAN("name"));
    struct putting to = {h, r, json_get(params, SPAN("arguments"))};
    return put(r, SPAN("Mcp-Name"), arena_copy(&h->arena, name)) && h->m->called != NULL &&
           mcp_params(json_parse(h->m->called->schema, a), put_param, &to);
}

static bool put_fields(struct mcp_http *h, struct mcp_request *r, const struct json *message, struct arena *a)
{
    struct span method = json_text(message, SPAN("method"));
    bool modern = h->m->modern || span_eq(method, SPAN("server/discover"));
    bool ok =
        put(r, SPAN("Accept"), r->get ? SPAN("text/event-stream") : SPAN("application/json, text/event-stream"));
    if (modern)
        ok &= put(r, SPAN("MCP-Protocol-Version"), MCP_MODERN);
    else if (h->m->version[0] != '\0')
        ok &= put(r, SPAN("MCP-Protocol-Version"), span_str(h->m->version));
    if (!modern && h->session[0] != '\0')
        ok &= put(r, SPAN("Mcp-Session-Id"), span_str(h->session));
    if (r->get)
        return ok && put(r, SPAN("Last-Event-ID"), span_str(h->last));
    ok &= put(r, SPAN("Content-Type"), SPAN("application/json"));
    if (modern && method.n > 0)
        ok &= put(r, SPAN("Mcp-Method"), arena_copy(&h->arena, method));
    if (modern && span_eq(method, SPAN("tools/call")))
        ok &= put_called(h, r, message, a);
    return ok;
}

/* What cannot be sent in fields was not done. */
static int not_sent(struct mcp_http *h, struct span line, enum mcp_event *ev)
{
    struct mcp *m = h->m;
    dynbuf_drop(&m->out, line.n + 1);
    if (m->state != MCP_CALLING) {
        *ev = mcp_broken(m, "what it is to be told cannot be sent over HTTP");
        return -1;
    }
    end_call(m, CALL_ERROR, SPAN("nothing was done: an argument is longer than a header field may be"));
    m->awaits = false;
    m->state = MCP_AT_REST;
    *ev = MCP_ANSWERED;
    return -1;
}

int mcp_http_next(struct mcp_http *h, struct mcp_request *r, enum mcp_event *ev)
{
    struct arena a;
    struct span line = span_first(dynbuf_span(&h->m->out), span_index(dynbuf_span(&h->m->out), '\n'));
    int rc = 0;
    *r = (struct mcp_request){.get = h->again};
    *ev = MCP_NOTHING;
    arena_free(&h->arena);
    arena_init(&h->arena, FIELDS_ROOM);
    arena_init(&a, TREE_MAX);
    if (h->again) {
        rc = put_fields(h, r, NULL, &a) ? 1 : 0;
    } else if (line.n > 0 && !h->aside && h->m->state != MCP_NONE) {
        const struct json *message = json_parse(line, &a);
        r->aside = json_get(message, SPAN("method")) == NULL || json_get(message, SPAN("id")) == NULL;
        r->body = line;
        h->taken = line.n + 1;
        if (!r->aside && h->id != 0)
            rc = 0; /* after the one that is awaited */
        else if (message == NULL || !put_fields(h, r, message, &a))
            rc = not_sent(h, line, ev);
        else
            rc = 1;
        if (rc == 1 && !r->aside)
            h->begins = span_eq(json_text(message, SPAN("method")), SPAN("initialize"));
    }
    arena_free(&a);
    return rc;
}

void mcp_http_sent(struct mcp_http *h, const struct mcp_request *r)
{
    if (r->get) {
        h->again = false;
        return;
    }
    dynbuf_drop(&h->m->out, h->taken);
    if (r->aside) {
        h->aside = true;
        return;
    }
    h->id = h->m->id;
    h->returns = 0;
    h->last[0] = '\0';
    h->sse.retry_ms = 0;
}

/* --- what comes ------------------------------------------------------------------------------- */

static bool waits(const struct mcp_http *h)
{
    return h->id != 0 && h->m->awaits && h->m->id == h->id && h->m->state != MCP_NONE;
}

static void came(struct mcp_http *h, enum mcp_event ev)
{
    if (h->came == MCP_NOTHING || ev == MCP_BROKEN)
        h->came = ev;
}

static enum mcp_event take_came(struct mcp_http *h)
{
    enum mcp_event ev = h->came;
    h->came = MCP_NOTHING;
    return ev;
}

static bool is_visible(struct span s)
{
    bool ok = s.n > 0 && s.n <= MCP_SESSION_MAX;
    for (size_t i = 0; i < s.n; i++)
        ok &= s.p[i] > ' ' && s.p[i] <= '~';
    return ok;
}

static int on_event(void *ctx, const struct api_event *e)
{
    struct mcp_http *h = ctx;
    if (is_visible(e->id) && e->id.n <= MCP_EVENT_ID_MAX)
        (void)snprintf(h->last, sizeof(h->last), "%.*s", SPAN_FMT(e->id));
    if (e->data.n > 0 && span_eq(e->name, SPAN("message")))
        came(h, mcp_take(h->m, e->data));
    return 0;
}

/* The session of an answer that opens one. */
static bool take_session(struct mcp_http *h, struct span session)
{
    if (!h->begins || session.n == 0)
        return true;
    if (!is_visible(session))
        return false;
    (void)snprintf(h->session, sizeof(h->session), "%.*s", SPAN_FMT(session));
    return true;
}

enum mcp_event mcp_http_head(struct mcp_http *h, const struct mcp_answer *a)
{
    struct span type = span_trim(span_first(a->type, span_index(a->type, ';')));
    h->status = a->status;
    uint64_t retry_ms = h->sse.retry_ms;
    h->cut = false;
    dynbuf_free(&h->text);
    sse_free(&h->sse);
    sse_init_max(&h->sse, MCP_LINE_MAX, on_event, h);
    h->sse.retry_ms = retry_ms;
    if (a->status < 200 || a->status > 299)
        h->body = MCP_BODY_REFUSAL;
    else if (!take_session(h, a->session))
        return mcp_broken(h->m, "what it calls the session is longer than is kept, or is not visible characters");
    else if (a->status == 200 && span_ieq(type, SPAN("application/json")) && h->returns == 0)
        h->body = MCP_BODY_MESSAGE;
    else if (a->status == 200 && span_ieq(type, SPAN("text/event-stream")))
        h->body = MCP_BODY_EVENTS;
    else
        return mcp_broken(h->m, "its answer is neither a message nor a stream of them");
    return MCP_NOTHING;
}

enum mcp_event mcp_http_data(struct mcp_http *h, struct span bytes)
{
    if (h->body == MCP_BODY_REFUSAL && h->text.n < REFUSAL_MAX)
        (void)dynbuf_add(&h->text, span_first(bytes, REFUSAL_MAX - h->text.n));
    else if (h->body == MCP_BODY_MESSAGE && dynbuf_add(&h->text, bytes) != 0)
        return mcp_broken(h->m, "it wrote more than a message may be");
    else if (h->body == MCP_BODY_EVENTS && sse_feed(&h->sse, bytes) != 0)
        return mcp_broken(h->m, "it wrote an event that is longer than a message may be");
    return take_came(h);
}

/* It is over, and had no answer in it. */
static enum mcp_event cut_off(struct mcp_http *h, const char *words)
{
    if (!h->m->modern && h->body == MCP_BODY_EVENTS && h->last[0] != '\0' && h->returns < MCP_RETURNS_MAX) {
        h->returns++;
        h->cut = true;
        return MCP_NOTHING;
    }
    return mcp_broken(h->m, words != NULL ? words : "what it said has no answer in it");
}

enum mcp_event mcp_http_end(struct mcp_http *h, bool whole, const char *words)
{
    struct span text = dynbuf_span(&h->text);
    enum mcp_event ev = MCP_NOTHING;
    if (!waits(h)) {
        mcp_http_drop(h);
        return MCP_NOTHING;
    }
    if (h->body == MCP_BODY_REFUSAL && h->returns > 0)
        ev = mcp_broken(h->m, "its answer was cut off, and it does not go on with it");
    else if (h->body == MCP_BODY_REFUSAL && h->session[0] != '\0' && h->status == 404)
        ev = mcp_broken(h->m, "it has ended the session");
    else if (h->body == MCP_BODY_REFUSAL)
        ev = mcp_refused(h->m, h->status, text);
    else if (h->body == MCP_BODY_MESSAGE && whole)
        ev = mcp_take(h->m, text);
    if (waits(h))
        return cut_off(h, words);
    mcp_http_drop(h);
    return ev;
}

enum mcp_event mcp_http_aside(struct mcp_http *h, unsigned status)
{
    h->aside = false;
    if (status >= 200 && status <= 299)
        return MCP_NOTHING;
    return mcp_broken(h->m, "it does not take what it is told");
}

bool mcp_http_rests(const struct mcp_http *h)
{
    return !waits(h);
}

uint64_t mcp_http_wait(const struct mcp_http *h)
{
    uint64_t ms = h->sse.retry_ms > 0 ? h->sse.retry_ms : MCP_RETRY_MS;
    if (!h->cut)
        return 0;
    return ms < MCP_RETRY_MAX_MS ? ms : MCP_RETRY_MAX_MS;
}

void mcp_http_again(struct mcp_http *h)
{
    h->cut = false;
    h->again = true;
}

void mcp_http_drop(struct mcp_http *h)
{
    h->id = 0;
    h->body = MCP_BODY_NONE;
    h->begins = h->cut = h->again = false;
}
