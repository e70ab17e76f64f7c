/* Ways to answer, and to read what was sent. */
#include <stdio.h>

#include "common/text/utf8.h"
#include "common/id.h"
#include "common/text/visible.h"
#include "web-approval/ask.h"

bool exchange_is_api(const struct exchange *x)
{
    return x->place != PLACE_PAGE || span_starts(x->head.path, SPAN("/api/"));
}

void reply_json(struct exchange *x, unsigned status, struct jsonw *w)
{
    x->status = status;
    x->type = "application/json";
    dynbuf_reset(&x->out);
    jsonw_begin(w, &x->out);
}

void reply_empty(struct exchange *x, unsigned status)
{
    x->status = status;
    x->type = NULL;
    dynbuf_reset(&x->out);
}

void reply_problem(struct exchange *x, unsigned status, const char *title, const char *fmt, ...)
{
    char detail[DESK_TEXT];
    struct jsonw w;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);
    dynbuf_free(&x->out); /* also out of a failed state */
    if (!exchange_is_api(x)) {
        page_problem(x, status, title, detail);
        return;
    }
    reply_json(x, status, &w);
    x->type = "application/problem+json";
    jsonw_object(&w);
    jsonw_kv(&w, "title", span_str(title));
    jsonw_kv_u64(&w, "status", status);
    jsonw_kv(&w, "detail", span_str(detail));
    jsonw_end_object(&w);
}

void reply_unable(struct exchange *x, const struct err *e)
{
    reply_problem(x, 503, "Not possible now", "%s", e->text);
}

/* The media type, without parameters. */
static bool media_is(const struct exchange *x, struct span want)
{
    const struct http_field *type = http_find(&x->head, SPAN("content-type"));
    struct span media = SPAN_NONE, rest;

    if (type)
        (void)span_cut(type->value, ';', &media, &rest);
    return span_ieq(span_trim(media), want);
}

static int member_take(struct exchange *x, struct member *m, size_t n, const struct json *j)
{
    for (size_t i = 0; i < n; i++) {
        if (!span_eq(j->key, span_str(m[i].name)))
            continue;
        if (m[i].type != JSON_BAD && j->type != m[i].type) {
            reply_problem(x, 400, "Bad request", "the member `%s` has the wrong type", m[i].name);
            return -1;
        }
        m[i].value = j;
        return 0;
    }
    reply_problem(x, 400, "Bad request", "the body has a member that is not known here; leave it out");
    return -1;
}

int body_members(struct exchange *x, struct member *m, size_t n)
{
    struct span text = x->body.n ? x->body : SPAN("{}");
    const struct json *j;

    if (x->body.n && !media_is(x, SPAN("application/json"))) {
        reply_problem(x, 415, "Unsupported media type", "send application/json");
        return -1;
    }
    j = json_parse(text, &x->arena);
    if (!j || j->type != JSON_OBJECT) {
        reply_problem(x, 400, "Bad request", "the body is not one JSON object without duplicate members");
        return -1;
    }
    for (const struct json *c = j->child; c; c = c->next)
        if (member_take(x, m, n, c) != 0)
            return -1;
    for (size_t i = 0; i < n; i++)
        if (m[i].required && !m[i].value) {
            reply_problem(x, 400, "Bad request", "the member `%s` is missing", m[i].name);
            return -1;
        }
    return 0;
}

/* %xx and + decoded, into the arena. */
static int decode(struct exchange *x, struct span in, struct span *out)
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

static int pair_find(struct exchange *x, struct span pairs, const char *name, struct span *out)
{
    struct span one, key, value;
    bool found = false;

    *out = SPAN_NONE;
    while (pairs.n > 0) {
        (void)span_cut(pairs, '&', &one, &pairs);
        (void)span_cut(one, '=', &key, &value);
        if (!span_eq(key, span_str(name)))
            continue;
        if (found || decode(x, value, out) != 0)
            return -1;
        found = true;
    }
    return 0;
}

int form_field(struct exchange *x, const char *name, struct span *out)
{
    if (media_is(x, SPAN("application/x-www-form-urlencoded")) && pair_find(x, x->body, name, out) == 0)
        return 0;
    reply_problem(x, 400, "Bad request", "this is not the form that the page has");
    return -1;
}

int query_field(struct exchange *x, const char *name, struct span *out)
{
    if (pair_find(x, x->head.query, name, out) == 0)
        return 0;
    reply_problem(x, 400, "Bad request", "the query has `%s` twice, or it cannot be decoded", name);
    return -1;
}

int reason_clean(struct exchange *x, struct span in, struct span *out)
{
    uint8_t *p = arena_alloc(&x->arena, in.n + 1);
    size_t n = 0;

    in = span_trim(in);
    if (in.n > REASON_MAX || utf8_run(in) != in.n || !p) {
        reply_problem(x, 400, "Bad request", "a reason is UTF-8 text of at most %d bytes", REASON_MAX);
        return -1;
    }
    for (size_t i = 0, len; i < in.n; i += len) {
        char escape[VISIBLE_ESCAPE_MAX];
        enum visible_kind k = visible_char(span_from(in, i), &len, escape);
        if (k == VISIBLE_ASCII || k == VISIBLE_OTHER) {
            memcpy(p + n, in.p + i, len);
            n += len;
        } else {
            p[n++] = ' ';
        }
    }
    *out = span_trim(span_of(p, n));
    return 0;
}
