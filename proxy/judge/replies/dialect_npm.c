/* npm prints the status line's reason phrase and the member "error" of a JSON body;
 * pip prints the reason phrase alone (of an index only with -vv). */
#include "proxy/judge/replies/dialect.h"

#include "common/json/json.h"

enum { TEXT_MAX = 16 * 1024 };

int dialect_npm(const struct refusal *r, struct arena *a, struct wire_reply *out)
{
    struct dynbuf b, words;
    struct jsonw w;
    struct span text;
    dynbuf_init(&words, TEXT_MAX);
    dialect_lines(r, &words);
    for (size_t i = 0; i < words.n; i++)
        if (words.p[i] == '\n')
            words.p[i] = ' ';
    if (dialect_keep(&words, a, &text) != 0)
        return -1;
    dynbuf_init(&b, 8 * TEXT_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "error", span_trim(text));
    jsonw_kv(&w, "code", span_str(r->code));
    if (r->ticket.n)
        jsonw_kv(&w, "ticket", r->ticket);
    jsonw_kv_bool(&w, "retry", r->retry);
    jsonw_end_object(&w);
    dialect_field(&out->head, SPAN("Content-Type"), SPAN("application/json"));
    return dialect_keep(&b, a, &out->body);
}

int dialect_pip(const struct refusal *r, struct arena *a, struct wire_reply *out)
{
    struct dynbuf b;
    dynbuf_init(&b, TEXT_MAX);
    dialect_lines(r, &b);
    dialect_field(&out->head, SPAN("Content-Type"), SPAN("text/plain; charset=utf-8"));
    return dialect_keep(&b, a, &out->body);
}
