#include "broker/models/answer/answer_in.h"

#include <stdlib.h>

enum {
    KEPT_MAX = 4 * ANSWER_BYTES_MAX,
    EVENT_ARENA_MAX = 6 * ANSWER_EVENT_MAX, /* its strings, and JSON_NODES_MAX values */
    EXTRA_DEPTH = 32
};

const char *answer_stop_name(enum answer_stop s)
{
    static const char *const names[] = {"", "turn", "calls", "length", "refusal", "pause", "other"};
    return (size_t)s < sizeof(names) / sizeof(names[0]) ? names[s] : "";
}

void answer_fail(struct answer *a, enum fault_kind k, const char *words)
{
    if (a->result.end != ANSWER_OPEN)
        return;
    a->result.end = ANSWER_FAILED;
    fault_set(&a->result.fault, k, words);
}

void answer_fail_said(struct answer *a, const struct json *error)
{
    if (a->result.end != ANSWER_OPEN)
        return;
    a->result.end = ANSWER_FAILED;
    a->result.fault = (struct fault){0};
    fault_of_error(&a->result.fault, error);
}

/* ---- pieces ---- */

struct piece *piece_new(struct answer *a, enum block_kind kind, uint64_t key)
{
    size_t calls = 0;
    for (size_t i = 0; i < a->n; i++)
        calls += a->piece[i].kind == BLOCK_CALL;
    if (a->n == ANSWER_PIECES_MAX || (kind == BLOCK_CALL && calls == ANSWER_CALLS_MAX)) {
        answer_fail(a, FAULT_TOO_LARGE, "the answer has more blocks or calls than are taken of one");
        return NULL;
    }
    struct piece *p = &a->piece[a->n++];
    *p = (struct piece){.kind = kind, .key = key};
    dynbuf_init(&p->text, kind == BLOCK_CALL ? CALL_ARGS_MAX : MESSAGE_TEXT_MAX);
    return p;
}

struct piece *piece_of(struct answer *a, uint64_t key)
{
    for (size_t i = a->n; i > 0; i--)
        if (a->piece[i - 1].key == key)
            return &a->piece[i - 1];
    return NULL;
}

void piece_show(struct answer *a, const struct piece *p, enum delta_kind what, struct span text)
{
    struct answer_delta d = {what, (size_t)(p - a->piece), text};
    if (a->fn == NULL || what == DELTA_NONE || text.n == 0 || a->result.end != ANSWER_OPEN)
        return;
    a->result.shown = true;
    a->fn(a->ctx, &d);
}

/* Are so many bytes more within the bound? */
static bool fits(struct answer *a, size_t n)
{
    if (n > ANSWER_BYTES_MAX - a->bytes) {
        answer_fail(a, FAULT_TOO_LARGE, "the answer is larger than 8 MiB");
        return false;
    }
    a->bytes += n;
    return true;
}

void piece_add(struct answer *a, struct piece *p, enum delta_kind what, struct span text)
{
    bool call = p->kind == BLOCK_CALL;
    if (p->over || a->result.end != ANSWER_OPEN)
        return;
    if (call && text.n > CALL_ARGS_MAX - p->text.n) {
        p->over = true;
        a->bytes -= p->text.n;
        dynbuf_free(&p->text);
        return;
    }
    if (!call && text.n > MESSAGE_TEXT_MAX - p->text.n) {
        answer_fail(a, FAULT_TOO_LARGE, "a text of the answer is longer than 4 MiB");
        return;
    }
    if (!fits(a, text.n))
        return;
    if (dynbuf_add(&p->text, text) != 0)
        answer_fail(a, FAULT_TOO_LARGE, "there is no memory for the answer");
    else
        piece_show(a, p, what, text);
}

void call_add(struct answer *a, struct piece *p, struct span text)
{
    if (p->ended && text.n > 0)
        p->broken = "Nothing was run: this call went on after its end.";
    else
        piece_add(a, p, DELTA_ARGUMENTS, text);
}

void call_name(struct answer *a, struct piece *p, struct span name)
{
    if (p->name.n > 0 || name.n == 0)
        return;
    p->name = answer_keep_name(a, name);
    piece_show(a, p, DELTA_CALL, p->name);
}

struct span answer_keep(struct answer *a, struct span s)
{
    if (s.n == 0 || !fits(a, s.n))
        return SPAN_NONE;
    struct span kept = arena_copy(&a->kept, s);
    if (kept.n != s.n)
        answer_fail(a, FAULT_TOO_LARGE, "there is no memory for the answer");
    return kept;
}

struct span answer_keep_name(struct answer *a, struct span s)
{
    return answer_keep(a, span_first(s, ANSWER_ID_MAX));
}

