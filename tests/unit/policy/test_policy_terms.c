/* What bounds a rule, or a whole policy, from outside its match: regions and learning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/time/instant.h"
#include "policy_kit.h"

static const char regions[] =
    "version: 1\n"
    "scopes:\n"
    "  ci: { sandboxes: \"ci-*\", regions: [eu, ch] }\n"
    "  one: { sandboxes: \"ci-1\", regions: ch }\n"
    "  lab: { sandboxes: \"lab-*\" }\n"
    "upstreams:\n"
    "  - { host: eu.d.test, region: eu }\n"
    "  - { host: ch.d.test, region: ch }\n"
    "  - { host: ch.d.test, port: 8443, region: us }\n"
    "  - { host: none.d.test, address: 192.0.2.1 }\n"
    "rules:\n"
    "  - { id: all, match: { host: \"*.d.test\", port: [443, 8443], effect: [read, write] }, decide: allow }\n"
    "  - { id: look, match: { host: body.d.test, json: [{ pointer: /a, equals: b }] }, decide: hold }\n"
    "  - { id: stop, match: { path: /stop }, decide: deny, say: no way }\n";
static const char floors[] = "version: 1\nrules:\n  - { id: never, match: { path: /never }, decide: deny }\n";

static void get(struct kit *k, const char *sandbox, const char *url, enum verdict v, const char *code,
                const char *rule)
{
    kit_expect(kit_judge(k, sandbox, "GET", url, NULL, NULL, 0, true), v, code, rule);
}

static void test_regions(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, regions, floors));
    get(&k, "ci-2", "https://eu.d.test/", VERDICT_ALLOW, "rule", "all");
    get(&k, "ci-2", "https://ch.d.test/", VERDICT_ALLOW, "rule", "all");
    get(&k, "ci-2", "https://ch.d.test:8443/", VERDICT_DENY, "residency", "");
    get(&k, "ci-2", "https://none.d.test/", VERDICT_DENY, "residency", "");
    get(&k, "ci-2", "https://other.d.test/", VERDICT_DENY, "residency", "");
    assert_true(span_eq(k.d.say, SPAN("other.d.test is not in a region (eu, ch) that this sandbox may reach")));
    /* All scopes that cover it must agree. */
    get(&k, "ci-1", "https://ch.d.test/", VERDICT_ALLOW, "rule", "all");
    get(&k, "ci-1", "https://eu.d.test/", VERDICT_DENY, "residency", "");
    assert_true(span_eq(k.d.say, SPAN("eu.d.test is not in a region (ch) that this sandbox may reach")));
    /* Who is in none of them is not asked. */
    get(&k, "lab-1", "https://other.d.test/", VERDICT_ALLOW, "rule", "all");
    get(&k, "lab-1", "https://ch.d.test:8443/", VERDICT_ALLOW, "rule", "all");
    /* What is denied anyway keeps its words, and what would need the body does not wait for it. */
    get(&k, "ci-2", "https://other.d.test/stop", VERDICT_DENY, "rule", "stop");
    get(&k, "ci-2", "https://other.d.test/never", VERDICT_DENY, "floor", "never");
    get(&k, "ci-2", "https://other.example/", VERDICT_DENY, "host-not-named", "");
    kit_expect(kit_judge(&k, "ci-2", "POST", "https://body.d.test/", NULL, "{}", 2, false), VERDICT_DENY, "residency",
               "");
    assert_false(kit_problem(&k, "P112", NULL, NULL));
    kit_free(&k);
}

static void test_regions_refused(void **state)
{
    struct kit k;
    (void)state;
    assert_false(kit_load(&k, "version: 1\nscopes: { a: { sandboxes: b, regions: [] } }\nrules: []\n", NULL));
    assert_true(kit_problem(&k, "P008", "policy.yaml:2:", "empty list"));
    kit_free(&k);
    assert_false(kit_load(&k, "version: 1\nupstreams: [{ host: a.test, region: \"e u\" }]\nrules: []\n", NULL));
    assert_true(kit_problem(&k, "P008", "policy.yaml:2:", "name of a region"));
    kit_free(&k);
    assert_false(kit_load(&k, "version: 1\nscopes: { a: { regions: eu } }\nrules: []\n", NULL));
    assert_true(kit_problem(&k, "P015", "policy.yaml:2:", "sandboxes:, labels: or both"));
    kit_free(&k);
    assert_true(kit_load(&k,
                         "version: 1\nscopes: { a: { sandboxes: b, regions: EU } }\n"
                         "upstreams: [{ host: a.test, region: eu }]\nrules: []\n",
                         NULL));
    assert_true(kit_problem(&k, "P112", "policy.yaml:2:", "no upstream has region: EU"));
    kit_free(&k);
}

