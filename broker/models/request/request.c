#include "broker/models/request/request_in.h"

#include "common/id.h"

enum { SCHEMA_ARENA_MAX = 16 * 1024 * 1024, OPAQUE_ARENA_MAX = 64 * 1024 * 1024 };

bool block_goes(const struct model_target *t, const struct block *b)
{
    if (b->kind == BLOCK_TEXT)
        return !text_is_blank(b->text);
    if (b->kind == BLOCK_OPAQUE)
        return model_origin_eq(&b->origin, &t->origin) && (t->protocol != MODEL_CHAT || t->reasoning);
    return b->kind != BLOCK_NONE;
}

bool message_has(const struct model_target *t, const struct message *m, unsigned kinds)
{
    for (size_t i = 0; i < m->n; i++)
        if ((kinds >> m->block[i].kind & 1) && block_goes(t, &m->block[i]))
            return true;
    return false;
}

static bool is_thought(const struct block *b)
{
    struct arena a;
    if (b->kind != BLOCK_OPAQUE)
        return false;
    arena_init(&a, OPAQUE_ARENA_MAX);
    struct span type = json_text(json_parse(b->json, &a), SPAN("type"));
    bool is = span_eq(type, SPAN("thinking")) || span_eq(type, SPAN("redacted_thinking")) ||
              span_eq(type, SPAN("reasoning"));
    arena_free(&a);
    return is;
}

size_t message_end(const struct model_target *t, const struct message *m)
{
    size_t n = m->n;
    while (n > 0 && (!block_goes(t, &m->block[n - 1]) || is_thought(&m->block[n - 1])))
        n--;
    return n;
}

static struct span part(struct writing *x)
{
    x->lost |= !dynbuf_ok(&x->part);
    return dynbuf_span(&x->part);
}

struct span message_text(struct writing *x, const struct message *m)
{
    dynbuf_reset(&x->part);
    for (size_t i = 0; i < m->n; i++) {
        if (m->block[i].kind != BLOCK_TEXT || !block_goes(x->t, &m->block[i]))
            continue;
        if (x->part.n > 0)
            (void)dynbuf_add(&x->part, SPAN("\n\n"));
        (void)dynbuf_add(&x->part, m->block[i].text);
    }
    return part(x);
}

struct span result_words(const struct block *b)
{
    return text_is_blank(b->text) ? SPAN("(no output)") : b->text;
}

struct span result_text(struct writing *x, const struct block *b)
{
    if (!b->failed)
        return result_words(b);
    dynbuf_reset(&x->part);
    (void)dynbuf_add(&x->part, SPAN("[failed] "));
    (void)dynbuf_add(&x->part, result_words(b));
    return part(x);
}

bool image_text(struct writing *x, const struct block *b, bool url, struct span *text)
{
    struct dynbuf bytes;
    bool have = false;
    dynbuf_init(&bytes, IMAGE_BYTES_MAX);
    dynbuf_reset(&x->part);
    *text = SPAN("[an image stood here; it is no longer kept, or larger than 5 MiB]");
    if (x->r->image == NULL || x->r->image(x->r->ctx, b->ref, &bytes) != 0 || !dynbuf_ok(&bytes) || bytes.n == 0)
        goto out;
    if (url)
        (void)dynbuf_addf(&x->part, "data:%.*s;base64,", SPAN_FMT(b->media));
    uint8_t *to = dynbuf_room(&x->part, 4 * ((bytes.n + 2) / 3) + 1);
    if (to != NULL)
        dynbuf_grew(&x->part, base64_encode(dynbuf_span(&bytes), (char *)to));
    *text = part(x);
    have = true;
out:
    dynbuf_free(&bytes);
    return have;
}

void put_members(struct writing *x, struct span object)
{
    size_t from = span_index(object, '{') + 1, end = object.n;
    while (end > from && object.p[end - 1] != '}')
        end--;
    if (end <= from)
        return;
    struct span inside = span_of(object.p + from, end - 1 - from);
    if (!text_is_blank(inside))
        jsonw_raw(&x->w, inside);
}

/* ---- checks ---- */

static const char *tool_fault(const struct model_tool *tool)
{
    struct arena a;
    const char *why = "its schema is no JSON object of type object";
    arena_init(&a, SCHEMA_ARENA_MAX);
    if (!tool_name_ok(tool->name))
        why = "its name is not 1 to 64 letters, digits, _ and -";
    else if (tool->schema.n > TOOL_SCHEMA_MAX || tool->description.n > TOOL_WORDS_MAX)
        why = "its schema is longer than 256 KiB, or its description than 64";
    else if (span_eq(json_text(json_parse(tool->schema, &a), SPAN("type")), SPAN("object")))
        why = NULL;
    arena_free(&a);
    return why;
}

static int check_tools(const struct model_request *r, struct err *e)
{
    if (r->ntools > REQUEST_TOOLS_MAX)
        return err_set(e, "at most %d tools can be told, not %zu", REQUEST_TOOLS_MAX, r->ntools);
    for (size_t i = 0; i < r->ntools; i++) {
        const char *why = tool_fault(&r->tool[i]);
        for (size_t k = 0; k < i && why == NULL; k++)
            if (span_eq(r->tool[k].name, r->tool[i].name))
                why = "another has its name";
        if (why != NULL)
            return err_set(e, "tool %zu of %zu: %s", i + 1, r->ntools, why);
    }
    return 0;
}

static int check(const struct model_target *t, const struct model_privacy *p, const struct model_request *r,
                 struct err *e)
{
    if (!model_may_see(p, t->name))
        return err_set(e, "the conversation is private, and %.*s is not in its list of models", SPAN_FMT(t->name));
    if (t->protocol == MODEL_NONE || !model_origin_ok(&t->origin))
        return err_set(e, "the model has no protocol, or no provider, model and endpoint");
    if (r->max_tokens == 0)
        return err_set(e, "an answer of no tokens was asked for");
    if (r->system.n > MESSAGE_TEXT_MAX)
        return err_set(e, "the system prompt is longer than 4 MiB");
    if (messages_check(r->message, r->n, e) != 0 || check_tools(r, e) != 0)
        return -1;
    if (!message_has(t, &r->message[r->n - 1], 1 << BLOCK_TEXT | 1 << BLOCK_RESULT | 1 << BLOCK_IMAGE))
        return err_set(e, "the last message says nothing");
    return 0;
}

int request_write(const struct model_target *t, const struct model_privacy *p, const struct model_request *r,
                  struct dynbuf *out, struct err *e)
{
    struct writing x = {.t = t, .r = r};
    if (check(t, p, r, e) != 0)
        return -1;
    dynbuf_init(&x.part, REQUEST_MAX);
    jsonw_begin(&x.w, out);
    jsonw_object(&x.w);
    jsonw_kv(&x.w, "model", t->origin.model);
    jsonw_kv_bool(&x.w, "stream", true);
    if (t->protocol == MODEL_ANTHROPIC)
        request_anthropic(&x);
    else if (t->protocol == MODEL_CHAT)
        request_chat(&x);
    else
        request_responses(&x);
    jsonw_end_object(&x.w);
    bool ok = dynbuf_ok(out) && !x.lost;
    dynbuf_free(&x.part);
    return ok ? 0 : err_set(e, "the request would be larger than %zu bytes", out->max);
}
