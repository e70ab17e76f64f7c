/* JSON-RPC and MCP: messages, the conditions of rules about them, and what the pack makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/limit.h"
#include "tests/unit/policy/policy_kit.h"

#define JSON             "Content-Type: application/json\n"
#define TRY(k, v)        kit_rows(k, v, sizeof(v) / sizeof((v)[0]))
#define M(method)        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\"}"
#define P(method, more)  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" more "}"
#define CALL(tool, more) P("tools/call", "{\"name\":\"" tool "\",\"arguments\":" more "}")
#define OWNER            "{\"repo\":{\"owner\":\"acme\"}}"
#define ALLOWED(r)       VERDICT_ALLOW, "rule", r
#define DENIED(r)        VERDICT_DENY, "rule", r
#define HELD(r)          VERDICT_HOLD, "rule", r
#define NO_RULE          VERDICT_DENY, "no-rule", ""
#define OPEN             VERDICT_DENY, "unclassified", ""
#define A                "https://a.test/mcp"
#define D                "https://d.test/mcp"
#define R                "https://r.test/"
#define V                "https://a.test/move"
#define O                "https://a.test/ours"

static const char rules[] =
    "version: 1\n"
    "rules:\n"
    "  - { id: look, match: { host: a.test, path: /mcp, mcp: { method: [initialize, \"tools/list\"] } }, decide: "
    "allow "
    "}\n"
    "  - { id: search, match: { host: a.test, path: /mcp, mcp: { tool: [search, \"get_*\"], arguments: [{ pointer: "
    "/repo/owner, equals: acme }] } }, decide: allow }\n"
    "  - { id: any, match: { host: d.test }, decide: allow }\n"
    "  - { id: no-delete, match: { host: d.test, path: /mcp, mcp: { tool: \"delete*\" } }, decide: deny }\n"
    "  - { id: no-main, match: { host: d.test, path: /mcp, mcp: { arguments: [{ pointer: /branch, equals: main }] } "
    "}, "
    "decide: deny }\n"
    "  - { id: no-prod, match: { host: d.test, path: /mcp, mcp: { arguments: [{ pointer: /target/env, equals: prod "
    "}] "
    "} }, decide: deny }\n"
    "  - { id: no-label, match: { host: d.test, path: /mcp, mcp: { arguments: [{ pointer: /labels, equals: admin }] "
    "} "
    "}, decide: deny }\n"
    "  - { id: gentle, match: { host: a.test, path: /move, mcp: { tool: move, arguments: [{ pointer: /options/force, "
    "absent: true }] } }, decide: allow }\n"
    "  - { id: wallet, match: { host: w.test, path: /, jsonrpc: { method: \"*\" } }, decide: allow }\n"
    "  - { id: payouts, match: { host: w.test, path: /, jsonrpc: { method: send, params: [{ pointer: /1, int_gte: 1 "
    "}] } }, decide: deny }\n"
    "  - { id: fees, match: { host: w.test, path: /, jsonrpc: { method: pay, params: [{ pointer: /fee, equals: high "
    "}] } }, decide: deny }\n"
    "  - { id: plain, match: { host: w.test, path: /plain, jsonrpc: { method: send, params: [{ pointer: /2, absent: "
    "true }] } }, decide: allow }\n"
    "  - { id: rest, match: { host: r.test, path: /rest }, decide: allow, limits: { requests: 20/1d } }\n"
    "  - { id: reads, match: { host: r.test, path: /rest, jsonrpc: { method: \"get*\" } }, decide: allow }\n"
    "  - { id: ours, match: { host: a.test, path: /ours, mcp: { arguments: [{ pointer: /repo/owner, equals: acme }] "
    "} "
    "}, decide: allow }\n"
    "  - { id: chain, match: { host: r.test, path: /, jsonrpc: { method: \"eth_get*\", params: [{ pointer: /0, "
    "exists: true }] } }, decide: allow, limits: { requests: 20/1d } }\n";

static void an_allow_means_every_message(void **state)
{
    static const struct kit_row rows[] = {
        {"POST", A, JSON, M("tools/list"), ALLOWED("look")},
        {"POST", A, JSON, P("initialize", "{\"x\":1}"), ALLOWED("look")},
        {"POST", A, JSON, "[" M("tools/list") "," M("initialize") "]", ALLOWED("look")},
        {"POST", A, JSON, "[" M("tools/list") "," CALL("drop", "{}") "]", NO_RULE},
        {"POST", A, JSON, M("tools/list "), NO_RULE},
        {"POST", A, JSON, M("TOOLS/LIST"), NO_RULE},
        {"POST", A, JSON, CALL("search", "{\"repo\":{\"owner\":\"acme\"}}"), ALLOWED("search")},
        {"POST", A, JSON, CALL("get_it", "{\"repo\":{\"owner\":\"acme\"}}"), ALLOWED("search")},
        {"POST", A, JSON, CALL("search", "{\"repo\":{\"owner\":\"evil\"}}"), NO_RULE},
        {"POST", A, JSON, CALL("search", "{}"), NO_RULE},
        {"POST", A, JSON, CALL("drop", "{\"repo\":{\"owner\":\"acme\"}}"), NO_RULE},
        {"POST", A, JSON, CALL("search", "{\"repo\":{\"owner\":\"acme\",\"Owner\":\"evil\"}}"), OPEN},
        {"POST", A, JSON, P("tools/call", "{\"name\":\"search\",\"Name\":\"drop\",\"arguments\":" OWNER "}"), OPEN},
        {"POST", A, JSON, P("tools/call", "{\"name\":[\"search\"],\"arguments\":" OWNER "}"), OPEN},
        {"POST", A, JSON, P("tools/call", "{\"name\":\"search\\u0000\",\"arguments\":" OWNER "}"), OPEN},
        {"POST", A, JSON, P("tools/call", "[\"search\"]"), OPEN},
        {"POST", A, JSON, M("tools/call"), NO_RULE},
        {"POST", V, JSON, CALL("move", "{\"to\":\"x\"}"), ALLOWED("gentle")},
        {"POST", V, JSON, CALL("move", "{\"options\":{\"force\":true}}"), NO_RULE},
        {"POST", V, JSON, CALL("move", "{\"options\":null}"), ALLOWED("gentle")},
        {"POST", V, JSON, CALL("move", "{\"options\":\"{\\\"force\\\":true}\"}"), OPEN},
        {"POST", A, JSON, P("search", "{\"name\":\"search\"}"), NO_RULE},
        /* answers */
        {"POST", A, JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", NO_RULE},
        {"POST", A, JSON, "[" M("tools/list") ",{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}]", NO_RULE},
        /* no message of the one form */
        {"POST", A, JSON, "{\"id\":1,\"method\":\"tools/list\"}", OPEN},
        {"POST", A, JSON, "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"tools/list\"}", OPEN},
        {"POST", A, JSON, "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"tools/list\"}", OPEN},
        {"POST", A, JSON, "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/list\"}", OPEN},
        {"POST", A, JSON, "{\"jsonrpc\":\"2.0\",\"method\":[\"tools/list\"]}", OPEN},
        {"POST", A, JSON, "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\"Method\":\"tools/call\"}", OPEN},
        {"POST", A, JSON, "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\"method\":\"tools/call\"}", OPEN},
        {"POST", A, JSON, "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\"result\":1}", OPEN},
        {"POST", A, JSON, "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\"params\":\"x\"}", OPEN},
        {"POST", A, JSON, "{\"jsonrpc\":\"2.0\",\"result\":1}", OPEN},
        {"POST", A, JSON, "[" M("tools/list") ",{\"a\":1}]", OPEN},
        {"POST", A, JSON, "[0," M("tools/list") "]", OPEN},
        {"POST", A, JSON, "[{\"a\":1},0,[]]", NO_RULE},
        {"POST", A, JSON, "[[" M("tools/list") "]]", NO_RULE},
        {"POST", A, JSON, "[]", NO_RULE},
        {"POST", A, JSON, "{\"a\":1}", NO_RULE},
        {"POST", A, JSON, M("tools/list") M("tools/list"), OPEN},
        {"POST", A, "Content-Type: text/plain\n", M("tools/list"), OPEN},
        {"POST", A, JSON "Content-Encoding: gzip\n", M("tools/list"), OPEN},
        {"POST", A "?method=tools%2Fcall", JSON, M("tools/list"), OPEN},
        {"POST", A "?Params=x", JSON, M("tools/list"), OPEN},
        {"POST", A "?key=1", JSON, M("tools/list"), ALLOWED("look")},
        {"GET", A "?method=tools%2Flist", NULL, NULL, OPEN},
        {"GET", A, NULL, NULL, NO_RULE},
    };
    struct kit k;
    (void)state;
    if (!kit_load(&k, rules, NULL))
        fail_msg("%s: %s", k.e.text, k.problems[0]);
    TRY(&k, rows);
    kit_covered("B32 B33 B34");
    kit_free(&k);
}

