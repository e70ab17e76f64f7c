/* The events of Anthropic's Messages. */
#include "broker/models/answer/answer_in.h"

static const char *const thinking_parts[] = {"thinking", "signature", NULL};
static const char *const input_part[] = {"input", NULL};
static const char *const call_parts[] = {"type", "id", "name", "input", NULL};

static void take_usage(struct answer *a, const struct json *usage)
{
    struct model_usage *u = &a->result.usage;
    usage_take(a, usage, "input_tokens", &u->input);
    usage_take(a, usage, "cache_read_input_tokens", &u->cache_read);
    usage_take(a, usage, "cache_creation_input_tokens", &u->cache_write);
    usage_take(a, usage, "output_tokens", &u->output);
}

static void message_start(struct answer *a, const struct json *j)
{
    const struct json *message = json_get(j, SPAN("message"));
    if (a->begun) {
        answer_fail(a, FAULT_BROKEN, "a second answer began in the first");
        return;
    }
    a->begun = true;
    a->result.foreign = answer_keep_name(a, json_text(message, SPAN("id")));
    a->result.model = answer_keep_name(a, json_text(message, SPAN("model")));
    take_usage(a, json_get(message, SPAN("usage")));
}

/* What a block has of its input before any delta: as a rule {}. */
static void first_input(struct answer *a, struct piece *p, const struct json *block)
{
    const struct json *input = json_get(block, SPAN("input"));
    struct dynbuf out;
    struct jsonw w;
    if (input == NULL || input->count == 0)
        return;
    dynbuf_init(&out, CALL_ARGS_MAX);
    jsonw_begin(&w, &out);
    jsonw_tree(&w, input);
    p->over = !dynbuf_ok(&out);
    piece_add(a, p, p->kind == BLOCK_CALL ? DELTA_ARGUMENTS : DELTA_NONE, dynbuf_span(&out));
    dynbuf_free(&out);
}

static void begin_opaque(struct answer *a, struct piece *p, const struct json *block)
{
    static const char *const none[] = {NULL};
    const char *const *but = none;
    if (span_eq(json_text(block, SPAN("type")), SPAN("thinking"))) {
        but = thinking_parts;
        p->name = SPAN("thinking");
        piece_add(a, p, DELTA_REASONING, json_text(block, SPAN("thinking")));
        p->sign = answer_keep(a, json_text(block, SPAN("signature")));
    } else if (json_get(block, SPAN("input")) != NULL) {
        but = input_part;
        p->name = SPAN("input");
        first_input(a, p, block);
    }
    p->extra = answer_rest(a, block, but, MESSAGE_TEXT_MAX);
    p->spoiled = p->extra.n == 0;
}

static void block_start(struct answer *a, uint64_t index, const struct json *j)
{
    const struct json *block = json_get(j, SPAN("content_block"));
    struct span type = json_text(block, SPAN("type"));
    bool text = span_eq(type, SPAN("text")), call = span_eq(type, SPAN("tool_use"));
    if (piece_of(a, index) != NULL) {
        answer_fail(a, FAULT_BROKEN, "a block of the answer began twice");
        return;
    }
    struct piece *p = piece_new(a, text ? BLOCK_TEXT : call ? BLOCK_CALL : BLOCK_OPAQUE, index);
    if (p == NULL)
        return;
    if (text) {
        piece_add(a, p, DELTA_TEXT, json_text(block, SPAN("text")));
    } else if (call) {
        p->foreign = answer_keep_name(a, json_text(block, SPAN("id")));
        p->extra = answer_rest(a, block, call_parts, CALL_EXTRA_MAX);
        call_name(a, p, json_text(block, SPAN("name")));
        first_input(a, p, block);
    } else {
        begin_opaque(a, p, block);
    }
}

