/* JSON: what is taken, what is refused (B20 to B23), and what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/json/json.h"

enum { ARENA = 64 * 1024 * 1024 };

static bool parses(struct span s)
{
    struct arena a;
    uint8_t *p = malloc(s.n ? s.n : 1); /* so that reading past the end is seen */
    assert_non_null(p);
    if (s.n)
        memcpy(p, s.p, s.n);
    arena_init(&a, ARENA);
    bool good = json_parse(span_of(p, s.n), &a) != NULL;
    arena_free(&a);
    free(p);
    return good;
}

static void taken(void **state)
{
    static const struct span good[] = {
        SPAN("null"),
        SPAN("true"),
        SPAN(" false "),
        SPAN("0"),
        SPAN("-0"),
        SPAN("12"),
        SPAN("-1.5e+10"),
        SPAN("1E400"),
        SPAN("0e1"),
        SPAN("0.10"),
        SPAN("\"\""),
        SPAN("[]"),
        SPAN("{}"),
        SPAN("\t\r\n [ ] "),
        SPAN("{\"a\":{\"a\":1},\"b\":[{\"a\":1}]}"),
        SPAN("[1,[2,[3]]]"),
        SPAN("\"\\u0000\""),
        SPAN("\"\x7f\""),
        SPAN("\"\\ud83d\\ude00 \xf0\x9f\x98\x80 \xe2\x80\xa8 \\\" \\\\ \\/ \\b\\f\\n\\r\\t\""),
        SPAN("{\"\":1,\"a\":2,\"A\":3}"),
        SPAN("\"\\\\ud800\""),
        SPAN("\"\\uDBFF\\uDFFF\""),
        SPAN("\"\\uFFFF\""),
        SPAN("[\"\\\\\",\"\\\\u\"]"),
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!parses(good[i]))
            fail_msg("refused: %.*s", SPAN_FMT(good[i]));
}

