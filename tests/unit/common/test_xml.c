/* The part of XML that is read, as the tree that JSON makes; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/json/xml.h"

static void put(struct jsonw *w, const struct json *j)
{
    char key[XML_NAME_MAX + 1];
    if (j->type == JSON_STRING) {
        jsonw_string(w, j->text);
        return;
    }
    (j->type == JSON_OBJECT ? jsonw_object : jsonw_array)(w);
    size_t n = 0;
    for (const struct json *c = j->child; c != NULL; c = c->next, n++) {
        if (j->type == JSON_OBJECT) {
            (void)snprintf(key, sizeof(key), "%.*s", SPAN_FMT(c->key));
            jsonw_key(w, key);
        } else {
            assert_int_equal(c->key.n, 0);
        }
        put(w, c);
    }
    assert_int_equal(n, j->count);
    (j->type == JSON_OBJECT ? jsonw_end_object : jsonw_end_array)(w);
}

static void is(const char *xml, const char *json)
{
    struct arena a;
    struct dynbuf out;
    struct jsonw w;
    arena_init(&a, 256 * 1024);
    dynbuf_init(&out, 4096);
    jsonw_begin(&w, &out);
    const struct json *all = xml_parse(span_str(xml), &a);
    if (all == NULL)
        fail_msg("refused: %s", xml);
    put(&w, all);
    if (!span_eq(dynbuf_span(&out), span_str(json)))
        fail_msg("%.*s", SPAN_FMT(dynbuf_span(&out)));
    dynbuf_free(&out);
    arena_free(&a);
}

static bool refused(struct span xml)
{
    struct arena a;
    arena_init(&a, 1024 * 1024);
    bool none = xml_parse(xml, &a) == NULL;
    arena_free(&a);
    return none;
}

static void elements_are_members(void **state)
{
    is("<a/>", "{\"a\":\"\"}");
    is("<a>t</a>", "{\"a\":\"t\"}");
    is("<A1><b-c.d_e>t</b-c.d_e><B/><_/></A1>", "{\"A1\":{\"b-c.d_e\":\"t\",\"B\":\"\",\"_\":\"\"}}");
    is("<?xml version=\"1.0\" encoding='Utf-8' standalone=\"yes\" ?>\r\n<a >\n <b x='1'\ty=\"ab\" />\n</a\n>\n",
       "{\"a\":{\"b\":\"\"}}");
    is("<?xml version='1.0' standalone='yes'?><a></a>", "{\"a\":\"\"}");
}

static void elements_of_one_name_are_a_list(void **state)
{
    is("<a><m>1</m><m/><m><x>2</x></m><n>3</n></a>", "{\"a\":{\"m\":[\"1\",\"\",{\"x\":\"2\"}],\"n\":\"3\"}}");
    is("<a><m><m>1</m><m>2</m></m><m>3</m></a>", "{\"a\":{\"m\":[{\"m\":[\"1\",\"2\"]},\"3\"]}}");
    assert_true(refused(SPAN("<a><m>1</m><n>3</n><m>2</m></a>"))); /* which no pointer could tell apart */
    assert_true(refused(SPAN("<a><m>1</m><m>2</m><n>3</n><m>2</m></a>")));
}

static void a_text_is_what_it_means(void **state)
{
    is("<a>&lt;&amp;&gt;&quot;&apos;</a>", "{\"a\":\"<&>\\\"'\"}");
    is("<a>&#65;&#x42;&#x00e9;&#128512;&#9;.</a>", "{\"a\":\"AB\xc3\xa9\xf0\x9f\x98\x80\\t.\"}");
    is("<a>\n a\r\nb\rc &#13;\xc3\xa9 </a>", "{\"a\":\"a\\nb\\nc \\r\xc3\xa9\"}");
    is("<a> \n\t </a>", "{\"a\":\"\"}");
    is("<a>]] &gt; ]]&gt; > '</a>", "{\"a\":\"]] > ]]> > '\"}");
    static const char *const bad[] = {
        "&#;",      "&#x;",          "&#65",     "&#0;",         "&#8;",   "&#xD800;",
        "&#xFFFE;", "&#x110000;",    "&#-1;",    "&#6a;",        "&#X41;", "&#99999999999999999999;",
        "&x;",      "&amp",          "&",        "& ",           "&AMP;",  "\x01",
        "\x7f",     "\xff",          "\xc0\x80", "\xef\xbf\xbf", "]]>",    "<",
        "<!-- -->", "<![CDATA[x]]>", "<?x?>",    "t<b/>",        "<b/>t",  "<b/>&#65;"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[64];
        int n = snprintf(text, sizeof(text), "<a>%s</a>", bad[i]);
        if (!refused(span_of(text, (size_t)n)))
            fail_msg("taken: %s", text);
    }
    assert_true(refused(SPAN("<a>\0</a>")));
}

static void the_namespace_of_the_outermost_is_kept(void **state)
{
    struct arena a;
    arena_init(&a, 256 * 1024);
    const struct json *all = xml_parse(
        SPAN("<a y:z=\"1\" xmlns='https://a.example/' xmlns:y='https://b.example/'><b xmlns=\"c\"><d/></b></a>"), &a);
    assert_non_null(all);
    assert_true(span_eq(all->child->text, SPAN("https://a.example/")));
    assert_true(all->child->child->text.n == 0 && all->text.n == 0);
    assert_null(json_pointer(all, SPAN("/a/xmlns")));
    arena_free(&a);
}

