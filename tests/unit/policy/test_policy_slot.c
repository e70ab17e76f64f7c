/* Where a credential goes into a query, a path, a form and a JSON body, and where it goes nowhere (C40, D14, D26). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "common/dynbuf.h"
#include "common/json/json.h"
#include "policy/slot.h"

#define FORM "application/x-www-form-urlencoded"
#define JSON "application/json"

static struct credential credential(enum slot_kind k)
{
    static const char *const where[SLOT_KINDS] = {
        [SLOT_QUERY] = "key", [SLOT_PATH] = "/bot", [SLOT_FORM] = "key", [SLOT_JSON] = "/a/b~1c"};
    return (struct credential){.name = SPAN("c"), .slot = k, .where = span_str(where[k])};
}

struct row {
    enum slot_kind slot;
    const char *text; /* query, path or body */
    const char *with; /* NULL: there is no slot */
    const char *own;  /* NULL: nothing */
    const char *type, *query;
};

static const struct row rows[] = {
    {SLOT_QUERY, "", "key=~c~", NULL, NULL, NULL},
    {SLOT_QUERY, "a=1", "a=1&key=~c~", NULL, NULL, NULL},
    {SLOT_QUERY, "key=x", "key=~c~", "x", NULL, NULL},
    {SLOT_QUERY, "key=%20x&a=1&&b", "a=1&b&key=~c~", " x", NULL, NULL},
    {SLOT_QUERY, "k%65y=x&key=y", "key=~c~", "y", NULL, NULL},
    {SLOT_QUERY, "key", "key=~c~", "", NULL, NULL},
    {SLOT_QUERY, "monkey=1&keys=2&q=a%26b", "monkey=1&keys=2&q=a%26b&key=~c~", NULL, NULL, NULL},
    {SLOT_QUERY, "KEY=x", NULL, NULL, NULL, NULL},
    {SLOT_QUERY, "key[]=x", NULL, NULL, NULL, NULL},
    {SLOT_QUERY, "a=1;key=x", NULL, NULL, NULL, NULL},
    {SLOT_QUERY, "key=1;b=2", NULL, NULL, NULL, NULL},
    {SLOT_QUERY, "a=1%26key=x", NULL, NULL, NULL, NULL},
    {SLOT_QUERY, "a=1%2526key=x", NULL, NULL, NULL, NULL},
    {SLOT_QUERY, "%256bey=x", NULL, NULL, NULL, NULL},
    {SLOT_PATH, "/botx", "/bot~c~", "x", NULL, NULL},
    {SLOT_PATH, "/bot12:ab/sendMessage", "/bot~c~/sendMessage", "12:ab", NULL, NULL},
    {SLOT_PATH, "/bot/sendMessage", NULL, NULL, NULL, NULL},
    {SLOT_PATH, "/bot", NULL, NULL, NULL, NULL},
    {SLOT_PATH, "/", NULL, NULL, NULL, NULL},
    {SLOT_PATH, "/x/botx", NULL, NULL, NULL, NULL},
    {SLOT_FORM, "a=1&key=x", "a=1&key=~c~", "x", FORM, NULL},
    {SLOT_FORM, "", "key=~c~", NULL, FORM, NULL},
    {SLOT_FORM, "a=1", NULL, NULL, FORM, "key=x"},
    {SLOT_FORM, "a=1;key=x", NULL, NULL, FORM, NULL},
    {SLOT_FORM, "a=1", NULL, NULL, JSON, NULL},
    {SLOT_FORM, "a=1", NULL, NULL, NULL, NULL},
    {SLOT_JSON, "{\"a\":{\"b/c\":\"x\"}}", "{\"a\":{\"b/c\":\"~c~\"}}", "x", JSON, NULL},
    {SLOT_JSON, "{\"a\":{\"b\\/c\":\"\\u0041\\\"\"}}", "{\"a\":{\"b\\/c\":\"~c~\"}}", "A\"", JSON, NULL},
    {SLOT_JSON, "{\"a\":{\"b/c\":1}}", NULL, NULL, JSON, NULL},
    {SLOT_JSON, "{\"a\":{\"b/c\":{}}}", NULL, NULL, JSON, NULL},
    {SLOT_JSON, "{\"a\":{\"b/c\":\"x\",\"B/c\":\"y\"}}", NULL, NULL, JSON, NULL},
    {SLOT_JSON, "{\"A\":{},\"a\":{\"b/c\":\"x\"}}", NULL, NULL, JSON, NULL},
    {SLOT_JSON, "[{\"a\":{\"b/c\":\"x\"}}]", NULL, NULL, JSON, NULL},
    {SLOT_JSON, "{\"a\":{\"b/c\":\"x\"}}", NULL, NULL, JSON, "a=1"},
    {SLOT_JSON, "{\"a\":{\"b/c\":\"x\"}}", NULL, NULL, FORM, NULL},
    {SLOT_JSON, "{\"a\":{\"b/c\":\"x\"}", NULL, NULL, JSON, NULL},
    {SLOT_HEADER, "x", NULL, NULL, NULL, NULL},
    {SLOT_COOKIE, "x", NULL, NULL, NULL, NULL},
};

