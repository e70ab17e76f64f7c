/* What a whole answer comes to: its message, and which of its calls may be run. */
#include "broker/models/answer/answer_in.h"

enum { ARGS_ARENA_MAX = 32 * 1024 * 1024 };

static const char not_json[] =
    "Nothing was run: the arguments of this call are not JSON. Call the tool again with one "
    "JSON object that fits its schema.";
static const char not_object[] = "Nothing was run: the arguments of this call are JSON, but not an object, or name a "
                                 "member twice. Call the tool again with one JSON object that fits its schema.";
static const char too_long[] = "Nothing was run: the arguments of this call are longer than 1 MiB. Do it in smaller "
                               "parts, or put the content into a file in several steps.";
static const char no_such_name[] = "Nothing was run: there is no tool of this name.";
static const char at_limit[] =
    "Nothing was run: the answer reached its length limit in the middle of this call. Do it "
    "in smaller parts.";
static const char not_ended[] = "Nothing was run: this call was not finished.";
static const char not_run[] = "Nothing was run: the answer did not end with its calls.";

/* The arguments as they may stand in a message. */
static struct span arguments(struct piece *p)
{
    struct span s = dynbuf_span(&p->text);
    if (p->over)
        p->broken = too_long;
    if (p->over || p->broken != NULL)
        return SPAN("{}");
    if (text_is_blank(s)) /* of a tool without any */
        return SPAN("{}");
    struct arena arena;
    enum json_fault why;
    arena_init(&arena, ARGS_ARENA_MAX);
    const struct json *j = json_parse_or(s, &arena, &why);
    if (j == NULL)
        p->broken = why == JSON_KEY_TWICE ? not_object : not_json;
    else if (j->type != JSON_OBJECT)
        p->broken = not_object;
    arena_free(&arena);
    return p->broken ? SPAN("{}") : s;
}

/* A name that every provider takes when it is told of this call again. */
static struct span safe_name(struct answer *a, struct span name)
{
    if (tool_name_ok(name))
        return name;
    struct span first = span_first(name, TOOL_NAME_MAX);
    uint8_t *to = arena_alloc(&a->kept, first.n + 1);
    if (first.n == 0 || to == NULL)
        return SPAN("unnamed");
    for (size_t i = 0; i < first.n; i++)
        to[i] = span_is_of(span_of(first.p + i, 1), SPAN("_-")) ? first.p[i] : '_';
    return span_of(to, first.n);
}

static bool settle_call(struct answer *a, struct piece *p, struct block *b, struct answer_call *call, size_t n)
{
    *b = (struct block){.kind = BLOCK_CALL, .extra = p->extra, .origin = a->origin};
    b->json = arguments(p);
    b->name = safe_name(a, p->name);
    b->id = arena_printf(&a->kept, "%.*s-%zu", SPAN_FMT(a->prefix), n);
    if (p->broken == NULL && !span_eq(b->name, p->name))
        p->broken = no_such_name;
    *call = (struct answer_call){b, p->foreign, p->broken};
    return b->id.p != NULL;
}

/* What is not understood to its end is left out, since a part of it would be refused; and what is larger than a
 * message may have. In Chat a text with a name is all that there is of one. */
static struct span opaque(struct answer *a, struct piece *p)
{
    struct dynbuf out;
    struct jsonw w;
    struct span s = p->json;
    if (a->protocol == MODEL_CHAT && p->text.n > 0) {
        dynbuf_init(&out, MESSAGE_TEXT_MAX);
        jsonw_begin(&w, &out);
        jsonw_object(&w);
        jsonw_name(&w, p->name);
        jsonw_string(&w, dynbuf_span(&p->text));
        jsonw_end_object(&w);
        s = arena_keep(&a->kept, &out);
    }
    return p->spoiled || s.n > MESSAGE_TEXT_MAX ? SPAN_NONE : s;
}

/* Which calls of an answer that ended like this may not be run. */
static void refuse_calls(struct answer *a)
{
    struct piece *last = a->n ? &a->piece[a->n - 1] : NULL;
    for (struct piece *p = a->piece; p < a->piece + a->n; p++) {
        if (p->kind != BLOCK_CALL || p->broken != NULL)
            continue;
        if (a->result.stop == STOP_LENGTH)
            p->broken = p == last ? at_limit : NULL;
        else if (a->result.stop != STOP_CALLS)
            p->broken = not_run;
        if (p->broken == NULL && !p->ended)
            p->broken = not_ended;
    }
}

/* Servers say "stop" also behind calls; one that says "calls" and makes none has lost them. */
static bool settle_stop(struct answer *a)
{
    bool calls = false;
    for (size_t i = 0; i < a->n; i++)
        calls |= a->piece[i].kind == BLOCK_CALL;
    if (a->refused && (a->result.stop == STOP_TURN || a->result.stop == STOP_CALLS))
        a->result.stop = STOP_REFUSAL;
    if (a->result.stop == STOP_TURN && calls)
        a->result.stop = STOP_CALLS;
    if (a->result.stop == STOP_NONE)
        answer_fail(a, FAULT_BROKEN, "the answer does not say why it ended");
    else if (a->result.stop == STOP_CALLS && !calls)
        answer_fail(a, FAULT_BROKEN, "the answer says that it calls tools, and calls none");
    return a->result.end == ANSWER_OPEN;
}

void answer_complete(struct answer *a)
{
    struct block *block = arena_alloc(&a->kept, ANSWER_PIECES_MAX * sizeof(*block));
    struct answer_call *call = arena_alloc(&a->kept, ANSWER_CALLS_MAX * sizeof(*call));
    size_t n = 0, calls = 0;
    bool room = block != NULL && call != NULL;
    if (!settle_stop(a))
        return;
    refuse_calls(a);
    for (size_t i = 0; i < a->n && room; i++) {
        struct piece *p = &a->piece[i];
        struct block b = {.kind = p->kind, .origin = a->origin};
        if (p->kind == BLOCK_CALL) {
            room = settle_call(a, p, &block[n], &call[calls], calls);
            n++;
            calls++;
            continue;
        }
        if (p->kind == BLOCK_TEXT)
            b.text = dynbuf_span(&p->text);
        else
            b.json = opaque(a, p);
        if (b.text.n > 0 || b.json.n > 0)
            block[n++] = b;
    }
    if (!room) {
        answer_fail(a, FAULT_TOO_LARGE, "there is no memory for the answer");
        return;
    }
    a->result.end = ANSWER_COMPLETE;
    a->result.message = (struct message){MESSAGE_MODEL, block, n};
    a->result.call = call;
    a->result.ncalls = calls;
}
