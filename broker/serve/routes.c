#include "broker/serve/serve.h"

static const struct route {
    const char *method, *path; /* a `*` is one segment, x->arg */
    unsigned needs;
    call_fn *fn;
} routes[] = {
    {"POST", "/chat", MAY_CHAT, talk_chat},
    {"GET", "/stream/*", MAY_READ, stream_open},
    {"GET", "/turns/*", MAY_READ, talk_turn},
    {"POST", "/turns/*/cancel", MAY_CHAT, talk_cancel},
    {"GET", "/conversations", MAY_READ, talk_list},
    {"GET", "/conversations/lately", MAY_READ, view_lately},
    {"GET", "/conversations/*", MAY_READ, view_one},
    {"GET", "/conversations/*/history", MAY_READ, talk_history},
    {"POST", "/conversations/*/fork", MAY_CHAT, talk_fork},
    {"GET", "/turns/*/recording", MAY_READ, recorded_turn},
    {"POST", "/turns/*/replay", MAY_CHAT, talk_replay},
    {"POST", "/turns/*/live", MAY_CHAT, live_turn},
    {"GET", "/conversations/*/turns", MAY_READ, recorded_turns},
    {"GET", "/usage", MAY_READ, usage_list},
    {"GET", "/health", MAY_READ, health_tell},
};

static bool path_is(struct span path, const char *pattern, struct span *arg)
{
    struct span want = span_str(pattern), a, b;
    *arg = SPAN_NONE;
    for (;;) {
        bool more = span_cut(path, '/', &a, &path), wanted = span_cut(want, '/', &b, &want);
        if (span_eq(b, SPAN("*")) && a.n > 0)
            *arg = a;
        else if (!span_eq(a, b))
            return false;
        if (more != wanted)
            return false;
        if (!more)
            return true;
    }
}

bool route_find(struct call *x)
{
    bool known = false;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        struct span arg;
        if (!path_is(x->head.path, routes[i].path, &arg))
            continue;
        known = true;
        if (!span_eq(x->head.method, span_str(routes[i].method)))
            continue;
        x->arg = arg;
        x->fn = routes[i].fn;
        x->needs = routes[i].needs;
        return true;
    }
    reply_no(x, known ? 405 : 404, known ? "this path takes another method" : "there is nothing at this path");
    return false;
}

bool call_query(const struct call *x, struct span name, struct span *out)
{
    struct span rest = x->head.query, pair, key, value;
    bool more = true;
    *out = SPAN_NONE;
    while (more && rest.n > 0) {
        more = span_cut(rest, '&', &pair, &rest);
        (void)span_cut(pair, '=', &key, &value);
        if (span_eq(key, name))
            *out = value;
    }
    return out->n > 0;
}

unsigned route_scopes(struct span note, struct arena *a)
{
    const struct json *list = json_get(json_parse(note, a), SPAN("scopes"));
    unsigned may = 0;
    for (const struct json *s = list != NULL ? list->child : NULL; s != NULL; s = s->next)
        may |= span_eq(s->text, SPAN("chat")) ? MAY_CHAT : span_eq(s->text, SPAN("read")) ? MAY_READ : 0;
    return may;
}
