/* JSON Schema: what fits, where it does not, what is refused, and what it may cost. */
#include "tests/unit/common/schema_kit.h"

/* One row: at = NULL: it fits; else the path, with " ..." behind it for what is somewhere below, and the keyword. */
struct row {
    const char *schema, *instance, *at, *keyword;
};

static void check_row(const struct row *row, unsigned options)
{
    struct schema_miss m;
    struct span text = quoted(row->schema), instance = quoted(row->instance);
    struct schema *s = compiled(text, options);
    free((void *)text.p); /* it is not needed any more */
    enum schema_verdict v = schema_validate(s, instance, &m);
    free((void *)instance.p);
    schema_free(&s);
    char told[SCHEMA_POINTER_MAX + 8];
    snprintf(told, sizeof told, "%s%s", m.path, m.below ? " ..." : "");
    bool good = row->at ? v == SCHEMA_MISFIT && strcmp(told, row->at) == 0 && strcmp(m.keyword, row->keyword) == 0
                        : v == SCHEMA_FITS && m.keyword == NULL;
    if (!good)
        fail_msg("%s on %s: %s at \"%s\" by %s", row->schema, row->instance, schema_verdict_name(v), told,
                 m.keyword ? m.keyword : "none");
}

static void check_rows(const struct row *rows, size_t n, unsigned options)
{
    for (size_t i = 0; i < n; i++)
        check_row(&rows[i], options);
}

#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof(rows)[0], SCHEMA_PLAIN)

static const struct row values_rows[] = {
    {"true", "1", NULL, NULL},
    {"false", "1", "", "false"},
    {"{}", "null", NULL, NULL},
    {"{'type':'integer'}", "1.0", NULL, NULL},
    {"{'type':'integer'}", "1e400", NULL, NULL},
    {"{'type':'integer'}", "-0.0", NULL, NULL},
    {"{'type':'integer'}", "1.5", "", "type"},
    {"{'type':'integer'}", "15e-1", "", "type"},
    {"{'type':'integer'}", "150e-1", NULL, NULL},
    {"{'type':'number'}", "1", NULL, NULL},
    {"{'type':['string','null']}", "null", NULL, NULL},
    {"{'type':['string','null']}", "true", "", "type"},
    {"{'type':'object'}", "[]", "", "type"},
    {"{'const':1}", "1.0", NULL, NULL},
    {"{'const':{'a':[1,2],'b':null}}", "{'b':null,'a':[1e0,2.0]}", NULL, NULL},
    {"{'const':{'a':1}}", "{'a':1,'b':1}", "", "const"},
    {"{'const':[1,2]}", "[2,1]", "", "const"},
    {"{'const':false}", "0", "", "const"},
    {"{'const':0}", "-0", NULL, NULL},
    {"{'enum':['a',10,null]}", "1e1", NULL, NULL},
    {"{'enum':['a',10,null]}", "'b'", "", "enum"},
    {"{'minimum':1.1}", "1.10", NULL, NULL},
    {"{'minimum':1.1}", "1.09999999999999999999999999999", "", "minimum"},
    {"{'minimum':-1}", "-2", "", "minimum"},
    {"{'minimum':0}", "'x'", NULL, NULL},
    {"{'maximum':9007199254740992}", "9007199254740993", "", "maximum"},
    {"{'maximum':1e300}", "1e301", "", "maximum"},
    {"{'maximum':-1e-300}", "-1e-301", "", "maximum"},
    {"{'exclusiveMinimum':0}", "0", "", "exclusiveMinimum"},
    {"{'exclusiveMinimum':0}", "1e-9999", NULL, NULL},
    {"{'exclusiveMaximum':3}", "3.0", "", "exclusiveMaximum"},
    {"{'exclusiveMaximum':3}", "2.999", NULL, NULL},
    {"{'multipleOf':0.01}", "0.1", NULL, NULL},
    {"{'multipleOf':0.1}", "0.3", NULL, NULL},
    {"{'multipleOf':0.01}", "19.99", NULL, NULL},
    {"{'multipleOf':0.01}", "19.999", "", "multipleOf"},
    {"{'multipleOf':2}", "1e400", NULL, NULL},
    {"{'multipleOf':3}", "1e400", "", "multipleOf"},
    {"{'multipleOf':7}", "123456789012345678901234567894", "", "multipleOf"},
    {"{'multipleOf':7}", "700000000000000000000000000007", NULL, NULL},
    {"{'multipleOf':100}", "1250", "", "multipleOf"},
    {"{'multipleOf':100}", "1300", NULL, NULL},
    {"{'multipleOf':1.5}", "-4.5", NULL, NULL},
    {"{'multipleOf':5}", "0", NULL, NULL},
    {"{'minLength':2}", "'\xf0\x9f\x98\x80'", "", "minLength"},
    {"{'maxLength':1}", "'\\ud83d\\ude00'", NULL, NULL},
    {"{'maxLength':1e20}", "'aa'", NULL, NULL},
    {"{'minLength':12345678901}", "'aa'", "", "minLength"},
    {"{'minLength':2.0}", "'aa'", NULL, NULL},
    {"{'pattern':'^a+$'}", "'aaa'", NULL, NULL},
    {"{'pattern':'^a+$'}", "'ab'", "", "pattern"},
    {"{'pattern':'^a+$'}", "1", NULL, NULL},
    {"{'format':'uuid'}", "'no'", NULL, NULL},
};

