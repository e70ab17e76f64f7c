/* What our JSON Schema says of schemas and instances, for tests/differential/schema.py.
 *
 * in:  a line for each pair: "f" when formats are asserted, else "-", the schema, the instance, separated by tabs
 * out: {"verdict": "refused", "path": pointer into the schema, "keyword", "words"}, or the verdict of schema_validate
 *      with the path into the instance, whether the place is below it, and the keyword */
#include <stdio.h>
#include <stdlib.h>

#include "common/json/json.h"
#include "common/schema/schema.h"

enum { ANSWER_MAX = 1 << 16 };

static void answer(struct span options, struct span text, struct span instance, struct jsonw *w)
{
    struct schema *s;
    struct schema_fault f;
    struct schema_miss m = {.below = false};
    if (schema_compile(text, span_eq(options, SPAN("f")) ? SCHEMA_FORMATS : SCHEMA_PLAIN, &s, &f) != 0) {
        jsonw_kv(w, "verdict", SPAN("refused"));
        jsonw_kv(w, "path", span_str(f.pointer));
        jsonw_kv(w, "keyword", span_str(f.keyword));
        jsonw_kv(w, "words", span_str(f.why.text));
        return;
    }
    jsonw_kv(w, "verdict", span_str(schema_verdict_name(schema_validate(s, instance, &m))));
    jsonw_kv(w, "path", span_str(m.path));
    jsonw_kv_bool(w, "below", m.below);
    jsonw_kv(w, "keyword", span_str(m.keyword));
    schema_free(&s);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        struct span rest = span_of(line, (size_t)n), options, text, instance;
        struct dynbuf out;
        struct jsonw w;
        rest.n -= rest.p[rest.n - 1] == '\n';
        if (!span_cut(rest, '\t', &options, &rest) || !span_cut(rest, '\t', &text, &instance))
            return 2;
        dynbuf_init(&out, ANSWER_MAX);
        jsonw_begin(&w, &out);
        jsonw_object(&w);
        answer(options, text, instance, &w);
        jsonw_end_object(&w);
        if (!dynbuf_ok(&out))
            return 2;
        printf("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
        dynbuf_free(&out);
    }
    free(line);
    return 0;
}
