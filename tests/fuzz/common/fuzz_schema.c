/* A schema, a zero byte, an instance: `not` turns the verdict round, `allOf` and a second time do not change it, and
 * what is told leads to a place that is there. */
#include "common/json/json.h"
#include "common/schema/schema.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static bool leads_somewhere(struct span text, const char *pointer)
{
    struct arena a;
    arena_init(&a, 1 << 26);
    const struct json *j = json_parse(text, &a);
    bool there = j == NULL || json_pointer(j, span_str(pointer)) != NULL;
    arena_free(&a);
    return there;
}

static bool is_known(enum schema_verdict v)
{
    return v == SCHEMA_FITS || v == SCHEMA_MISFIT;
}

/* The verdict of the schema inside another one; SCHEMA_TOO_COSTLY when that is none. */
static enum schema_verdict inside(const char *before, struct span text, const char *after, struct span instance)
{
    struct dynbuf b;
    struct schema *s;
    struct schema_fault f;
    struct schema_miss m;
    enum schema_verdict v = SCHEMA_TOO_COSTLY;
    dynbuf_init(&b, 1 << 20);
    (void)dynbuf_addf(&b, "%s", before);
    (void)dynbuf_add(&b, text);
    (void)dynbuf_addf(&b, "%s", after);
    MUST_HOLD(dynbuf_ok(&b));
    if (schema_compile(dynbuf_span(&b), SCHEMA_FORMATS, &s, &f) == 0) {
        v = schema_validate(s, instance, &m);
        schema_free(&s);
    }
    dynbuf_free(&b);
    return v;
}

/* Does it mean the same as a part of another one? */
static bool is_movable(struct span text)
{
    return span_find(text, SPAN("$ref")) == text.n && span_find(text, SPAN("\\u")) == text.n &&
           span_find(text, SPAN("$schema")) == text.n && span_find(text, SPAN("$id")) == text.n;
}

static void hold(const struct schema *s, struct span text, struct span instance)
{
    struct schema_miss m, again;
    enum schema_verdict v = schema_validate(s, instance, &m);
    MUST_HOLD(schema_validate(s, instance, &again) == v);
    MUST_HOLD(strcmp(m.path, again.path) == 0 && m.below == again.below && m.keyword == again.keyword);
    MUST_HOLD((v == SCHEMA_MISFIT) == (m.keyword != NULL));
    MUST_HOLD(leads_somewhere(instance, m.path));
    reached |= is_known(v);
    if (!is_known(v) || !is_movable(text))
        return;
    enum schema_verdict other = inside("{\"not\":", text, "}", instance);
    MUST_HOLD(!is_known(other) || other != v);
    other = inside("{\"allOf\":[", text, "]}", instance);
    MUST_HOLD(!is_known(other) || other == v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span text, instance;
    struct schema *s;
    struct schema_fault f;
    if (n > 1 << 16)
        return 0;
    (void)span_cut(span_of(data, n), 0, &text, &instance);
    uint8_t *p = fuzz_copy(text), *q = fuzz_copy(instance);
    text = span_of(p, text.n);
    instance = span_of(q, instance.n);
    if (schema_compile(text, SCHEMA_FORMATS, &s, &f) == 0) {
        hold(s, text, instance);
        schema_free(&s);
    } else {
        MUST_HOLD(f.why.text[0] && leads_somewhere(text, f.pointer));
    }
    free(p);
    free(q);
    return 0;
}