static void values(void **state)
{
    CHECK(values_rows);
}

static const struct row objects_rows[] = {
    {"{'required':['a','b']}", "{'b':1,'a':null}", NULL, NULL},
    {"{'required':['a','b']}", "{'a':1}", "", "required"},
    {"{'required':['a']}", "[]", NULL, NULL},
    {"{'minProperties':1,'maxProperties':2}", "{}", "", "minProperties"},
    {"{'minProperties':1,'maxProperties':2}", "{'a':1,'b':2,'c':3}", "", "maxProperties"},
    {"{'properties':{'a':{'type':'string'}}}", "{'a':1}", "/a", "type"},
    {"{'properties':{'a/b~':{'properties':{'':{'type':'null'}}}}}", "{'a/b~':{'':1}}", "/a~1b~0/", "type"},
    {"{'properties':{'a':false}}", "{'a':1}", "/a", "properties"},
    {"{'properties':{'a':false}}", "{'b':1}", NULL, NULL},
    {"{'additionalProperties':false}", "{'secret':1}", "", "additionalProperties"},
    {"{'properties':{'a':{}},'additionalProperties':false}", "{'a':1}", NULL, NULL},
    {"{'properties':{'o':{'additionalProperties':false}}}", "{'o':{'secret':1}}", "/o", "additionalProperties"},
    {"{'additionalProperties':{'type':'string'}}", "{'secret':1}", " ...", "type"},
    {"{'additionalProperties':{'properties':{'a':{'type':'string'}}}}", "{'secret':{'a':1}}", " ...", "type"},
    {"{'properties':{'m':{'additionalProperties':{'items':false}}}}", "{'m':{'secret':[1]}}", "/m ...", "items"},
    {"{'patternProperties':{'^x-':{'type':'string'}}}", "{'x-a':1}", " ...", "type"},
    {"{'patternProperties':{'^x-':{'type':'string'}}}", "{'y':1}", NULL, NULL},
    {"{'patternProperties':{'^x':{},'y$':{}},'additionalProperties':false}", "{'xa':1,'by':1}", NULL, NULL},
    {"{'patternProperties':{'^x':{},'y$':{}},'additionalProperties':false}", "{'xa':1,'b':1}", "",
     "additionalProperties"},
    {"{'propertyNames':{'pattern':'^[a-z]+$'}}", "{'ab':1}", NULL, NULL},
    {"{'propertyNames':{'pattern':'^[a-z]+$'}}", "{'a1':1}", "", "propertyNames"},
    {"{'propertyNames':{'maxLength':1}}", "{'':1,'aa':1}", "", "propertyNames"},
    {"{'dependentRequired':{'a':['b']}}", "{'a':1}", "", "dependentRequired"},
    {"{'dependentRequired':{'a':['b']}}", "{'b':1}", NULL, NULL},
    {"{'dependentSchemas':{'a':{'required':['b']}}}", "{'a':1}", "", "required"},
    {"{'dependentSchemas':{'a':{'required':['b']}}}", "{'c':1}", NULL, NULL},
};