#define START 1795424400000u /* 2026-11-23T09:00:00Z */
#define HOUR  3600000u
static const char learning[] =
    "version: 1\n"
    "learning: until 2026-11-23T11:00:00Z\n"
    "packs: [git@1]\n"
    "scopes: { eu: { sandboxes: \"eu-*\", regions: eu } }\n"
    "upstreams: [{ host: eu.d.test, region: eu }]\n"
    "credentials:\n"
    "  c: { source: { env: C }, inject: { header: Authorization, format: \"Bearer {}\" },\n"
    "       only: [{ host: a.d.test }, { host: g.d.test }] }\n"
    "approvers: { few: { operators: [ann] } }\n"
    "rules:\n"
    "  - { id: read, match: { host: a.d.test, path: /v1/known, effect: read }, decide: allow, use: c }\n"
    "  - { id: dear, match: { host: a.d.test, path: /v1/dear, effect: read }, decide: hold, use: c, approve: { by: "
    "few } }\n"
    "  - { id: main, match: { host: g.d.test, op: git.push, git: { refs: refs/heads/main } }, decide: allow, use: c "
    "}\n"
    "  - { id: stop, match: { path: /stop }, decide: deny }\n"
    "  - { id: poor, match: { host: b.d.test, json: [{ pointer: /a, equals: x }] }, decide: deny }\n";

static const struct decision *ask(struct kit *k, const char *sandbox, const char *method, const char *url,
                                  const char *fields)
{
    return kit_judge(k, sandbox, method, url, fields, NULL, 0, true);
}

static void test_learning(void **state)
{
    struct subject s = {.sandbox = SPAN("ci-1")};
    struct kit k;
    (void)state;
    assert_true(kit_load_at(&k, learning, floors, START));
    assert_false(kit_problem(&k, "P115", NULL, NULL));
    k.now_ms = START + HOUR;
    /* Reads pass, and take no key with them; all else is held, for anybody. */
    kit_expect(ask(&k, "ci-1", "GET", "https://new.example/x?a=b", NULL), VERDICT_ALLOW, "learning", "");
    assert_int_equal(k.d.credential, -1);
    kit_expect(ask(&k, "ci-1", "GET", "https://a.d.test/v1/other", NULL), VERDICT_ALLOW, "learning", "");
    assert_int_equal(k.d.credential, -1);
    kit_expect(ask(&k, "ci-1", "POST", "http://new.example:8080/x", NULL), VERDICT_HOLD, "learning", "");
    assert_int_equal(k.d.approve_by.n, 0);
    assert_int_equal(k.d.within_ms, 0);
    assert_true(k.d.inline_wait_ms == UINT64_MAX && !k.d.reason_required && k.d.credential == -1);
    kit_expect(ask(&k, "ci-1", "DELETE", "https://a.d.test/v1/known", NULL), VERDICT_HOLD, "learning", "");
    kit_expect(ask(&k, "ci-1", "GET", "https://new.example/?_method=DELETE", NULL), VERDICT_HOLD, "learning", "");
    /* What rules say stays. */
    kit_expect(ask(&k, "ci-1", "GET", "https://a.d.test/v1/known", NULL), VERDICT_ALLOW, "rule", "read");
    assert_int_equal(k.d.credential, 0);
    kit_expect(ask(&k, "ci-1", "GET", "https://a.d.test/v1/dear", NULL), VERDICT_HOLD, "rule", "dear");
    kit_expect(ask(&k, "ci-1", "GET", "https://a.d.test/stop", NULL), VERDICT_DENY, "rule", "stop");
    kit_expect(ask(&k, "ci-1", "GET", "https://new.example/never", NULL), VERDICT_DENY, "floor", "never");
    kit_expect(ask(&k, "ci-1", "TRACE", "https://new.example/", NULL), VERDICT_DENY, "bad-method", "");
    kit_expect(ask(&k, "eu-1", "GET", "https://new.example/x", NULL), VERDICT_DENY, "residency", "");
    kit_expect(ask(&k, "eu-1", "GET", "https://eu.d.test/x", NULL), VERDICT_ALLOW, "learning", "");
    assert_true(policy_names_host(k.p, &s, SPAN("http"), SPAN("new.example"), 99, k.now_ms));
    kit_free(&k);
}

