/* Refusals whose body is a text with places in it: a row of the table in dialect.c. */
#include "proxy/judge/replies/dialect_rows.h"

#include "common/json/json.h"
#include "common/text/utf8.h"

enum {
    LINES_MAX = 64 * 1024,
    WORDS_MAX = 8 * 1024, /* of all lines; the rest is cut */
    BODY_MAX = 16 * WORDS_MAX,
    RPC_BODY_MAX = 64 * 1024, /* of a longer one the id is not looked for */
    RPC_ARENA_MAX = 1024 * 1024,
    ID_MAX = 128 /* of a longer id: null */
};

/* What the services call an error of this status. The last row is for every other one. A 409 is nowhere a conflict:
 * kubectl would send what was carried out once more, without a word. */
static const struct kind {
    unsigned status;
    const char *name[KINDS_COUNT];
} kinds[] = {
    {400, {"InvalidRequest", "BadRequest", "UNSUPPORTED", "invalid_request_error", "invalid_request_error"}},
    {401, {"AccessDenied", "Unauthorized", "UNAUTHORIZED", "authentication_error", "invalid_request_error"}},
    {403, {"AccessDenied", "Forbidden", "DENIED", "permission_error", "invalid_request_error"}},
    {404, {"NotFound", "NotFound", "UNSUPPORTED", "not_found_error", "invalid_request_error"}},
    {405, {"MethodNotAllowed", "MethodNotAllowed", "UNSUPPORTED", "invalid_request_error", "invalid_request_error"}},
    {409, {"OperationAborted", "Forbidden", "DENIED", "permission_error", "invalid_request_error"}},
    {413, {"EntityTooLarge", "RequestEntityTooLarge", "SIZE_INVALID", "request_too_large", "invalid_request_error"}},
    {416, {"InvalidRange", "BadRequest", "UNSUPPORTED", "invalid_request_error", "invalid_request_error"}},
    {429, {"Throttling", "TooManyRequests", "TOOMANYREQUESTS", "rate_limit_error", "rate_limit_error"}},
    {0, {"ServiceUnavailable", "ServiceUnavailable", "UNAVAILABLE", "api_error", "api_error"}},
};

static struct span kind_of(enum dialect_kinds whose, unsigned status)
{
    size_t i = 0;
    while (kinds[i].status != 0 && kinds[i].status != status)
        i++;
    return span_str(kinds[i].name[whose]);
}

/* XML 1.0 has no way to write most control characters, nor what is not UTF-8. */
static void add_xml(struct dynbuf *b, struct span s)
{
    while (s.n) {
        size_t n = utf8_char(s);
        struct span one = span_first(s, n ? n : 1);
        uint8_t c = one.p[0];
        bool noncharacter = n == 3 && c == 0xef && one.p[1] == 0xbf && one.p[2] >= 0xbe; /* U+FFFE, U+FFFF */
        bool control = c < 0x20 || c == 0x7f || (c == 0xc2 && n == 2 && one.p[1] < 0xa0);
        if (c == '<')
            dynbuf_add(b, SPAN("&lt;"));
        else if (c == '>')
            dynbuf_add(b, SPAN("&gt;"));
        else if (c == '&')
            dynbuf_add(b, SPAN("&amp;"));
        else if (n == 0 || noncharacter || control)
            dynbuf_add_byte(b, '?');
        else
            dynbuf_add(b, one);
        s = span_from(s, one.n);
    }
}

/* All that there is to say, as one line. */
static struct span words(const struct refusal *r, struct arena *a)
{
    struct dynbuf b;
    struct span text;
    dynbuf_init(&b, LINES_MAX);
    dialect_lines(r, &b);
    for (size_t i = 0; i < b.n; i++)
        if (b.p[i] == '\n')
            b.p[i] = ' ';
    if (dialect_keep(&b, a, &text) != 0)
        text = r->title;
    return span_first(span_trim(text), WORDS_MAX);
}

static void some(struct jsonw *w, const char *key, struct span value)
{
    if (value.n)
        jsonw_kv(w, key, value);
}

static void add_own(struct dynbuf *b, const struct refusal *r, struct arena *a)
{
    struct jsonw w;
    dynbuf_add(b, SPAN("\"countersign\":"));
    jsonw_begin(&w, b);
    jsonw_object(&w);
    jsonw_kv(&w, "code", span_str(r->code));
    some(&w, "cause", r->cause);
    some(&w, "ticket", r->ticket);
    some(&w, "status_url", r->status_url);
    some(&w, "approval_url", r->approval_url);
    some(&w, "expires", dialect_time(r->expires_ms, a));
    jsonw_kv_bool(&w, "retry", r->retry);
    some(&w, "rule", r->rule);
    jsonw_end_object(&w);
}

