/* The chunks of OpenAI's Chat Completions, and of those who speak it with an accent: reasoning beside the text, calls
 * without an index, a name in every piece of a call. */
#include "broker/models/answer/answer_in.h"

/* Calls have the numbers that the provider gives them, which JSON keeps below 2^53. */
#define KEY_TEXT       UINT64_MAX
#define KEY_REASONING  (UINT64_MAX - 1) /* and one less for each further name of it */
#define KEY_UNNUMBERED (UINT64_MAX - 100)

static const char *const reasoning_names[] = {"reasoning_content", "reasoning"};
static const char *const call_parts[] = {"index", "id", "type", "function", NULL};

static void take_usage(struct answer *a, const struct json *usage)
{
    struct model_usage *u = &a->result.usage;
    uint64_t prompt = 0, cached = 0;
    if (usage == NULL || usage->type != JSON_OBJECT)
        return;
    usage_take(a, usage, "prompt_tokens", &prompt);
    usage_take(a, usage, "completion_tokens", &u->output);
    usage_take(a, usage, "prompt_cache_hit_tokens", &cached);
    usage_take(a, json_get(usage, SPAN("prompt_tokens_details")), "cached_tokens", &cached);
    usage_take(a, json_get(usage, SPAN("completion_tokens_details")), "reasoning_tokens", &u->reasoning);
    u->cache_read = cached < prompt ? cached : prompt;
    u->input = prompt - u->cache_read;
}

static void add_text(struct answer *a, enum block_kind kind, uint64_t key, struct span name, struct span text)
{
    struct piece *p = piece_of(a, key);
    if (text.n == 0)
        return;
    if (p == NULL)
        p = piece_new(a, kind, key);
    if (p == NULL)
        return;
    p->name = name;
    piece_add(a, p, kind == BLOCK_TEXT ? DELTA_TEXT : DELTA_REASONING, text);
}

static struct piece *newest_call(struct answer *a)
{
    for (size_t i = a->n; i > 0; i--)
        if (a->piece[i - 1].kind == BLOCK_CALL)
            return &a->piece[i - 1];
    return NULL;
}

static void add_call(struct answer *a, const struct json *call)
{
    const struct json *function = json_get(call, SPAN("function")), *text = json_get(function, SPAN("arguments"));
    struct span id = span_first(json_text(call, SPAN("id")), ANSWER_ID_MAX);
    uint64_t index;
    bool numbered = json_u64(call, SPAN("index"), &index) == 0;
    struct piece *p = numbered ? piece_of(a, index) : newest_call(a);
    /* Another id is another call, whatever its number. */
    if (p == NULL || (id.n > 0 && p->foreign.n > 0 && !span_eq(id, p->foreign)))
        p = piece_new(a, BLOCK_CALL, numbered ? index : KEY_UNNUMBERED);
    if (p == NULL)
        return;
    if (p->foreign.n == 0)
        p->foreign = answer_keep(a, id);
    if (p->extra.n == 0)
        p->extra = answer_rest(a, call, call_parts, CALL_EXTRA_MAX);
    call_name(a, p, json_text(function, SPAN("name")));
    if (text != NULL && text->type == JSON_STRING)
        call_add(a, p, text->text);
    else if (text != NULL && text->type != JSON_NULL)
        p->broken = "Nothing was run: the arguments of this call were not understood.";
}

static enum answer_stop stop_of(struct span reason)
{
    static const struct {
        const char *name;
        enum answer_stop stop;
    } reasons[] = {{"stop", STOP_TURN},
                   {"tool_calls", STOP_CALLS},
                   {"function_call", STOP_CALLS},
                   {"length", STOP_LENGTH},
                   {"content_filter", STOP_REFUSAL}};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (span_eq(reason, span_str(reasons[i].name)))
            return reasons[i].stop;
    return STOP_OTHER;
}

static void take_choice(struct answer *a, const struct json *choice)
{
    const struct json *delta = json_get(choice, SPAN("delta")), *calls = json_get(delta, SPAN("tool_calls"));
    struct span reason = json_text(choice, SPAN("finish_reason")), refusal = json_text(delta, SPAN("refusal"));
    bool reasoned = false;
    for (size_t i = 0; i < sizeof(reasoning_names) / sizeof(reasoning_names[0]) && !reasoned; i++) {
        struct span text = json_text(delta, span_str(reasoning_names[i]));
        add_text(a, BLOCK_OPAQUE, KEY_REASONING - i, span_str(reasoning_names[i]), text);
        reasoned = text.n > 0; /* some say the same under both names */
    }
    add_text(a, BLOCK_TEXT, KEY_TEXT, SPAN_NONE, json_text(delta, SPAN("content")));
    a->refused |= refusal.n > 0;
    add_text(a, BLOCK_TEXT, KEY_TEXT, SPAN_NONE, refusal);
    for (const struct json *c = calls && calls->type == JSON_ARRAY ? calls->child : NULL; c != NULL; c = c->next)
        add_call(a, c);
    if (reason.n == 0)
        return;
    if (a->result.stop == STOP_NONE)
        a->result.stop = stop_of(reason);
    for (size_t i = 0; i < a->n; i++)
        a->piece[i].ended = true;
}

void chat_event(struct answer *a, struct span name, const struct json *j)
{
    const struct json *error = json_get(j, SPAN("error")), *choices = json_get(j, SPAN("choices"));
    bool failed = span_eq(name, SPAN("error")) || span_eq(json_text(j, SPAN("object")), SPAN("error"));
    if (failed || (error != NULL && error->type != JSON_NULL)) {
        answer_fail_said(a, error && error->type != JSON_NULL ? error : j);
        return;
    }
    a->begun = true;
    if (a->result.foreign.n == 0)
        a->result.foreign = answer_keep_name(a, json_text(j, SPAN("id")));
    if (a->result.model.n == 0)
        a->result.model = answer_keep_name(a, json_text(j, SPAN("model")));
    take_usage(a, json_get(j, SPAN("usage")));
    for (const struct json *c = choices && choices->type == JSON_ARRAY ? choices->child : NULL; c != NULL;
         c = c->next) {
        uint64_t index = 0; /* one answer is asked for */
        if (json_u64(c, SPAN("index"), &index) != 0 || index == 0)
            take_choice(a, c);
    }
}
