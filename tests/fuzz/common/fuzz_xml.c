/* A document that is taken, written again from its tree, is taken as the same tree; and it does not matter whether
 * memory is scarce: it is refused then. */
#include "common/json/xml.h"
#include "common/text/utf8.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void write_in(struct dynbuf *out, const struct json *j, struct span name)
{
    for (const struct json *c = j->child; c != NULL; c = c->next) {
        struct span own = j->type == JSON_ARRAY ? name : c->key;
        MUST_HOLD(own.n > 0);
        if (c->type == JSON_ARRAY) {
            write_in(out, c, own);
            continue;
        }
        (void)dynbuf_addf(out, "<%.*s", SPAN_FMT(own));
        if (c->type == JSON_OBJECT && c->text.n)
            (void)dynbuf_addf(out, " xmlns='%.*s'", SPAN_FMT(c->text));
        (void)dynbuf_add_byte(out, '>');
        if (c->type == JSON_STRING)
            xml_put_text(out, c->text);
        write_in(out, c, SPAN_NONE);
        (void)dynbuf_addf(out, "</%.*s>", SPAN_FMT(own));
    }
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void clean(const struct json *j, unsigned depth)
{
    size_t count = 0;
    MUST_HOLD(j->type == JSON_STRING || j->type == JSON_OBJECT || (j->type == JSON_ARRAY && j->count > 1));
    MUST_HOLD(depth <= 2 * XML_DEPTH_MAX && utf8_run(j->text) == j->text.n);
    if (j->type == JSON_STRING && j->text.n)
        MUST_HOLD(!is_blank(j->text.p[0]) && !is_blank(j->text.p[j->text.n - 1]));
    for (const struct json *c = j->child; c != NULL; c = c->next, count++) {
        clean(c, depth + 1);
        MUST_HOLD((c->key.n > 0) == (j->type == JSON_OBJECT));
        if (j->type == JSON_OBJECT)
            MUST_HOLD(json_get(j, c->key) == c);
    }
    MUST_HOLD(count == j->count);
}

static void same(const struct json *a, const struct json *b)
{
    MUST_HOLD(a->type == b->type && span_eq(a->text, b->text) && span_eq(a->key, b->key));
    const struct json *x = a->child, *y = b->child;
    for (; x && y; x = x->next, y = y->next)
        same(x, y);
    MUST_HOLD(x == NULL && y == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a, again, scarce;
    struct dynbuf out;
    if (n > 1 << 16)
        return 0;
    uint8_t *p = fuzz_copy(span_of(data, n));
    arena_init(&a, 1 << 22);
    arena_init(&again, 1 << 22);
    arena_init(&scarce, n);
    dynbuf_init(&out, 1 << 20);
    (void)!xml_parse(span_of(p, n), &scarce);
    const struct json *j = xml_parse(span_of(p, n), &a);
    free(p); /* the tree does not point into the text */
    if (j != NULL) {
        reached = true;
        clean(j, 0);
        MUST_HOLD(j->type == JSON_OBJECT && j->count == 1);
        write_in(&out, j, SPAN_NONE);
        MUST_HOLD(dynbuf_ok(&out));
        const struct json *k = xml_parse(dynbuf_span(&out), &again);
        MUST_HOLD(k != NULL);
        same(j, k);
    }
    dynbuf_free(&out);
    arena_free(&a);
    arena_free(&again);
    arena_free(&scarce);
    return 0;
}