bool dialect_json_rpc(struct span body, struct arena *a, struct span *id)
{
    struct arena own;
    struct dynbuf b;
    struct jsonw w;
    bool is = false;
    *id = SPAN("null");
    arena_init(&own, RPC_ARENA_MAX);
    const struct json *j = body.n && body.n <= RPC_BODY_MAX ? json_parse(body, &own) : NULL;
    if (j == NULL)
        goto out;
    bool batch = j->type == JSON_ARRAY;
    if (batch)
        j = j->child;
    is = j != NULL && span_eq(json_text(j, SPAN("jsonrpc")), SPAN("2.0"));
    const struct json *v = is && !batch ? json_get(j, SPAN("id")) : NULL;
    if (v == NULL || (v->type != JSON_STRING && v->type != JSON_NUMBER) || v->text.n > ID_MAX)
        goto out;
    dynbuf_init(&b, 8 * ID_MAX);
    jsonw_begin(&w, &b);
    if (v->type == JSON_STRING)
        jsonw_string(&w, v->text);
    else
        jsonw_raw(&w, v->text);
    if (dialect_keep(&b, a, id) != 0)
        *id = SPAN("null");
out:
    arena_free(&own);
    return is;
}

/* Where its SDKs would repeat the refusal by themselves although that is of no use: a status that they hand on. What
 * passes by itself they may repeat, and a 401 is acted on. */
static unsigned status_of(const struct dialect_shape *s, const struct dialect_client *c, const struct refusal *r)
{
    bool passes = r->retry && r->status >= 409;
    if (s->final == 0 || r->status < s->repeated_from || passes || r->challenge.n)
        return r->status;
    return s->final_for == NULL || (c->request != NULL && s->final_for(c)) ? s->final : r->status;
}

struct shaping {
    const struct dialect_shape *shape;
    const struct refusal *r;
    unsigned status;
    struct span body, rpc_id; /* of the request */
    struct arena *a;
};

static void add_place(const struct shaping *s, char place, struct dynbuf *b)
{
    struct span id;
    struct jsonw w;
    switch (place) {
    case 'w':
        jsonw_begin(&w, b);
        if (s->shape->xml)
            add_xml(b, words(s->r, s->a));
        else
            jsonw_string(&w, words(s->r, s->a));
        break;
    case 'k': dynbuf_add(b, kind_of(s->shape->kinds, s->status)); break;
    case 'c': dynbuf_add(b, span_str(s->r->code)); break;
    case 'e': dynbuf_add(b, s->r->elicit_state); break;
    case 'u':
        jsonw_begin(&w, b);
        jsonw_string(&w, s->r->approval_url);
        break;
    case 's': dynbuf_addf(b, "%u", s->status); break;
    case 't': dynbuf_add(b, s->r->ticket); break;
    case 'i':
        (void)dialect_json_rpc(s->body, s->a, &id);
        dynbuf_add(b, s->rpc_id.n ? s->rpc_id : id);
        break;
    case 'o': add_own(b, s->r, s->a); break;
    default: b->failed = true; /* a shape with a place that nobody fills */
    }
}

int dialect_shape(const struct dialect_shape *s, const struct dialect_client *c, const struct refusal *r,
                  struct arena *a, struct wire_reply *out)
{
    struct shaping how = {s, r, status_of(s, c, r), c->body, c->rpc_id, a};
    struct dynbuf b;
    dynbuf_init(&b, BODY_MAX);
    for (const char *p = s->text; *p != '\0'; p++)
        if (*p == '%')
            add_place(&how, *++p, &b);
        else
            dynbuf_add_byte(&b, *p == '\'' ? '"' : (uint8_t)*p);
    out->head.status = (uint16_t)how.status;
    dialect_field(&out->head, SPAN("Content-Type"), span_str(s->type));
    if (s->kind_field != NULL)
        dialect_field(&out->head, span_str(s->kind_field),
                      arena_join(a, kind_of(s->kinds, how.status), span_str(s->kind_tail)));
    if (s->retry_field != NULL && !r->retry)
        dialect_field(&out->head, span_str(s->retry_field), SPAN("false"));
    return dialect_keep(&b, a, &out->body);
}
