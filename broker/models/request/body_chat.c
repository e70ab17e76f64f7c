/* A body for OpenAI's Chat Completions, which many other providers and local servers speak. */
#include "broker/models/request/request_in.h"

static void put_said(struct jsonw *w, struct span role, struct span text)
{
    jsonw_object(w);
    jsonw_kv(w, "role", role);
    jsonw_kv(w, "content", text);
    jsonw_end_object(w);
}

static void put_text_part(struct jsonw *w, struct span text)
{
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("text"));
    jsonw_kv(w, "text", text);
    jsonw_end_object(w);
}

static void put_image_part(struct writing *x, const struct block *b)
{
    struct jsonw *w = &x->w;
    struct span url;
    if (!image_text(x, b, true, &url)) {
        put_text_part(w, url);
        return;
    }
    jsonw_object(w);
    jsonw_kv(w, "type", SPAN("image_url"));
    jsonw_kv_object(w, "image_url");
    jsonw_kv(w, "url", url);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

/* Each result is a message of its own, before what the user says. */
static void put_user(struct writing *x, const struct message *m)
{
    struct jsonw *w = &x->w;
    for (size_t i = 0; i < m->n; i++) {
        if (m->block[i].kind != BLOCK_RESULT)
            continue;
        jsonw_object(w);
        jsonw_kv(w, "role", SPAN("tool"));
        jsonw_kv(w, "tool_call_id", m->block[i].id);
        jsonw_kv(w, "content", result_text(x, &m->block[i]));
        jsonw_end_object(w);
    }
    if (!message_has(x->t, m, 1 << BLOCK_IMAGE)) {
        if (message_has(x->t, m, 1 << BLOCK_TEXT))
            put_said(w, SPAN("user"), message_text(x, m));
        return;
    }
    jsonw_object(w);
    jsonw_kv(w, "role", SPAN("user"));
    jsonw_kv_array(w, "content");
    for (size_t i = 0; i < m->n; i++) {
        if (m->block[i].kind == BLOCK_IMAGE)
            put_image_part(x, &m->block[i]);
        else if (m->block[i].kind == BLOCK_TEXT && block_goes(x->t, &m->block[i]))
            put_text_part(w, m->block[i].text);
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void put_call(struct writing *x, const struct block *b)
{
    struct jsonw *w = &x->w;
    jsonw_object(w);
    jsonw_kv(w, "id", b->id);
    jsonw_kv(w, "type", SPAN("function"));
    jsonw_kv_object(w, "function");
    jsonw_kv(w, "name", b->name);
    jsonw_kv(w, "arguments", b->json);
    jsonw_end_object(w);
    if (b->extra.n > 0 && model_origin_eq(&b->origin, &x->t->origin))
        put_members(x, b->extra);
    jsonw_end_object(w);
}

static void put_model(struct writing *x, const struct message *m)
{
    struct jsonw *w = &x->w;
    if (!message_has(x->t, m, 1 << BLOCK_TEXT | 1 << BLOCK_CALL))
        return;
    jsonw_object(w);
    jsonw_kv(w, "role", SPAN("assistant"));
    if (message_has(x->t, m, 1 << BLOCK_TEXT))
        jsonw_kv(w, "content", message_text(x, m));
    else
        jsonw_kv_raw(w, "content", SPAN("null"));
    for (size_t i = 0; i < m->n; i++)
        if (m->block[i].kind == BLOCK_OPAQUE && block_goes(x->t, &m->block[i]))
            put_members(x, m->block[i].json);
    if (message_has(x->t, m, 1 << BLOCK_CALL)) {
        jsonw_kv_array(w, "tool_calls");
        for (size_t i = 0; i < m->n; i++)
            if (m->block[i].kind == BLOCK_CALL)
                put_call(x, &m->block[i]);
        jsonw_end_array(w);
    }
    jsonw_end_object(w);
}

static void put_tools(struct writing *x)
{
    struct jsonw *w = &x->w;
    jsonw_kv_array(w, "tools");
    for (size_t i = 0; i < x->r->ntools; i++) {
        jsonw_object(w);
        jsonw_kv(w, "type", SPAN("function"));
        jsonw_kv_object(w, "function");
        jsonw_kv(w, "name", x->r->tool[i].name);
        jsonw_kv(w, "description", x->r->tool[i].description);
        jsonw_kv_raw(w, "parameters", x->r->tool[i].schema);
        jsonw_end_object(w);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    if (x->r->no_calls)
        jsonw_kv(w, "tool_choice", SPAN("none"));
}

void request_chat(struct writing *x)
{
    struct jsonw *w = &x->w;
    jsonw_kv_object(w, "stream_options"); /* without it no usage is told */
    jsonw_kv_bool(w, "include_usage", true);
    jsonw_end_object(w);
    jsonw_kv_u64(w, x->t->old_limit ? "max_tokens" : "max_completion_tokens", x->r->max_tokens);
    jsonw_kv_array(w, "messages");
    if (!text_is_blank(x->r->system))
        put_said(w, SPAN("system"), x->r->system);
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