static void objects(void **state)
{
    CHECK(objects_rows);
}

static void lists(void **state)
{
    static const struct row rows[] = {
        {"{'minItems':1,'maxItems':2}", "[]", "", "minItems"},
        {"{'minItems':1,'maxItems':2}", "[1,2,3]", "", "maxItems"},
        {"{'items':{'type':'integer'}}", "[1,2,'x']", "/2", "type"},
        {"{'items':false}", "[1]", "/0", "items"},
        {"{'prefixItems':[{'type':'integer'},{'type':'string'}]}", "[1]", NULL, NULL},
        {"{'prefixItems':[{'type':'integer'},{'type':'string'}]}", "[1,2]", "/1", "type"},
        {"{'prefixItems':[{}],'items':{'type':'string'}}", "[1,'a',2]", "/2", "type"},
        {"{'properties':{'l':{'items':{'properties':{'a':{'type':'null'}}}}}}", "{'l':[{},{'a':1}]}", "/l/1/a",
         "type"},
        {"{'contains':{'type':'string'}}", "[1,'a']", NULL, NULL},
        {"{'contains':{'type':'string'}}", "[1]", "", "contains"},
        {"{'contains':{'type':'string'},'minContains':0}", "[]", NULL, NULL},
        {"{'contains':{'type':'string'},'minContains':2}", "['a']", "", "minContains"},
        {"{'contains':{'type':'string'},'maxContains':1}", "['a','b']", "", "maxContains"},
        {"{'minContains':3}", "[]", NULL, NULL},
        {"{'uniqueItems':true}", "[1,'1',[1],{'a':1},true,null]", NULL, NULL},
        {"{'uniqueItems':true}", "[1,2,1.0]", "", "uniqueItems"},
        {"{'uniqueItems':true}", "[{'a':1,'b':2},{'b':2,'a':1}]", "", "uniqueItems"},
        {"{'uniqueItems':true}", "[{'a':1},{'b':1}]", NULL, NULL},
        {"{'uniqueItems':true}", "[[1,2],[2,1]]", NULL, NULL},
        {"{'uniqueItems':true}", "[1,true,0,false]", NULL, NULL},
        {"{'uniqueItems':false}", "[1,1]", NULL, NULL},
    };
    CHECK(rows);
}

