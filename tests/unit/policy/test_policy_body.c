/* Rules about what a body says: JSON by pointer, fields of a form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/body/body.h"
#include "policy_kit.h"

static const char money[] =
    "version: 1\n"
    "rules:\n"
    "  - { id: refund, match: { host: pay.test, method: POST, path: /refunds, form: [{ field: amount, int_lte: 5000 "
    "}, { field: currency, in: [eur, chf] }, { field: to, absent: true }] }, decide: allow }\n"
    "  - { id: larger, match: { host: pay.test, method: POST, path: /refunds }, except: [{ form: [{ field: amount, "
    "int_lte: 5000 }, { field: currency, in: [eur, chf] }, { field: to, absent: true }] }], decide: hold }\n"
    "  - { id: named, match: { host: pay.test, method: POST, path: /pay, form: [{ field: pay_to, equals: me }] }, "
    "decide: allow }\n"
    "  - { id: soft, match: { host: json.test, method: POST, path: /task, json: [{ pointer: /task, equals: list }, "
    "{ pointer: /force, equals: [\"false\", \"null\"] }] }, decide: allow }\n"
    "  - { id: note, match: { host: json.test, method: POST, path: /notes, json: [{ pointer: /kind, equals: note }, "
    "{ pointer: /meta/draft, equals: \"true\" }] }, decide: allow }\n"
    "  - { id: cheap, match: { host: json.test, method: POST, path: /buy, json: [{ pointer: /items/0/price, int_lte: "
    "100 }, { pointer: /items/1, absent: true }] }, decide: allow }\n"
    "  - { id: gentle, match: { host: json.test, method: POST, path: /move, json: [{ pointer: /options/force, "
    "absent: "
    "true }] }, decide: allow }\n"
    "  - { id: any, match: { host: deny.test, method: POST }, decide: allow }\n"
    "  - { id: no-drop, match: { host: deny.test, method: POST, json: [{ pointer: /action, glob: \"drop*\" }] }, "
    "decide: deny }\n"
    "  - { id: no-prod, match: { host: deny.test, method: POST, json: [{ pointer: /target/env, equals: prod }] }, "
    "decide: deny }\n"
    "  - { id: large, match: { host: hold.test, method: POST, json: [{ pointer: /sum, int_gte: 100 }] }, decide: "
    "hold "
    "}\n"
    "  - { id: rest, match: { host: hold.test, method: POST }, decide: allow }\n"
    "  - { id: tilde, match: { host: tilde.test, method: POST, json: [{ pointer: \"/a~1b/~0\", exists: true }] }, "
    "decide: allow }\n";

#define FORM "Content-Type: application/x-www-form-urlencoded\n"
#define JSON "Content-Type: application/json\n"

struct row {
    const char *url, *fields, *body;
    enum verdict verdict;
    const char *code, *rule;
};

static void try_rows(struct kit *k, const struct row *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct decision *d =
            kit_judge(k, "sb", "POST", v[i].url, v[i].fields, v[i].body, v[i].body ? strlen(v[i].body) : 0, true);
        /* What is still open when the body is all there is a denial to the judge. */
        if (d->need_body ? strcmp(v[i].code, "unclassified") != 0
                         : d->verdict != v[i].verdict || strcmp(d->code, v[i].code) != 0 ||
                               !span_eq(d->rule.id, span_str(v[i].rule)))
            fail_msg("%s with %s: verdict %d, code %s, rule %.*s%s", v[i].url, v[i].body ? v[i].body : "nothing",
                     d->verdict, d->code, SPAN_FMT(d->rule.id), d->need_body ? ", open" : "");
    }
}

#define TRY(k, v) try_rows(k, v, sizeof(v) / sizeof((v)[0]))

