#include "proxy/judge/tickets/elicit.h"

#include "common/json/json.h"

enum { TREE_MAX = 2 * 1024 * 1024 };

static struct span one_field(const struct wire_request *r, struct span name)
{
    struct span found = SPAN_NONE;
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->field[i].name, name)) {
            if (found.n)
                return SPAN_NONE;
            found = r->field[i].value;
        }
    return found;
}

/* A round is there for these, and its method stands in a field as well (SEP-2243). */
static bool may_ask(struct span method)
{
    return span_eq(method, SPAN("tools/call")) || span_eq(method, SPAN("prompts/get")) ||
           span_eq(method, SPAN("resources/read"));
}

static bool is_coded(const struct wire_request *r)
{
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->field[i].name, SPAN("content-encoding")))
            return true;
    return false;
}

static bool is_call(const struct wire_request *r, const struct json *j, struct span method)
{
    const struct json *id = json_get(j, SPAN("id"));
    return j != NULL && span_eq(json_text(j, SPAN("jsonrpc")), SPAN("2.0")) &&
           span_eq(json_text(j, SPAN("method")), method) && id != NULL &&
           (id->type == JSON_STRING || id->type == JSON_NUMBER);
}

static bool is_object(const struct json *j)
{
    return j != NULL && j->type == JSON_OBJECT;
}

/* An empty "elicitation" is one that shows forms, as it was before there were others. */
static enum elicit_by what_it_can(const struct json *params)
{
    const struct json *meta = json_get(params, SPAN("_meta"));
    const struct json *can =
        json_get(json_get(meta, SPAN("io.modelcontextprotocol/clientCapabilities")), SPAN("elicitation"));
    if (!is_object(can))
        return ELICIT_NO;
    if (is_object(json_get(can, SPAN("url"))))
        return ELICIT_URL;
    return can->count == 0 || is_object(json_get(can, SPAN("form"))) ? ELICIT_FORM : ELICIT_NO;
}

/* Who only closed what was shown said neither: nothing is taken back, and nothing is asked again by itself. */
static void what_it_says(const struct json *params, struct elicit *out)
{
    struct span action =
        json_text(json_get(json_get(params, SPAN("inputResponses")), SPAN("countersign")), SPAN("action"));
    out->declined = span_eq(action, SPAN("decline"));
    out->by = out->declined || span_eq(action, SPAN("cancel")) ? ELICIT_NO : ELICIT_AGAIN;
}

static void without_round(struct jsonw *w, const struct json *params)
{
    jsonw_object(w);
    for (const struct json *at = params->child; at != NULL; at = at->next)
        if (!span_eq(at->key, SPAN("inputResponses")) && !span_eq(at->key, SPAN("requestState"))) {
            jsonw_name(w, at->key);
            jsonw_tree(w, at);
        }
    jsonw_end_object(w);
}

/* The call as it was first made, but for its id: the server never hears of what it did not ask. */
static int take_off(const struct json *j, struct arena *a, struct span *out)
{
    struct dynbuf b;
    struct jsonw w;
    int rc = -1;
    dynbuf_init(&b, 6 * ELICIT_BODY_MAX); /* of each byte at most an escape */
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    for (const struct json *at = j->child; at != NULL; at = at->next) {
        jsonw_name(&w, at->key);
        if (span_eq(at->key, SPAN("params")))
            without_round(&w, at);
        else
            jsonw_tree(&w, at);
    }
    jsonw_end_object(&w);
    if (!dynbuf_ok(&b))
        goto out;
    *out = arena_copy(a, dynbuf_span(&b));
    rc = out->n == b.n ? 0 : -1;
out:
    dynbuf_free(&b);
    return rc;
}

int elicit_read(const struct wire_request *r, struct span body, struct arena *a, struct elicit *out)
{
    struct span method = one_field(r, SPAN("mcp-method"));
    struct arena own;
    int rc = 0;
    *out = (struct elicit){.by = ELICIT_NO};
    if (!span_eq(r->method, SPAN("POST")) || !may_ask(method) || is_coded(r) || body.n == 0 ||
        body.n > ELICIT_BODY_MAX)
        return 0;
    arena_init(&own, TREE_MAX);
    const struct json *j = json_parse(body, &own), *params = json_get(j, SPAN("params"));
    if (!is_call(r, j, method) || !is_object(params))
        goto out;
    const struct json *state = json_get(params, SPAN("requestState"));
    out->own = state != NULL && state->type == JSON_STRING && span_starts(state->text, SPAN(ELICIT_STATE));
    if (out->own) {
        what_it_says(params, out);
        rc = take_off(j, a, &out->body);
    } else if (state == NULL && body.n <= ELICIT_BODY_MAX / 2 && json_get(params, SPAN("inputResponses")) == NULL) {
        out->by =
            what_it_can(params); /* in the middle of a round of the server's own it would lose that one's state */
    }
out:
    arena_free(&own);
    return rc;
}
