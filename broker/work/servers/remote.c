#include "broker/work/servers/remote.h"

#include <stdlib.h>

#include "common/net/loop.h"

enum { URL_ROOM = 16 * 1024 };

struct remote {
    struct work *w;
    struct mcp *m;
    struct mcp_http http;
    struct wire *wire, *aside; /* whose answer is awaited; of which nothing comes but a status */
    struct timer *timer;
    struct arena arena;
    struct span url, token, lease;
    remote_fn *fn;
    void *arg;
};

static enum mcp_event pump(struct remote *r);

void remote_free(struct remote **at)
{
    struct remote *r = *at;
    if (r == NULL)
        return;
    *at = NULL;
    wire_free(&r->wire);
    wire_free(&r->aside);
    timer_free(&r->timer);
    mcp_http_free(&r->http);
    arena_wipe(&r->arena);
    free(r);
}

/* What came, and what goes on because of it; nothing of r is looked at behind this. */
static void came(struct remote *r, enum mcp_event ev)
{
    if (ev != MCP_BROKEN) {
        enum mcp_event next = pump(r);
        ev = next == MCP_BROKEN || ev == MCP_NOTHING ? next : ev;
    }
    if (ev != MCP_NOTHING)
        r->fn(r->arg, ev);
}

static void heard(void *arg, enum wire_event event, struct span data)
{
    struct remote *r = arg;
    enum mcp_event ev = MCP_NOTHING;
    if (event == WIRE_HEAD) {
        const struct http_head *head = wire_head(r->wire);
        const struct http_field *type = http_find(head, SPAN("Content-Type"));
        const struct http_field *session = http_find(head, SPAN("Mcp-Session-Id"));
        ev = mcp_http_head(&r->http, &(struct mcp_answer){.status = head->status,
                                                          .type = type != NULL ? type->value : SPAN_NONE,
                                                          .session = session != NULL ? session->value : SPAN_NONE});
    } else if (event == WIRE_DATA) {
        ev = mcp_http_data(&r->http, data);
    } else {
        ev = mcp_http_end(&r->http, event == WIRE_END, event == WIRE_END ? NULL : wire_why(r->wire));
        wire_free(&r->wire);
    }
    came(r, ev);
}

static void heard_aside(void *arg, enum wire_event event, struct span data)
{
    struct remote *r = arg;
    if (event == WIRE_DATA)
        return; /* it is bounded by who waits for it */
    enum mcp_event ev = mcp_http_aside(&r->http, event == WIRE_HEAD ? wire_head(r->aside)->status : 0);
    wire_free(&r->aside);
    came(r, ev);
}

static void again(void *arg)
{
    struct remote *r = arg;
    mcp_http_again(&r->http);
    came(r, MCP_NOTHING);
}

static enum mcp_event send(struct remote *r, const struct mcp_request *q)
{
    const char *why = NULL;
    const struct wire_ask ask = {.url = r->url,
                                 .token = r->token,
                                 .lease = r->lease,
                                 .field = q->field,
                                 .fields = q->n,
                                 .get = q->get,
                                 .body = q->body};
    struct wire **to = q->aside ? &r->aside : &r->wire;
    *to = wire_begin(r->w, &ask, q->aside ? heard_aside : heard, r, &why);
    if (*to == NULL)
        return mcp_broken(r->m, why);
    mcp_http_sent(&r->http, q);
    return MCP_NOTHING;
}

/* All that can be sent now. */
static enum mcp_event pump(struct remote *r)
{
    struct mcp_request *q = malloc(sizeof(*q));
    enum mcp_event ev = MCP_NOTHING;
    if (q == NULL)
        return mcp_broken(r->m, "no memory for a request");
    if (mcp_http_rests(&r->http)) {
        wire_free(&r->wire);
        timer_clear(r->timer);
        mcp_http_drop(&r->http);
    }
    if (mcp_http_wait(&r->http) > 0)
        timer_set(r->timer, mcp_http_wait(&r->http));
    while (ev == MCP_NOTHING && mcp_http_next(&r->http, q, &ev) > 0)
        ev = send(r, q);
    free(q);
    return ev;
}

struct remote *remote_begin(struct work *w, struct mcp *m, const struct wire_ask *ask, remote_fn *fn, void *arg)
{
    struct remote *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    *r = (struct remote){.w = w, .m = m, .fn = fn, .arg = arg};
    arena_init(&r->arena, URL_ROOM);
    mcp_http_begin(&r->http, m);
    r->url = arena_copy(&r->arena, ask->url);
    r->token = arena_copy(&r->arena, ask->token);
    r->lease = arena_copy(&r->arena, ask->lease);
    r->timer = timer_new(w->loop, again, r);
    if (r->url.p == NULL || r->token.p == NULL || (ask->lease.n > 0 && r->lease.p == NULL) || r->timer == NULL)
        remote_free(&r);
    return r;
}

void remote_tell(struct remote *r)
{
    came(r, MCP_NOTHING);
}
