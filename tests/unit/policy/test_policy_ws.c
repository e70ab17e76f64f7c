/* WebSocket upgrades: which rules cover one, what it counts as, what may be sent afterwards (B30, B42, D34). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy_kit.h"

#define WS "Upgrade: websocket"

static const char rules[] =
    "version: 1\n"
    "credentials:\n"
    "  a: { source: { env: A }, inject: { basic: true }, only: [{ host: key.test }, { host: bare.test }] }\n"
    "rules:\n"
    "  - { id: plain, match: { host: plain.test, method: GET }, decide: allow }\n"
    "  - { id: plain-hold, match: { host: both.test }, decide: hold }\n"
    "  - { id: both, match: { host: both.test, ws: {} }, decide: allow }\n"
    "  - { id: any, match: { host: any.test, ws: {} }, except: [{ path: /not }], decide: allow, messages: { send: "
    "[text, binary], max: 1KiB, total: 2KiB, within: 5s } }\n"
    "  - { id: quiet, match: { host: quiet.test, ws: {} }, decide: allow }\n"
    "  - { id: read, match: { host: read.test, ws: {}, effect: read }, decide: allow }\n"
    "  - { id: named, match: { host: named.test, ws: { subprotocol: [\"graphql-*\", v1] } }, decide: allow, "
    "messages: "
    "{ send: text } }\n"
    "  - { id: key, match: { host: key.test, ws: { subprotocol: v1 } }, decide: allow, use: a }\n"
    "  - { id: bare, match: { host: bare.test, ws: {} }, decide: allow, use: a }\n"
    "  - { id: h1, match: { host: h.test, ws: {} }, decide: hold, messages: { send: [text, binary], max: 1KiB, "
    "total: "
    "1MiB } }\n"
    "  - { id: h2, match: { host: h.test, ws: {}, path: /a }, decide: hold, messages: { send: text, max: 2KiB, "
    "total: "
    "1KiB } }\n"
    "  - { id: h3, match: { host: h.test, ws: {}, path: /b }, decide: hold }\n"
    "  - { id: no-reads, match: { host: read.test, path: /secret, effect: read }, decide: deny }\n"
    "  - { id: no-path, match: { host: any.test, path: \"/no/**\" }, decide: deny }\n"
    "  - { id: no-ws, match: { host: plain.test, ws: { subprotocol: admin } }, decide: deny }\n";

static void load(struct kit *k)
{
    if (!kit_load(k, rules, NULL))
        fail_msg("%s", k->e.text);
    for (size_t i = 0; i < k->nproblems; i++) /* of none of them is there anything to warn */
        fail_msg("%s", k->problems[i]);
}

static const struct decision *ask(struct kit *k, const char *url, const char *fields)
{
    return kit_judge(k, "s", "GET", url, fields, NULL, 0, true);
}

/* An upgrade is never covered by a rule for requests, nor a request by one for upgrades. */
static void test_covered(void **state)
{
    struct kit k;
    (void)state;
    load(&k);
    kit_expect(kit_get(&k, "https://plain.test/"), VERDICT_ALLOW, "rule", "plain");
    assert_false(k.d.upgrade);
    kit_expect(ask(&k, "https://plain.test/", WS), VERDICT_DENY, "no-rule", "");
    assert_true(k.d.upgrade);
    kit_expect(ask(&k, "https://plain.test/", "upgrade: h2c"), VERDICT_DENY, "no-rule", "");
    kit_expect(ask(&k, "https://plain.test/", WS "\nSec-WebSocket-Protocol: x, ADMIN"), VERDICT_DENY, "rule",
               "no-ws");
    kit_expect(kit_get(&k, "https://any.test/"), VERDICT_DENY, "no-rule", "");
    kit_expect(ask(&k, "https://any.test/", WS), VERDICT_ALLOW, "rule", "any");
    kit_expect(ask(&k, "https://any.test/not", WS), VERDICT_DENY, "no-rule", "");
    kit_expect(ask(&k, "https://any.test/no/x", WS), VERDICT_DENY, "rule", "no-path");
    kit_expect(kit_get(&k, "https://both.test/"), VERDICT_HOLD, "rule", "plain-hold");
    kit_expect(ask(&k, "https://both.test/", WS), VERDICT_ALLOW, "rule", "both");
    kit_free(&k);
    kit_covered("A38 B30");
}