static const struct row schemas_in_schemas_rows[] = {
    {"{'allOf':[{'minimum':1},{'maximum':3}]}", "4", "", "maximum"},
    {"{'anyOf':[{'minimum':3},{'maximum':1}]}", "2", "", "anyOf"},
    {"{'anyOf':[{'minimum':3},{'maximum':1}]}", "1", NULL, NULL},
    {"{'oneOf':[{'minimum':1},{'maximum':3}]}", "2", "", "oneOf"},
    {"{'oneOf':[{'minimum':1},{'maximum':3}]}", "0", NULL, NULL},
    {"{'oneOf':[{'minimum':4},{'maximum':2}]}", "3", "", "oneOf"},
    {"{'not':{'type':'string'}}", "'a'", "", "not"},
    {"{'not':{'type':'string'}}", "1", NULL, NULL},
    {"{'if':{'type':'string'},'then':{'minLength':2},'else':{'minimum':2}}", "'a'", "", "minLength"},
    {"{'if':{'type':'string'},'then':{'minLength':2},'else':{'minimum':2}}", "1", "", "minimum"},
    {"{'if':{'type':'string'},'then':false}", "'a'", "", "then"},
    {"{'then':false,'else':false}", "'a'", NULL, NULL},
    {"{'anyOf':[{'properties':{'a':{'type':'null'}}}],'type':'object'}", "{'a':1}", "", "anyOf"},
    {"{'$defs':{'n':{'type':'null'}},'properties':{'a':{'$ref':'#/$defs/n'}}}", "{'a':1}", "/a", "type"},
    {"{'$defs':{'a/b~c %':{'type':'null'}},'$ref':'#/$defs/a~1b~0c%20%25'}", "1", "", "type"},
    {"{'$defs':{'x':{'$anchor':'here','type':'null'}},'items':{'$ref':'#here'}}", "[null,0]", "/1", "type"},
    {"{'properties':{'next':{'$ref':'#'},'v':{'type':'null'}}}", "{'next':{'next':{'v':1}}}", "/next/next/v", "type"},
    {"{'definitions':{'n':{'type':'null'}},'$ref':'#/definitions/n','$comment':'x'}", "null", NULL, NULL},
    {"{'$ref':'#/$defs/n','minimum':3,'$defs':{'n':{'type':'integer'}}}", "2", "", "minimum"},
    {"{'allOf':[{'type':'null'}],'$ref':'#/allOf/0'}", "null", NULL, NULL},
    {"{'$defs':{'f':false},'$ref':'#/$defs/f'}", "1", "", "$ref"},
    {"{'$id':'https://a.example/s','$schema':'https://json-schema.org/draft/2020-12/schema','$ref':'#/$defs/a',"
     "'$defs':{'a':{'type':'null'}}}",
     "1", "", "type"},
    {"{'$schema':'http://json-schema.org/draft-07/schema#','items':[{'type':'null'}],'additionalItems':false}",
     "[null,1]", "/1", "items"},
    {"{'$schema':'http://json-schema.org/draft-07/schema#','items':[{'type':'null'}]}", "[1,2]", "/0", "type"},
    {"{'$schema':'http://json-schema.org/draft-07/schema#','definitions':{'a':{'type':'null'}},"
     "'properties':{'a':{'$ref':'#/definitions/a','description':'x'}}}",
     "{'a':1}", "/a", "type"},
};

static void schemas_in_schemas(void **state)
{
    CHECK(schemas_in_schemas_rows);
}

