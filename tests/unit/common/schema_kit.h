/* What the tests of schemas share. */
#ifndef TESTS_UNIT_COMMON_SCHEMA_KIT_H
#define TESTS_UNIT_COMMON_SCHEMA_KIT_H

#include <stdlib.h>

#include "common/dynbuf.h"
#include "common/json/json.h"
#include "common/schema/schema.h"
#include "tests/kit.h"

/* Single quotes for double ones, so that tables can be read. The caller frees. */
static inline struct span quoted(const char *text)
{
    size_t n = strlen(text);
    uint8_t *p = malloc(n + 1);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = text[i] == '\'' ? '"' : (uint8_t)text[i];
    p[n] = 0;
    return span_of(p, n);
}

static inline struct schema *compiled(struct span text, unsigned options)
{
    struct schema *s = NULL;
    struct schema_fault f;
    if (schema_compile(text, options, &s, &f) != 0)
        fail_msg("refused at %s (%s): %s: %.*s", f.pointer, f.keyword, f.why.text, SPAN_FMT(span_first(text, 200)));
    return s;
}

/* A text with `one` n times in it, between two others. */
static inline struct dynbuf many(const char *before, const char *one, size_t n, const char *after)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024 * 1024);
    (void)dynbuf_addf(&b, "%s", before);
    for (size_t i = 0; i < n; i++)
        (void)dynbuf_addf(&b, "%s%s", i ? "," : "", one);
    (void)dynbuf_addf(&b, "%s", after);
    assert_true(dynbuf_ok(&b));
    return b;
}

#endif