/* It is a write, unless the rule that lets it through says read; another method hidden in it stays a write. */
static void test_effect(void **state)
{
    struct kit k;
    (void)state;
    load(&k);
    assert_int_equal(ask(&k, "https://any.test/", WS)->effect, EFFECT_WRITE);
    kit_expect(ask(&k, "https://read.test/", WS), VERDICT_ALLOW, "rule", "read");
    assert_int_equal(k.d.effect, EFFECT_READ);
    kit_expect(ask(&k, "https://read.test/secret", WS), VERDICT_DENY, "rule", "no-reads");
    kit_expect(kit_get(&k, "https://read.test/"), VERDICT_DENY, "no-rule", "");
    kit_expect(ask(&k, "https://read.test/", WS "\nX-HTTP-Method-Override: DELETE"), VERDICT_DENY, "no-rule", "");
    kit_free(&k);
    kit_covered("B30");
}

static void expect_terms(const struct decision *d, uint32_t send, uint64_t max, uint64_t total, uint64_t within)
{
    assert_int_equal(d->messages.send, send);
    assert_int_equal(d->messages.max, max);
    assert_int_equal(d->messages.total, total);
    assert_int_equal(d->messages.within_ms, within);
}

/* Without messages: nothing may be sent; of several holds what all of them let. */
static void test_messages(void **state)
{
    struct kit k;
    (void)state;
    load(&k);
    assert_int_equal(ask(&k, "https://quiet.test/", WS)->messages.send, 0);
    expect_terms(ask(&k, "https://any.test/", WS), WS_SENDS_TEXT | WS_SENDS_BINARY, 1024, 2048, 5000);
    kit_expect(ask(&k, "https://h.test/a", WS), VERDICT_HOLD, "rule", "h1");
    expect_terms(&k.d, WS_SENDS_TEXT, 1024, 1024, 3600 * 1000);
    assert_int_equal(ask(&k, "https://h.test/b", WS)->messages.send, 0);
    expect_terms(ask(&k, "https://named.test/", WS "\nSec-WebSocket-Protocol: v1"), WS_SENDS_TEXT, 64 * 1024,
                 16 * 1024 * 1024, 3600 * 1000);
    kit_free(&k);
    kit_covered("B42");
}

static void expect_offer(const struct decision *d, const char *want)
{
    assert_int_equal(d->verdict, VERDICT_ALLOW);
    if (!span_eq(d->subprotocols, span_str(want)))
        fail_msg("\"%.*s\" is not \"%s\"", SPAN_FMT(d->subprotocols), want);
}

/* What a rule does not list does not leave; beside a credential nothing that is not listed. */
static void test_subprotocols(void **state)
{
    struct kit k;
    (void)state;
    load(&k);
    expect_offer(ask(&k, "https://any.test/", WS "\nSec-WebSocket-Protocol: a,b\nSec-WebSocket-Protocol:  c"),
                 "a, b, c");
    expect_offer(ask(&k, "https://named.test/", WS "\nSec-WebSocket-Protocol: x, graphql-ws, v2, v1"),
                 "graphql-ws, v1");
    kit_expect(ask(&k, "https://named.test/", WS "\nSec-WebSocket-Protocol: x"), VERDICT_DENY, "no-rule", "");
    kit_expect(ask(&k, "https://named.test/", WS), VERDICT_DENY, "no-rule", "");
    expect_offer(ask(&k, "https://key.test/", WS "\nsec-websocket-protocol: bearer.token.xyz, v1"), "v1");
    assert_int_equal(k.d.credential, 0);
    expect_offer(ask(&k, "https://bare.test/", WS "\nSec-WebSocket-Protocol: bearer.token.xyz, v1"), "");
    kit_free(&k);
    kit_covered("B42 D34");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_covered), cmocka_unit_test(test_effect),
                                       cmocka_unit_test(test_messages), cmocka_unit_test(test_subprotocols)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
