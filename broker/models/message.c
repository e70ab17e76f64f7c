#include "broker/models/message.h"

enum { OBJECT_ARENA_MAX = 64 * 1024 * 1024 };

static const char *const of_names[] = {[MESSAGE_NOBODY] = "", [MESSAGE_USER] = "user", [MESSAGE_MODEL] = "model"};
static const char *const kind_names[] = {
    [BLOCK_NONE] = "",         [BLOCK_TEXT] = "text",     [BLOCK_CALL] = "call",
    [BLOCK_RESULT] = "result", [BLOCK_OPAQUE] = "opaque", [BLOCK_IMAGE] = "image"};
enum { OFS = sizeof(of_names) / sizeof(of_names[0]), KINDS = sizeof(kind_names) / sizeof(kind_names[0]) };

static unsigned named(const char *const *names, unsigned n, struct span name)
{
    for (unsigned i = 1; i < n; i++)
        if (span_eq(name, span_str(names[i])))
            return i;
    return 0;
}

bool call_id_ok(struct span id)
{
    return id.n > 0 && id.n <= CALL_ID_MAX && span_is_of(id, SPAN("_-"));
}

bool tool_name_ok(struct span name)
{
    return name.n > 0 && name.n <= TOOL_NAME_MAX && span_is_of(name, SPAN("_-"));
}

bool text_is_blank(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != ' ' && (s.p[i] < '\t' || s.p[i] > '\r'))
            return false;
    return true;
}

bool text_is_object(struct span s)
{
    struct arena a;
    arena_init(&a, OBJECT_ARENA_MAX);
    const struct json *j = json_parse(s, &a);
    bool is = j != NULL && j->type == JSON_OBJECT;
    arena_free(&a);
    return is;
}

/* ---- checks ---- */

static bool media_ok(struct span media)
{
    static const char *const known[] = {"", "image/png", "image/jpeg", "image/gif", "image/webp"};
    return named(known, sizeof(known) / sizeof(known[0]), media) > 0;
}

static const char *block_fault(const struct block *b, enum message_of of)
{
    switch (b->kind) {
    case BLOCK_TEXT: return b->text.n > MESSAGE_TEXT_MAX ? "a text is longer than 4 MiB" : NULL;
    case BLOCK_RESULT:
        if (of != MESSAGE_USER || !call_id_ok(b->id))
            return "a result has no call that it could answer";
        return b->text.n > MESSAGE_TEXT_MAX ? "a result is longer than 4 MiB" : NULL;
    case BLOCK_CALL:
        if (of != MESSAGE_MODEL || !call_id_ok(b->id) || !tool_name_ok(b->name))
            return "a call has an id or a tool's name that not every provider takes";
        if (b->json.n > CALL_ARGS_MAX || !text_is_object(b->json))
            return "a call's arguments are no JSON object of at most 1 MiB";
        if (b->extra.n > 0 &&
            (b->extra.n > CALL_EXTRA_MAX || !text_is_object(b->extra) || !model_origin_ok(&b->origin)))
            return "what a provider added to a call is no JSON object of a known origin";
        return NULL;
    case BLOCK_OPAQUE:
        if (of != MESSAGE_MODEL || !model_origin_ok(&b->origin))
            return "an opaque block is of no known origin";
        return b->json.n > MESSAGE_TEXT_MAX || !text_is_object(b->json) ? "an opaque block is no JSON object" : NULL;
    case BLOCK_IMAGE:
        if (of != MESSAGE_USER || !media_ok(b->media))
            return "an image is of no type that every provider takes (png, jpeg, gif, webp)";
        return b->ref.n == 0 || b->ref.n > IMAGE_REF_MAX ? "an image names nothing that is kept" : NULL;
    default: return "a block is of no kind";
    }
}

static size_t count(const struct message *m, enum block_kind kind, struct span id)
{
    size_t n = 0;
    for (size_t i = 0; m != NULL && i < m->n; i++)
        n += m->block[i].kind == kind && span_eq(m->block[i].id, id);
    return n;
}

/* Each call of `asked` has its one result in `then`, and each result there its one call. Either may be NULL. */
static const char *answers_fault(const struct message *asked, const struct message *then)
{
    for (size_t i = 0; asked != NULL && i < asked->n; i++) {
        const struct block *b = &asked->block[i];
        if (b->kind == BLOCK_CALL && count(asked, BLOCK_CALL, b->id) != 1)
            return "two calls have one id";
        if (b->kind == BLOCK_CALL && count(then, BLOCK_RESULT, b->id) != 1)
            return "a call has not one result in the message that follows";
    }
    for (size_t i = 0; then != NULL && i < then->n; i++) {
        const struct block *b = &then->block[i];
        if (b->kind == BLOCK_RESULT && count(asked, BLOCK_CALL, b->id) != 1)
            return "a result answers no call of the message before it";
    }
    return NULL;
}

static const char *message_fault(const struct message *m)
{
    const char *why = NULL;
    if (m->of != MESSAGE_USER && m->of != MESSAGE_MODEL)
        return "a message is nobody's";
    if (m->n > MESSAGE_BLOCKS_MAX)
        return "a message has more than 256 blocks";
    for (size_t i = 0; i < m->n && why == NULL; i++)
        why = block_fault(&m->block[i], m->of);
    return why;
}