static const struct span refused_texts[] = {
    /* B20 */
    SPAN("{\"a\":1,\"a\":1}"),
    SPAN("{\"query\":1,\"\\u0071uery\":2}"),
    SPAN("{\"query\\u0000\":1}"),
    SPAN("[{\"x\":{\"a\":1,\"b\":2,\"a\":3}}]"),
    SPAN("{\"\":1,\"\":2}"),
    SPAN("{\"\\u00e9\":1,\"\xc3\xa9\":2}"),
    /* B21 */
    SPAN(""),
    SPAN(" "),
    SPAN("{\"a\":1}\"b"),
    SPAN("[1]\"}, 2]"),
    SPAN("[1] tru"),
    SPAN("{} -"),
    SPAN("\"a\" \"b"),
    SPAN("1 \""),
    SPAN("null 1e"),
    SPAN("// x\n1"),
    SPAN("/* x */ 1"),
    SPAN("[1,]"),
    SPAN("{\"a\":1,}"),
    SPAN("{'a':1}"),
    SPAN("NaN"),
    SPAN("Infinity"),
    SPAN("-Infinity"),
    SPAN("0x1"),
    SPAN("+1"),
    SPAN("01"),
    SPAN("-01"),
    SPAN("{a:1}"),
    SPAN("\"\t\""),
    SPAN("\"\n\""),
    SPAN("\"\x01\""),
    SPAN("\"\0\""),
    SPAN("\xef\xbb\xbf{}"),
    SPAN("{}{}"),
    SPAN("{}\n{}"),
    SPAN("1 2"),
    SPAN("[]x"),
    SPAN("[]]"),
    SPAN("[]\0"),
    SPAN("\v[]"),
    SPAN("[\f]"),
    SPAN("[]\x0c"),
    SPAN("True"),
    SPAN("nul"),
    SPAN("tru"),
    SPAN("truee"),
    /* structure */
    SPAN("["),
    SPAN("]"),
    SPAN("{"),
    SPAN("}"),
    SPAN("[}"),
    SPAN("{]"),
    SPAN("[1"),
    SPAN("[1 2]"),
    SPAN("[,1]"),
    SPAN("[1,,2]"),
    SPAN("[,]"),
    SPAN(","),
    SPAN(":"),
    SPAN("{\"a\"}"),
    SPAN("{\"a\":}"),
    SPAN("{\"a\" 1}"),
    SPAN("{\"a\":1 \"b\":2}"),
    SPAN("{:1}"),
    SPAN("{1:1}"),
    SPAN("{\"a\"::1}"),
    SPAN("{\"a\",1}"),
    SPAN("{,}"),
    SPAN("[\"a\":1]"),
    SPAN("{\"a\":1,,\"b\":2}"),
    SPAN("{null:1}"),
    SPAN("[\"a\",\n4\n,1"),
    SPAN("{\"a\":\"b\"}#"),
    SPAN("*"),
    SPAN("<a>"),
    SPAN("[<null>]"),
    SPAN("\xc3\xa5"),
    SPAN("[*]"),
    SPAN("\xe2\x81\xa0[]"),
    /* numbers */
    SPAN("-"),
    SPAN("[-]"),
    SPAN("1."),
    SPAN(".5"),
    SPAN("-.5"),
    SPAN("1e"),
    SPAN("1e+"),
    SPAN("1E-"),
    SPAN("1.e1"),
    SPAN("0.e1"),
    SPAN("1.2.3"),
    SPAN("--1"),
    SPAN("1eE2"),
    SPAN("0e"),
    SPAN("[1+2]"),
    SPAN("1_000"),
    SPAN("0b1"),
    SPAN("[0.3e]"),
    SPAN("[- 1]"),
    SPAN("[1 000.0]"),
    SPAN("[-2.]"),
    SPAN("\xef\xbc\x91"),
    SPAN("1a"),
    SPAN("[1e1.5]"),
    /* strings */
    SPAN("\""),
    SPAN("\"a"),
    SPAN("'a'"),
    SPAN("a"),
    SPAN("\"\\x41\""),
    SPAN("\"\\a\""),
    SPAN("\"\\\""),
    SPAN("\"\\u12\""),
    SPAN("\"\\u00G0\""),
    SPAN("\"\\u 123\""),
    SPAN("\"\\U0041\""),
    SPAN("\\n"),
    SPAN("[\\u0020]"),
    SPAN("\"\\"),
    SPAN("\"\\u"),
    SPAN("\"\\ud800\\"),
    SPAN("\"\\\xc3\xa9\""),
    SPAN("\"a\"b\""),
    /* B22: surrogates, overlong, beyond Unicode, other encodings */
    SPAN("\"\\ud800\""),
    SPAN("\"\\udc00\""),
    SPAN("\"\\ud800\\ud800\""),
    SPAN("\"\\ud800x\""),
    SPAN("\"\\udc00\\ud800\""),
    SPAN("\"\\ud800\\n\""),
    SPAN("\"\\ud800\\u0041\""),
    SPAN("\"\xed\xa0\x80\""),
    SPAN("\"\xc0\xaf\""),
    SPAN("\"\xe0\x80\xaf\""),
    SPAN("\"\xf5\x80\x80\x80\""),
    SPAN("\"\xf4\x90\x80\x80\""),
    SPAN("\"\xff\""),
    SPAN("\"\x80\""),
    SPAN("\"\xc3\""),
    SPAN("\"\xe2\x82\""),
    SPAN("\"\xe9\""),
    SPAN("[\0]\0"),
    SPAN("\0[\0]"),
    SPAN("\xff\xfe[\0]\0"),
    SPAN("\xfe\xff\0[\0]"),
    SPAN("[\0\0\0]\0\0\0"),
    SPAN("+AFsAXQ-"),
};

static void refused(void **state)
{
    for (size_t i = 0; i < sizeof refused_texts / sizeof refused_texts[0]; i++)
        if (parses(refused_texts[i]))
            fail_msg("taken: row %zu %.*s", i, SPAN_FMT(refused_texts[i]));
}

static void fill(struct dynbuf *b, const char *piece, size_t times)
{
    for (size_t i = 0; i < times; i++)
        (void)dynbuf_add(b, span_str(piece));
}