static void forms(void **state)
{
    static const struct row rows[] = {
#define R "https://pay.test/refunds"
        {R, FORM, "amount=5000&currency=eur", VERDICT_ALLOW, "rule", "refund"},
        {R, FORM, "currency=chf&amount=0&note=a%20b", VERDICT_ALLOW, "rule", "refund"},
        {R, "Content-Type: application/x-www-form-urlencoded; charset=UTF-8\n", "amount=1&currency=eur",
         VERDICT_ALLOW, "rule", "refund"},
        {R, FORM, "amount=5001&currency=eur", VERDICT_HOLD, "rule", "larger"},
        {R, FORM, "amount=05&currency=eur", VERDICT_HOLD, "rule", "larger"},
        {R, FORM, "amount=5e3&currency=eur", VERDICT_HOLD, "rule", "larger"},
        {R, FORM, "amount=+5&currency=eur", VERDICT_HOLD, "rule", "larger"},
        {R, FORM, "amount=9999999999999999999999&currency=eur", VERDICT_HOLD, "rule", "larger"},
        {R, FORM, "amount=5&amount=900000&currency=eur", VERDICT_HOLD, "rule", "larger"},
        {R, FORM, "amount=5&currency=EUR", VERDICT_HOLD, "rule", "larger"},
        {R, FORM, "amount=5", VERDICT_HOLD, "rule", "larger"},
        {R, FORM, "amount=5&currency=eur&to=me", VERDICT_HOLD, "rule", "larger"},
        {R, FORM, "%61mount=900000&amount=5&currency=eur", VERDICT_HOLD, "rule", "larger"},
        /* two that read it differently */
        {R, FORM, "amount=5&currency=eur;amount=900000", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5&currency=eur&Amount=900000", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5&currency=eur&amount%5B%5D=900000", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5&currency=eur&amount[x]=900000", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5&currency=eur&+amount=900000", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5&currency=eur&[amount]=900000", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5&currency=eur&to[]=me", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5&currency=eur&amounts=900000&amount_due[x]=1&note[amount]=7", VERDICT_ALLOW, "rule",
         "refund"},
        {"https://pay.test/pay", FORM, "pay_to=me", VERDICT_ALLOW, "rule", "named"},
        {"https://pay.test/pay", FORM, "pay_to=me&pay.to=you", VERDICT_DENY, "unclassified", ""},
        {"https://pay.test/pay", FORM, "pay_to=me&pay+to=you", VERDICT_DENY, "unclassified", ""},
        {"https://pay.test/pay", FORM, "pay_to=me&pay%5Bto=you", VERDICT_DENY, "unclassified", ""},
        {"https://pay.test/pay?x=1;pay_to=you", FORM, "pay_to=me", VERDICT_DENY, "unclassified", ""},
        {"https://pay.test/pay?pay%5Fto=you", FORM, "pay_to=me", VERDICT_DENY, "unclassified", ""},
        {"https://pay.test/pay?pay.to[]=you", FORM, "pay_to=me", VERDICT_DENY, "unclassified", ""},
        {"https://pay.test/pay?=you&x=%20", FORM, "pay_to=me", VERDICT_ALLOW, "rule", "named"},
        {R, FORM, "amount=5%&currency=eur", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5%00&currency=eur", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5&currency=eur&x=%ff", VERDICT_DENY, "unclassified", ""},
        {R, FORM, "amount=5&currency=eur&_charset_=utf-7", VERDICT_DENY, "unclassified", ""},
        {R "?amount=900000", FORM, "amount=5&currency=eur", VERDICT_DENY, "unclassified", ""},
        {R, FORM "Content-Encoding: gzip\n", "amount=5&currency=eur", VERDICT_DENY, "unclassified", ""},
        {R, FORM FORM, "amount=5&currency=eur", VERDICT_DENY, "unclassified", ""},
        {R, "Content-Type: text/plain\n", "amount=5&currency=eur", VERDICT_DENY, "unclassified", ""},
        {R, "Content-Type: application/x-www-form-urlencoded; charset=utf-7\n", "amount=5&currency=eur", VERDICT_DENY,
         "unclassified", ""},
        {R, NULL, "amount=5&currency=eur", VERDICT_DENY, "unclassified", ""},
        {R, JSON, "{\"amount\":5,\"currency\":\"eur\"}", VERDICT_HOLD, "rule", "larger"},
    };
    struct kit k;
    (void)state;
    if (!kit_load(&k, money, NULL))
        fail_msg("%s: %s", k.e.text, k.problems[0]);
    TRY(&k, rows);
    kit_covered("B34 B35 B13");
    kit_free(&k);
}