/* The arguments of tools are those of no other method. */
static void arguments_mean_calls_of_tools(void **state)
{
    static const struct kit_row rows[] = {
        {"POST", O, JSON, CALL("get", OWNER), ALLOWED("ours")},
        {"POST", O, JSON, P("prompts/get", "{\"name\":\"x\",\"arguments\":" OWNER "}"), NO_RULE},
        {"POST", O, JSON, P("vendor/anything", "{\"arguments\":" OWNER "}"), NO_RULE},
        {"POST", O, JSON, "[" CALL("get", OWNER) "," P("vendor/x", "{\"arguments\":" OWNER "}") "]", NO_RULE},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    TRY(&k, rows);
    kit_covered("B33");
    kit_free(&k);
}

static void a_deny_means_any_message(void **state)
{
    static const struct kit_row rows[] = {
        {"POST", D, JSON, CALL("search", "{}"), ALLOWED("any")},
        {"POST", D, JSON, CALL("delete_repo", "{}"), DENIED("no-delete")},
        {"POST", D, JSON, CALL("Delete_Repo", "{}"), DENIED("no-delete")},
        {"POST", D, JSON, CALL(" delete_repo", "{}"), DENIED("no-delete")},
        {"POST", D, JSON, CALL("\\uff44elete_repo", "{}"), DENIED("no-delete")},
        {"POST", D, JSON, CALL("list\\uff44", "{}"), ALLOWED("any")},
        {"POST", D, JSON, P("Tools/Call", "{\"name\":\"delete_repo\"}"), OPEN},
        {"POST", D, JSON, P("tools\\uff0fcall", "{\"name\":\"delete_repo\"}"), OPEN},
        {"POST", D, JSON, "[" M("tools/list") "," CALL("delete_repo", "{}") "]", DENIED("no-delete")},
        {"POST", D, JSON, P("Tools/Call", "{\"name\":\"delete_repo\"}"), OPEN},
        {"POST", D, JSON, P("TOOLS/CALL", "{\"name\":\"delete_repo\"}"), OPEN},
        {"POST", D, JSON, P("tools/calls", "{\"name\":\"delete_repo\"}"), ALLOWED("any")},
        {"POST", D, JSON, P("prompts/get", "{\"name\":\"delete\"}"), ALLOWED("any")},
        {"POST", D, JSON, CALL("push", "{\"branch\":\"topic\"}"), ALLOWED("any")},
        {"POST", D, JSON, CALL("push", "{\"branch\":\"main\"}"), DENIED("no-main")},
        {"POST", D, JSON, CALL("push", "{\"Branch\":\"main\"}"), OPEN},
        {"POST", D, JSON, CALL("push", "[{\"branch\":\"main\"}]"), OPEN},
        /* a text that a server reads as JSON where its tool takes an object or a list */
        {"POST", D, JSON, P("tools/call", "{\"name\":\"push\",\"arguments\":\"{\\\"branch\\\":\\\"main\\\"}\"}"),
         OPEN},
        {"POST", D, JSON, CALL("put", "{\"target\":{\"env\":\"prod\"}}"), DENIED("no-prod")},
        {"POST", D, JSON, CALL("put", "{\"target\":{\"env\":\"test\"}}"), ALLOWED("any")},
        {"POST", D, JSON, CALL("put", "{\"target\":\"{\\\"env\\\":\\\"prod\\\"}\"}"), OPEN},
        {"POST", D, JSON, CALL("put", "{\"labels\":\"admin\"}"), DENIED("no-label")},
        {"POST", D, JSON, CALL("put", "{\"labels\":[\"admin\"]}"), OPEN},
        {"POST", D, JSON, CALL("put", "{\"labels\":\" [\\\"admin\\\"]\\n\"}"), OPEN},
        {"POST", D, JSON, CALL("put", "{\"labels\":\"{\\\"0\\\":\\\"admin\\\"}\"}"), OPEN},
        {"POST", D, JSON, CALL("put", "{\"labels\":\"[WIP] words\"}"), ALLOWED("any")},
        {"POST", D, JSON, "{\"method\":\"tools/call\",\"params\":{\"name\":\"delete\"}}", OPEN},
        {"POST", D, JSON, "{\"a\":1}", OPEN},
        {"POST", D, "Content-Type: application/x-www-form-urlencoded\n", "method=tools/call", OPEN},
        {"GET", D, NULL, NULL, ALLOWED("any")},
        {"GET", D "?method=tools%2Fcall", NULL, NULL, OPEN},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    TRY(&k, rows);
    kit_covered("B32 B33");
    kit_free(&k);
}

/* Who routes by the fields and who reads the body see the same, or nobody decides. */
static void the_fields_say_what_the_body_says(void **state)
{
    static const struct kit_row rows[] = {
        {"POST", A, JSON "Mcp-Method: tools/list\n", M("tools/list"), ALLOWED("look")},
        {"POST", A, JSON "Mcp-Method: tools/call\n", M("tools/list"), OPEN},
        {"POST", A, JSON "mcp_method: tools/call\n", M("tools/list"), OPEN},
        {"POST", A, JSON "Mcp-Method: Tools/List\n", M("tools/list"), OPEN},
        {"POST", A, JSON "Mcp-Method: tools/list\nMcp-Method: tools/list\n", M("tools/list"), OPEN},
        {"POST", A, JSON "Mcp-Name: search\n", M("tools/list"), OPEN},
        {"POST", A, JSON "Mcp-Method: tools/call\nMcp-Name: search\n", CALL("search", OWNER), ALLOWED("search")},
        {"POST", A, JSON "Mcp-Method: tools/call\nMcp-Name: drop\n", CALL("search", OWNER), OPEN},
        {"POST", A, JSON "Mcp-Method: tools/list\n", "[" M("tools/list") "," M("tools/list") "]", OPEN},
        {"POST", A, JSON "Mcp-Method: x\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", OPEN},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    TRY(&k, rows);
    kit_covered("B34");
    kit_free(&k);
}

static void params_and_limits_of_any_method(void **state)
{
    static const struct kit_row rows[] = {
        {"POST", R, JSON, P("eth_getBalance", "[\"0xabc\",\"latest\"]"), ALLOWED("chain")},
        {"POST", R, JSON, P("eth_getBalance", "[]"), NO_RULE},
        {"POST", R, JSON, P("eth_sendRawTransaction", "[\"0xabc\"]"), NO_RULE},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    TRY(&k, rows);
    const char *three = "[" P("eth_getBalance", "[1]") "," P("eth_getCode", "[1]") "," P("eth_getCode", "[1]") "]";
    const struct decision *d = kit_judge(&k, "sb", "POST", R, JSON, three, strlen(three), true);
    assert_true(d->verdict == VERDICT_ALLOW && d->nlimits == 1 && d->limits[0].amount == 3);
    kit_free(&k);
}

/* What stands by position may be said by name, and the other way round. */
/* What is no message, in front of some or behind them, makes them no single request. */
static void a_batch_is_not_judged_by_one_part(void **state)
{
#define S P("send", "[1]")
    static const struct {
        const char *body;
        uint64_t amount; /* 0: it is refused */
    } rows[] = {
        {S, 1},
        {"[" S "," S "," S "]", 3},
        {"[0," S "," S "," S "]", 0},
        {"[" S "," S ",{\"a\":1}]", 0},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"send\",\"x\":1}", 0},
        {"[0,1,2]", 1},
        {"{\"a\":1}", 1},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct decision *d =
            kit_judge(&k, "sb", "POST", R "rest", JSON, rows[i].body, strlen(rows[i].body), true);
        bool open = d->verdict == VERDICT_DENY && strcmp(d->code, "unclassified") == 0;
        bool counted = d->verdict == VERDICT_ALLOW && d->nlimits == 1 && d->limits[0].amount == rows[i].amount;
        if (rows[i].amount ? !counted : !open)
            fail_msg("%s: verdict %d, %s, %zu limits", rows[i].body, d->verdict, d->code, d->nlimits);
    }
    kit_covered("B32");
    kit_free(&k);
}

static void params_by_name_and_by_position(void **state)
{
#define W "https://w.test/"
    static const struct kit_row rows[] = {
        {"POST", W, JSON, P("send", "[\"x\",0]"), ALLOWED("wallet")},
        {"POST", W, JSON, P("send", "[\"x\",50]"), DENIED("payouts")},
        {"POST", W, JSON, P("send", "[\"x\"]"), ALLOWED("wallet")},
        {"POST", W, JSON, P("send", "{\"to\":\"x\",\"amount\":50}"), OPEN},
        {"POST", W, JSON, P("send", "{\"args\":[\"x\",50]}"), OPEN},
        {"POST", W, JSON, P("send", "{\"1\":50}"), DENIED("payouts")},
        {"POST", W, JSON, P("send", "{}"), ALLOWED("wallet")},
        {"POST", W, JSON, M("send"), ALLOWED("wallet")},
        {"POST", W, JSON, P("pay", "{\"fee\":\"low\"}"), ALLOWED("wallet")},
        {"POST", W, JSON, P("pay", "{\"fee\":\"low\",\"args\":[1]}"), ALLOWED("wallet")},
        {"POST", W, JSON, P("pay", "{\"to\":\"x\",\"args\":[\"high\"]}"), OPEN},
        {"POST", W, JSON, P("pay", "{\"to\":\"x\",\"args\":[]}"), ALLOWED("wallet")},
        {"POST", W, JSON, P("pay", "{\"to\":\"x\",\"args\":1}"), ALLOWED("wallet")},
        {"POST", W, JSON, P("pay", "[\"high\"]"), OPEN},
        {"POST", W "plain", JSON, P("send", "[1,2]"), ALLOWED("plain")},
        {"POST", W "plain", JSON, P("send", "[1,2,3]"), NO_RULE},
        {"POST", W "plain", JSON, P("send", "{\"to\":1,\"fee_from_amount\":true}"), OPEN},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    TRY(&k, rows);
    kit_free(&k);
}

static void the_pack_tells_asking_from_calling(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "packs: [mcp@1]\n"
        "rules:\n"
        "  - { id: read, match: { host: api.githubcopilot.com, effect: read }, decide: allow }\n"
        "  - { id: tool, match: { op: mcp.call, mcp: { tool: [search_code] } }, decide: allow }\n"
        "  - { id: write, match: { host: api.githubcopilot.com, effect: write }, except: [{ mcp: { tool: "
        "[search_code] } "
        "}], decide: hold }\n";
#define C "https://api.githubcopilot.com/mcp"
    static const struct kit_row rows[] = {
        {"POST", C "/", JSON, M("tools/list"), ALLOWED("read")},
        {"POST", C "/", JSON, M("server/discover"), ALLOWED("read")},
        {"POST", C, JSON, "[" M("initialize") "," M("notifications/initialized") "]", ALLOWED("read")},
        {"POST", C "/x/issues/readonly", JSON, P("resources/read", "{\"uri\":\"a:b\"}"), ALLOWED("read")},
        {"POST", C, JSON, CALL("create_issue", "{}"), HELD("write")},
        {"POST", C, JSON, CALL("search_code", "{}"), ALLOWED("tool")},
        {"POST", C, JSON, "[" CALL("search_code", "{}") "," CALL("create_issue", "{}") "]", HELD("write")},
        {"POST", C, JSON, "[" M("tools/list") "," CALL("create_issue", "{}") "]", HELD("write")},
        {"POST", C, JSON, M("logging/setLevel"), HELD("write")},
        {"POST", C, JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", HELD("write")},
        {"POST", C, JSON, "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\"Method\":\"tools/call\"}", OPEN},
        {"GET", C, NULL, NULL, ALLOWED("read")},
    };
    struct kit k;
    (void)state;
    if (!kit_load(&k, yaml, NULL))
        fail_msg("%s: %s", k.e.text, k.problems[0]);
    TRY(&k, rows);
    const char *one = "[" CALL("create_issue", "{}") "," M("tools/list") "]";
    const struct decision *d = kit_judge(&k, "sb", "POST", C, JSON, one, strlen(one), true);
    assert_true(d->nfacts == 2 && span_eq(d->facts[0].value, SPAN("tools/call create_issue")));
    assert_true(span_eq(d->op, SPAN("mcp.call")) && span_eq(d->facts[1].value, SPAN("tools/list")));
    /* What changes something comes first, each once, however much stands around it. */
    char many[40000] = "[";
    for (size_t i = 0; i < 400; i++)
        strcat(many, P("resources/read", "{\"uri\":\"a:b\"}") ",");
    strcat(many, CALL("drop", "{}") "," M("ping") "," CALL("drop", "{}") "," CALL("Drop", "{}") "]");
    d = kit_judge(&k, "sb", "POST", C, JSON, many, strlen(many), true);
    assert_int_equal(d->nfacts, 4);
    assert_true(span_eq(d->facts[0].value, SPAN("tools/call drop (2 times)")));
    assert_true(span_eq(d->facts[1].value, SPAN("tools/call Drop")));
    assert_true(span_eq(d->facts[2].value, SPAN("resources/read a:b (400 times)")));
    assert_true(span_eq(d->facts[3].value, SPAN("ping")));
    kit_covered("B32 B33");
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allow_means_every_message),      cmocka_unit_test(a_deny_means_any_message),
        cmocka_unit_test(the_fields_say_what_the_body_says), cmocka_unit_test(params_and_limits_of_any_method),
        cmocka_unit_test(arguments_mean_calls_of_tools),     cmocka_unit_test(a_batch_is_not_judged_by_one_part),
        cmocka_unit_test(params_by_name_and_by_position),    cmocka_unit_test(the_pack_tells_asking_from_calling),
    };
    return cmocka_run_group_tests_name("policy jsonrpc", tests, NULL, NULL);
}
