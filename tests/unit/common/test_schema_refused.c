/* JSON Schema: which schemas are refused, where, and in which words. */
#include "tests/unit/common/schema_kit.h"

static const struct {
    const char *schema, *pointer, *keyword, *words;
} refused_rows[] = {
    {"", "", "", "no JSON"},
    {"{'a'", "", "", "no JSON"},
    {"1", "", "", "an object, true or false"},
    {"{'type':'object','type':'object'}", "", "", "stands twice"},
    {"{'properties':{'a':{'requierd':['x']}}}", "/properties/a/requierd", "requierd", "not known"},
    {"{'properties':{'a':[]}}", "/properties/a", "", "an object, true or false"},
    {"{'properties':[]}", "/properties", "properties", "object of schemas"},
    {"{'type':'text'}", "/type", "type", "null, boolean"},
    {"{'type':[]}", "/type", "type", "null, boolean"},
    {"{'type':['string',1]}", "/type", "type", "null, boolean"},
    {"{'enum':'a'}", "/enum", "enum", "list of values"},
    {"{'enum':[]}", "/enum", "enum", "one at least"},
    {"{'minimum':'1'}", "/minimum", "minimum", "a number"},
    {"{'exclusiveMinimum':true}", "/exclusiveMinimum", "exclusiveMinimum", "a number"},
    {"{'minimum':1e10000}", "/minimum", "", "exponent"},
    {"{'default':1e10000}", "/default", "", "exponent"},
    {"{'multipleOf':0}", "/multipleOf", "multipleOf", "above 0"},
    {"{'multipleOf':-1}", "/multipleOf", "multipleOf", "above 0"},
    {"{'multipleOf':1.0000000001}", "/multipleOf", "multipleOf", "nine digits"},
    {"{'maxLength':-1}", "/maxLength", "maxLength", "whole number"},
    {"{'maxLength':1.5}", "/maxLength", "maxLength", "whole number"},
    {"{'uniqueItems':1}", "/uniqueItems", "uniqueItems", "true or false"},
    {"{'required':'a'}", "/required", "required", "list of names"},
    {"{'required':[1]}", "/required", "required", "list of names"},
    {"{'dependentRequired':{'a':[1]}}", "/dependentRequired/a", "dependentRequired", "list of names"},
    {"{'allOf':[]}", "/allOf", "allOf", "one at least"},
    {"{'anyOf':{}}", "/anyOf", "anyOf", "one at least"},
    {"{'oneOf':[{},{'x':1}]}", "/oneOf/1/x", "x", "not known"},
    {"{'items':[{}]}", "/items", "items", "prefixItems"},
    {"{'additionalItems':{}}", "/additionalItems", "additionalItems", "older drafts"},
    {"{'dependencies':{}}", "/dependencies", "dependencies", "older drafts"},
    {"{'$dynamicRef':'#a'}", "/$dynamicRef", "$dynamicRef", "not known"},
    {"{'nullable':true}", "/nullable", "nullable", "no keyword"},
    {"{'pattern':'(?=a)'}", "/pattern", "pattern", "linear"},
    {"{'patternProperties':{'(a/':{}}}", "/patternProperties/(a~1", "patternProperties", "not closed"},
    {"{'$ref':'https://a.example/'}", "/$ref", "$ref", "another document"},
    {"{'$ref':'other.json#/a'}", "/$ref", "$ref", "another document"},
    {"{'$ref':'#/$defs/none'}", "/$ref", "$ref", "leads to no schema"},
    {"{'$ref':'#none'}", "/$ref", "$ref", "leads to no schema"},
    {"{'$ref':'#/title','title':{}}", "/$ref", "$ref", "leads to no schema"},
    {"{'$ref':'#/properties','properties':{}}", "/$ref", "$ref", "leads to no schema"},
    {"{'$ref':'#/%'}", "/$ref", "$ref", "broken %"},
    {"{'$ref':'#/%00'}", "/$ref", "$ref", "broken %"},
    {"{'$ref':'#'}", "/$ref", "$ref", "leads back"},
    {"{'$defs':{'a':{'allOf':[{'$ref':'#/$defs/b'}]},'b':{'not':{'$ref':'#/$defs/a'}}}}", "/$defs/b/not/$ref", "$ref",
     "leads back"},
    {"{'properties':{'a':{'if':{'$ref':'#/properties/a'}}}}", "/properties/a/if/$ref", "$ref", "leads back"},
    {"{'$defs':{'a':{'$anchor':'x'},'b':{'$anchor':'x'}}}", "/$defs/b/$anchor", "$anchor", "another schema's"},
    {"{'$anchor':'1'}", "/$anchor", "$anchor", "a name"},
    {"{'items':{'$id':'https://a.example/'}}", "/items/$id", "$id", "another document"},
    {"{'$id':'#a'}", "/$id", "$id", "fragment"},
    {"{'$schema':'https://json-schema.org/draft/2019-09/schema'}", "/$schema", "$schema", "neither"},
    {"{'items':{'$schema':'https://json-schema.org/draft/2020-12/schema'}}", "/items/$schema", "$schema", "top"},
    {"{'$schema':'http://json-schema.org/draft-07/schema#','minContains':0}", "/minContains", "minContains",
     "not of draft-07"},
    {"{'$schema':'http://json-schema.org/draft-07/schema#','definitions':{'a':{}},"
     "'items':{'$ref':'#/definitions/a','minimum':1}}",
     "/items/$ref", "$ref", "ignores"},
};

