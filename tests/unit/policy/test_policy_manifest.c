/* What a sandbox is told of its policy: only rules in its scope, everything that bounds them, and in a denial what it
 * may ask there (B54: coarse, no ids unless disclosed). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/manifest.h"
#include "policy_kit.h"

static const char rules[] =
    "version: 1\n"
    "packs: [git@1]\n"
    "scopes:\n"
    "  ci: { sandboxes: [\"ci-*\"] }\n"
    "approvers: { fin: { operators: [ann] } }\n"
    "credentials:\n"
    "  k: { source: { env: K }, inject: { basic: true }, only: [{ host: api.test }] }\n"
    "rules:\n"
    "  - { id: a-read, scope: ci, match: { host: api.test, method: [GET, HEAD], path: \"/v1/**\", query: { page: "
    "\"*\" } }, decide: allow, use: k }\n"
    "  - { id: b-pay, match: { host: api.test, port: 8443, scheme: http, method: POST, path: /v1/refunds, json: [{ "
    "pointer: /amount, int_lte: 50 }, { pointer: /currency, in: [eur] }] }, except: [{ path: /v1/refunds/x }], "
    "decide: "
    "hold, approve: { by: fin, within: 15m }, say: \"Ask finance.\" }\n"
    "  - { id: c-push, match: { op: git.push, resource: \"git:git.test/acme/*\", host: git.test, git: { refs: "
    "[\"refs/heads/agent/*\"], force: false } }, decide: allow }\n"
    "  - { id: d-no, match: { host: \"**.test\", method: DELETE }, decide: deny, instead: \"Nothing is deleted.\" }\n"
    "  - { id: e-live, match: { host: ws.test, ws: { subprotocol: v1 } }, decide: allow }\n";

static void tell(struct kit *k, struct manifest_want want, char *out, size_t n, size_t *left)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, 1 << 20);
    jsonw_begin(&w, &b);
    *left = policy_manifest(k->p, &want, &w);
    assert_true(dynbuf_ok(&b));
    snprintf(out, n, "%.*s", SPAN_FMT(dynbuf_span(&b)));
    assert_non_null(json_parse(dynbuf_span(&b), &k->a));
    dynbuf_free(&b);
}

static bool has(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

static void it_lists_what_is_in_scope(void **state)
{
    struct kit k;
    char text[16384];
    size_t left;
    struct subject ci = {.sandbox = SPAN("ci-1")}, vm = {.sandbox = SPAN("vm")};
    assert_true(kit_load(&k, rules, NULL));
    struct manifest_want want = {.subject = &ci, .room = 1 << 18};
    tell(&k, want, text, sizeof(text), &left);
    assert_int_equal(left, 0);
    assert_true(has(text,
                    "{\"decision\":\"allow\",\"request\":{\"host\":[\"api.test\"],\"method\":[\"GET\",\"HEAD\"],"
                    "\"path\":[\"/v1/**\"],\"query\":[{\"name\":\"page\",\"value\":[\"*\"]}]},"
                    "\"credential_added\":true}"));
    assert_true(has(
        text, "\"json\":[{\"pointer\":\"/amount\",\"int_lte\":50},{\"pointer\":\"/currency\",\"in\":[\"eur\"]}]"));
    assert_true(has(text, "\"except\":[{\"path\":[\"/v1/refunds/x\"]}],\"credential_added\":false,"
                          "\"ticket_lives_seconds\":900,\"say\":\"Ask finance.\"}"));
    assert_true(has(text, "\"port\":[8443],\"scheme\":[\"http\"]"));
    assert_true(has(text, "\"git\":{\"refs\":[\"refs/heads/agent/*\"],\"force\":false}"));
    assert_true(has(text, "{\"op\":\"git.push\",\"effect\":\"write\",\"method\":[\"POST\"],"
                          "\"path\":[\"/**/git-receive-pack\"]}"));
    assert_true(has(text, "{\"decision\":\"deny\",\"request\":{\"host\":[\"**.test\"],\"method\":[\"DELETE\"]},"
                          "\"instead\":\"Nothing is deleted.\"}"));
    assert_true(has(text, "\"websocket\":{\"subprotocol\":[\"v1\"]}"));
    /* neither ids, nor files, nor who approves, nor whose key */
    assert_false(has(text, "b-pay") || has(text, "fin\"") || has(text, "ann") || has(text, "policy.yaml"));
    want.subject = &vm;
    want.ids = true;
    tell(&k, want, text, sizeof(text), &left);
    assert_false(has(text, "a-read"));
    assert_true(has(text, "\"rule\":\"b-pay\""));
    want.host = SPAN("git.test");
    tell(&k, want, text, sizeof(text), &left);
    assert_true(has(text, "c-push") && has(text, "d-no"));
    assert_false(has(text, "b-pay") || has(text, "e-live"));
    want.room = 300; /* a list that is cut says how much is missing */
    want.host = SPAN_NONE;
    tell(&k, want, text, sizeof(text), &left);
    assert_true(left > 0 && left < 4 && strlen(text) <= 302);
    kit_free(&k);
}

