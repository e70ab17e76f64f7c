/* A body for Anthropic's Messages. */
#include "broker/models/request/request_in.h"

static void put_text(struct jsonw *w, struct span text)
{
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("text"));
    jsonw_kv(w, "text", text);
    jsonw_end_object(w);
}

static void put_image(struct writing *x, const struct block *b)
{
    struct jsonw *w = &x->w;
    struct span data;
    if (!image_text(x, b, false, &data)) {
        put_text(w, data);
        return;
    }
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("image"));
    jsonw_kv_object(w, "source");
    jsonw_kv(w, "type", SPAN("base64"));
    jsonw_kv(w, "media_type", b->media);
    jsonw_kv(w, "data", data);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

static void put_call(struct writing *x, const struct block *b)
{
    struct jsonw *w = &x->w;
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("tool_use"));
    jsonw_kv(w, "id", b->id);
    jsonw_kv(w, "name", b->name);
    jsonw_kv_raw(w, "input", b->json);
    if (b->extra.n > 0 && model_origin_eq(&b->origin, &x->t->origin))
        put_members(x, b->extra);
    jsonw_end_object(w);
}

static void put_result(struct jsonw *w, const struct block *b)
{
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("tool_result"));
    jsonw_kv(w, "tool_use_id", b->id);
    jsonw_kv(w, "content", result_words(b));
    if (b->failed)
        jsonw_kv_bool(w, "is_error", true);
    jsonw_end_object(w);
}

/* Its results come first: any text before one is refused. */
static void put_message(struct writing *x, const struct message *m)
{
    struct jsonw *w = &x->w;
    size_t end = message_end(x->t, m);
    if (end == 0)
        return;
    jsonw_object(w);
    jsonw_kv(w, "role", m->of == MESSAGE_USER ? SPAN("user") : SPAN("assistant"));
    jsonw_kv_array(w, "content");
    for (size_t i = 0; i < end; i++)
        if (m->block[i].kind == BLOCK_RESULT)
            put_result(w, &m->block[i]);
    for (size_t i = 0; i < end; i++) {
        const struct block *b = &m->block[i];
        if (!block_goes(x->t, b))
            continue;
        switch (b->kind) {
        case BLOCK_TEXT: put_text(w, b->text); break;
        case BLOCK_CALL: put_call(x, b); break;
        case BLOCK_OPAQUE: jsonw_raw(w, b->json); break;
        case BLOCK_IMAGE: put_image(x, b); break;
        default: break;
        }
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void put_tools(struct writing *x)
{
    struct jsonw *w = &x->w;
    jsonw_kv_array(w, "tools");
    for (size_t i = 0; i < x->r->ntools; i++) {
        jsonw_object(w);
        jsonw_kv(w, "name", x->r->tool[i].name);
        jsonw_kv(w, "description", x->r->tool[i].description);
        jsonw_kv_raw(w, "input_schema", x->r->tool[i].schema);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    if (x->r->no_calls) {
        jsonw_kv_object(w, "tool_choice");
        jsonw_kv(w, "type", SPAN("none"));
        jsonw_end_object(w);
    }
}

void request_anthropic(struct writing *x)
{
    struct jsonw *w = &x->w;
    jsonw_kv_u64(w, "max_tokens", x->r->max_tokens);
    if (!text_is_blank(x->r->system))
        jsonw_kv(w, "system", x->r->system);
    jsonw_kv_array(w, "messages");
    for (size_t i = 0; i < x->r->n; i++)
        put_message(x, &x->r->message[i]);
    jsonw_end_array(w);
    if (x->r->ntools > 0)
        put_tools(x);
}
