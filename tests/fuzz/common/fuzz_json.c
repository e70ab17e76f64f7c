/* A text that parses, written again, parses to the same tree. */
#include "common/json/json.h"
#include "common/text/utf8.h"
#include "tests/fuzz/fuzz.h"

static void write_value(struct jsonw *w, const struct json *j)
{
    char *key = NULL;
    if (j->type == JSON_NUMBER)
        jsonw_raw(w, j->text);
    else if (j->type == JSON_STRING)
        jsonw_string(w, j->text);
    else if (j->type == JSON_BOOL)
        jsonw_bool(w, j->truth);
    else if (j->type == JSON_NULL)
        jsonw_raw(w, SPAN("null"));
    else if (j->type == JSON_OBJECT)
        jsonw_object(w);
    else
        jsonw_array(w);
    for (const struct json *c = j->child; c; c = c->next) {
        if (j->type == JSON_OBJECT) {
            MUST_HOLD(asprintf(&key, "%.*s", SPAN_FMT(c->key)) == (int)c->key.n);
            jsonw_key(w, key);
            free(key);
        }
        write_value(w, c);
    }
    if (j->type == JSON_OBJECT)
        jsonw_end_object(w);
    else if (j->type == JSON_ARRAY)
        jsonw_end_array(w);
}

static void same(const struct json *a, const struct json *b)
{
    MUST_HOLD(a->type == b->type && a->truth == b->truth && a->count == b->count);
    MUST_HOLD(span_eq(a->text, b->text) && span_eq(a->key, b->key));
    const struct json *x = a->child, *y = b->child;
    for (; x && y; x = x->next, y = y->next)
        same(x, y);
    MUST_HOLD(x == NULL && y == NULL);
}

static void clean(const struct json *j)
{
    size_t count = 0;
    MUST_HOLD(j->type != JSON_BAD && utf8_run(j->text) == j->text.n && utf8_run(j->key) == j->key.n);
    MUST_HOLD(span_index(j->key, 0) == j->key.n);
    for (const struct json *c = j->child; c; c = c->next, count++) {
        clean(c);
        if (j->type == JSON_OBJECT)
            MUST_HOLD(json_get(j, c->key) == c); /* no second of that name */
    }
    MUST_HOLD(count == j->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a, again;
    struct dynbuf out;
    struct jsonw w;
    if (n > 1 << 16)
        return 0;
    uint8_t *p = fuzz_copy(span_of(data, n));
    arena_init(&a, 1 << 26);
    arena_init(&again, 1 << 26);
    dynbuf_init(&out, 1 << 22);
    const struct json *j = json_parse(span_of(p, n), &a);
    free(p); /* the tree does not point into the text */
    if (j) {
        clean(j);
        jsonw_begin(&w, &out);
        write_value(&w, j);
        if (dynbuf_ok(&out)) { /* it is not when it is nested 64 deep */
            const struct json *k = json_parse(dynbuf_span(&out), &again);
            MUST_HOLD(k);
            same(j, k);
        }
    }
    dynbuf_free(&out);
    arena_free(&a);
    arena_free(&again);
    return 0;
}
