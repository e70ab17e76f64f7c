/* A body for OpenAI's Responses. The provider keeps nothing: the whole input goes with each request. */
#include "broker/models/request/request_in.h"

static void put_text_part(struct jsonw *w, struct span type, struct span text)
{
    jsonw_object(w);
    jsonw_kv(w, "type", type);
    jsonw_kv(w, "text", text);
    jsonw_end_object(w);
}

static void put_image_part(struct writing *x, const struct block *b)
{
    struct jsonw *w = &x->w;
    struct span url;
    if (!image_text(x, b, true, &url)) {
        put_text_part(w, SPAN("input_text"), url);
        return;
    }
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("input_image"));
    jsonw_kv(w, "image_url", url);
    jsonw_end_object(w);
}

static void begin_message(struct jsonw *w, struct span role)
{
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("message"));
    jsonw_kv(w, "role", role);
    jsonw_kv_array(w, "content");
}

static void end_message(struct jsonw *w)
{
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void put_result(struct writing *x, const struct block *b)
{
    struct jsonw *w = &x->w;
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("function_call_output"));
    jsonw_kv(w, "call_id", b->id);
    jsonw_kv(w, "output", result_text(x, b));
    jsonw_end_object(w);
}

static void put_user(struct writing *x, const struct message *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->block[i].kind == BLOCK_RESULT)
            put_result(x, &m->block[i]);
    if (!message_has(x->t, m, 1 << BLOCK_TEXT | 1 << BLOCK_IMAGE))
        return;
    begin_message(&x->w, SPAN("user"));
    for (size_t i = 0; i < m->n; i++) {
        if (m->block[i].kind == BLOCK_IMAGE)
            put_image_part(x, &m->block[i]);
        else if (m->block[i].kind == BLOCK_TEXT && block_goes(x->t, &m->block[i]))
            put_text_part(&x->w, SPAN("input_text"), m->block[i].text);
    }
    end_message(&x->w);
}

static void put_call(struct jsonw *w, const struct block *b)
{
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("function_call"));
    jsonw_kv(w, "call_id", b->id);
    jsonw_kv(w, "name", b->name);
    jsonw_kv(w, "arguments", b->json);
    jsonw_end_object(w);
}

/* In their order: reasoning stands before what it led to. */
static void put_model(struct writing *x, const struct message *m)
{
    struct jsonw *w = &x->w;
    for (size_t i = 0, end = message_end(x->t, m); i < end; i++) {
        const struct block *b = &m->block[i];
        if (!block_goes(x->t, b))
            continue;
        if (b->kind == BLOCK_OPAQUE) {
            jsonw_raw(w, b->json);
        } else if (b->kind == BLOCK_CALL) {
            put_call(w, b);
        } else if (b->kind == BLOCK_TEXT) {
            begin_message(w, SPAN("assistant"));
            put_text_part(w, SPAN("output_text"), b->text);
            end_message(w);
        }
    }
}

static void put_tools(struct writing *x)
{
    struct jsonw *w = &x->w;
    jsonw_kv_array(w, "tools");
    for (size_t i = 0; i < x->r->ntools; i++) {
        jsonw_object(w);
        jsonw_kv(w, "type", SPAN("function"));
        jsonw_kv(w, "name", x->r->tool[i].name);
        jsonw_kv(w, "description", x->r->tool[i].description);
        jsonw_kv_raw(w, "parameters", x->r->tool[i].schema);
        jsonw_kv_bool(w, "strict", false); /* which refuses schemas that leave a property open */
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    if (x->r->no_calls)
        jsonw_kv(w, "tool_choice", SPAN("none"));
}

void request_responses(struct writing *x)
{
    struct jsonw *w = &x->w;
    jsonw_kv_bool(w, "store", false);
    if (x->t->reasoning) {
        jsonw_kv_array(w, "include");
        jsonw_string(w, SPAN("reasoning.encrypted_content"));
        jsonw_end_array(w);
    }
    jsonw_kv_u64(w, "max_output_tokens", x->r->max_tokens);
    if (!text_is_blank(x->r->system))
        jsonw_kv(w, "instructions", x->r->system);
    jsonw_kv_array(w, "input");
    for (size_t i = 0; i < x->r->n; i++) {
        if (x->r->message[i].of == MESSAGE_USER)
            put_user(x, &x->r->message[i]);
        else
            put_model(x, &x->r->message[i]);
    }
    jsonw_end_array(w);
    if (x->r->ntools > 0)
        put_tools(x);
}