static void json(void **state)
{
    static const struct row rows[] = {
#define N "https://json.test/notes"
#define B "https://json.test/buy"
#define T "https://json.test/task"
#define V "https://json.test/move"
        {N, JSON, "{\"kind\":\"note\",\"meta\":{\"draft\":true}}", VERDICT_ALLOW, "rule", "note"},
        {N, "Content-Type: application/vnd.x+json; charset=utf-8\n",
         "{\"meta\":{\"draft\":\"true\"},\"kind\":\"note\"}", VERDICT_ALLOW, "rule", "note"},
        {N, JSON, "{\"kind\":\"Note\",\"meta\":{\"draft\":true}}", VERDICT_DENY, "no-rule", ""},
        {N, JSON, "{\"kind\":[\"note\"],\"meta\":{\"draft\":true}}", VERDICT_DENY, "no-rule", ""},
        {N, JSON, "{\"kind\":\"note\"}", VERDICT_DENY, "no-rule", ""},
        {N, JSON, "[]", VERDICT_DENY, "no-rule", ""},
        {N, JSON, "{\"k\\u0069nd\":\"note\",\"meta\":{\"draft\":true}}", VERDICT_ALLOW, "rule", "note"},
        {N, JSON, "{\"kind\":\"note\",\"ki_nd\":\"x\",\"meta\":{\"draft\":true}}", VERDICT_DENY, "unclassified", ""},
        {N, JSON, "{\"kind\":\"note\",\"Kind\":\"x\",\"meta\":{\"draft\":true}}", VERDICT_DENY, "unclassified", ""},
        {N, JSON, "{\"kind\":\"x\",\"kind\":\"note\",\"meta\":{\"draft\":true}}", VERDICT_DENY, "unclassified", ""},
        {N, JSON, "{\"kind\":\"note\",\"meta\":{\"draft\":true}} ,", VERDICT_DENY, "unclassified", ""},
        {N, JSON, "\xef\xbb\xbf{\"kind\":\"note\",\"meta\":{\"draft\":true}}", VERDICT_DENY, "unclassified", ""},
        {N, "Content-Type: application/json; charset=utf-16\n", "{\"kind\":\"note\",\"meta\":{\"draft\":true}}",
         VERDICT_DENY, "unclassified", ""},
        {N, "Content-Type: text/json\n", "{\"kind\":\"note\",\"meta\":{\"draft\":true}}", VERDICT_DENY,
         "unclassified", ""},
        {B, JSON, "{\"items\":[{\"price\":100}]}", VERDICT_ALLOW, "rule", "cheap"},
        {B, JSON, "{\"items\":[{\"price\":101}]}", VERDICT_DENY, "no-rule", ""},
        {B, JSON, "{\"items\":[{\"price\":1e2}]}", VERDICT_DENY, "no-rule", ""},
        {B, JSON, "{\"items\":[{\"price\":\"100\"}]}", VERDICT_DENY, "no-rule", ""},
        {B, JSON, "{\"items\":[{\"price\":1},{\"price\":900}]}", VERDICT_DENY, "no-rule", ""},
        {B, JSON, "{\"items\":{\"price\":9999}}", VERDICT_DENY, "unclassified", ""},
        /* a list to PHP, of two */
        {B, JSON, "{\"items\":{\"0\":{\"price\":1},\"2\":{\"price\":9999}}}", VERDICT_DENY, "unclassified", ""},
        {B, JSON, "{\"items\":null}", VERDICT_DENY, "no-rule", ""},
        {V, JSON, "{\"options\":{}}", VERDICT_ALLOW, "rule", "gentle"},
        {V, JSON, "{\"options\":null}", VERDICT_ALLOW, "rule", "gentle"},
        {V, JSON, "{\"options\":{\"force\":true}}", VERDICT_DENY, "no-rule", ""},
        {V, JSON, "{\"options\":\"{\\\"force\\\":true}\"}", VERDICT_DENY, "unclassified", ""},
        /* Go's encoding/json folds these two to ASCII */
        {T, JSON, "{\"task\":\"list\",\"force\":false}", VERDICT_ALLOW, "rule", "soft"},
        {T, JSON, "{\"task\":\"list\",\"ta\u017fk\":\"drop\",\"force\":false}", VERDICT_DENY, "unclassified", ""},
        {T, JSON, "{\"task\":\"list\",\"tas\\u212a\":\"drop\",\"force\":null}", VERDICT_DENY, "unclassified", ""},
        {T, JSON, "{\"task\":\"list\",\"force\":\"false\"}", VERDICT_DENY, "no-rule", ""},
        {T, JSON, "{\"task\":\"list\",\"force\":\"null\"}", VERDICT_DENY, "no-rule", ""},
        /* a form to who reads the first type, as PHP and Rack do */
        {T, "Content-Type: application/x-www-form-urlencoded, a/b+json\n", "{\"task\":\"list\",\"force\":false}",
         VERDICT_DENY, "unclassified", ""},
        {T, "Content-Type: text/xml x+json\n", "{\"task\":\"list\",\"force\":false}", VERDICT_DENY, "unclassified",
         ""},
        {"https://tilde.test/", JSON, "{\"a/b\":{\"~\":null}}", VERDICT_ALLOW, "rule", "tilde"},
        {"https://tilde.test/", JSON, "{\"a/b\":{}}", VERDICT_DENY, "no-rule", ""},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, money, NULL));
    TRY(&k, rows);
    kit_covered("B20 B21 B22 B23 B59");
    kit_free(&k);
}