static void what_is_not_taken(void **state)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "text",
                                      "{}",
                                      "<a>",
                                      "<a></b>",
                                      "<a></A>",
                                      "<a></a></a>",
                                      "<a></a><a></a>",
                                      "<a/><b/>",
                                      "<a></a>text",
                                      "<a></a>&#32;",
                                      "text<a></a>",
                                      "<a><b></a></b>",
                                      "< a></a>",
                                      "<1></1>",
                                      "<-a></-a>",
                                      "<x:a></x:a>",
                                      "<\xc3\xa9></\xc3\xa9>",
                                      "<a",
                                      "<a/",
                                      "<a / >",
                                      "<a x></a>",
                                      "<a x=1></a>",
                                      "<a x='1></a>",
                                      "<a x='1'y='2'></a>",
                                      "<a x='1' x='2'></a>",
                                      "<a x='&lt;'></a>",
                                      "<a x='<'></a>",
                                      "<a x='>'></a>",
                                      "<a x='\"'></a>",
                                      "<a x='\n'></a>",
                                      "<a x = '1'></a>",
                                      "<a></a x='1'>",
                                      "<!DOCTYPE a><a/>",
                                      "<!DOCTYPE a [<!ENTITY x \"y\">]><a/>",
                                      "<!-- --><a/>",
                                      "<a/><!-- -->",
                                      "<?x?><a/>",
                                      "<a/><?xml version='1.0'?>",
                                      " <?xml version='1.0'?><a/>",
                                      "\xef\xbb\xbf<a/>",
                                      "<?xml?><a/>",
                                      "<?xml <a/>",
                                      "<?xml version='1.0'<a/>",
                                      "<?xml encoding='utf-8'?><a/>",
                                      "<?xml version='1.1'?><a/>",
                                      "<?xml version='1.0' version='1.0'?><a/>",
                                      "<?xml version='1.0' encoding='utf-16'?><a/>",
                                      "<?xml version='1.0' encoding='utf-7'?><a/>",
                                      "<?xml version='1.0' standalone='yes' encoding='utf-8'?><a/>",
                                      "<?xml version='1.0' x='y'?><a/>",
                                      "<?xmlversion='1.0'?><a/>"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (!refused(span_str(bad[i])))
            fail_msg("taken: %s", bad[i]);
}

/* begin, n times more, where # is which of them it is, end. */
static bool refuses(const char *begin, size_t n, const char *more, const char *end)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    (void)dynbuf_add(&b, span_str(begin));
    for (size_t i = 0; i < n; i++)
        for (const char *c = more; *c != '\0'; c++)
            (void)(*c == '#' ? dynbuf_addf(&b, "%zu", i) : dynbuf_add_byte(&b, (uint8_t)*c));
    (void)dynbuf_add(&b, span_str(end));
    assert_true(dynbuf_ok(&b));
    bool none = refused(dynbuf_span(&b));
    dynbuf_free(&b);
    return none;
}

static void limits(void **state)
{
    static const char deep[] =
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></a></a></a></a>"
        "</a></a></a></a></a>";
    _Static_assert(sizeof(deep) - 1 == 7 * XML_DEPTH_MAX + 4, "one element more than may be");
    assert_true(refused(span_of(deep, sizeof(deep) - 1)));
    assert_false(refused(span_of(deep + 3, sizeof(deep) - 1 - 7)));
    assert_false(refuses("<r>", XML_NODES_MAX - 2, "<a#/>", "</r>")); /* and the whole, and <r> */
    assert_true(refuses("<r>", XML_NODES_MAX - 1, "<a#/>", "</r>"));
    assert_false(refuses("<r", XML_ATTRIBUTES_MAX, " a#='1'", "/>"));
    assert_true(refuses("<r", XML_ATTRIBUTES_MAX + 1, " a#='1'", "/>"));
    assert_false(refuses("<", XML_NAME_MAX, "a", "/>"));
    assert_true(refuses("<", XML_NAME_MAX + 1, "a", "/>"));
}

static void what_is_written_reads_the_same(void **state)
{
    static const struct span text = SPAN("a<b>&\"'\r\n\t]]> \xc3\xa9.");
    struct arena a;
    struct dynbuf out;
    arena_init(&a, 256 * 1024);
    dynbuf_init(&out, 4096);
    (void)dynbuf_add(&out, SPAN("<a>"));
    xml_put_text(&out, text);
    (void)dynbuf_add(&out, SPAN("</a>"));
    assert_true(span_eq(json_text(xml_parse(dynbuf_span(&out), &a), SPAN("a")), text));
    dynbuf_free(&out);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_members),
        cmocka_unit_test(elements_of_one_name_are_a_list),
        cmocka_unit_test(a_text_is_what_it_means),
        cmocka_unit_test(the_namespace_of_the_outermost_is_kept),
        cmocka_unit_test(what_is_not_taken),
        cmocka_unit_test(limits),
        cmocka_unit_test(what_is_written_reads_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