static void refused(void **state)
{
    for (size_t i = 0; i < sizeof refused_rows / sizeof refused_rows[0]; i++) {
        struct schema *s = NULL;
        struct schema_fault f;
        struct span text = quoted(refused_rows[i].schema);
        int bad = schema_compile(text, SCHEMA_PLAIN, &s, &f);
        free((void *)text.p);
        if (bad == 0 || s != NULL || strcmp(f.pointer, refused_rows[i].pointer) != 0 ||
            strcmp(f.keyword, refused_rows[i].keyword) != 0 || strstr(f.why.text, refused_rows[i].words) == NULL)
            fail_msg("%s: %d at %s (%s): %s", refused_rows[i].schema, bad, f.pointer, f.keyword, f.why.text);
        schema_free(&s);
    }
}

static void notes_are_taken(void **state)
{
    static const char *const notes[] = {"title",    "description",     "default",          "examples", "$comment",
                                        "readOnly", "contentEncoding", "contentMediaType", "x-own",    "deprecated"};
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{'%s':[{'$ref':5}]}", notes[i]);
        struct span schema = quoted(text);
        struct schema *s = compiled(schema, SCHEMA_PLAIN);
        struct schema_miss m;
        assert_int_equal(schema_validate(s, SPAN("1"), &m), SCHEMA_FITS);
        schema_free(&s);
        free((void *)schema.p);
    }
    struct schema *s;
    struct schema_fault f;
    assert_int_equal(schema_compile(SPAN("{\"format\":\"hostname\"}"), SCHEMA_FORMATS, &s, &f), -1);
    assert_string_equal(f.pointer, "/format");
}

static void schemas_have_bounds(void **state)
{
    struct schema *s = NULL;
    struct schema_fault f;
    struct dynbuf b = many("{\"allOf\":[", "{}", SCHEMA_NODES_MAX - 1, "]}");
    s = compiled(dynbuf_span(&b), SCHEMA_PLAIN);
    schema_free(&s);
    dynbuf_free(&b);
    b = many("{\"allOf\":[", "{}", SCHEMA_NODES_MAX, "]}");
    assert_int_equal(schema_compile(dynbuf_span(&b), SCHEMA_PLAIN, &s, &f), -1);
    assert_string_equal(f.pointer, "/allOf/4095");
    dynbuf_free(&b);
    b = many("{\"title\":\"", "aaaaaaaaaaaaaaa", SCHEMA_TEXT_MAX / 16, "\"}");
    assert_int_equal(schema_compile(dynbuf_span(&b), SCHEMA_PLAIN, &s, &f), -1);
    dynbuf_free(&b);
    b = many("{\"allOf\":[", "{\"pattern\":\"a{1000}b{1000}c{1000}\"}", 40, "]}");
    assert_int_equal(schema_compile(dynbuf_span(&b), SCHEMA_PLAIN, &s, &f), -1);
    assert_non_null(strstr(f.why.text, "together"));
    dynbuf_free(&b);
    dynbuf_init(&b, 1 << 20); /* a chain of references, one to the next */
    (void)dynbuf_addf(&b, "{\"$defs\":{");
    for (int i = 0; i < 100; i++)
        (void)dynbuf_addf(&b, "\"%d\":{\"$ref\":\"#/$defs/%d\"},", i, i + 1);
    (void)dynbuf_addf(&b, "\"100\":{}}}");
    assert_int_equal(schema_compile(dynbuf_span(&b), SCHEMA_PLAIN, &s, &f), -1);
    assert_non_null(strstr(f.why.text, "more than 64"));
    dynbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused),
        cmocka_unit_test(notes_are_taken),
        cmocka_unit_test(schemas_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
