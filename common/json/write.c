#include "common/json/json.h"
#include "common/text/utf8.h"

enum { WRITE_DEPTH_MAX = 63 };

static void fail(struct jsonw *w)
{
    dynbuf_free(w->out);
    w->out->failed = true;
}

static void put(struct jsonw *w, struct span s)
{
    (void)dynbuf_add(w->out, s); /* a failure sticks */
}

/* Before a key or a value: the comma if something stands before it on this level. */
static struct span comma(struct jsonw *w)
{
    bool due = w->comma >> w->depth & 1;
    w->comma |= (uint64_t)1 << w->depth;
    return due ? SPAN(",") : SPAN_NONE;
}

static void before_value(struct jsonw *w)
{
    put(w, comma(w));
}

void jsonw_begin(struct jsonw *w, struct dynbuf *out)
{
    *w = (struct jsonw){.out = out};
}

static void open_level(struct jsonw *w, struct span bracket)
{
    before_value(w);
    put(w, bracket);
    if (w->depth == WRITE_DEPTH_MAX) {
        fail(w);
        return;
    }
    w->depth++;
    w->comma &= ~((uint64_t)1 << w->depth);
}

static void close_level(struct jsonw *w, struct span bracket)
{
    if (w->depth == 0) {
        fail(w);
        return;
    }
    w->depth--;
    put(w, bracket);
}

void jsonw_object(struct jsonw *w)
{
    open_level(w, SPAN("{"));
}

void jsonw_array(struct jsonw *w)
{
    open_level(w, SPAN("["));
}

void jsonw_end_object(struct jsonw *w)
{
    close_level(w, SPAN("}"));
}

void jsonw_end_array(struct jsonw *w)
{
    close_level(w, SPAN("]"));
}

static void put_escaped(struct jsonw *w, uint8_t c)
{
    static const char letters[] = "btn fr"; /* from 0x08 on; 0x0b has none */
    if (c == '"' || c == '\\')
        (void)dynbuf_addf(w->out, "\\%c", c);
    else if (c >= 0x08 && c <= 0x0d && c != 0x0b)
        (void)dynbuf_addf(w->out, "\\%c", letters[c - 0x08]);
    else if (c < 0x20 || c == 0x7f)
        (void)dynbuf_addf(w->out, "\\u%04x", c);
    else
        put(w, SPAN("\xef\xbf\xbd")); /* not UTF-8 */
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* How many bytes from the start need no second look; eight at a time. */
static size_t plain_run(struct span s)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    size_t i = 0;
    for (; s.n - i >= 8; i += 8) {
        uint64_t v;
        memcpy(&v, s.p + i, 8);
        uint64_t quote = v ^ ones * '"', slash = v ^ ones * '\\';
        /* A byte that is over 0x7f, under 0x20, 0x7f, a quote or a backslash; now and then one beside such. */
        if ((v | (v - ones * 0x20) | (v + ones) | (quote - ones) | (slash - ones)) & high)
            break;
    }
    while (i < s.n && is_plain(s.p[i]))
        i++;
    return i;
}

/* before, the string in quotes, after: as a rule one append. */
static void put_string(struct jsonw *w, struct span before, struct span s, struct span after)
{
    size_t i = plain_run(s), from = 0;
    if (i == s.n) {
        uint8_t *to = dynbuf_room(w->out, before.n + s.n + after.n + 2);
        if (to == NULL)
            return;
        if (before.n)
            memcpy(to, before.p, before.n);
        to += before.n;
        *to++ = '"';
        if (s.n)
            memcpy(to, s.p, s.n);
        to[s.n] = '"';
        if (after.n)
            memcpy(to + s.n + 1, after.p, after.n);
        dynbuf_grew(w->out, before.n + s.n + after.n + 2);
        return;
    }
    put(w, before);
    put(w, SPAN("\""));
    while (i < s.n) {
        uint8_t c = s.p[i];
        size_t n = is_plain(c) ? 1 : c >= 0x80 ? utf8_char(span_from(s, i)) : 0;
        if (n) {
            i += n;
            continue;
        }
        put(w, span_of(s.p + from, i - from));
        put_escaped(w, c);
        from = ++i;
    }
    put(w, span_from(s, from));
    put(w, SPAN("\""));
    put(w, after);
}

void jsonw_name(struct jsonw *w, struct span key)
{
    put_string(w, comma(w), key, SPAN(":"));
    w->comma &= ~((uint64_t)1 << w->depth); /* its value follows without one */
}

void jsonw_key(struct jsonw *w, const char *key)
{
    jsonw_name(w, span_str(key));
}

void jsonw_string(struct jsonw *w, struct span s)
{
    put_string(w, comma(w), s, SPAN_NONE);
}

void jsonw_u64(struct jsonw *w, uint64_t v)
{
    char text[20];
    size_t at = sizeof(text);
    do
        text[--at] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    before_value(w);
    put(w, span_of(text + at, sizeof(text) - at));
}

void jsonw_bool(struct jsonw *w, bool v)
{
    before_value(w);
    put(w, v ? SPAN("true") : SPAN("false"));
}

void jsonw_kv(struct jsonw *w, const char *key, struct span s)
{
    jsonw_key(w, key);
    jsonw_string(w, s);
}

void jsonw_kv_u64(struct jsonw *w, const char *key, uint64_t v)
{
    jsonw_key(w, key);
    jsonw_u64(w, v);
}

void jsonw_kv_bool(struct jsonw *w, const char *key, bool v)
{
    jsonw_key(w, key);
    jsonw_bool(w, v);
}

void jsonw_kv_object(struct jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_object(w);
}

void jsonw_kv_array(struct jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_array(w);
}

void jsonw_raw(struct jsonw *w, struct span json)
{
    before_value(w);
    put(w, json);
}

void jsonw_kv_raw(struct jsonw *w, const char *key, struct span json)
{
    jsonw_key(w, key);
    jsonw_raw(w, json);
}

/* As deep as the parser lets it be. */
void jsonw_tree(struct jsonw *w, const struct json *value)
{
    switch (value->type) {
    case JSON_BOOL: jsonw_bool(w, value->truth); break;
    case JSON_NUMBER: jsonw_raw(w, value->text); break;
    case JSON_STRING: jsonw_string(w, value->text); break;
    case JSON_ARRAY: jsonw_array(w); break;
    case JSON_OBJECT: jsonw_object(w); break;
    default: jsonw_raw(w, SPAN("null"));
    }
    for (const struct json *c = value->child; c != NULL && dynbuf_ok(w->out); c = c->next) {
        if (value->type == JSON_OBJECT)
            jsonw_name(w, c->key);
        jsonw_tree(w, c);
    }
    if (value->type == JSON_ARRAY)
        jsonw_end_array(w);
    else if (value->type == JSON_OBJECT)
        jsonw_end_object(w);
}