/* B23 */
static void limits(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024 * 1024);
    for (size_t over = 0; over < 2; over++) {
        fill(&b, "[", JSON_DEPTH_MAX + over);
        fill(&b, "]", JSON_DEPTH_MAX + over);
        assert_int_equal(parses(dynbuf_span(&b)), !over);
        dynbuf_reset(&b);
        fill(&b, "{\"a\":", JSON_DEPTH_MAX + over);
        fill(&b, "1", 1);
        fill(&b, "}", JSON_DEPTH_MAX + over);
        assert_int_equal(parses(dynbuf_span(&b)), !over);
        dynbuf_reset(&b);
        fill(&b, "[1", 1);
        fill(&b, ",1", JSON_NODES_MAX - 2 + over);
        fill(&b, "]", 1);
        assert_int_equal(parses(dynbuf_span(&b)), !over);
        dynbuf_reset(&b);
    }
    fill(&b, "[", 100000);
    assert_false(parses(dynbuf_span(&b)));
    dynbuf_reset(&b);
    fill(&b, "{\"a\":", 100000);
    assert_false(parses(dynbuf_span(&b)));
    dynbuf_reset(&b);
    fill(&b, "\"", 1);
    fill(&b, "\\n0123456789", 200000);
    fill(&b, "\"", 1);
    assert_true(parses(dynbuf_span(&b)));
    struct arena a;
    arena_init(&a, 1024); /* a tree that does not fit is no tree */
    assert_null(json_parse(dynbuf_span(&b), &a));
    arena_free(&a);
    dynbuf_free(&b);
}

/* A good text that has no room is too large, and never called something it is not: neither its values nor its keys,
 * whichever of them it is that does not fit. */
static void no_room_is_no_fault_of_the_text(void **state)
{
    static const char *const around[][2] = {{"[\"", "\"]"}, {"{\"", "\":1}"}, {"[", "]"}};
    for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        struct dynbuf b;
        struct arena a;
        enum json_fault why = JSON_BYTES;
        dynbuf_init(&b, 64 * 1024);
        fill(&b, around[i][0], 1);
        fill(&b, "1234567890", 200);
        fill(&b, around[i][1], 1);
        for (size_t room = 0; room < 2000; room += 100) {
            arena_init(&a, room);
            assert_null(json_parse_or(dynbuf_span(&b), &a, &why));
            assert_int_equal(why, JSON_OVER_LIMIT);
            arena_free(&a);
        }
        arena_init(&a, 64 * 1024);
        assert_non_null(json_parse_or(dynbuf_span(&b), &a, &why));
        arena_free(&a);
        b.n--; /* without its end it is malformed, given the room */
        arena_init(&a, 64 * 1024);
        assert_null(json_parse_or(dynbuf_span(&b), &a, &why));
        assert_int_equal(why, JSON_MALFORMED);
        arena_free(&a);
        dynbuf_free(&b);
    }
}

static void many_members(void **state)
{
    for (size_t twice = 0; twice < 2; twice++) {
        struct dynbuf b;
        dynbuf_init(&b, 1 << 24);
        (void)dynbuf_add(&b, SPAN("{\"x\":0"));
        for (int i = 0; i < 50000; i++)
            (void)dynbuf_addf(&b, ",\"k%d\":%d", i, i);
        (void)dynbuf_add(&b, twice ? SPAN(",\"k\\u0037\":1}") : SPAN("}"));
        assert_int_equal(parses(dynbuf_span(&b)), !twice);
        dynbuf_free(&b);
    }
}

/* For showing alone: both are there, and the object that has them says so; all other faults are faults. */
static void names_that_stand_twice(void **state)
{
    enum json_fault why;
    struct arena a;
    struct dynbuf b;

    arena_init(&a, ARENA);
    const struct json *j = json_parse_twice(SPAN("{\"a\":{\"b\":1,\"\\u0062\":2},\"c\":{}}"), &a, &why);
    assert_true(j && !j->twice && json_get(j, SPAN("a"))->twice && json_get(j, SPAN("a"))->count == 2);
    assert_false(json_get(j, SPAN("c"))->twice);
    assert_null(json_parse_or(SPAN("{\"b\":1,\"b\":2}"), &a, &why));
    assert_int_equal(why, JSON_KEY_TWICE);
    assert_null(json_parse_twice(SPAN("{\"b\":1,\"b\":2"), &a, &why));
    assert_int_equal(why, JSON_MALFORMED);
    assert_null(json_parse_twice(SPAN("{\"b\":1,\"b\":\"\xff\"}"), &a, &why));
    assert_int_equal(why, JSON_BYTES);
    dynbuf_init(&b, 4096);
    (void)dynbuf_add(&b, SPAN("{\"k0\":0"));
    for (unsigned i = 0; i < 40; i++)
        (void)dynbuf_addf(&b, ",\"k%u\":%u", i % 39, i);
    (void)dynbuf_add(&b, SPAN("}"));
    j = json_parse_twice(dynbuf_span(&b), &a, &why);
    assert_true(j && j->twice && j->count == 41);
    dynbuf_free(&b);
    arena_free(&a);
}