static void block_delta(struct answer *a, struct piece *p, const struct json *delta)
{
    struct span type = json_text(delta, SPAN("type"));
    bool thinks = p->kind == BLOCK_OPAQUE && span_eq(p->name, SPAN("thinking"));
    if (p->kind == BLOCK_TEXT && span_eq(type, SPAN("text_delta")))
        piece_add(a, p, DELTA_TEXT, json_text(delta, SPAN("text")));
    else if (p->kind == BLOCK_CALL && span_eq(type, SPAN("input_json_delta")))
        call_add(a, p, json_text(delta, SPAN("partial_json")));
    else if (span_eq(p->name, SPAN("input")) && span_eq(type, SPAN("input_json_delta")))
        piece_add(a, p, DELTA_NONE, json_text(delta, SPAN("partial_json")));
    else if (thinks && span_eq(type, SPAN("thinking_delta")))
        piece_add(a, p, DELTA_REASONING, json_text(delta, SPAN("thinking")));
    else if (thinks && span_eq(type, SPAN("signature_delta")))
        p->sign = answer_keep(a, json_text(delta, SPAN("signature")));
    else if (p->kind == BLOCK_CALL)
        p->broken = "Nothing was run: a part of this call was not understood.";
    else
        p->spoiled = true; /* of a text nobody asks: citations are no part of what is kept */
}

/* The block as it would have come in one piece. */
static void end_opaque(struct answer *a, struct piece *p)
{
    struct dynbuf out;
    struct jsonw w;
    bool input = span_eq(p->name, SPAN("input"));
    struct span text = dynbuf_span(&p->text);
    if (p->spoiled || p->over || (input && text.n > 0 && !text_is_object(text))) {
        p->spoiled = true;
        return;
    }
    dynbuf_init(&out, MESSAGE_TEXT_MAX);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_raw(&w, span_of(p->extra.p + 1, p->extra.n - 2)); /* its members */
    if (input)
        jsonw_kv_raw(&w, "input", text.n > 0 ? text : SPAN("{}"));
    else if (p->name.n > 0)
        jsonw_kv(&w, "thinking", text);
    if (p->sign.n > 0)
        jsonw_kv(&w, "signature", p->sign);
    jsonw_end_object(&w);
    p->spoiled = !dynbuf_ok(&out);
    p->json = answer_keep(a, dynbuf_span(&out));
    dynbuf_free(&out);
}

static enum answer_stop stop_of(struct span reason)
{
    static const struct {
        const char *name;
        enum answer_stop stop;
    } reasons[] = {{"end_turn", STOP_TURN},   {"stop_sequence", STOP_TURN},
                   {"tool_use", STOP_CALLS},  {"max_tokens", STOP_LENGTH},
                   {"refusal", STOP_REFUSAL}, {"model_context_window_exceeded", STOP_LENGTH},
                   {"pause_turn", STOP_PAUSE}};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (span_eq(reason, span_str(reasons[i].name)))
            return reasons[i].stop;
    return reason.n > 0 ? STOP_OTHER : STOP_NONE;
}

static void block_event(struct answer *a, struct span name, const struct json *j)
{
    uint64_t index;
    if (json_u64(j, SPAN("index"), &index) != 0) {
        answer_fail(a, FAULT_BROKEN, "an event of the answer does not say of which block it is");
        return;
    }
    if (span_eq(name, SPAN("content_block_start"))) {
        block_start(a, index, j);
        return;
    }
    struct piece *p = piece_of(a, index);
    if (p == NULL || p->ended) {
        answer_fail(a, FAULT_BROKEN, "an event of the answer is of a block that has not begun, or has ended");
        return;
    }
    if (span_eq(name, SPAN("content_block_delta"))) {
        block_delta(a, p, json_get(j, SPAN("delta")));
        return;
    }
    p->ended = true;
    if (p->kind == BLOCK_OPAQUE)
        end_opaque(a, p);
}

void anthropic_event(struct answer *a, struct span name, const struct json *j)
{
    bool block = span_eq(name, SPAN("content_block_start")) || span_eq(name, SPAN("content_block_delta")) ||
                 span_eq(name, SPAN("content_block_stop"));
    bool delta = span_eq(name, SPAN("message_delta")), stop = span_eq(name, SPAN("message_stop"));
    if (span_eq(name, SPAN("error"))) {
        const struct json *error = json_get(j, SPAN("error"));
        answer_fail_said(a, error ? error : j);
    } else if (span_eq(name, SPAN("message_start"))) {
        message_start(a, j);
    } else if ((block || delta || stop) && !a->begun) {
        answer_fail(a, FAULT_BROKEN, "the answer goes on before it began");
    } else if (block) {
        block_event(a, name, j);
    } else if (delta) {
        struct span reason = json_text(json_get(j, SPAN("delta")), SPAN("stop_reason"));
        if (reason.n > 0)
            a->result.stop = stop_of(reason);
        take_usage(a, json_get(j, SPAN("usage")));
    } else if (stop) {
        answer_complete(a);
    }
}
