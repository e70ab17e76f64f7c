/* The events of OpenAI's Responses. The deltas are what is shown and kept; what says it all once more is held against
 * them where something will be run. */
#include "broker/models/answer/answer_in.h"

static const char differ[] = "Nothing was run: the parts of this call and its whole differ.";
static const char *const reasoning_but[] = {"status", NULL};

static void take_usage(struct answer *a, const struct json *usage)
{
    struct model_usage *u = &a->result.usage;
    uint64_t input = 0, cached = 0;
    if (usage == NULL || usage->type != JSON_OBJECT)
        return;
    usage_take(a, usage, "input_tokens", &input);
    usage_take(a, usage, "output_tokens", &u->output);
    usage_take(a, json_get(usage, SPAN("input_tokens_details")), "cached_tokens", &cached);
    usage_take(a, json_get(usage, SPAN("output_tokens_details")), "reasoning_tokens", &u->reasoning);
    u->cache_read = cached < input ? cached : input;
    u->input = input - u->cache_read;
}

static void take_names(struct answer *a, const struct json *response)
{
    a->begun = true;
    if (a->result.foreign.n == 0)
        a->result.foreign = answer_keep_name(a, json_text(response, SPAN("id")));
    if (a->result.model.n == 0)
        a->result.model = answer_keep_name(a, json_text(response, SPAN("model")));
}

/* ---- items ---- */

static struct piece *item_added(struct answer *a, uint64_t index, const struct json *item)
{
    struct span type = json_text(item, SPAN("type"));
    bool call = span_eq(type, SPAN("function_call")), text = span_eq(type, SPAN("message"));
    struct piece *p = piece_new(a, text ? BLOCK_TEXT : call ? BLOCK_CALL : BLOCK_OPAQUE, index);
    if (p == NULL || text)
        return p;
    p->spoiled = !call && !span_eq(type, SPAN("reasoning")); /* a tool of the provider's: none was asked for */
    if (call) {
        p->foreign = answer_keep_name(a, json_text(item, SPAN("call_id")));
        call_name(a, p, json_text(item, SPAN("name")));
    }
    return p;
}

/* All of a call's arguments, once more. */
static void whole_arguments(struct answer *a, struct piece *p, const struct json *from)
{
    const struct json *whole = json_get(from, SPAN("arguments"));
    if (whole == NULL || whole->type != JSON_STRING || p->over)
        return;
    if (p->text.n == 0)
        call_add(a, p, whole->text);
    else if (!span_eq(whole->text, dynbuf_span(&p->text)))
        p->broken = differ;
}

/* Of servers that send no deltas. */
static void whole_text(struct answer *a, struct piece *p, const struct json *item)
{
    const struct json *content = json_get(item, SPAN("content"));
    bool none = p->text.n == 0;
    for (const struct json *c = content && content->type == JSON_ARRAY ? content->child : NULL; c != NULL;
         c = c->next) {
        bool refusal = span_eq(json_text(c, SPAN("type")), SPAN("refusal"));
        a->refused |= refusal;
        if (none)
            piece_add(a, p, DELTA_TEXT, json_text(c, refusal ? SPAN("refusal") : SPAN("text")));
    }
}

static void item_done(struct answer *a, struct piece *p, const struct json *item)
{
    if (p->kind == BLOCK_TEXT) {
        whole_text(a, p, item);
    } else if (p->kind == BLOCK_CALL) {
        call_name(a, p, json_text(item, SPAN("name")));
        whole_arguments(a, p, item);
    } else if (!p->spoiled && json_text(item, SPAN("encrypted_content")).n > 0) {
        /* Without that the provider would look for it among what it was told not to keep. */
        p->json = answer_rest(a, item, reasoning_but, MESSAGE_TEXT_MAX);
    }
    p->ended = !span_eq(json_text(item, SPAN("status")), SPAN("incomplete"));
}

static const struct {
    const char *name;
    enum block_kind kind;
    enum delta_kind shown;
    bool kept, refusal;
} deltas[] = {
    {"response.output_text.delta", BLOCK_TEXT, DELTA_TEXT, true, false},
    {"response.refusal.delta", BLOCK_TEXT, DELTA_TEXT, true, true},
    {"response.function_call_arguments.delta", BLOCK_CALL, DELTA_ARGUMENTS, true, false},
    {"response.reasoning_summary_text.delta", BLOCK_OPAQUE, DELTA_REASONING, false, false},
    {"response.reasoning_text.delta", BLOCK_OPAQUE, DELTA_REASONING, false, false},
};