/* Another spelling, another reading or another ref of what a rule holds or keys is no way around it. */
static void test_learning_spellings(void **state)
{
    static const char *const refs[] = {AAAA40 " " BBBB40 " refs/heads/main", AAAA40 " " BBBB40 " refs/heads/other",
                                       NULL};
    struct kit k;
    (void)state;
    assert_true(kit_load_at(&k, learning, floors, START));
    k.now_ms = START + HOUR;
    kit_expect(ask(&k, "ci-1", "GET", "https://a.d.test/v1/dear/", NULL), VERDICT_HOLD, "learning", "dear");
    assert_true(k.d.credential == -1 && span_eq(k.d.approve_by, SPAN("few")));
    kit_expect(ask(&k, "ci-1", "GET", "https://a.d.test/V1/Dear", NULL), VERDICT_HOLD, "learning", "dear");
    kit_expect(ask(&k, "ci-1", "GET", "https://a.d.test/v1//dear", NULL), VERDICT_HOLD, "learning", "dear");
    kit_expect(ask(&k, "ci-1", "GET", "https://a.d.test/v1//known", NULL), VERDICT_ALLOW, "learning", "read");
    assert_int_equal(k.d.credential, -1);
    /* Each ref for itself; the strictest counts, and no key goes with a push that is not all a rule's. */
    kit_expect(kit_judge_push(&k, "https://g.d.test/r.git", refs), VERDICT_HOLD, "learning", "");
    assert_int_equal(k.d.credential, -1);
    kit_expect(kit_judge_push(&k, "https://n.d.test/r.git", refs), VERDICT_HOLD, "learning", "");
    kit_expect(ask(&k, "ci-1", "GET", "https://n.d.test/r.git/info/refs?service=git-receive-pack", NULL),
               VERDICT_ALLOW, "learning", "");
    assert_int_equal(k.d.credential, -1);
    /* A deny that must see the body is not passed by before it has. */
    kit_judge(&k, "ci-1", "POST", "https://b.d.test/", "Content-Type: application/json", "{\"a\":", 5, false);
    assert_true(k.d.need_body && k.d.verdict == VERDICT_DENY);
    kit_judge(&k, "ci-1", "POST", "https://b.d.test/", "Content-Type: application/json", "{\"a\":\"x\"}", 9, true);
    kit_expect(&k.d, VERDICT_DENY, "rule", "poor");
    kit_judge(&k, "ci-1", "POST", "https://b.d.test/", "Content-Type: application/json", "{\"a\":\"y\"}", 9, true);
    kit_expect(&k.d, VERDICT_HOLD, "learning", "");
    /* An upgrade is a write, and then nothing is sent. */
    kit_expect(ask(&k, "ci-1", "GET", "https://new.example/ws", "Upgrade: websocket\nSec-WebSocket-Protocol: chat"),
               VERDICT_HOLD, "learning", "");
    assert_true(k.d.upgrade && k.d.effect == EFFECT_WRITE && k.d.messages.send == 0);
    kit_free(&k);
}

/* It ends by itself, and says so when it is loaded. */
static void test_learning_ends(void **state)
{
    struct subject s = {.sandbox = SPAN("ci-1")};
    struct kit k;
    (void)state;
    assert_true(kit_load_at(&k, learning, floors, START));
    k.now_ms = START + 2 * HOUR - 1;
    kit_expect(kit_get(&k, "https://new.example/"), VERDICT_ALLOW, "learning", "");
    k.now_ms++;
    kit_expect(kit_get(&k, "https://new.example/"), VERDICT_DENY, "host-not-named", "");
    kit_expect(kit_get(&k, "https://a.d.test/x"), VERDICT_DENY, "no-rule", "");
    kit_expect(ask(&k, "ci-1", "GET", "https://a.d.test/v1/dear/", NULL), VERDICT_DENY, "no-rule", "");
    assert_false(policy_names_host(k.p, &s, SPAN("https"), SPAN("new.example"), 443, k.now_ms));
    kit_free(&k);
    assert_true(kit_load_at(&k, learning, floors, START + 2 * HOUR));
    assert_true(kit_problem(&k, "P115", "policy.yaml:2:11", "over"));
    kit_free(&k);
    assert_true(kit_load_at(&k, learning, floors, START - 22 * HOUR));
    kit_free(&k);
    assert_false(kit_load_at(&k, learning, floors, START - 22 * HOUR - 1));
    assert_true(kit_problem(&k, "P015", "policy.yaml:2:11", "24 hours"));
    kit_free(&k);
}