/* ---- what JSON has ---- */

static bool deeper(const struct json *j, unsigned depth)
{
    for (const struct json *c = j->child; c != NULL; c = c->next)
        if (depth == 0 || deeper(c, depth - 1))
            return true;
    return false;
}

struct span answer_rest(struct answer *a, const struct json *object, const char *const *but, size_t max)
{
    struct dynbuf out;
    struct jsonw w;
    bool some = false, deep = false;
    struct span rest = SPAN_NONE;
    dynbuf_init(&out, max);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    for (const struct json *c = object ? object->child : NULL; c != NULL && !deep; c = c->next) {
        bool known = c->type == JSON_NULL;
        for (size_t i = 0; but[i] != NULL; i++)
            known |= span_eq(c->key, span_str(but[i]));
        deep = !known && deeper(c, EXTRA_DEPTH);
        if (known || deep)
            continue;
        jsonw_name(&w, c->key);
        jsonw_tree(&w, c);
        some = true;
    }
    jsonw_end_object(&w);
    if (some && !deep && dynbuf_ok(&out))
        rest = answer_keep(a, dynbuf_span(&out));
    dynbuf_free(&out);
    return rest;
}

void usage_take(struct answer *a, const struct json *from, const char *name, uint64_t *to)
{
    uint64_t v;
    if (json_u64(from, span_str(name), &v) != 0)
        return;
    *to = v;
    a->result.usage.known = true;
}

/* ---- the stream ---- */

static int on_event(void *ctx, const struct api_event *ev)
{
    struct answer *a = ctx;
    if (ev->data.n == 0)
        return 0;
    if (a->protocol == MODEL_CHAT && span_eq(span_trim(ev->data), SPAN("[DONE]"))) {
        answer_complete(a);
        return a->result.end != ANSWER_OPEN;
    }
    const struct json *j = json_parse(ev->data, &a->event);
    struct span type = json_text(j, SPAN("type"));
    if (j == NULL || j->type != JSON_OBJECT)
        answer_fail(a, FAULT_BROKEN, "an event of the answer is no JSON object");
    else if (a->protocol == MODEL_ANTHROPIC)
        anthropic_event(a, type.n ? type : ev->name, j);
    else if (a->protocol == MODEL_CHAT)
        chat_event(a, ev->name, j);
    else
        responses_event(a, type.n ? type : ev->name, j);
    arena_free(&a->event);
    return a->result.end != ANSWER_OPEN;
}

static bool prefix_ok(struct span prefix)
{
    return prefix.n <= ANSWER_PREFIX_MAX && call_id_ok(prefix);
}

struct answer *answer_begin(enum model_protocol p, const struct model_origin *origin, struct span prefix,
                            answer_delta_fn *fn, void *ctx)
{
    if (p == MODEL_NONE || !prefix_ok(prefix) || !model_origin_ok(origin))
        return NULL;
    struct answer *a = calloc(1, sizeof(*a));
    if (a == NULL)
        return NULL;
    a->protocol = p;
    a->fn = fn;
    a->ctx = ctx;
    arena_init(&a->kept, KEPT_MAX);
    arena_init(&a->event, EVENT_ARENA_MAX);
    sse_init_max(&a->sse, ANSWER_EVENT_MAX, on_event, a);
    a->piece = calloc(ANSWER_PIECES_MAX, sizeof(*a->piece));
    a->prefix = arena_copy(&a->kept, prefix);
    a->origin = (struct model_origin){arena_copy(&a->kept, origin->provider), arena_copy(&a->kept, origin->model),
                                      arena_copy(&a->kept, origin->endpoint)};
    if (a->piece == NULL || !prefix_ok(a->prefix) || !model_origin_ok(&a->origin))
        answer_free(&a);
    return a;
}

bool answer_feed(struct answer *a, struct span bytes)
{
    if (a->result.end == ANSWER_OPEN && sse_feed(&a->sse, bytes) < 0)
        answer_fail(a, FAULT_TOO_LARGE, "an event of the answer is larger than 4 MiB");
    return a->result.end == ANSWER_OPEN;
}

const struct answer_result *answer_finish(struct answer *a)
{
    answer_fail(a, FAULT_CUT, a->begun ? "the answer ended before its end" : "there was no answer");
    return &a->result;
}

void answer_free(struct answer **ap)
{
    struct answer *a = *ap;
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->n; i++)
        dynbuf_free(&a->piece[i].text);
    free(a->piece);
    sse_free(&a->sse);
    arena_free(&a->event);
    arena_free(&a->kept);
    free(a);
    *ap = NULL;
}
