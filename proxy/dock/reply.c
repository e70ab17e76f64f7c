/* Ways to answer, and to read what was sent. */
#include <stdio.h>

#include "proxy/dock/dock.h"
#include "proxy/dock/parse/envelope.h"

enum { WORDS_MAX = 1024, END_MAX = 16 * 1024, TIMEOUT_MAX_S = 86400 };

static const struct {
    unsigned status;
    const char *code; /* of Connect */
} codes[] = {{400, "invalid_argument"},   {401, "unauthenticated"},    {403, "permission_denied"},
             {404, "not_found"},          {408, "deadline_exceeded"},  {409, "failed_precondition"},
             {413, "resource_exhausted"}, {429, "resource_exhausted"}, {500, "internal"},
             {501, "unimplemented"},      {502, "unavailable"},        {503, "unavailable"},
             {507, "resource_exhausted"}};

const char *reply_code(unsigned status)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].status == status)
            return codes[i].code;
    return status < 500 ? "invalid_argument" : "unavailable";
}

void reply_json(struct call *x, unsigned status, struct jsonw *w)
{
    x->status = status;
    x->type = "application/json";
    dynbuf_reset(&x->out);
    jsonw_begin(w, &x->out);
}

void reply_empty(struct call *x, unsigned status)
{
    x->status = status;
    x->type = NULL;
    dynbuf_reset(&x->out);
    call_answer(x);
}

/* The message of the frame that says how a stream ended. */
static void put_end(struct dynbuf *text, const char *code, struct span words)
{
    struct jsonw w;

    jsonw_begin(&w, text);
    jsonw_object(&w);
    jsonw_kv_object(&w, "error");
    jsonw_kv(&w, "code", span_str(code));
    jsonw_kv(&w, "message", words);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
}

/* Of a stream: its one frame. */
static void refuse_stream(struct call *x, const char *code, struct span words)
{
    struct dynbuf text;

    dynbuf_init(&text, END_MAX);
    put_end(&text, code, words);
    x->status = 200;
    x->type = "application/connect+json";
    dynbuf_reset(&x->out);
    (void)!envelope_put(&x->out, ENVELOPE_END, dynbuf_span(&text));
    dynbuf_free(&text);
}

void reply_code_no(struct call *x, unsigned status, const char *code, struct span words)
{
    struct jsonw w;

    dynbuf_free(&x->out); /* also out of a failed state */
    if (x->form == CALL_STREAM) {
        refuse_stream(x, code, words);
        call_answer(x);
        return;
    }
    reply_json(x, status, &w);
    jsonw_object(&w);
    if (x->form == CALL_RPC)
        jsonw_kv(&w, "code", span_str(code));
    else
        jsonw_kv_u64(&w, "code", status);
    jsonw_kv(&w, "message", words);
    jsonw_end_object(&w);
    call_answer(x);
}

void reply_no_span(struct call *x, unsigned status, struct span words)
{
    reply_code_no(x, status, reply_code(status), words);
}

void reply_no(struct call *x, unsigned status, const char *fmt, ...)
{
    char words[WORDS_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    reply_no_span(x, status, span_str(words));
}

void reply_desk(struct call *x, unsigned status, struct span body)
{
    struct span words = json_text(json_parse(body, &x->arena), SPAN("detail"));

    reply_no_span(x, status < 400 ? 503 : status, words.n ? words : SPAN("the gateway did not say why"));
}

/* %xx and + decoded, into the arena. */
int call_decode(struct call *x, struct span in, struct span *out)
{
    uint8_t *p = arena_alloc(&x->arena, in.n + 1);
    size_t n = 0;

    if (!p)
        return -1;
    for (size_t i = 0; i < in.n; i++) {
        int c = in.p[i] == '+' ? ' ' : in.p[i] == '%' ? hex_number(span_from(in, i + 1), 2) : in.p[i];
        if (c < 0)
            return -1;
        i += in.p[i] == '%' ? 2 : 0;
        p[n++] = (uint8_t)c;
    }
    *out = span_of(p, n);
    return 0;
}

static int call_pair(struct call *x, struct span pairs, struct span name, struct span *out)
{
    struct span one, key, value;
    bool found = false;

    *out = SPAN_NONE;
    while (pairs.n > 0) {
        (void)span_cut(pairs, '&', &one, &pairs);
        (void)span_cut(one, '=', &key, &value);
        if (!span_eq(key, name))
            continue;
        if (found || call_decode(x, value, out) != 0)
            return -1;
        found = true;
    }
    return 0;
}

int call_query(struct call *x, const char *name, struct span *out)
{
    return call_pair(x, x->head.query, span_str(name), out);
}

struct span call_field(const struct call *x, struct span name)
{
    const struct http_field *f = http_find(&x->head, name);

    return f ? f->value : SPAN_NONE;
}

/* --- envd's calls ------------------------------------------------------------------ */

const struct json *call_message(struct call *x)
{
    struct envelope e = {0, dynbuf_span(&x->body)};
    size_t used;

    if (x->form == CALL_STREAM && (envelope_take(dynbuf_span(&x->body), DOCK_BODY_MAX, &e, &used) != ENVELOPE_FRAME ||
                                   used != x->body.n || e.flags != 0)) {
        reply_no(x, 400, "the body is not one frame of Connect that is not compressed");
        return NULL;
    }
    x->json = json_parse(e.payload.n ? e.payload : SPAN("{}"), &x->arena);
    if (x->json && x->json->type == JSON_OBJECT)
        return x->json;
    reply_no(x, 400, "the message is not one JSON object without duplicate members");
    return NULL;
}

uint64_t call_timeout_s(const struct call *x)
{
    uint64_t ms;

    if (span_u64(call_field(x, SPAN("connect-timeout-ms")), UINT64_C(1) << 40, &ms) != 0 || ms == 0)
        return TIMEOUT_MAX_S;
    ms = (ms + 999) / 1000;
    return ms < TIMEOUT_MAX_S ? ms : TIMEOUT_MAX_S;
}

int call_frame(struct call *x, uint8_t flags, struct span json)
{
    struct dynbuf b;

    dynbuf_init(&b, json.n + ENVELOPE_HEAD);
    int rc = envelope_put(&b, flags, json) == 0 ? call_piece(x, dynbuf_span(&b)) : -1;
    dynbuf_free(&b);
    return rc;
}

void call_frame_end(struct call *x)
{
    if (call_frame(x, ENVELOPE_END, SPAN("{}")) == 0)
        call_stream_end(x, true);
}

void call_frame_no(struct call *x, unsigned status, struct span words)
{
    struct dynbuf text;

    dynbuf_init(&text, END_MAX);
    put_end(&text, reply_code(status), words);
    if (call_frame(x, ENVELOPE_END, dynbuf_span(&text)) == 0)
        call_stream_end(x, true);
    dynbuf_free(&text);
}