/* What a deny or a hold is about may be spelt in more ways than what an allow lets through. */
static void denies_and_holds_reach_further(void **state)
{
    static const struct row rows[] = {
#define D "https://deny.test/x"
#define H "https://hold.test/x"
        {D, JSON, "{\"action\":\"list\"}", VERDICT_ALLOW, "rule", "any"},
        {D, JSON, "{\"action\":\"drop_all\"}", VERDICT_DENY, "rule", "no-drop"},
        {D, JSON, "{\"action\":\"DROP\"}", VERDICT_DENY, "rule", "no-drop"},
        {D, JSON, "{\"Action\":\"list\"}", VERDICT_DENY, "unclassified", ""},
        /* names that protobuf, or Go, takes for one; not those with a sign at an end */
        {D, JSON, "{\"act_ion\":\"drop\"}", VERDICT_DENY, "unclassified", ""},
        {D, JSON, "{\"Act-I_on\":\"drop\"}", VERDICT_DENY, "unclassified", ""},
        {D, JSON, "{\"act\uff3fion\":\"drop\"}", VERDICT_DENY, "unclassified", ""},
        {D, JSON, "{\"_action\":\"x\",\"action_\":\"x\",\"-action\":\"x\",\"__\":1,\"\":1}", VERDICT_ALLOW, "rule",
         "any"},
        {D, JSON,
         "{\"a1\":1,\"a2\":1,\"a3\":1,\"a4\":1,\"a5\":1,\"a6\":1,\"a7\":1,\"a8\":1,\"a9\":1,\"b1\":1,\"b2\":1,"
         "\"b3\":1,\"b4\":1,\"b5\":1,\"b6\":1,\"b7\":1,\"a_c_t_i_o_n\":\"drop\"}",
         VERDICT_DENY, "unclassified", ""},
        {D, JSON, "{\"target\":{\"e_nv\":\"prod\"}}", VERDICT_DENY, "unclassified", ""},
        {D, JSON, "{\"action\":[\"drop\"]}", VERDICT_DENY, "unclassified", ""},
        {D, JSON, "{\"action\":\"[\\\"drop\\\"]\"}", VERDICT_DENY, "unclassified", ""},
        {D, JSON, "{\"action\":\"[WIP] list\"}", VERDICT_ALLOW, "rule", "any"},
        {D, JSON, "{\"action\":\"drop [a]\"}", VERDICT_DENY, "rule", "no-drop"},
        {D, JSON, "{\"target\":{\"env\":\"prod\"}}", VERDICT_DENY, "rule", "no-prod"},
        {D, JSON, "{\"target\":null}", VERDICT_ALLOW, "rule", "any"},
        {D, JSON, "{\"target\":\"{\\\"env\\\":\\\"prod\\\"}\"}", VERDICT_DENY, "unclassified", ""},
        {D, FORM, "action=drop", VERDICT_DENY, "unclassified", ""},
        {D, JSON "Content-Encoding: br\n", "{\"action\":\"list\"}", VERDICT_DENY, "unclassified", ""},
        {H, JSON, "{\"sum\":99}", VERDICT_ALLOW, "rule", "rest"},
        {H, JSON, "{\"sum\":100}", VERDICT_HOLD, "rule", "large"},
        {H, JSON, "{\"sum\":1e9}", VERDICT_DENY, "unclassified", ""},
        {H, JSON, "{\"sum\":\"100\"}", VERDICT_DENY, "unclassified", ""},
        {H, JSON, "{\"other\":1}", VERDICT_ALLOW, "rule", "rest"},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, money, NULL));
    TRY(&k, rows);
    kit_covered("B19");
    kit_free(&k);
}

