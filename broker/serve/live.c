/* Turns that are asked once more: with the results that their calls had, or live, by one model and with real tools.
 */
#include "broker/serve/serve.h"

enum { NAME_SHOWN = 64, WALL_MOST_MS = 7 * 86400 * 1000 };

void talk_replay(struct call *x)
{
    struct bstore_chatted out;
    struct id id;
    if (!talk_id(x, &id))
        return;
    enum bstore_result r = bstore_replay(call_store(x), call_whose(x), &id, &out);
    if (r == BS_OK)
        talk_accepted(x, &out);
    else if (r == BS_SPENT)
        usage_spent(x, call_whose(x));
    else if (r == BS_CONFLICT)
        reply_no(x, 409, "this turn has not ended, was cancelled before it began, or is a replay itself");
    else
        talk_unable(x, r);
}

/* --- live --------------------------------------------------------------------------------- */

/* A whole number above 0, where it is there. -1, answered. */
static int bound(struct call *x, const struct json *j, const char *key, uint64_t most, uint64_t *out)
{
    *out = 0;
    if (json_get(j, span_str(key)) == NULL)
        return 0;
    if (json_u64(j, span_str(key), out) == 0 && *out > 0 && *out <= most)
        return 0;
    reply_no(x, 400, "`%s` is a whole number from 1 to %llu", key, (unsigned long long)most);
    return -1;
}

bool live_has_model(const struct serve *s, struct span name)
{
    for (size_t i = 0; i < s->models; i++)
        if (name.n > 0 && span_eq(s->model[i], name))
            return true;
    return false;
}

static bool has_model(struct call *x, struct span name)
{
    if (live_has_model(x->serve, name))
        return true;
    reply_no(x, 400, "`model` is the name of one in the table of models, and `%.*s` is none",
             SPAN_FMT(span_first(name, NAME_SHOWN)));
    return false;
}

static bool read_live(struct call *x, struct bstore_live *in)
{
    static const char *const names[] = {"model", "key", "cost_micro", "wall_ms", NULL};
    const struct json *j = json_parse(dynbuf_span(&x->body), &x->arena);
    if (j == NULL || j->type != JSON_OBJECT) {
        reply_no(x, 400, "a live replay is a JSON object with `model`, and maybe `key`, `cost_micro` and `wall_ms`");
        return false;
    }
    const struct json *key = json_get(j, SPAN("key"));
    struct span request = arena_printf(&x->arena, "%.*s %.*s", SPAN_FMT(x->arg), SPAN_FMT(dynbuf_span(&x->body)));
    if (request.p == NULL || (key != NULL && (key->type != JSON_STRING || key->text.n == 0))) {
        if (request.p == NULL)
            reply_no(x, 503, "there is no memory for it");
        else
            reply_no(x, 400, "`key` is a text that is not empty, or not there");
        return false;
    }
    in->model = json_text(j, SPAN("model"));
    in->key = json_text(j, SPAN("key"));
    /* A key is for this turn's request alone. */
    digest_of(request, &in->request);
    return talk_known(x, j, "", names) && has_model(x, in->model) &&
           bound(x, j, "cost_micro", INT64_MAX >> 11, &in->cost_most) == 0 &&
           bound(x, j, "wall_ms", WALL_MOST_MS, &in->wall_ms) == 0;
}

/* It costs money, and what its tools do is done: the operator's alone, as are the recordings of all tenants. */
void live_turn(struct call *x)
{
    struct bstore_live in = {.tenant = call_whose(x)};
    struct bstore_chatted out;
    if (!x->own) {
        reply_no(x, 403, "a live replay is for the operator of this machine: `countersign replay run --mode live`");
        return;
    }
    if (!talk_id(x, &in.turn) || !read_live(x, &in))
        return;
    enum bstore_result r = bstore_live(call_store(x), &in, &out);
    if (r == BS_OK || r == BS_AGAIN)
        talk_accepted(x, &out);
    else if (r == BS_LOST)
        reply_no(x, 409, "it went on with files in its sandbox, or may have, of which no checkpoint is kept");
    else if (r == BS_PRIVATE)
        reply_no(x, 409, "its conversation is private, and `%.*s` is not in its list of models: no other is asked",
                 SPAN_FMT(span_first(in.model, NAME_SHOWN)));
    else if (r == BS_CONFLICT)
        reply_no(x, 409,
                 "it has not ended, was cancelled before it began, or is a replay itself; or the key came with "
                 "another request before");
    else if (r == BS_SPENT)
        usage_spent(x, in.tenant);
    else
        talk_unable(x, r);
}