static struct request request(const struct row *row, struct http_field *type)
{
    struct span text = span_str(row->text);
    struct request r = {.scheme = SPAN("https"), .host = SPAN("a.test"), .method = SPAN("POST"), .path = SPAN("/x")};
    if (row->slot == SLOT_QUERY) {
        r.query = text;
        r.has_query = text.n > 0;
    } else if (row->slot == SLOT_PATH) {
        r.path = text;
    } else {
        r.has_body = r.body_complete = true;
        r.body = text;
    }
    if (row->query != NULL) {
        r.has_query = true;
        r.query = span_str(row->query);
    }
    *type = (struct http_field){SPAN("Content-Type"), span_str(row->type)};
    r.fields = type;
    r.nfields = row->type != NULL;
    return r;
}

static struct span part(enum slot_kind k, const struct slotted *s)
{
    return k == SLOT_QUERY ? s->query : k == SLOT_PATH ? s->path : s->body;
}

static void table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct credential c = credential(row->slot);
        struct http_field type;
        struct request r = request(row, &type);
        struct slotted s;
        struct arena a;
        arena_init(&a, 16 * 1024 * 1024);
        int rc = slot_find(&c, &r, &a, &s);
        if (rc != (row->with ? 0 : -1) || (rc == 0) != (s.why == NULL))
            fail_msg("row %zu, %s: %d, %s", i, row->text, rc, s.why ? s.why : "");
        if (rc == 0) {
            struct span is = part(row->slot, &s);
            if (!span_eq(is, span_str(row->with)) || !slot_has_mark(is, s.at, c.name))
                fail_msg("row %zu: %.*s, the mark at %zu", i, SPAN_FMT(is), s.at);
            assert_int_equal(s.nown > 0, row->own != NULL);
            assert_true(span_eq(s.own, span_str(row->own)));
            size_t at = s.at; /* and once more */
            r.query = s.query;
            r.has_query = s.has_query;
            r.path = s.path;
            r.body = s.body;
            assert_int_equal(slot_find(&c, &r, &a, &s), 0);
            assert_true(span_eq(part(row->slot, &s), is) && s.at == at);
        }
        arena_free(&a);
    }
}

/* A path with an escaped '?' has a query to some. */
static void a_path_that_hides_a_query(void **state)
{
    (void)state;
    struct credential c = credential(SLOT_QUERY);
    struct request r = {.method = SPAN("GET"), .path = SPAN("/x%3Fkey=y")};
    struct slotted s;
    struct arena a;
    arena_init(&a, 1024 * 1024);
    assert_int_equal(slot_find(&c, &r, &a, &s), -1);
    r.path = SPAN("/x%3fy");
    assert_int_equal(slot_find(&c, &r, &a, &s), -1);
    arena_free(&a);
}

/* ---- any JSON ---- */