static const char names[] =
    "version: 1\n"
    "rules:\n"
    "  - { id: list, match: { host: a.d.test, effect: read, query_names: [page, per_page] }, decide: allow }\n"
    "  - { id: bare, match: { host: b.d.test, effect: read, query_names: [] }, decide: allow }\n"
    "  - { id: look, match: { host: c.d.test, effect: read }, decide: allow }\n"
    "  - { id: stop, match: { host: c.d.test, query_names: [all] }, except: [{ query_names: [] }], decide: deny }\n"
    "  - { id: both, match: { host: d.d.test, effect: read, query: { q: x }, query_names: [q, r] }, decide: allow "
    "}\n";

/* B12: other names, and other ways to part them. */
static void test_query_names(void **state)
{
    static const struct {
        const char *url;
        enum verdict verdict;
    } rows[] = {
        {"https://a.d.test/", VERDICT_ALLOW},
        {"https://a.d.test/?", VERDICT_ALLOW},
        {"https://a.d.test/?page=1&per_page=2", VERDICT_ALLOW},
        {"https://a.d.test/?page=1&per_page=2&&", VERDICT_ALLOW},
        {"https://a.d.test/?page=1&page=2", VERDICT_DENY},
        {"https://a.d.test/?page=1&page=1", VERDICT_DENY},
        {"https://a.d.test/?page&p%61ge", VERDICT_DENY},
        {"https://a.d.test/?page=1;page=2", VERDICT_DENY},
        {"https://a.d.test/?page=1;per_page=2&per_page=3", VERDICT_DENY},
        {"https://c.d.test/?all=1&all=2", VERDICT_DENY},
        {"https://a.d.test/?page", VERDICT_ALLOW},
        {"https://a.d.test/?p%61ge=1", VERDICT_ALLOW},
        {"https://a.d.test/?Page=1", VERDICT_DENY},
        {"https://a.d.test/?page[]=1", VERDICT_DENY},
        {"https://a.d.test/?page%20=1", VERDICT_DENY},
        {"https://a.d.test/?per.page=1", VERDICT_DENY},
        {"https://a.d.test/?=1", VERDICT_DENY},
        {"https://a.d.test/?page=1&exec=1", VERDICT_DENY},
        {"https://a.d.test/?page=1;exec=1", VERDICT_DENY},
        {"https://a.d.test/?exec;page=1", VERDICT_DENY},
        {"https://a.d.test/?page=1;per_page=2", VERDICT_ALLOW},
        {"https://b.d.test/", VERDICT_ALLOW},
        {"https://b.d.test/?a", VERDICT_DENY},
        {"https://c.d.test/", VERDICT_ALLOW},
        {"https://c.d.test/?all=1", VERDICT_DENY},
        {"https://c.d.test/?ALL=1", VERDICT_DENY},
        {"https://c.d.test/?all[]=1", VERDICT_DENY},
        {"https://c.d.test/?all=1;x=2", VERDICT_DENY},
        {"https://c.d.test/?all=1&x=2", VERDICT_ALLOW},
        {"https://d.d.test/?q=x&r=1", VERDICT_ALLOW},
        {"https://d.d.test/?r=1", VERDICT_DENY},
        {"https://d.d.test/?q=x&s=1", VERDICT_DENY},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, names, NULL));
    assert_false(kit_problem(&k, "P103", NULL, NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (kit_get(&k, rows[i].url)->verdict != rows[i].verdict)
            fail_msg("%s: %s", rows[i].url, verdict_name(k.d.verdict));
    kit_free(&k);
    assert_false(
        kit_load(&k,
                 "version: 1\nrules:\n  - { id: a, match: { host: a.test, query: { q: x }, query_names: [r] }, "
                 "decide: deny }\n",
                 NULL));
    assert_true(kit_problem(&k, "P015", "policy.yaml:3:", "does not have \"q\""));
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_regions_refused),
        cmocka_unit_test(test_query_names),
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_learning_spellings),
        cmocka_unit_test(test_learning_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