/* What a field says may stand in the query instead, with no body or one of JSON: many servers take it from there. */
static void a_query_is_no_way_around(void **state)
{
    static const char yaml[] = "version: 1\n"
                               "rules:\n"
                               "  - { id: any, match: { host: pay.test }, decide: allow }\n"
                               "  - { id: form, match: { host: pay.test, path: /f, form: [{ field: amount, int_gte: "
                               "100 }] }, decide: hold }\n"
                               "  - { id: json, match: { host: pay.test, path: /j, json: [{ pointer: \"/a~1b/0\", "
                               "equals: drop }] }, decide: deny }\n";
    static const struct row rows[] = {
#define P "https://pay.test"
        {P "/f", FORM, "amount=99", VERDICT_ALLOW, "rule", "any"},
        {P "/f", FORM, "amount=100", VERDICT_HOLD, "rule", "form"},
        {P "/f?amount=100", FORM, "x=1", VERDICT_DENY, "unclassified", ""},
        {P "/f?amount=100", JSON, "{}", VERDICT_DENY, "unclassified", ""},
        {P "/f?amount=100", NULL, NULL, VERDICT_DENY, "unclassified", ""},
        {P "/f?x=1;%41mount=100", NULL, NULL, VERDICT_DENY, "unclassified", ""},
        {P "/f?amounts=100", NULL, NULL, VERDICT_ALLOW, "rule", "any"},
        {P "/f", NULL, NULL, VERDICT_ALLOW, "rule", "any"},
        {P "/j", JSON, "{\"a/b\":[\"list\"]}", VERDICT_ALLOW, "rule", "any"},
        {P "/j", JSON, "{\"a/b\":[\"drop\"]}", VERDICT_DENY, "rule", "json"},
        {P "/j?a/b[]=drop", JSON, "{\"a/b\":[\"list\"]}", VERDICT_DENY, "unclassified", ""},
        {P "/j?a%2Fb[]=drop", NULL, NULL, VERDICT_DENY, "unclassified", ""},
        {P "/j?b=drop", JSON, "{\"a/b\":[\"list\"]}", VERDICT_ALLOW, "rule", "any"},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, yaml, NULL));
    TRY(&k, rows);
    kit_covered("B12 B13");
    kit_free(&k);
}