static void item_delta(struct answer *a, struct piece *p, size_t row, struct span text)
{
    if (p->kind != deltas[row].kind) {
        answer_fail(a, FAULT_BROKEN, "an event of the answer is of another kind than its item");
        return;
    }
    a->refused |= deltas[row].refusal;
    if (!deltas[row].kept)
        piece_show(a, p, deltas[row].shown, text);
    else if (p->kind == BLOCK_CALL)
        call_add(a, p, text);
    else
        piece_add(a, p, deltas[row].shown, text);
}

static void item_event(struct answer *a, struct span name, const struct json *j)
{
    const struct json *item = json_get(j, SPAN("item"));
    bool added = span_eq(name, SPAN("response.output_item.added")),
         done = span_eq(name, SPAN("response.output_item.done"));
    bool whole = span_eq(name, SPAN("response.function_call_arguments.done"));
    size_t row = 0, rows = sizeof(deltas) / sizeof(deltas[0]);
    uint64_t index;
    while (row < rows && !span_eq(name, span_str(deltas[row].name)))
        row++;
    if (!added && !done && !whole && row == rows)
        return; /* one that we do not need, or do not know */
    struct piece *p = json_u64(j, SPAN("output_index"), &index) == 0 ? piece_of(a, index) : NULL;
    if (p == NULL && (added || done) && json_u64(j, SPAN("output_index"), &index) == 0)
        p = item_added(a, index, item);
    else if (p == NULL || p->ended || added)
        answer_fail(a, FAULT_BROKEN,
                    "an event of the answer is of an item that has not begun, has ended, or began twice");
    if (p == NULL || a->result.end != ANSWER_OPEN || added)
        return;
    if (done)
        item_done(a, p, item);
    else if (whole && p->kind == BLOCK_CALL)
        whole_arguments(a, p, j);
    else if (row < rows)
        item_delta(a, p, row, json_text(j, SPAN("delta")));
}

/* ---- the end ---- */

/* An event that was lost on the way shows here, before anything is run. */
static bool all_calls_seen(const struct answer *a, const struct json *response)
{
    const struct json *output = json_get(response, SPAN("output"));
    size_t said = 0, seen = 0;
    if (output == NULL || output->type != JSON_ARRAY || output->count == 0)
        return true;
    for (const struct json *c = output->child; c != NULL; c = c->next)
        said += span_eq(json_text(c, SPAN("type")), SPAN("function_call"));
    for (size_t i = 0; i < a->n; i++)
        seen += a->piece[i].kind == BLOCK_CALL;
    return said == seen;
}

static void response_end(struct answer *a, const struct json *response, bool whole)
{
    struct span reason = json_text(json_get(response, SPAN("incomplete_details")), SPAN("reason"));
    take_names(a, response);
    take_usage(a, json_get(response, SPAN("usage")));
    if (whole)
        a->result.stop = STOP_TURN;
    else if (span_eq(reason, SPAN("max_output_tokens")))
        a->result.stop = STOP_LENGTH;
    else
        a->result.stop = span_eq(reason, SPAN("content_filter")) ? STOP_REFUSAL : STOP_OTHER;
    if (whole && !all_calls_seen(a, response))
        answer_fail(a, FAULT_BROKEN, "the answer has not the calls that it says it has");
    else
        answer_complete(a);
}

void responses_event(struct answer *a, struct span name, const struct json *j)
{
    const struct json *response = json_get(j, SPAN("response")), *error = json_get(j, SPAN("error"));
    bool whole = span_eq(name, SPAN("response.completed"));
    if (span_eq(name, SPAN("error"))) {
        answer_fail_said(a, error && error->type == JSON_OBJECT ? error : j);
    } else if (span_eq(name, SPAN("response.failed"))) {
        take_usage(a, json_get(response, SPAN("usage")));
        answer_fail_said(a, json_get(response, SPAN("error")));
    } else if (span_eq(name, SPAN("response.created")) || span_eq(name, SPAN("response.in_progress"))) {
        take_names(a, response);
    } else if (whole || span_eq(name, SPAN("response.incomplete"))) {
        response_end(a, response, whole);
    } else {
        a->begun = true;
        item_event(a, name, j);
    }
}