static void numbers_stay_text(void **state)
{
    struct arena a;
    uint64_t v;
    arena_init(&a, ARENA);
    const struct json *j = json_parse(SPAN("{\"a\":9007199254740993,\"b\":1e400,\"c\":-0,\"d\":9007199254740992,"
                                           "\"e\":1.0,\"f\":-1,\"g\":\"1\"}"),
                                      &a);
    assert_non_null(j);
    assert_true(span_eq(json_get(j, SPAN("a"))->text, SPAN("9007199254740993")));
    assert_true(span_eq(json_get(j, SPAN("b"))->text, SPAN("1e400")));
    assert_true(span_eq(json_get(j, SPAN("c"))->text, SPAN("-0")));
    assert_int_equal(json_u64(j, SPAN("d"), &v), 0);
    assert_true(v == 9007199254740992u);
    static const char *const no[] = {"a", "b", "c", "e", "f", "g", "x"};
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        assert_int_equal(json_u64(j, span_str(no[i]), &v), -1);
    arena_free(&a);
}

static void found(void **state)
{
    struct arena a;
    arena_init(&a, ARENA);
    const struct json *j = json_parse(
        SPAN(
            "{\"foo\":[\"bar\",true,null],\"\":0,\"a/b\":1,\"m~n\":8,\"s\":\"\\u00e9\\u0000x\",\"o\":{\"p\":[[7]]}}"),
        &a);
    assert_non_null(j);
    assert_int_equal(j->type, JSON_OBJECT);
    assert_int_equal(j->count, 6);
    assert_true(span_eq(json_text(j, SPAN("s")), SPAN("\xc3\xa9\0x")));
    assert_int_equal(json_text(j, SPAN("foo")).n, 0);
    assert_int_equal(json_text(NULL, SPAN("foo")).n, 0);
    assert_ptr_equal(json_pointer(j, SPAN("")), j);
    assert_int_equal(json_pointer(j, SPAN("/foo"))->count, 3);
    assert_true(span_eq(json_pointer(j, SPAN("/foo/0"))->text, SPAN("bar")));
    assert_true(json_pointer(j, SPAN("/foo/1"))->truth);
    assert_int_equal(json_pointer(j, SPAN("/foo/2"))->type, JSON_NULL);
    assert_true(span_eq(json_pointer(j, SPAN("/"))->text, SPAN("0")));
    assert_true(span_eq(json_pointer(j, SPAN("/a~1b"))->text, SPAN("1")));
    assert_true(span_eq(json_pointer(j, SPAN("/m~0n"))->text, SPAN("8")));
    assert_true(span_eq(json_pointer(j, SPAN("/o/p/0/0"))->text, SPAN("7")));
    static const char *const nowhere[] = {
        "foo",   "/foo/3", "/foo/00",  "/foo/-", "/foo/ 1", "/foo/+1", "/m~n",
        "/m~2n", "/m~",    "/foo/0/0", "/x",     "/foo/",   "//",      "/foo/18446744073709551616"};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        assert_null(json_pointer(j, span_str(nowhere[i])));
    arena_free(&a);
}

static void written(void **state)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, 4096);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "a\"", SPAN("x\"\\\b\t\n\v\f\r\x01\0\x7f\xff\xc3\xa9\xed\xa0\x80z"));
    jsonw_kv_array(&w, "l");
    jsonw_u64(&w, UINT64_MAX);
    jsonw_raw(&w, SPAN("-9223372036854775808"));
    jsonw_object(&w);
    jsonw_end_object(&w);
    jsonw_array(&w);
    jsonw_end_array(&w);
    jsonw_raw(&w, SPAN("{\"r\":1}"));
    jsonw_end_array(&w);
    jsonw_kv_bool(&w, "t", true);
    jsonw_kv_bool(&w, "f", false);
    jsonw_kv_raw(&w, "n", SPAN("null"));
    jsonw_kv_u64(&w, "u", 7);
    jsonw_end_object(&w);
    assert_true(dynbuf_ok(&b));
    assert_true(span_eq(dynbuf_span(&b),
                        SPAN("{\"a\\\"\":\"x\\\"\\\\\\b\\t\\n\\u000b\\f\\r\\u0001\\u0000\\u007f\xef\xbf\xbd\xc3\xa9"
                             "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\",\"l\":[18446744073709551615,"
                             "-9223372036854775808,{},[],{\"r\":1}],\"t\":true,\"f\":false,\"n\":null,\"u\":7}")));
    assert_true(parses(dynbuf_span(&b)));
    dynbuf_free(&b);
}