/* Each cause by its stable word, with the name of what the rule asks about. */
static void what_is_not_understood_has_a_cause(void **state)
{
    static const struct {
        const char *url, *fields, *body, *word, *key;
    } rows[] = {
        {R, FORM, "amount=5&currency=eur;amount=900000", "bad-form", "amount"},
        {R, FORM, "amount=5%&currency=eur", "bad-form", "amount"},
        {R, FORM, "amount=5&currency=eur&Amount=900000", "field-spelling", "amount"},
        {R, FORM, "amount=5&currency=eur&to[]=me", "field-spelling", "to"},
        {R "?amount=900000", FORM, "amount=5&currency=eur", "in-query", "amount"},
        {R, FORM "Content-Encoding: gzip\n", "amount=5&currency=eur", "content-coding", "amount"},
        {R, FORM FORM, "amount=5&currency=eur", "content-types", "amount"},
        {R, "Content-Type: text/plain\n", "amount=5&currency=eur", "body-type", "amount"},
        {R, NULL, "amount=5&currency=eur", "no-content-type", "amount"},
        {N, JSON, "{\"kind\":\"note\",\"Kind\":\"x\",\"meta\":{\"draft\":true}}", "key-case", "/kind"},
        {N, JSON, "{\"kind\":\"x\",\"kind\":\"note\"}", "key-twice", "/kind"},
        {N, JSON, "{\"a\":{\"b\":1,\"c\":[{\"b\":1,\"b\":2}]},\"kind\":\"note\"}", "key-twice", "/kind"},
        {N, JSON, "{\"kind\":\"note\"} ,", "bad-json", "/kind"},
        {N, JSON, "{\"kind\":\"no", "bad-json", "/kind"},
        {N, JSON, "", "bad-json", "/kind"},
        {N, JSON, "{\"kind\":\"note\",\"x\":\"\xff\"}", "bad-encoding", "/kind"},
        {N, JSON, "{\"kind\":\"note\",\"x\":\"\\ud800\"}", "bad-encoding", "/kind"},
        {N, JSON, "{\"kind\\u0000\":\"note\"}", "bad-encoding", "/kind"},
        {N, JSON, "[{\"kind\":\"note\"}]", "batch", "/kind"},
        {D, JSON, "{\"action\":[\"drop\"]}", "value-type", "/action"},
        {D, FORM, "action=drop", "body-kind", "/action"},
        {H, JSON, "{\"sum\":1e9}", "number-spelling", "/sum"},
        {H, JSON, "{\"sum\":\"100\"}", "value-type", "/sum"},
    };
    char deep[200] = "";
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, money, NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)kit_judge(&k, "sb", "POST", rows[i].url, rows[i].fields, rows[i].body, strlen(rows[i].body), true);
        if (strcmp(k.ambiguity.word, rows[i].word) != 0 || !span_eq(k.ambiguity.asked, span_str(rows[i].key)))
            fail_msg("%s with %s: %s, %.*s; wanted %s of %s", rows[i].url, rows[i].body, k.ambiguity.word,
                     SPAN_FMT(k.ambiguity.asked), rows[i].word, rows[i].key);
    }
    /* A refusal says of what the rule asks about nothing: not by a guess in the query of a body that is none, either.
     */
    (void)kit_judge(&k, "sb", "POST", H, JSON, "{\"sum\":1e9}", 11, true);
    assert_string_equal(k.ambiguity.told, "ambiguous");
    (void)kit_judge(&k, "sb", "POST", H "?sum=1", JSON, "{}", 2, true);
    assert_string_equal(k.ambiguity.told, "ambiguous");
    (void)kit_judge(&k, "sb", "POST", H "?sum=1", JSON, "{", 1, true);
    assert_string_equal(k.ambiguity.told, "bad-json");
    (void)kit_judge(&k, "sb", "POST", H "?other=1", JSON, "{", 1, true);
    assert_string_equal(k.ambiguity.told, "bad-json");
    memset(deep, '[', 70);
    memset(deep + 70, ']', 70);
    (void)kit_judge(&k, "sb", "POST", N, JSON, deep, strlen(deep), true);
    assert_string_equal(k.ambiguity.word, "body-large");
    (void)kit_judge(&k, "sb", "POST", N, JSON, NULL, 0, true);
    assert_string_equal(k.ambiguity.word, "");
    (void)kit_judge(&k, "sb", "POST", N, JSON, "{", 1, false);
    assert_string_equal(k.ambiguity.word, "body-cut");
    kit_free(&k);
}

/* The cause names only what a rule in the subject's own scope asks about. */
static void the_cause_is_of_a_rule_in_scope(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "scopes: { theirs: { sandboxes: [\"vm-*\"] }, ours: { sandboxes: [\"ci-*\"] } }\n"
        "rules:\n"
        "  - { id: a, scope: theirs, match: { host: a.test, json: [{ pointer: /secret, equals: x }] }, decide: allow "
        "}\n"
        "  - { id: b, scope: ours, match: { host: a.test, json: [{ pointer: /open, equals: x }] }, decide: allow }\n";
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, yaml, NULL));
    (void)kit_judge(&k, "ci-1", "POST", "https://a.test/", JSON, "{", 1, true);
    assert_true(span_eq(k.ambiguity.asked, SPAN("/open")));
    (void)kit_judge(&k, "vm-1", "POST", "https://a.test/", JSON, "{", 1, true);
    assert_true(span_eq(k.ambiguity.asked, SPAN("/secret")));
    kit_free(&k);
}

static void a_body_is_asked_for_only_where_a_rule_needs_it(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, money, NULL));
    assert_true(kit_judge(&k, "sb", "POST", "https://json.test/notes", JSON, "", 0, false)->need_body);
    assert_false(kit_judge(&k, "sb", "POST", "https://json.test/elsewhere", JSON, "", 0, false)->need_body);
    kit_expect(kit_judge(&k, "sb", "POST", "https://json.test/notes", NULL, NULL, 0, true), VERDICT_DENY, "no-rule",
               "");
    kit_covered("B18 B49");
    kit_free(&k);
}

