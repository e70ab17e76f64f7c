/* Foreign text on a page and in a terminal. Covers E14, E16, E17 (display), E33. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "web-approval/page/show.h"

static struct dynbuf out;

static int setup(void **state)
{
    dynbuf_init(&out, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    dynbuf_free(&out);
    return 0;
}

static void is(const char *want)
{
    assert_true(dynbuf_ok(&out));
    (void)dynbuf_add_byte(&out, 0);
    assert_string_equal((const char *)out.p, want);
    dynbuf_reset(&out);
}

static bool has(const char *needle)
{
    return span_find(dynbuf_span(&out), span_str(needle)) < out.n;
}

/* E14: nothing of a request becomes markup, wherever it stands. */
static void markup(void **state)
{
    static const char *const rows[][2] = {
        {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
        {"\"><img src=x onerror='a'>", "&quot;&gt;&lt;img src=x onerror=&#39;a&#39;&gt;"},
        {"&lt;b&gt;", "&amp;lt;b&amp;gt;"},
        {"a\nb", "a<span class=\"esc\">\\n</span>b"},
        {"javascript:alert(1)", "javascript:alert(1)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        show_text(&out, span_str(rows[i][0]));
        is(rows[i][1]);
    }
    print_message("ok E14 unit\n");
}

/* E16: what hides, reorders or overprints is seen. */
static const struct {
    struct span in;
    const char *escape;
} hidden[] = {
    {SPAN("\xe2\x80\xae"), "\\u{202e}"},
    {SPAN("\xe2\x81\xa6"), "\\u{2066}"},
    {SPAN("\xd8\x9c"), "\\u{61c}"},
    {SPAN("\xe2\x80\x8b"), "\\u{200b}"},
    {SPAN("\xe2\x81\xa0"), "\\u{2060}"},
    {SPAN("\xef\xbb\xbf"), "\\u{feff}"},
    {SPAN("\xf3\xa0\x81\x81"), "\\u{e0041}"},
    {SPAN("\xcc\x81"), "\\u{301}"},
    {SPAN("\xc2\xa0"), "\\u{a0}"},
    {SPAN("\xe2\x80\xa8"), "\\u{2028}"},
    {SPAN("\x1b"), "\\u{1b}"},
    {SPAN("\r"), "\\r"},
    {SPAN("\t"), "\\t"},
    {SPAN("\xc2\x85"), "\\u{85}"},
    {SPAN("\xee\x80\x80"), "\\u{e000}"},
    {SPAN("\xff"), "\\x{ff}"},
    {SPAN("\xc0\x80"), "\\x{c0}\\x{80}"},
    {SPAN("\0"), "\\u{0}"},
    {SPAN("\x7f"), "\\u{7f}"},
    {SPAN("\xf4\x8f\xbf\xbf"), "\\u{10ffff}"},
    {SPAN("\xe3\x85\xa4"), "\\u{3164}"},
    {SPAN("\xed\xa0\x80"), "\\x{ed}\\x{a0}\\x{80}"},
    {SPAN("\xe2\xa0\x80"), "\\u{2800}"},
    {SPAN("\xc2\xad"), "\\u{ad}"},
};

static void spoofs(void **state)
{
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        visible_text(&out, hidden[i].in, true);
        is(hidden[i].escape);
        show_text(&out, hidden[i].in);
        assert_true(has("<span class=\"esc\">\\"));
        assert_false(span_find(dynbuf_span(&out), hidden[i].in) < out.n);
        dynbuf_reset(&out);
    }
    show_text(&out, SPAN("p\xd0\xb0ypal"));
    is("p<span class=\"other\">\xd0\xb0</span>ypal");
    show_host(&out, SPAN("xn--pypal-4ve.example"));
    assert_true(has("imitate"));
    dynbuf_reset(&out);
    show_host(&out, SPAN("api.xn--e1awd7f.com"));
    assert_true(has("imitate"));
    dynbuf_reset(&out);
    show_host(&out, SPAN("api.example.com"));
    is("api.example.com");
    print_message("ok E16 unit\n");
}

/* E33: a terminal gets no escape sequence, and a reason no line of its own. */
static void terminal(void **state)
{
    visible_text(&out,
                 SPAN("no\x1b]0;title\x07\nnext\xc2\x9b"
                      "31m"),
                 false);
    is("no\\u{1b}]0;title\\u{7}\\nnext\\u{9b}31m");
    print_message("ok E33 unit\n");
}

/* E17: padding is counted instead of shown, and a cut says so. */
static void padding(void **state)
{
    uint8_t pad[5002];
    memset(pad, '\n', sizeof(pad));
    pad[0] = 'a';
    pad[5001] = 'b';
    show_body(&out, span_of(pad, sizeof(pad)));
    is("a\n<span class=\"esc\">4999 empty lines</span>\nb");
    memset(pad, ' ', sizeof(pad));
    show_body(&out, span_of(pad, 100));
    is("<span class=\"esc\">100 spaces</span>");
    show_cut(&out, SPAN("abc\xc3\xa9"), 4);
    is("abc<span class=\"esc\">&hellip; 2 more bytes</span>");
    /* Either is an end of a line, and hides no more lines than the other. */
    size_t bare;
    show_body(&out, SPAN("a\r\nb\n\nc"));
    is("a\nb\n\nc");
    assert_int_equal(show_crlf(SPAN("a\r\nb\n\nc"), &bare), 1);
    assert_int_equal(bare, 2);
    show_body(&out, SPAN("a\r\n\n\r\n\n\r\nb\r"));
    is("a\n<span class=\"esc\">4 empty lines</span>\nb<span class=\"esc\">\\r</span>");
    show_body(&out, SPAN("a\r\nb\r\n\r\nc\rd"));
    is("a\nb\n\nc<span class=\"esc\">\\r</span>d");
    assert_int_equal(show_crlf(SPAN("a\r\nb\r\n\r\nc\rd"), &bare), 3);
    show_body(&out, SPAN("a\r\n\r\n\r\n\r\n\r\n\r\n\r\nb"));
    is("a\n<span class=\"esc\">6 empty lines</span>\nb");
    print_message("ok E17 unit\n");
}

/* Spreading JSON changes white space between tokens and nothing else. */
static void json(void **state)
{
    show_spread_json(&out, SPAN("{\"a\":[1,  2e0,{}],\"b\\\"}\":\"x , y\",\"c\":[]}"));
    is("{\n  \"a\": [\n    1,\n    2e0,\n    {}\n  ],\n  \"b\\\"}\": \"x , y\",\n  \"c\": []\n}");
    assert_true(visible_is_text(SPAN("{\"a\": 1}\n")));
    assert_false(visible_is_text(SPAN("PACK\0\0\0\2\x78\x9c\xff\xff")));
}

static void small(void **state)
{
    show_size(&out, 1);
    is("1 byte");
    show_size(&out, 1468006);
    is("1.3 MiB (1468006 bytes)");
    show_time(&out, 1000);
    is("<time datetime=\"1970-01-01T00:00:01Z\">1970-01-01 00:00:01 UTC</time>");
    show_time(&out, UINT64_MAX);
    assert_true(out.n > 0);
    dynbuf_reset(&out);
    show_hex(&out, SPAN("<a>\x01"));
    is("00000000  3c 61 3e 01                                      &lt;a&gt;.\n");
    assert_true(show_decode(&out, SPAN("/%e2%80%ae%2")));
    is("/\xe2\x80\xae%2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup),  cmocka_unit_test(spoofs), cmocka_unit_test(terminal),
        cmocka_unit_test(padding), cmocka_unit_test(json),   cmocka_unit_test(small),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
