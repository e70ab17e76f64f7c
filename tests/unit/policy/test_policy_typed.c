/* The manifest for programs that write programs: the operations that the rules of one subject let through, as a
 * module of TypeScript and as OpenAPI, and nothing in them that a policy could have put beside its strings and
 * comments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/manifest.h"
#include "policy_kit.h"
#include "tests/ts_module.h"

static struct dynbuf text;
static bool with_ids;

/* What this sandbox is told, kept until the next; and how much found no room. */
static size_t tell(struct kit *k, const char *sandbox, const char *host, size_t room, bool openapi)
{
    struct subject s = {.sandbox = span_str(sandbox)};
    struct manifest_want want = {.subject = &s, .host = span_str(host), .room = room, .ids = with_ids};
    struct jsonw w;
    size_t left;
    dynbuf_free(&text);
    dynbuf_init(&text, 1 << 20);
    jsonw_begin(&w, &text);
    if (openapi)
        left = policy_openapi(k->p, &want, &w);
    else
        left = policy_typescript(k->p, &want, &text);
    assert_true(dynbuf_ok(&text));
    return left;
}

static bool has(const char *words)
{
    return span_find(dynbuf_span(&text), span_str(words)) < text.n;
}

static void types(struct kit *k, const char *sandbox, const char *host)
{
    assert_int_equal(tell(k, sandbox, host, 1 << 18, false), 0);
    assert_true(ts_module_holds(dynbuf_span(&text)));
}

static const struct json *described(struct kit *k, const char *sandbox)
{
    assert_int_equal(tell(k, sandbox, "", 1 << 18, true), 0);
    const struct json *j = json_parse(dynbuf_span(&text), &k->a);
    assert_non_null(j);
    assert_true(span_eq(json_text(j, SPAN("openapi")), SPAN("3.1.0")));
    return json_get(j, SPAN("paths"));
}

static const struct json *below(const struct json *j, const char *pointer)
{
    const struct json *to = json_pointer(j, span_str(pointer));
    if (to == NULL)
        fail_msg("nothing at %s in %.*s", pointer, SPAN_FMT(dynbuf_span(&text)));
    return to;
}

static bool says(const struct json *j, const char *pointer, const char *words)
{
    return span_eq(below(j, pointer)->text, span_str(words));
}

static const char rules[] =
    "version: 1\npacks: [git@1]\n"
    "scopes: { ci: { sandboxes: [\"ci-*\"] } }\n"
    "rules:\n"
    "  - { id: change, match: { host: api.test, method: [PUT, DELETE], path: \"/v1/things/{thing}\" }, decide: allow "
    "}\n"
    "  - { id: gone, match: { host: \"**.test\", method: DELETE }, decide: deny }\n"
    "  - { id: look, match: { host: api.test, method: GET, path: \"/v1/**\", query: { page: \"*\", sort: [up, down] "
    "},\n"
    "      query_names: [page, sort, q] }, decide: allow }\n"
    "  - { id: ours, scope: ci, match: { host: api.test, method: POST, path: /v1/own }, decide: allow }\n"
    "  - { id: pay, match: { host: api.test, port: 8443, scheme: http, method: POST, path: "
    "\"/v1/refunds/{refund}\",\n"
    "      json: [{ pointer: /amount, int_lte: 50 }, { pointer: /to/currency, in: [eur, \"5\"] }] }, decide: hold }\n"
    "  - { id: push, match: { op: git.push, resource: \"git:git.test/acme/*\", host: git.test,\n"
    "      git: { refs: [\"refs/heads/agent/*\"], force: false } }, decide: allow }\n"
    "  - { id: sign, match: { host: \"*.any.test\", method: POST, path: /in, form: [{ field: name, equals: me }] },\n"
    "      decide: allow }\n"
    "  - { id: wait, match: { host: api.test, method: PUT, path: \"/v1/things/*\" }, decide: hold, say: Ask. }\n";

static void typescript_has_each_operation_once(void **state)
{
    struct kit k;
    (void)state;
    if (!kit_load(&k, rules, NULL))
        fail_msg("%s", k.e.text);
    types(&k, "vm", "");
    assert_true(
        has("\n  \"GET https://api.test/v1/{+pathRest1}\":\n    /** Allowed. */\n    | { decision: \"allow\"; path: "
            "{ \"pathRest1\": string; }; query: { \"page\": string; \"sort\": \"up\" | \"down\"; \"q\"?: string; }; "
            "headers?: Texts; };\n"));
    assert_true(
        has("\"POST http://api.test:8443/v1/refunds/{refund}\":\n    /** Held: a person must approve each one "
            "first. */\n    | { decision: \"hold\"; path: { \"refund\": string; };"));
    assert_true(
        has("json: { \"amount\": number /* at most 50 */; [name: string]: unknown; } & { \"to\": { \"currency\": "
            "\"eur\" | \"5\" | 5; [name: string]: unknown; }; [name: string]: unknown; };"));
    assert_true(has("form: { \"name\": \"me\"; [name: string]: string | undefined; };"));
    assert_true(has("\"POST https://{hostName}/in\"") && has(" hostName: *.any.test."));
    assert_true(has("git.push (write). Of git:git.test/acme/*. Refs: refs/heads/agent/*. No forced pushes. *\\/") ||
                has("git.push (write). Of git:git.test/acme/*. Refs: refs/heads/agent/*. No forced pushes. */"));
    assert_false(has("/v1/own") || has("DELETE") || has("PATCH https://git.test"));
    types(&k, "ci-1", "");
    assert_true(has("\"POST https://api.test/v1/own\""));
    types(&k, "vm", "git.test");
    assert_true(has("\"POST https://git.test/{+pathRest1}/git-receive-pack\""));
    assert_false(has("api.test"));
    kit_free(&k);
}