static void a_form_with_files_is_asked_by_what_it_names(void **state)
{
    static const char yaml[] =
        "version: 1\nrules:\n"
        "  - { id: up, match: { host: a.test, path: /up, multipart: [{ field: folder, equals: drafts }, { file: doc, "
        "glob: \"*.txt\" }, { content_type: doc, exists: true }] }, decide: hold }\n";
    struct kit k;
    char text[16384];
    size_t left;
    struct subject any = {.sandbox = SPAN("x")};
    (void)state;
    assert_true(kit_load(&k, yaml, NULL));
    tell(&k, (struct manifest_want){.subject = &any, .room = 1 << 18}, text, sizeof(text), &left);
    assert_true(has(text, "\"multipart\":[{\"field\":\"folder\",\"in\":[\"drafts\"]},{\"file\":\"doc\","
                          "\"glob\":[\"*.txt\"]},{\"content_type\":\"doc\",\"exists\":true}]"));
    kit_free(&k);
}

/* The operations that stand with a rule of effects alone are those of packs which name its host. */
static void a_rule_of_effects_has_the_operations_of_its_host(void **state)
{
    struct kit k;
    char text[16384];
    size_t left;
    struct subject vm = {.sandbox = SPAN("vm")};
    struct manifest_want want = {.subject = &vm, .room = 1 << 18};
    (void)state;
    assert_true(kit_load(&k,
                         "version: 1\npacks: [graphql@1, git@1]\nrules:\n"
                         "  - { id: a, match: { host: api.github.com, effect: read }, decide: allow }\n"
                         "  - { id: b, match: { host: other.test, effect: read }, decide: allow }\n",
                         NULL));
    tell(&k, want, text, sizeof(text), &left);
    assert_true(has(text, "\"effect\":[\"read\"]},\"operations\":[{\"op\":\"graphql.query\",\"effect\":\"read\","));
    assert_false(has(text, "mutation") || has(text, "git.") || has(strstr(text, "other.test"), "operations"));
    kit_free(&k);
}

static size_t here(struct kit *k, const char *sandbox, const char *host, struct span out[4])
{
    struct subject s = {.sandbox = span_str(sandbox)};
    struct request r = {.scheme = SPAN("https"), .host = span_str(host), .port = 443};
    return policy_allowed_here(k->p, &s, &r, &k->a, out, 4);
}

static void a_denial_says_what_there_is_instead(void **state)
{
    struct kit k;
    struct span v[4];
    assert_true(kit_load(&k, rules, NULL));
    assert_int_equal(here(&k, "ci-1", "api.test", v), 1);
    assert_true(span_eq(v[0], SPAN("GET, HEAD /v1/**, under conditions: allowed")));
    assert_int_equal(here(&k, "ci-1", "git.test", v), 1);
    assert_true(span_eq(v[0], SPAN("git.push of git:git.test/acme/* to refs/heads/agent/*: allowed")));
    assert_int_equal(here(&k, "vm", "ws.test", v), 1);
    assert_true(span_eq(v[0], SPAN("a WebSocket: allowed")));
    assert_int_equal(here(&k, "vm", "elsewhere.example", v), 1);
    assert_true(
        span_eq(v[0], SPAN("nothing at this host; hosts that can be reached: http://api.test:8443, https://git.test, "
                           "https://ws.test")));
    kit_free(&k);
}

static void another_scheme_or_port_of_the_host_is_no_other_host(void **state)
{
    static const char yaml[] =
        "version: 1\nupstreams: [{ host: my.test, port: 8000 }]\nrules:\n"
        "  - { id: own, match: { host: my.test, port: 8000, scheme: http, effect: read }, decide: allow }\n"
        "  - { id: far, match: { host: far.test, port: [443, 8443], effect: read }, decide: hold }\n"
        "  - { id: gone, match: { host: off.test, scheme: http }, decide: deny }\n";
    struct kit k;
    struct span v[4];
    (void)state;
    assert_true(kit_load(&k, yaml, NULL));
    assert_int_equal(here(&k, "x", "my.test", v), 1);
    assert_true(
        span_eq(v[0], SPAN("nothing at this scheme and port; the host can be reached as: http://my.test:8000")));
    assert_int_equal(here(&k, "x", "off.test", v), 1);
    assert_true(span_eq(v[0], SPAN("nothing at this host; hosts that can be reached: https://far.test, "
                                   "https://far.test:8443, http://my.test:8000")));
    kit_free(&k);
}

