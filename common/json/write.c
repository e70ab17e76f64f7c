#include "common/json/json.h"
#include "common/utf8.h"

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
static void comma(struct jsonw *w)
{
    if (w->comma >> w->depth & 1)
        put(w, SPAN(","));
}

static void before_value(struct jsonw *w)
{
    comma(w);
    w->comma |= (uint64_t)1 << w->depth;
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

static void put_string(struct jsonw *w, struct span s)
{
    size_t from = 0, i = 0;
    put(w, SPAN("\""));
    while (i < s.n) {
        uint8_t c = s.p[i];
        bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
        size_t n = plain ? 1 : c >= 0x80 ? utf8_char(span_from(s, i)) : 0;
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
}

void jsonw_key(struct jsonw *w, const char *key)
{
    comma(w);
    put_string(w, span_str(key));
    put(w, SPAN(":"));
    w->comma &= ~((uint64_t)1 << w->depth); /* its value follows without one */
}

void jsonw_string(struct jsonw *w, struct span s)
{
    before_value(w);
    put_string(w, s);
}

void jsonw_u64(struct jsonw *w, uint64_t v)
{
    before_value(w);
    (void)dynbuf_addf(w->out, "%llu", (unsigned long long)v);
}

void jsonw_i64(struct jsonw *w, int64_t v)
{
    before_value(w);
    (void)dynbuf_addf(w->out, "%lld", (long long)v);
}

void jsonw_bool(struct jsonw *w, bool v)
{
    before_value(w);
    put(w, v ? SPAN("true") : SPAN("false"));
}

void jsonw_null(struct jsonw *w)
{
    before_value(w);
    put(w, SPAN("null"));
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

void jsonw_raw(struct jsonw *w, struct span json)
{
    before_value(w);
    put(w, json);
}