/* What was parsed is written as the same value, and no deeper than it may be. */
static void a_tree_is_written_as_it_was(void **state)
{
    static const char *const same[] = {"{\"a\":[1,2.50,-0,1e400,true,false,null],\"b\":{\"c\":\"x\\ny\"},\"\":[]}",
                                       "[[],{}]", "7", "\"\"", "null"};
    struct dynbuf b;
    struct arena a;
    struct jsonw w;
    arena_init(&a, 1 << 20);
    dynbuf_init(&b, 1 << 16);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        const struct json *j = json_parse(span_str(same[i]), &a);
        assert_non_null(j);
        dynbuf_reset(&b);
        jsonw_begin(&w, &b);
        jsonw_tree(&w, j);
        assert_true(dynbuf_ok(&b) && span_eq(dynbuf_span(&b), span_str(same[i])));
    }
    char deep[2 * JSON_DEPTH_MAX + 1] = "";
    memset(deep, '[', JSON_DEPTH_MAX);
    memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    const struct json *j = json_parse(span_of(deep, 2 * JSON_DEPTH_MAX), &a);
    assert_non_null(j);
    jsonw_begin(&w, &b);
    jsonw_tree(&w, j);
    assert_false(dynbuf_ok(&b));
    dynbuf_free(&b);
    jsonw_begin(&w, &b);
    jsonw_tree(&w, j->child);
    assert_true(dynbuf_ok(&b));
    dynbuf_free(&b);
    arena_free(&a);
}

/* Every byte at every place of a run: what was written is read as the same, and nothing stands raw that may not. */
static void every_byte_at_every_place(void **state)
{
    for (unsigned c = 0; c < 256; c++)
        for (size_t at = 0; at < 19; at++) {
            uint8_t text[19];
            struct arena a;
            struct dynbuf b;
            struct jsonw w;
            memset(text, 'a', sizeof(text));
            text[at] = (uint8_t)c;
            dynbuf_init(&b, 1000);
            arena_init(&a, 64 * 1024);
            jsonw_begin(&w, &b);
            jsonw_string(&w, span_of(text, sizeof(text)));
            const struct json *j = json_parse(dynbuf_span(&b), &a);
            assert_non_null(j);
            if (c < 0x80)
                assert_true(span_eq(j->text, span_of(text, sizeof(text))));
            else
                assert_true(span_find(j->text, SPAN("\xef\xbf\xbd")) == at);
            for (size_t i = 0; i < b.n; i++)
                assert_true(b.p[i] >= 0x20 && b.p[i] != 0x7f);
            arena_free(&a);
            dynbuf_free(&b);
        }
}

static void writer_failures_stick(void **state)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, 4096);
    jsonw_begin(&w, &b);
    for (int i = 0; i < 63; i++)
        jsonw_array(&w);
    assert_true(dynbuf_ok(&b));
    jsonw_array(&w);
    jsonw_end_array(&w);
    assert_false(dynbuf_ok(&b));
    dynbuf_free(&b);
    jsonw_begin(&w, &b);
    jsonw_end_object(&w);
    assert_false(dynbuf_ok(&b));
    dynbuf_free(&b);
    dynbuf_init(&b, 4);
    jsonw_begin(&w, &b);
    jsonw_string(&w, SPAN("abc"));
    assert_false(dynbuf_ok(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken),
        cmocka_unit_test(refused),
        cmocka_unit_test(limits),
        cmocka_unit_test(no_room_is_no_fault_of_the_text),
        cmocka_unit_test(many_members),
        cmocka_unit_test(names_that_stand_twice),
        cmocka_unit_test(numbers_stay_text),
        cmocka_unit_test(found),
        cmocka_unit_test(written),
        cmocka_unit_test(a_tree_is_written_as_it_was),
        cmocka_unit_test(every_byte_at_every_place),
        cmocka_unit_test(writer_failures_stick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