static uint64_t seed = 7;
static unsigned any(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

static void blanks(struct dynbuf *b)
{
    for (unsigned n = any(3); n > 0; n--)
        dynbuf_add_byte(b, (uint8_t) " \t\r\n"[any(4)]);
}

static void text(struct dynbuf *b)
{
    static const char *const bits[] = {"a",       "\\\"",     "\\\\",        "}", "]", ",", ":",
                                       "\\u00e9", "\xc3\xa9", "{\\\"a\\\":", "~", "[", " "};
    dynbuf_add_byte(b, '"');
    for (unsigned n = any(6); n > 0; n--)
        dynbuf_add(b, span_str(bits[any(sizeof(bits) / sizeof(bits[0]))]));
    dynbuf_add_byte(b, '"');
}

/* A value into both texts; on the way the pointer goes, the text at its end has the mark in the second. */
static void value(struct dynbuf *is, struct dynbuf *with, struct dynbuf *pointer, unsigned depth, bool way)
{
    struct dynbuf b;
    unsigned kind = way && depth == 0 ? 2 : any(depth && !way ? 5 : 3);
    dynbuf_init(&b, 64 * 1024);
    blanks(&b);
    bool holds = depth > 0 && (way || kind > 2), list = any(2);
    unsigned n = holds ? 1 + any(4) : 0, chosen = n ? any(n) : 0;
    if (holds)
        dynbuf_add_byte(&b, list ? '[' : '{');
    else if (kind == 2)
        text(&b);
    else
        dynbuf_add(&b, kind ? SPAN("-1.5e+3") : SPAN("null"));
    struct span made = dynbuf_span(&b);
    bool end = way && !holds;
    dynbuf_add(is, made);
    dynbuf_add(with, span_first(made, end ? span_index(made, '"') : made.n));
    dynbuf_add(with, end ? SPAN("\"~c~\"") : SPAN_NONE);
    for (unsigned i = 0; i < n; i++) {
        char key[32];
        bool here = way && i == chosen;
        snprintf(key, sizeof(key), "\"k%u\" :", i);
        if (i > 0) {
            dynbuf_add_byte(is, ',');
            dynbuf_add_byte(with, ',');
        }
        if (!list) {
            dynbuf_add(is, span_str(key));
            dynbuf_add(with, span_str(key));
        }
        if (here)
            dynbuf_addf(pointer, list ? "/%u" : "/k%u", i);
        value(is, with, pointer, depth - 1, here);
    }
    if (holds) {
        dynbuf_add_byte(is, list ? ']' : '}');
        dynbuf_add_byte(with, list ? ']' : '}');
    }
    dynbuf_reset(&b);
    blanks(&b);
    dynbuf_add(is, dynbuf_span(&b));
    dynbuf_add(with, dynbuf_span(&b));
    dynbuf_free(&b);
}

static void any_json(void **state)
{
    (void)state;
    struct dynbuf is, with, pointer;
    dynbuf_init(&is, 1024 * 1024);
    dynbuf_init(&with, 1024 * 1024);
    dynbuf_init(&pointer, 4096);
    for (unsigned i = 0; i < 5000; i++) {
        struct arena a;
        struct slotted s;
        struct http_field type = {SPAN("Content-Type"), SPAN(JSON)};
        dynbuf_reset(&is);
        dynbuf_reset(&with);
        dynbuf_reset(&pointer);
        value(&is, &with, &pointer, 1 + any(4), true);
        struct credential c = {.name = SPAN("c"), .slot = SLOT_JSON, .where = dynbuf_span(&pointer)};
        struct request r = {.method = SPAN("POST"),
                            .path = SPAN("/"),
                            .fields = &type,
                            .nfields = 1,
                            .has_body = true,
                            .body_complete = true,
                            .body = dynbuf_span(&is)};
        arena_init(&a, 16 * 1024 * 1024);
        assert_non_null(json_parse(r.body, &a));
        if (slot_find(&c, &r, &a, &s) != 0 || !span_eq(s.body, dynbuf_span(&with)))
            fail_msg("%.*s in %.*s: %s %.*s", SPAN_FMT(c.where), SPAN_FMT(r.body), s.why ? s.why : "",
                     SPAN_FMT(s.body));
        arena_free(&a);
    }
    dynbuf_free(&is);
    dynbuf_free(&with);
    dynbuf_free(&pointer);
}

/* Whatever the value is: the length at which a request is too long is the same. */
static void a_long_target_has_no_slot(void **state)
{
    static char text[SLOT_TARGET_MAX + 2];
    (void)state;
    memset(text, 'a', sizeof(text));
    for (size_t extra = 0; extra < 2; extra++) {
        struct arena a;
        struct slotted s;
        struct credential q = credential(SLOT_QUERY), b = credential(SLOT_PATH);
        struct request r = {.method = SPAN("GET"), .path = SPAN("/"), .has_query = true};
        r.query = span_of(text, SLOT_TARGET_MAX - strlen("/?&key=~c~") + extra);
        arena_init(&a, 1024 * 1024);
        assert_int_equal(slot_find(&q, &r, &a, &s), extra ? -1 : 0);
        assert_true(extra || s.path.n + 1 + s.query.n == SLOT_TARGET_MAX);
        r.path = SPAN("/botx");
        r.query = span_of(text, SLOT_TARGET_MAX - strlen("/bot~c~?") + extra);
        assert_int_equal(slot_find(&b, &r, &a, &s), extra ? -1 : 0);
        arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(a_path_that_hides_a_query),
        cmocka_unit_test(any_json),
        cmocka_unit_test(a_long_target_has_no_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