int messages_check(const struct message *m, size_t n, struct err *e)
{
    const char *why = NULL;
    if (n == 0 || n > MESSAGES_MAX)
        return err_set(e, "a prompt has 1 to %d messages, not %zu", MESSAGES_MAX, n);
    for (size_t i = 0; i < n; i++) {
        why = message_fault(&m[i]);
        if (why == NULL)
            why = answers_fault(i > 0 ? &m[i - 1] : NULL, &m[i]);
        if (why == NULL && i == 0 && m[i].of != MESSAGE_USER)
            why = "the model speaks first";
        if (why == NULL && i + 1 == n && m[i].of != MESSAGE_USER)
            why = "nobody says anything after the model";
        if (why != NULL)
            return err_set(e, "message %zu of %zu: %s", i + 1, n, why);
    }
    return 0;
}

/* ---- JSON ---- */

static void put_origin(struct jsonw *w, const struct model_origin *o)
{
    jsonw_kv_object(w, "origin");
    jsonw_kv(w, "provider", o->provider);
    jsonw_kv(w, "model", o->model);
    jsonw_kv(w, "endpoint", o->endpoint);
    jsonw_end_object(w);
}

static void put_block(struct jsonw *w, const struct block *b)
{
    bool call = b->kind == BLOCK_CALL, result = b->kind == BLOCK_RESULT;
    jsonw_object(w);
    jsonw_kv(w, "type", span_str(kind_names[(unsigned)b->kind < KINDS ? b->kind : BLOCK_NONE]));
    if (call || result)
        jsonw_kv(w, "id", b->id);
    if (call)
        jsonw_kv(w, "name", b->name);
    if (result || b->kind == BLOCK_TEXT)
        jsonw_kv(w, "text", b->text);
    if (result)
        jsonw_kv_bool(w, "failed", b->failed);
    if (call || b->kind == BLOCK_OPAQUE)
        jsonw_kv(w, "json", b->json);
    if (call && b->extra.n > 0)
        jsonw_kv(w, "extra", b->extra);
    if (b->kind == BLOCK_OPAQUE || (call && b->extra.n > 0))
        put_origin(w, &b->origin);
    if (b->kind == BLOCK_IMAGE) {
        jsonw_kv(w, "media", b->media);
        jsonw_kv(w, "ref", b->ref);
    }
    jsonw_end_object(w);
}

static void put(struct jsonw *w, const struct message *m, const char *more, struct span value)
{
    jsonw_object(w);
    jsonw_kv(w, "of", span_str(of_names[(unsigned)m->of < OFS ? m->of : MESSAGE_NOBODY]));
    jsonw_kv_array(w, "blocks");
    for (size_t i = 0; i < m->n; i++)
        put_block(w, &m->block[i]);
    jsonw_end_array(w);
    if (value.n > 0)
        jsonw_kv(w, more, value);
    jsonw_end_object(w);
}

void message_put_stopped(struct jsonw *w, const struct message *m, struct span stopped)
{
    put(w, m, "stopped", stopped);
}

void message_put_said(struct jsonw *w, const struct message *m, struct span by)
{
    put(w, m, "by", by);
}

struct span message_by(const struct json *j)
{
    return json_text(j, SPAN("by"));
}

void message_put(struct jsonw *w, const struct message *m)
{
    message_put_stopped(w, m, SPAN_NONE);
}

struct span message_stopped(const struct json *j)
{
    return json_text(j, SPAN("stopped"));
}

static void get_block(const struct json *j, struct block *b)
{
    const struct json *origin = json_get(j, SPAN("origin")), *failed = json_get(j, SPAN("failed"));
    *b = (struct block){
        .kind = (enum block_kind)named(kind_names, KINDS, json_text(j, SPAN("type"))),
        .text = json_text(j, SPAN("text")),
        .id = json_text(j, SPAN("id")),
        .name = json_text(j, SPAN("name")),
        .json = json_text(j, SPAN("json")),
        .extra = json_text(j, SPAN("extra")),
        .origin = {json_text(origin, SPAN("provider")), json_text(origin, SPAN("model")),
                   json_text(origin, SPAN("endpoint"))},
        .media = json_text(j, SPAN("media")),
        .ref = json_text(j, SPAN("ref")),
    };
    /* What is not said plainly to have gone well has failed. */
    b->failed = b->kind == BLOCK_RESULT && (failed == NULL || failed->type != JSON_BOOL || failed->truth);
}

int message_get(const struct json *j, struct arena *a, struct message *m, struct err *e)
{
    const struct json *blocks = json_get(j, SPAN("blocks"));
    *m = (struct message){.of = (enum message_of)named(of_names, OFS, json_text(j, SPAN("of")))};
    if (blocks == NULL || blocks->type != JSON_ARRAY || blocks->count > MESSAGE_BLOCKS_MAX)
        return err_set(e, "a kept message has no list of at most %d blocks", MESSAGE_BLOCKS_MAX);
    struct block *b = blocks->count ? arena_alloc(a, blocks->count * sizeof(*b)) : NULL;
    if (b == NULL && blocks->count > 0)
        return err_set(e, "no memory for a kept message");
    for (const struct json *c = blocks->child; c != NULL; c = c->next)
        get_block(c, &b[m->n++]);
    m->block = b;
    const char *why = message_fault(m);
    return why ? err_set(e, "a kept message: %s", why) : 0;
}