static const struct row unevaluated_rows[] = {
    {"{'properties':{'a':{}},'unevaluatedProperties':false}", "{'a':1}", NULL, NULL},
    {"{'properties':{'a':{}},'unevaluatedProperties':false}", "{'b':1}", "", "unevaluatedProperties"},
    {"{'allOf':[{'properties':{'a':{}}},{'patternProperties':{'^b':{}}}],'unevaluatedProperties':false}",
     "{'a':1,'bb':1}", NULL, NULL},
    {"{'allOf':[{'additionalProperties':true}],'unevaluatedProperties':false}", "{'a':1}", NULL, NULL},
    {"{'anyOf':[{'properties':{'a':{'type':'null'}}},{'properties':{'b':{}}},{'properties':{'c':{}}}],"
     "'unevaluatedProperties':false}",
     "{'b':1,'c':1}", NULL, NULL},
    {"{'anyOf':[{'properties':{'a':{}},'not':{}},true],'unevaluatedProperties':false}", "{'a':1}", "",
     "unevaluatedProperties"},
    {"{'not':{'not':{'properties':{'a':{}}}},'unevaluatedProperties':false}", "{'a':1}", "", "unevaluatedProperties"},
    {"{'if':{'properties':{'a':{'const':1}},'required':['a']},'then':{'properties':{'b':{}}},"
     "'else':{'properties':{'c':{}}},'unevaluatedProperties':false}",
     "{'a':1,'b':1}", NULL, NULL},
    {"{'if':{'properties':{'a':{'const':1}},'required':['a']},'then':{'properties':{'b':{}}},"
     "'else':{'properties':{'c':{}}},'unevaluatedProperties':false}",
     "{'a':2,'c':1}", "", "unevaluatedProperties"},
    {"{'$defs':{'d':{'properties':{'a':{}}}},'$ref':'#/$defs/d','unevaluatedProperties':false}", "{'a':1}", NULL,
     NULL},
    {"{'dependentSchemas':{'a':{'properties':{'a':{},'b':{}}}},'unevaluatedProperties':false}", "{'a':1,'b':1}", NULL,
     NULL},
    {"{'properties':{'a':{'properties':{'x':{},'y':{}}}},'unevaluatedProperties':false}", "{'a':{'x':1,'y':1},'b':1}",
     "", "unevaluatedProperties"},
    {"{'allOf':[{'unevaluatedProperties':false},{'properties':{'a':{}}}]}", "{'a':1}", "",
     "unevaluatedProperties"}, /* cousins do not see each other */
    {"{'allOf':[{'properties':{'a':{}},'unevaluatedProperties':{'type':'null'}}],'unevaluatedProperties':false}",
     "{'a':1,'b':null}", NULL, NULL},
    {"{'properties':{'o':{'unevaluatedProperties':{'type':'null'}}}}", "{'o':{'b':1}}", "/o ...", "type"},
    {"{'prefixItems':[{}],'unevaluatedItems':false}", "[1]", NULL, NULL},
    {"{'prefixItems':[{}],'unevaluatedItems':false}", "[1,2]", "/1", "unevaluatedItems"},
    {"{'contains':{'const':1},'unevaluatedItems':{'type':'null'}}", "[null,1,null]", NULL, NULL},
    {"{'allOf':[{'prefixItems':[{},{}]}],'unevaluatedItems':{'type':'null'}}", "[1,2,3]", "/2", "type"},
    {"{'items':true,'unevaluatedItems':false}", "[1,2]", NULL, NULL},
    {"{'items':{'unevaluatedItems':false},'unevaluatedItems':false}", "[[],[1]]", "/1/0", "unevaluatedItems"},
};

static void unevaluated(void **state)
{
    CHECK(unevaluated_rows);
}

static const struct {
    const char *format, *text;
    bool good;
} formats_rows[] = {
    {"date-time", "2026-11-23T09:00:00Z", true},
    {"date-time", "2026-11-23t09:00:00.123+01:00", true},
    {"date-time", "2026-02-29T09:00:00Z", false},
    {"date-time", "2024-02-29T09:00:00Z", true},
    {"date-time", "2026-11-23T24:00:00Z", false},
    {"date-time", "2026-11-23T09:00:00", false},
    {"date-time", "2026-11-23 09:00:00Z", false},
    {"date-time", "1998-12-31T23:59:60Z", true},
    {"date-time", "1998-12-31T15:59:60.123-08:00", true},
    {"date-time", "1998-12-31T22:59:60Z", false},
    {"date-time", "2026-11-23T09:00:00.Z", false},
    {"date-time", "2026-11-23T09:00:00+24:00", false},
    {"date-time", "2026-13-23T09:00:00Z", false},
    {"date-time", "", false},
    {"date", "2026-11-23", true},
    {"date", "2026-11-2", false},
    {"time", "09:00:00Z", true},
    {"time", "00:29:60+00:30", true},
    {"time", "09:00Z", false},
    {"email", "joe.bloggs@example.com", true},
    {"email", "te~st@example.com", true},
    {"email", "\\\"joe bloggs\\\"@example.com", true},
    {"email", "joe@[127.0.0.1]", true},
    {"email", "joe@[IPv6:::1]", true},
    {"email", "2962", false},
    {"email", ".test@example.com", false},
    {"email", "te..st@example.com", false},
    {"email", "test.@example.com", false},
    {"email", "@example.com", false},
    {"email", "joe@", false},
    {"email", "joe@-a.example", false},
    {"email", "joe@[127.0.0.300]", false},
    {"email", "joe bloggs@example.com", false},
    {"uri", "https://a.example/b?c=d#e", true},
    {"uri", "urn:oasis:names:x", true},
    {"uri", "http://u:p@[::1]:80/%20", true},
    {"uri", "mailto:a@b.example", true},
    {"uri", "/relative", false},
    {"uri", "//a.example/", false},
    {"uri", "http://a b", false},
    {"uri", "http://a/%2", false},
    {"uri", "http://a/<b>", false},
    {"uri", "http://[::1", false},
    {"uri", "http://a:b/", false},
    {"uri", "1http://a", false},
    {"uri", "http://a/#a#b", false},
    {"uri", "bar,baz:x", false},
    {"uuid", "2EB8AA08-aa98-11ea-b4aa-73b441d16380", true},
    {"uuid", "2eb8aa08aa9811eab4aa73b441d16380", false},
    {"uuid", "2eb8aa08-aa98-11ea-b4aa-73b441d1638", false},
    {"uuid", "2eb8aa08-aa98-11ea-b4aa-73b441d16380a", false},
    {"ipv4", "192.0.2.1", true},
    {"ipv4", "192.0.2.01", false},
    {"ipv4", "192.0.2", false},
    {"ipv4", "192.0.2.1\\u0000", false},
    {"ipv6", "::1", true},
    {"ipv6", "fe80::1%1", false},
    {"ipv6", "1::2::3", false},
};