static void what_is_no_condition_is_refused(void **state)
{
    static const struct {
        const char *conds, *code, *words;
    } bad[] = {
        {"json: []", "P008", "asks nothing"},
        {"json: [{ pointer: amount, exists: true }]", "P013", "JSON pointer"},
        {"json: [{ pointer: \"/a~2\", exists: true }]", "P013", "~0"},
        {"json: [{ pointer: /a }]", "P015", "one thing"},
        {"json: [{ pointer: /a, equals: x, in: [z] }]", "P015", "one thing"},
        {"json: [{ pointer: /a, equals: x, glob: z }]", "P015", "one thing"},
        {"json: [{ pointer: /a, exists: false }]", "P015", "only true"},
        {"json: [{ pointer: /a, int_lte: -1 }]", "P008", NULL},
        {"json: [{ pointer: /a, int_lte: 9007199254740993 }]", "P008", NULL},
        {"json: [{ pointer: /a, int_lte: 1.5 }]", "P008", NULL},
        {"json: [{ field: a, exists: true }]", "P006", "field"},
        {"form: [{ pointer: /a, exists: true }]", "P006", "pointer"},
        {"form: [{ field: a, equals: no }]", "P009", NULL},
        {"json: [{ pointer: /a, exists: true }], form: [{ field: a, exists: true }]", "P015", "two rules"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct kit k;
        char yaml[512];
        snprintf(yaml, sizeof(yaml), "version: 1\nrules:\n  - { id: r, match: { host: a.test, %s }, decide: deny }\n",
                 bad[i].conds);
        if (kit_load(&k, yaml, NULL) || !kit_problem(&k, bad[i].code, NULL, bad[i].words))
            fail_msg("%s: %s", bad[i].conds, k.nproblems ? k.problems[0] : "it was taken");
        kit_free(&k);
    }
}

/* What was found of a condition is found once, and of nothing else than what was asked: F33. */
static void what_is_remembered_is_of_the_same_question(void **state)
{
    static const char yaml[] =
        "version: 1\nrules:\n"
        "  - { id: a, match: { host: a.test, json: [{ pointer: /mode, equals: wipe }] }, decide: deny }\n"
        "  - { id: b, match: { host: a.test, json: [{ pointer: /mode, equals: WIPE }] }, decide: deny }\n";
    const struct http_field json = {SPAN("Content-Type"), SPAN("application/json")};
    struct request r = {.method = SPAN("POST"),
                        .path = SPAN("/"),
                        .fields = &json,
                        .nfields = 1,
                        .body = SPAN("{\"mode\":\"WIPE\"}"),
                        .has_body = true,
                        .body_complete = true};
    const struct request get = {.method = SPAN("GET"), .path = SPAN("/")};
    struct kit k, other;
    struct arena room;
    arena_init(&room, 1 << 20);
    assert_true(kit_load(&k, yaml, NULL) && kit_load(&other, yaml, NULL));
    const struct img_cond *a = img_at(k.p, IMG_COND, 0), *b = img_at(k.p, IMG_COND, 1);
    struct body_view v = {.looked = false};
    for (int again = 0; again < 2; again++) {
        assert_int_equal(body_fits(&v, k.p, a, &r, false, &room), FIT_YES);
        assert_int_equal(body_fits(&v, k.p, a, &r, true, &room), FIT_NO);
        assert_int_equal(body_fits(&v, k.p, b, &r, true, &room), FIT_YES);
        assert_int_equal(body_fits(&v, other.p, img_at(other.p, IMG_COND, 1), &r, true, &room), FIT_YES);
        r.query = SPAN("mode=x");
        assert_int_equal(body_fits(&v, k.p, b, &r, true, &room), FIT_MAYBE);
        r.query = SPAN_NONE;
        assert_int_equal(body_fits(&v, k.p, b, &r, true, &room), FIT_YES);
    }
    struct body_view none = {.looked = false};
    assert_int_equal(body_fits(&none, k.p, a, &get, true, &room), FIT_NO);
    arena_free(&room);
    kit_free(&other);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(json),
        cmocka_unit_test(denies_and_holds_reach_further),
        cmocka_unit_test(a_query_is_no_way_around),
        cmocka_unit_test(what_is_not_understood_has_a_cause),
        cmocka_unit_test(the_cause_is_of_a_rule_in_scope),
        cmocka_unit_test(a_body_is_asked_for_only_where_a_rule_needs_it),
        cmocka_unit_test(what_is_no_condition_is_refused),
        cmocka_unit_test(what_is_remembered_is_of_the_same_question),
    };
    return cmocka_run_group_tests_name("policy body", tests, NULL, NULL);
}