/* A rule outside its hours is listed as such; a subject kept to a region is told no host elsewhere. */
static void it_says_when_and_where(void **state)
{
    enum { MONDAY = 1767571200 }; /* 2026-01-05T00:00:00Z */
    static const char yaml[] =
        "version: 1\n"
        "scopes: { eu: { sandboxes: [\"eu-*\"], regions: [eu] } }\n"
        "upstreams:\n  - { host: a.eu.test, region: eu }\n  - { host: b.eu.test, region: eu, port: 8443 }\n"
        "  - { host: c.us.test, region: us }\n  - { host: d.eu.test }\n"
        "rules:\n"
        "  - { id: both, match: { host: [a.eu.test, c.us.test], method: GET }, decide: allow }\n"
        "  - { id: hours, match: { host: a.eu.test, method: PUT }, decide: allow,\n"
        "      when: { days: mon, hours: \"08:00-18:00\", zone: UTC } }\n"
        "  - { id: nobody, match: { host: c.us.test, method: DELETE }, decide: deny }\n"
        "  - { id: port, match: { host: \"*.eu.test\", port: 8443, method: GET }, decide: hold }\n"
        "  - { id: us, match: { host: c.us.test, method: POST }, decide: hold }\n"
        "  - { id: wild, match: { host: \"**.eu.test\", method: GET }, decide: allow }\n";
    struct kit k;
    char text[16384];
    size_t left;
    struct subject eu = {.sandbox = SPAN("eu-1")}, any = {.sandbox = SPAN("x")};
    struct manifest_want want = {
        .subject = &eu, .room = 1 << 18, .ids = true, .now_ms = (MONDAY + 12 * 3600ull) * 1000};
    struct span v[4];
    (void)state;
    if (!kit_load(&k, yaml, NULL))
        fail_msg("%s", k.e.text);
    tell(&k, want, text, sizeof(text), &left);
    assert_true(left == 0 && !has(text, "in_force"));
    assert_true(has(text, "\"rule\":\"both\",\"request\":{\"host\":[\"a.eu.test\"],"));
    assert_true(has(text, "\"rule\":\"nobody\",\"request\":{\"host\":[\"c.us.test\"],"));
    assert_true(has(text, "\"rule\":\"port\",\"request\":{\"host\":[\"b.eu.test\"],"));
    assert_true(has(text, "\"rule\":\"wild\",\"request\":{\"host\":[\"a.eu.test\"],"));
    assert_false(has(text, "\"us\""));
    want.now_ms = (MONDAY + 20 * 3600ull) * 1000;
    want.subject = &any;
    tell(&k, want, text, sizeof(text), &left);
    assert_true(has(text, "\"zone\":\"UTC\"}],\"in_force\":false}"));
    assert_true(has(text, "\"us\"") && has(text, "[\"a.eu.test\",\"c.us.test\"]") && has(text, "[\"**.eu.test\"]"));
    assert_null(strstr(strstr(text, "in_force") + 1, "in_force"));
    assert_int_equal(here(&k, "eu-1", "c.us.test", v), 0);
    kit_free(&k);
}

static void nothing_is_promised_where_there_is_nothing(void **state)
{
    struct kit k;
    struct span v[4];
    assert_true(kit_load(&k, "version: 1\nrules:\n  - { id: never, match: { host: a.test }, decide: deny }\n", NULL));
    assert_int_equal(here(&k, "x", "a.test", v), 0);
    assert_int_equal(here(&k, "x", "b.test", v), 0);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_lists_what_is_in_scope),
                                       cmocka_unit_test(a_form_with_files_is_asked_by_what_it_names),
                                       cmocka_unit_test(a_rule_of_effects_has_the_operations_of_its_host),
                                       cmocka_unit_test(a_denial_says_what_there_is_instead),
                                       cmocka_unit_test(another_scheme_or_port_of_the_host_is_no_other_host),
                                       cmocka_unit_test(it_says_when_and_where),
                                       cmocka_unit_test(nothing_is_promised_where_there_is_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