static void formats(void **state)
{
    for (size_t i = 0; i < sizeof formats_rows / sizeof formats_rows[0]; i++) {
        char schema[64], instance[128];
        snprintf(schema, sizeof schema, "{'format':'%s'}", formats_rows[i].format);
        snprintf(instance, sizeof instance, "'%s'", formats_rows[i].text);
        check_row(&(struct row){schema, instance, formats_rows[i].good ? NULL : "", "format"}, SCHEMA_FORMATS);
    }
    check_row(&(struct row){"{'format':'ipv4'}", "1", NULL, NULL}, SCHEMA_FORMATS);
}

static void verdict_is(const char *schema, struct dynbuf *instance, enum schema_verdict wanted)
{
    struct schema_miss m;
    struct span text = quoted(schema);
    struct schema *s = compiled(text, SCHEMA_PLAIN);
    enum schema_verdict v = schema_validate(s, dynbuf_span(instance), &m);
    if (v != wanted)
        fail_msg("%s: %s", schema, schema_verdict_name(v));
    assert_true(m.path[0] == '\0' && (m.keyword != NULL) == (v == SCHEMA_MISFIT));
    schema_free(&s);
    free((void *)text.p);
    dynbuf_free(instance);
}

static void instances_have_bounds(void **state)
{
    struct dynbuf b = many("", "{\"a\":1,\"a\":1}", 1, "");
    verdict_is("true", &b, SCHEMA_NOT_JSON);
    b = many("", "", 0, "");
    verdict_is("true", &b, SCHEMA_NOT_JSON);
    b = many("\"", "aaaaaaaaaaaaaaa", SCHEMA_INSTANCE_MAX / 16, "");
    verdict_is("true", &b, SCHEMA_NOT_JSON);
    b = many("\"", "aaaaaaaaaaaaaaa", SCHEMA_INSTANCE_MAX / 16, "\"");
    verdict_is("true", &b, SCHEMA_TOO_LARGE);
    b = many("[", "1", JSON_NODES_MAX, "]");
    verdict_is("true", &b, SCHEMA_TOO_LARGE);
    b = many("[", "1", JSON_NODES_MAX - 1, "]");
    verdict_is("{'items':{'type':'integer'}}", &b, SCHEMA_FITS);
    b = many("1e10000", "", 0, "");
    verdict_is("true", &b, SCHEMA_TOO_LARGE);
    b = many("[0.", "", 0, "");
    for (size_t i = 0; i < 1024; i++)
        (void)dynbuf_add_byte(&b, '1');
    (void)dynbuf_add_byte(&b, ']');
    verdict_is("true", &b, SCHEMA_TOO_LARGE);
}

