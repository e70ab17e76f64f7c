/* Arguments that stand in header fields, too: `x-mcp-header` of a tool's schema, as the revision 2026-07-28 has it.
 * One that is not as it may be makes a tool unusable over HTTP, since who reads the field on the way and who reads
 * the body would not read the same. */
#include "broker/mcp/mcp_in.h"

enum { PARAMS_MAX = 32, DEPTH_MAX = 32 };

struct walk {
    struct mcp_param at;
    struct span seen[PARAMS_MAX];
    size_t n;
    mcp_param_fn *fn;
    void *ctx;
};

/* A token of RFC 9110. */
static bool is_token(struct span s)
{
    return s.n > 0 && span_is_of(s, SPAN("!#$%&'*+-.^_`|~"));
}

/* fits: there is nothing but properties above it, and it is none of them all itself. */
static bool mark(struct walk *w, const struct json *schema, const struct json *name, bool fits)
{
    struct span type = json_text(schema, SPAN("type"));
    bool plain = span_eq(type, SPAN("string")) || span_eq(type, SPAN("integer")) || span_eq(type, SPAN("boolean"));
    if (!fits || !plain || name->type != JSON_STRING || !is_token(name->text) || w->n == PARAMS_MAX)
        return false;
    for (size_t i = 0; i < w->n; i++)
        if (span_ieq(w->seen[i], name->text))
            return false;
    w->seen[w->n++] = name->text;
    w->at.header = name->text;
    return w->fn == NULL || w->fn(w->ctx, &w->at);
}

static bool walk(struct walk *w, const struct json *schema, bool fits, unsigned depth);

static bool walk_properties(struct walk *w, const struct json *list, bool fits, unsigned depth)
{
    bool ok = true;
    for (const struct json *p = list->child; p != NULL && ok; p = p->next) {
        bool room = w->at.depth < MCP_PARAM_DEPTH;
        if (room)
            w->at.path[w->at.depth++] = p->key;
        ok = walk(w, p, fits && room, depth);
        w->at.depth -= room;
    }
    return ok;
}

static bool walk(struct walk *w, const struct json *schema, bool fits, unsigned depth)
{
    bool ok = depth < DEPTH_MAX;
    for (const struct json *v = schema->child; v != NULL && ok; v = v->next) {
        bool object = schema->type == JSON_OBJECT;
        if (object && span_eq(v->key, SPAN("x-mcp-header")))
            ok = mark(w, schema, v, fits && w->at.depth > 0);
        else if (object && v->type == JSON_OBJECT && span_eq(v->key, SPAN("properties")))
            ok = walk_properties(w, v, fits, depth + 1);
        else if (v->type == JSON_OBJECT || v->type == JSON_ARRAY)
            ok = walk(w, v, false, depth + 1);
    }
    return ok;
}

bool mcp_params(const struct json *schema, mcp_param_fn *fn, void *ctx)
{
    struct walk w = {.fn = fn, .ctx = ctx};
    return schema != NULL && walk(&w, schema, true, 0);
}

bool mcp_params_ok(const struct json *schema)
{
    return mcp_params(schema, NULL, NULL);
}