/* A hold that is about all of an allow, and an allow of a part of a held one. */
static void what_another_rule_holds_is_held(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    types(&k, "vm", "");
    assert_true(has("  \"PUT https://api.test/v1/things/{thing}\": \"hold\",\n"));
    assert_true(has("  \"GET https://api.test/v1/{+pathRest1}\": \"allow\",\n"));
    kit_free(&k);
    assert_true(kit_load(
        &k,
        "version: 1\nrules:\n"
        "  - { id: a, match: { host: a.test, method: POST, path: /x }, decide: allow }\n"
        "  - { id: b, match: { host: a.test, method: POST, path: /x, query: { all: \"1\" } }, decide: hold }\n"
        "  - { id: c, match: { host: a.test, method: POST, path: \"/y/**\" }, decide: allow }\n"
        "  - { id: d, match: { host: a.test, method: POST, path: \"/y/*\" }, decide: hold }\n",
        NULL));
    types(&k, "vm", "");
    assert_true(has("  \"POST https://a.test/x\": \"depends\",\n"));
    assert_true(has("decision: \"allow\"; path: { \"pathRest1\""));
    kit_free(&k);
}

/* What a rule of effects alone is about at the host of a pack are the pack's operations as well. */
static void a_pack_tells_what_an_effect_is(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(&k,
                         "version: 1\npacks: [graphql@1, git@1]\nrules:\n"
                         "  - { id: a, match: { host: [api.github.com, b.test], effect: read }, decide: allow }\n"
                         "  - { id: b, match: { host: api.github.com, effect: write }, decide: hold }\n"
                         "  - { id: c, match: { host: c.test, effect: [read, write] }, decide: allow }\n"
                         "  - { id: d, match: { host: c.test, effect: write }, decide: deny }\n",
                         NULL));
    types(&k, "vm", "");
    assert_true(has("  \"POST https://api.github.com/graphql\": \"depends\",\n"));
    assert_true(has("  \"GET https://api.github.com/graphql\": \"allow\",\n"));
    assert_true(has("graphql.mutation (write). */\n    | { decision: \"hold\";"));
    assert_true(has("  \"POST https://api.github.com/{+pathRest1}\": \"hold\",\n"));
    assert_false(has("b.test/graphql") || has("github.com/graphql/") || has("git.fetch"));
    assert_true(has("\"GET https://c.test/{+pathRest1}\"") && !has("\"POST https://c.test/{+pathRest1}\""));
    kit_free(&k);
}

static void openapi_has_each_path_once(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    const struct json *j = described(&k, "vm"), *get = below(j, "/~1v1~1{pathRest1}/get");
    assert_true(says(get, "/x-countersign-decision", "allow") && says(get, "/servers/0/url", "https://api.test"));
    assert_true(says(get, "/parameters/0/name", "pathRest1") && says(get, "/parameters/0/in", "path"));
    assert_true(says(get, "/parameters/1/name", "page") && below(get, "/parameters/1/required")->truth);
    assert_true(says(get, "/parameters/2/schema/enum/1", "down"));
    assert_true(says(get, "/parameters/3/name", "q") && !below(get, "/parameters/3/required")->truth);
    assert_null(json_get(get, SPAN("requestBody")));
    const struct json *pay = below(j, "/~1v1~1refunds~1{refund}/post");
    const struct json *schema = below(pay, "/requestBody/content/application~1json/schema");
    assert_true(says(pay, "/x-countersign-decision", "hold") && says(pay, "/servers/0/url", "http://api.test:8443"));
    assert_true(says(schema, "/allOf/0/properties/amount/maximum", "50"));
    assert_true(says(schema, "/allOf/0/required/0", "amount"));
    assert_int_equal(below(schema, "/allOf/1/properties/to/properties/currency/enum/2")->type, JSON_NUMBER);
    const struct json *sign = below(j, "/~1in/post");
    assert_true(says(sign, "/servers/0/variables/hostName/default", "name.any.test"));
    assert_true(
        says(sign, "/requestBody/content/application~1x-www-form-urlencoded/schema/properties/name/enum/0", "me"));
    assert_true(says(j, "/~1{pathRest1}~1git-receive-pack/post/x-countersign/0/op", "git.push"));
    assert_null(json_pointer(j, SPAN("/~1v1~1things~1{thing}/delete")));
    assert_false(has("\"ours\"") || has("/v1/own"));
    kit_free(&k);
}

