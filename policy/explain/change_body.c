/* A body changed in one field, so that a condition of a rule holds of it. */
#include "policy/explain/change.h"

#include <stdio.h>

static struct span digits_of(struct making *k, uint64_t n)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    return arena_copy(k->a, span_str(digits));
}

/* What would do for a condition; p NULL: that it is not there. */
static struct span wanted(struct making *k, const struct img_cond *c)
{
    switch (c->op) {
    case COND_ABSENT: return SPAN_NONE;
    case COND_EXISTS: return SPAN("x");
    case COND_AT_MOST:
    case COND_AT_LEAST: return digits_of(k, c->number);
    default: break;
    }
    if (c->texts.n)
        return img_text(k->p, c->texts, 0);
    return change_witness(k, img_glob(k->p, c->globs, 0), SPAN_NONE, 0);
}

static bool blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Where the value of the one member of this name begins, or body.n: there is none, or more than one. */
static size_t member_value(struct span body, struct span name)
{
    size_t found = body.n;
    for (size_t i = 0; i + name.n + 2 < body.n; i++) {
        struct span rest = span_from(body, i + 1);
        if (body.p[i] != '"' || !span_starts(rest, name) || rest.p[name.n] != '"')
            continue;
        size_t at = i + name.n + 2;
        while (at < body.n && blank(body.p[at]))
            at++;
        if (at == body.n || body.p[at] != ':')
            continue;
        for (at++; at < body.n && blank(body.p[at]);)
            at++;
        if (found != body.n)
            return body.n;
        found = at;
    }
    return found;
}

/* The end of a text, number or word that begins here; `at` when it is a list or an object. */
static size_t value_end(struct span body, size_t at)
{
    size_t i = at;
    if (at < body.n && body.p[at] == '"') {
        for (i++; i < body.n && body.p[i] != '"'; i++)
            i += body.p[i] == '\\';
        return i < body.n ? i + 1 : at;
    }
    while (i < body.n && !blank(body.p[i]) && body.p[i] != ',' && body.p[i] != '}' && body.p[i] != ']')
        i += body.p[i] == '{' || body.p[i] == '[' ? body.n : 1;
    return i <= body.n ? i : at;
}

static bool stands_bare(struct span s)
{
    uint64_t n;
    return span_u64(s, UINT64_MAX, &n) == 0 || span_eq(s, SPAN("true")) || span_eq(s, SPAN("false")) ||
           span_eq(s, SPAN("null"));
}

static void put_value(struct dynbuf *b, struct span value, bool text)
{
    struct jsonw w;
    jsonw_begin(&w, b);
    if (!text && stands_bare(value))
        jsonw_raw(&w, value);
    else
        jsonw_string(&w, value);
}

/* In place of what is there, or at the front of the whole. */
static struct span json_with(struct making *k, struct span body, struct span name, struct span value, bool top)
{
    size_t at = member_value(body, name), end = value_end(body, at), open = span_index(body, '{');
    struct dynbuf b;
    dynbuf_init(&b, BODY_MADE_MAX);
    if (at < body.n && end > at) {
        (void)dynbuf_add(&b, span_first(body, at));
        put_value(&b, value, body.p[at] == '"');
        (void)dynbuf_add(&b, span_from(body, end));
    } else if (top && at == body.n && open < body.n) {
        (void)dynbuf_add(&b, span_first(body, open + 1));
        put_value(&b, name, true);
        (void)dynbuf_add_byte(&b, ':');
        put_value(&b, value, false);
        (void)dynbuf_add(&b, span_index(span_from(body, open), '"') + open < body.n ? SPAN(",") : SPAN_NONE);
        (void)dynbuf_add(&b, span_from(body, open + 1));
    }
    return arena_keep(k->a, &b);
}

static struct span last_token(struct span pointer)
{
    while (span_index(pointer, '/') < pointer.n)
        pointer = span_from(pointer, span_index(pointer, '/') + 1);
    return pointer;
}

bool change_body(struct making *k)
{
    struct request *r = &k->out->request;
    if (k->nth >= k->m->body.n || !r->has_body || !r->body_complete)
        return false;
    const struct img_cond *c = img_at(k->p, IMG_COND, k->m->body.first + k->nth);
    struct span key = img_span(k->p, c->key), value = wanted(k, c), token = last_token(key);
    if (c->kind != COND_FORM && c->kind != COND_JSON)
        return false;
    if (c->kind == COND_FORM) {
        r->body = change_params_with(k, r->body, key, value);
    } else {
        if (value.p == NULL || token.n == 0 || span_index(token, '~') < token.n)
            return false;
        r->body = json_with(k, r->body, token, value, key.n == token.n + 1);
    }
    change_say(k, value.p ? "body" : "a body without", key, value);
    return r->body.n > 0;
}