/* What would take for ever ends, and says so; also where a `not` turns it round. */
static void costs_have_a_bound(void **state)
{
    struct dynbuf b = many("[", "[1]", 30000, "]");
    verdict_is("{'uniqueItems':true}", &b, SCHEMA_MISFIT);
    b = many("\"", "", 0, "");
    for (size_t i = 0; i < 100000; i++)
        (void)dynbuf_add_byte(&b, 'a');
    (void)dynbuf_add_byte(&b, '"');
    struct dynbuf again = many("", "", 0, "");
    (void)dynbuf_add(&again, dynbuf_span(&b));
    verdict_is("{'pattern':'(a|b|c){200}d'}", &b, SCHEMA_TOO_COSTLY);
    verdict_is("{'not':{'pattern':'(a|b|c){200}d'}}", &again, SCHEMA_TOO_COSTLY);
    /* each level holds its value against two schemas, which both go on */
    b = many("", "", 0, "");
    for (size_t i = 0; i < 40; i++)
        (void)dynbuf_addf(&b, "{\"a\":");
    (void)dynbuf_addf(&b, "1");
    for (size_t i = 0; i < 40; i++)
        (void)dynbuf_addf(&b, "}");
    verdict_is("{'allOf':[{'properties':{'a':{'$ref':'#'}}},{'properties':{'a':{'$ref':'#'}}}]}", &b,
               SCHEMA_TOO_COSTLY);
}

/* A path that is too long ends behind a whole name, and says so. */
static void paths_have_a_bound(void **state)
{
    static const char name[] =
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"; /* 78 */
    struct dynbuf schema, instance;
    struct schema_miss m;
    dynbuf_init(&schema, 1 << 16);
    dynbuf_init(&instance, 1 << 16);
    for (int i = 0; i < 4; i++) {
        (void)dynbuf_addf(&schema, "{\"properties\":{\"%s\":", name);
        (void)dynbuf_addf(&instance, "{\"%s\":", name);
    }
    (void)dynbuf_addf(&schema, "false}}}}}}}}");
    (void)dynbuf_addf(&instance, "1}}}}");
    struct schema *s = compiled(dynbuf_span(&schema), SCHEMA_PLAIN);
    assert_int_equal(schema_validate(s, dynbuf_span(&instance), &m), SCHEMA_MISFIT);
    assert_int_equal(strlen(m.path), 3 * 79);
    assert_true(m.below);
    schema_free(&s);
    dynbuf_free(&schema);
    dynbuf_free(&instance);
}

/* Whatever its name or its text is, nothing of an instance that the schema does not say itself is told. */
static void nothing_of_the_instance_is_told(void **state)
{
    static const char *const schemas[] = {
        "{'additionalProperties':{'type':'null'}}",
        "{'additionalProperties':false}",
        "{'patternProperties':{'.':false}}",
        "{'patternProperties':{'.':{'maxLength':1}}}",
        "{'propertyNames':{'maxLength':3}}",
        "{'unevaluatedProperties':{'type':'null'}}",
        "{'properties':{'a':{'additionalProperties':{'additionalProperties':{'items':{'type':'null'}}}}}}",
        "{'maxProperties':0}",
        "{'const':1}",
    };
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        struct schema_miss m;
        struct span text = quoted(schemas[i]), instance = quoted("{'canary':'canary','a':{'canary':{'canary':[1]}}}");
        struct schema *s = compiled(text, SCHEMA_PLAIN);
        assert_int_equal(schema_validate(s, instance, &m), SCHEMA_MISFIT);
        assert_null(strstr(m.path, "canary"));
        assert_null(strstr(m.keyword, "canary"));
        schema_free(&s);
        free((void *)text.p);
        free((void *)instance.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(objects),
        cmocka_unit_test(lists),
        cmocka_unit_test(schemas_in_schemas),
        cmocka_unit_test(unevaluated),
        cmocka_unit_test(formats),
        cmocka_unit_test(instances_have_bounds),
        cmocka_unit_test(costs_have_a_bound),
        cmocka_unit_test(paths_have_a_bound),
        cmocka_unit_test(nothing_of_the_instance_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