/* What no type can say is said in words; of a narrower path than the pack's the pack's is the template. */
static void words_say_what_types_cannot(void **state)
{
    struct kit k;
    (void)state;
    if (!kit_load(&k,
                  "version: 1\npacks: [git@1]\nrules:\n"
                  "  - { id: a-hours, match: { host: a.test, method: PUT, path: /h }, decide: allow,\n"
                  "      when: { days: mon, hours: \"08:00-18:00\", zone: UTC } }\n"
                  "  - { id: b-limits, match: { host: a.test, method: PUT, path: /l }, decide: allow, except: [{ "
                  "query: { a: "
                  "\"1\" } }],\n      limits: { requests: 5/1h } }\n"
                  "  - { id: c-path, match: { host: a.test, op: git.fetch, path: \"/acme/**\" }, decide: hold }\n"
                  "  - { id: d-glob, match: { host: a.test, method: PUT, path: /q, query: { v: \"1.*\" } }, decide: "
                  "hold }\n",
                  NULL))
        fail_msg("%s %s", k.e.text, k.nproblems ? k.problems[0] : "");
    types(&k, "vm", "");
    assert_true(has("Allowed. Not now, only mon 08:00-18:00 UTC. */"));
    assert_true(has("Allowed. So much in a time: past that it is denied. With exceptions. See /v1/manifest. */"));
    assert_true(has("git.fetch (read). The path also fits /acme/**. */"));
    assert_true(has("\"POST https://a.test/{+pathRest1}/git-upload-pack\""));
    assert_true(has("v: 1.*. */") && has("query: { \"v\": string; "));
    assert_false(has("Rule "));
    with_ids = true; /* where the operator discloses them */
    types(&k, "vm", "");
    assert_true(has("Not now, only mon 08:00-18:00 UTC. Rule a-hours. */"));
    with_ids = false;
    kit_free(&k);
}

/* Both are cut at whole operations, and say how much is missing. */
static void a_list_that_is_cut_says_so(void **state)
{
    struct kit k;
    size_t all, left;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    for (int openapi = 0; openapi < 2; openapi++) {
        all = tell(&k, "vm", "", 0, openapi);
        left = tell(&k, "vm", "", 1500, openapi);
        assert_true(all > left && left > 0);
        assert_true(has("ask for one host with ?as="));
        if (openapi)
            assert_non_null(json_parse(dynbuf_span(&text), &k.a));
        else
            assert_true(ts_module_holds(dynbuf_span(&text)));
    }
    kit_free(&k);
}

/* Text of a policy that would end a comment, a string or a line, in every place that a policy has for text. */
static void text_of_a_policy_stays_text(void **state)
{
    static const char yaml[] =
        "version: 1\nname: \"x*/ evil() /*\"\nrules:\n"
        "  - id: nasty\n    match:\n      host: a.test\n      method: [POST]\n      path: [\"/v1/**/x\", "
        "\"/it's(1)/$*\"]\n"
        "      query: { \"a\\\"b\\\\\": [\"${evil()} `x` \\u2028 \\u2029\", \"\\U0001F600\"], \"__proto__\": "
        "\"1\" }\n"
        "      header: { X-One: \"\\\"; evil(); //\" }\n"
        "      json: [{ pointer: \"/*~1 evil()\\\"/a b\", in: [\"</script>\", \"\\u202e */ //\"] }]\n"
        "    decide: hold\n"
        "    say: \"*/ evil(); /* \\u2028 evil() ** \\u202e // \"\n";
    struct kit k;
    (void)state;
    if (!kit_load(&k, yaml, NULL))
        fail_msg("%s %s", k.e.text, k.nproblems ? k.problems[0] : "");
    types(&k, "sb*/ evil()", "");
    assert_true(has("\"a\\u0022b\\u005c\": \"${evil()} `x` \\u2028 \\u2029\" | \"\\ud83d\\ude00\""));
    assert_true(has("*\\/ evil(); /* \\u{2028} evil() ** \\u{202e} //  */"));
    assert_true(has("\"POST https://a.test/v1/{+pathRest1}/x\""));
    const struct json *j = described(&k, "sb*/ evil()");
    assert_true(says(j, "/~1v1~1{pathRest1}~1x/post/parameters/1/name", "a\"b\\"));
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typescript_has_each_operation_once), cmocka_unit_test(what_another_rule_holds_is_held),
        cmocka_unit_test(a_pack_tells_what_an_effect_is),     cmocka_unit_test(openapi_has_each_path_once),
        cmocka_unit_test(words_say_what_types_cannot),        cmocka_unit_test(a_list_that_is_cut_says_so),
        cmocka_unit_test(text_of_a_policy_stays_text)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dynbuf_free(&text);
    return rc;
}
