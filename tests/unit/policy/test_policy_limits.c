/* limits: and over: from the file to the decision, and what follows when a limit is used up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy/limit.h"
#include "policy/image/records.h"
#include "policy_kit.h"

#define HEAD                                                                                                         \
    "version: 1\npacks: [git@1]\n"                                                                                   \
    "approvers: { finance: { operators: [ann] } }\n"                                                                 \
    "credentials:\n"                                                                                                 \
    "  small: { source: { env: A }, inject: { basic: true }, only: [{ host: pay.example }] }\n"                      \
    "  large: { source: { env: B }, inject: { basic: true }, only: [{ host: pay.example, path: /v1/refunds }] }\n"   \
    "rules:\n"
#define REFUND                                                                                                       \
    "  - id: refund\n    match: { host: pay.example, method: POST, path: /v1/* }\n    decide: allow\n    use: "      \
    "small\n"                                                                                                        \
    "    limits: { requests: [3/1d, 2/1m], sum: { field: amount, max: 20000, every: 1d }, per: session }\n"          \
    "    say: \"too many refunds\"\n"
#define CREDIT                                                                                                       \
    "  - id: credit\n    match: { host: pay.example, method: POST, path: /v2 }\n    decide: allow\n"                 \
    "    limits: { sum: [{ pointer: /a~1b/0, max: 9007199254740992, every: 31d },"                                   \
    " { pointer: /a~1b/0, max: 1, every: 1s }] }\n"
#define FORM form
#define JSON json
#define URL  "https://pay.example/v1/refunds"

static const char form[] = "Content-Type: application/x-www-form-urlencoded";
static const char json[] = "Content-Type: application/json";

static void load(struct kit *k, const char *yaml)
{
    if (!kit_load(k, yaml, NULL))
        fail_msg("%s", k->nproblems ? k->problems[0] : k->e.text);
}

static const struct decision *post(struct kit *k, const char *url, const char *type, const char *body)
{
    return kit_judge(k, "ci-1", "POST", url, type, body, body ? strlen(body) : 0, true);
}

static void past(struct kit *k, const char *url, uint32_t mask)
{
    struct span s = span_str(url), rest = span_from(s, span_find(s, SPAN("://")) + 3);
    struct request r = {.scheme = span_first(s, span_find(s, SPAN("://"))), .method = SPAN("POST"), .port = 443};
    bool used[LIMITS_MAX] = {false};
    for (size_t i = 0; i < LIMITS_MAX; i++)
        used[i] = mask >> i & 1;
    r.host = span_first(rest, span_index(rest, '/'));
    r.path = span_from(rest, r.host.n);
    policy_past_limits(k->p, &r, used, k->now_ms, &k->a, &k->d);
}

static void is_limit(const struct limit *l, const char *rule, const char *measure, uint64_t max, uint64_t ms,
                     uint64_t amount, bool uncountable)
{
    char got[200], want[200];
    snprintf(got, sizeof(got), "%.*s %.*s", SPAN_FMT(l->rule), SPAN_FMT(l->measure));
    snprintf(want, sizeof(want), "%s %s", rule, measure);
    assert_string_equal(got, want);
    assert_int_equal(l->max, max);
    assert_int_equal(l->window_ms, ms);
    assert_int_equal(l->amount, amount);
    assert_int_equal(l->uncountable, uncountable);
}

static void test_what_a_request_takes(void **state)
{
    struct kit k;
    (void)state;
    load(&k, HEAD REFUND CREDIT);
    const struct decision *d = post(&k, URL, FORM, "amount=4000&x=1");
    kit_expect(d, VERDICT_ALLOW, "rule", "refund");
    assert_int_equal(d->nlimits, 3);
    is_limit(&d->limits[0], "refund", "requests", 3, 86400000, 1, false);
    is_limit(&d->limits[1], "refund", "requests", 2, 60000, 1, false);
    is_limit(&d->limits[2], "refund", "form:amount", 20000, 86400000, 4000, false);
    assert_int_equal(d->limits[2].per, LIMIT_PER_SESSION);
    d = post(&k, "https://pay.example/v2", JSON, "{\"a/b\":[7]}");
    assert_int_equal(d->nlimits, 2);
    is_limit(&d->limits[0], "credit", "json:/a~1b/0", UINT64_C(1) << 53, 31 * UINT64_C(86400000), 7, false);
    is_limit(&d->limits[1], "credit", "json:/a~1b/0", 1, 1000, 7, false);
    d = post(&k, "https://pay.example/v1/refunds?amount=1", FORM, "amount=4000");
    is_limit(&d->limits[2], "refund", "form:amount", 20000, 86400000, 0, true);
    d = post(&k, "https://pay.example/v2?a%2Fb[]=9", JSON, "{\"a/b\":[7]}"); /* B13 */
    assert_true(d->limits[0].uncountable && d->limits[1].uncountable);
    d = kit_judge(&k, "ci-1", "POST", URL, FORM, NULL, 0, true); /* no body at all: the field is not there */
    kit_expect(d, VERDICT_ALLOW, "rule", "refund");
    assert_true(d->limits[2].uncountable);
    /* Not all of the body yet: it is asked for. */
    d = kit_judge(&k, "ci-1", "POST", URL, FORM, "", 0, false);
    assert_true(d->need_body && d->nlimits == 0 && d->verdict == VERDICT_DENY);
    kit_free(&k);
}

static void is_unclassified(const struct decision *d)
{
    assert_int_equal(d->verdict, VERDICT_DENY);
    assert_string_equal(d->code, "unclassified");
    assert_int_equal(d->nlimits, 0);
}

/* B12, B13: what two servers may read as two amounts is none. */
static void test_amounts(void **state)
{
    static const struct {
        const char *type, *body;
        bool counts;
        uint64_t amount;
    } v[] = {
        {FORM, "amount=1", true, 1},
        {FORM, "amount=0", true, 0},
        {FORM, "%61mount=12", true, 12},
        {FORM, "amount=9007199254740992", true, UINT64_C(1) << 53},
        {FORM, "amount=9007199254740993", false, 0},
        {FORM, "amount=18446744073709551617", false, 0},
        {FORM, "amount=1&amount=1", false, 0},
        {FORM, "amount=1&Amount=1", false, 0},
        {FORM, "amount=1&amount[]=1", false, 0},
        {FORM, "amount=1&+amount=5", false, 0},
        {FORM, "amount[a]=1", false, 0},
        {FORM, "Amount=1", false, 0},
        {FORM, "amount=-1", false, 0},
        {FORM, "amount=+1", false, 0},
        {FORM, "amount=%2B1", false, 0},
        {FORM, "amount=01", false, 0},
        {FORM, "amount=1.0", false, 0},
        {FORM, "amount=1e3", false, 0},
        {FORM, "amount=0x10", false, 0},
        {FORM, "amount=1%20", false, 0},
        {FORM, "amount=", false, 0},
        {FORM, "amount", false, 0},
        {FORM, "", false, 0},
        {JSON, "{\"amount\":1}", true, 1},
        {JSON, "{\"amount\":9007199254740992}", true, UINT64_C(1) << 53},
        {JSON, "{\"amount\":9007199254740993}", false, 0},
        {JSON, "{\"amount\":1e400}", false, 0},
        {JSON, "{\"amount\":1.0}", false, 0},
        {JSON, "{\"amount\":-1}", false, 0},
        {JSON, "{\"amount\":\"1\"}", false, 0},
        {JSON, "{\"amount\":null}", false, 0},
        {JSON, "{\"amount\":[1]}", false, 0},
        {JSON, "{\"amount\":1,\"Amount\":2}", false, 0},
        {JSON, "{}", false, 0},
        {JSON, "[]", false, 0},
    };
    struct kit k;
    (void)state;
    load(&k, HEAD "  - id: form\n    match: { host: pay.example, effect: [read, write] }\n    decide: allow\n"
                  "    limits: { sum: { field: amount, max: 5, every: 1s } }\n"
                  "  - id: json\n    match: { host: pay.example, effect: [read, write] }\n    decide: allow\n"
                  "    limits: { sum: [{ pointer: /amount, max: 5, every: 1s }] }\n");
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        const struct decision *d = post(&k, URL, v[i].type, v[i].body);
        const struct limit *l = d->nlimits == 2 ? &d->limits[(v[i].type == json)] : NULL;
        if (l == NULL || l->uncountable == v[i].counts || l->amount != (v[i].counts ? v[i].amount : 0))
            fail_msg("%s: %s", v[i].body, l == NULL ? d->code : "another amount");
        assert_true(d->limits[v[i].type != json].uncountable); /* the other kind of body never counts */
    }
    /* A body that cannot be seen: nobody knows what it takes. */
    is_unclassified(post(&k, URL, "Content-Type: text/plain", "amount=1"));
    is_unclassified(post(&k, URL, FORM, "amount=1;amount=2"));
    is_unclassified(post(&k, URL, JSON, "{\"amount\":1,\"amount\":2}"));
    kit_free(&k);
    kit_covered("B12 B13");
}

static void test_past(void **state)
{
    struct limit l = {.max = 10, .amount = 1};
    (void)state;
    assert_false(limit_is_past(&l, 0));
    assert_false(limit_is_past(&l, 9));
    assert_true(limit_is_past(&l, 10));
    assert_true(limit_is_past(&l, 11));
    assert_true(limit_is_past(&l, UINT64_MAX));
    l.amount = UINT64_MAX;
    assert_true(limit_is_past(&l, 0));
    assert_true(limit_is_past(&l, 1)); /* 1 + UINT64_MAX is 0 */
    l = (struct limit){.max = UINT64_MAX, .amount = UINT64_MAX};
    assert_false(limit_is_past(&l, 0));
    assert_true(limit_is_past(&l, 1));
    l = (struct limit){.max = 10, .uncountable = true};
    assert_true(limit_is_past(&l, 0));
    l = (struct limit){.max = 10};
    assert_false(limit_is_past(&l, 10)); /* takes nothing */
    assert_true(limit_is_past(&(struct limit){0}, 1));
}

/* A limited rule beside a wider one without limits counts, and so does every other that fits; in any order. */
static void test_union(void **state)
{
    static const char *const rules[] = {
        "  - { id: a, match: { host: pay.example, method: POST }, decide: allow, limits: { requests: 9/1d } }\n",
        "  - { id: b, match: { host: pay.example, path: /v1/** }, decide: allow, limits: { requests: 8/1d, per: all "
        "} }\n",
        "  - { id: c, match: { host: pay.example, effect: [read, write] }, decide: allow }\n",
        "  - { id: d, match: { host: pay.example, method: POST, path: /v2 }, decide: allow, limits: { requests: 1/1d "
        "} }\n"};
    static const int order[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct kit k;
        char yaml[2000];
        snprintf(yaml, sizeof(yaml), HEAD "%s%s%s%s", rules[order[i][0]], rules[order[i][1]], rules[order[i][2]],
                 rules[order[i][3]]);
        load(&k, yaml);
        const struct decision *d = post(&k, URL, NULL, NULL);
        kit_expect(d, VERDICT_ALLOW, "rule", "a");
        assert_int_equal(d->nlimits, 2);
        is_limit(&d->limits[0], "a", "requests", 9, 86400000, 1, false);
        is_limit(&d->limits[1], "b", "requests", 8, 86400000, 1, false);
        assert_int_equal(d->limits[1].per, LIMIT_PER_ALL);
        assert_int_equal(d->limits[0].per, LIMIT_PER_SANDBOX);
        past(&k, URL, 2);
        kit_expect(&k.d, VERDICT_DENY, "over-limit", "b");
        assert_int_equal(k.d.nlimits, 0);
        d = kit_judge(&k, "ci-1", "GET", "https://pay.example/x", NULL, NULL, 0, true);
        assert_int_equal(d->nlimits, 0);
        kit_free(&k);
    }
}

/* B6, B8, B1: a bound holds in any spelling that a server may take for the same, if a wider rule lets it through. */
static void test_spelt_bounds(void **state)
{
    static const char yaml[] =
        HEAD "  - { id: any, match: { host: pay.example }, decide: allow }\n"
             "  - { id: few, match: { host: pay.example, method: POST, path: /v1/refunds }, decide: allow, limits: { "
             "requests: "
             "2/1d } }\n"
             "  - { id: sum, match: { host: pay.example, method: POST, path: /v3/** }, except: [{ path: /v3/free }], "
             "decide: "
             "allow, limits: { sum: { field: amount, max: 9, every: 1d } } }\n"
             "  - { id: own, match: { host: own.example, path: /x }, decide: allow, limits: { requests: 2/1d } }\n";
    static const struct {
        const char *url, *head, *rule;
    } v[] = {
        {"https://pay.example/v1/refunds", NULL, "few"}, {"https://pay.example/v1/refunds/", NULL, "few"},
        {"https://pay.example/V1/Refunds", NULL, "few"}, {"https://pay.example/v1/refunds;a=b", NULL, "few"},
        {"https://pay.example/v1/other", NULL, NULL},    {"https://pay.example/v3/free", form, NULL},
        {"https://pay.example/v3/Free", form, "sum"},    {"https://pay.example/v3/x", form, "sum"},
    };
    struct kit k;
    (void)state;
    load(&k, yaml);
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        const struct decision *d = post(&k, v[i].url, v[i].head, v[i].head ? "amount=3" : NULL);
        if (d->verdict != VERDICT_ALLOW || d->nlimits != (v[i].rule != NULL) ||
            (v[i].rule && !span_eq(d->limits[0].rule, span_str(v[i].rule))))
            fail_msg("%s: verdict %d, code %s, %zu limits", v[i].url, d->verdict, d->code, d->nlimits);
    }
    /* Another method may be meant; and what nobody can see is not let by. */
    const struct decision *d =
        kit_judge(&k, "s", "GET", "https://pay.example/v1/refunds", "X-HTTP-Method-Override: POST", NULL, 0, true);
    assert_int_equal(d->nlimits, 1);
    is_unclassified(post(&k, "https://pay.example/V3/x", "Content-Type: text/plain", "amount=3"));
    /* It lets nothing through itself. */
    kit_expect(kit_get(&k, "https://own.example/X"), VERDICT_DENY, "no-rule", "");
    kit_covered("B1 B6 B7 B8");
    kit_free(&k);
}

static void test_too_many(void **state)
{
    for (unsigned n = LIMITS_MAX; n <= LIMITS_MAX + 1; n++) {
        struct kit k;
        char yaml[8000];
        size_t len = (size_t)snprintf(yaml, sizeof(yaml), HEAD);
        (void)state;
        for (unsigned i = 0; i < n; i++)
            len += (size_t)snprintf(yaml + len, sizeof(yaml) - len,
                                    "  - { id: r%02u, match: { host: pay.example, method: POST }, decide: allow, "
                                    "limits: { requests: 9/1d } }\n",
                                    i);
        load(&k, yaml);
        const struct decision *d = post(&k, URL, NULL, NULL);
        if (n == LIMITS_MAX)
            kit_expect(d, VERDICT_ALLOW, "rule", "r00");
        else
            kit_expect(d, VERDICT_DENY, "too-many-limits", "r00");
        assert_int_equal(d->nlimits, n == LIMITS_MAX ? LIMITS_MAX : 0);
        kit_free(&k);
    }
    for (unsigned rules = 2; rules <= 3; rules++) { /* few rules, many limits each */
        struct kit k;
        char yaml[4000];
        size_t len = (size_t)snprintf(yaml, sizeof(yaml), HEAD);
        for (unsigned i = 0; i < rules; i++)
            len +=
                (size_t)snprintf(yaml + len, sizeof(yaml) - len,
                                 "  - { id: r%u, match: { host: pay.example, method: POST }, decide: hold, limits: "
                                 "{ requests: [1/1s, 1/2s, 1/3s, 1/4s, 1/5s, 1/6s, 1/7s, 1/8s] } }\n",
                                 i);
        load(&k, yaml);
        kit_expect(post(&k, URL, NULL, NULL), rules == 2 ? VERDICT_HOLD : VERDICT_DENY,
                   rules == 2 ? "rule" : "too-many-limits", "r0");
        kit_free(&k);
    }
}

#define LARGER                                                                                                       \
    "  - id: larger\n    match: { host: pay.example, method: PUT }\n    decide: hold\n    use: large\n"              \
    "    approve: { by: finance, within: 10m, reason: required, inline_wait: 5s }\n    say: \"ask finance\"\n"       \
    "    limits: { requests: 5/1h, sum: { field: amount, max: 7, every: 1h } }\n"

static void test_over_becomes_a_hold(void **state)
{
    struct kit k;
    (void)state;
    load(&k, HEAD
         "  - { id: refund, match: { host: pay.example, method: POST }, decide: allow, use: small, over: larger,\n"
         "      limits: { requests: 3/1d } }\n" LARGER);
    (void)post(&k, URL, NULL, NULL);
    past(&k, URL, 0); /* nothing is past: nothing changes */
    kit_expect(&k.d, VERDICT_ALLOW, "rule", "refund");
    assert_int_equal(k.d.nlimits, 1);
    past(&k, URL, 1);
    kit_expect(&k.d, VERDICT_HOLD, "over-limit", "larger");
    assert_int_equal(k.d.credential, 0); /* large: sorted by name */
    assert_true(span_eq(k.d.approve_by, SPAN("finance")) && span_eq(k.d.say, SPAN("ask finance")));
    assert_int_equal(k.d.within_ms, 600000);
    assert_int_equal(k.d.inline_wait_ms, 5000);
    assert_true(k.d.reason_required && !k.d.need_body);
    assert_int_equal(k.d.nlimits, 2); /* those of the hold, and no others */
    is_limit(&k.d.limits[0], "larger", "requests", 5, 3600000, 1, false);
    is_limit(&k.d.limits[1], "larger", "form:amount", 7, 3600000, 0, true);
    past(&k, URL, 1);
    kit_expect(&k.d, VERDICT_DENY, "over-limit", "larger");
    assert_int_equal(k.d.credential, -1);
    assert_int_equal(k.d.nlimits, 0);
    /* The hold's credential may not go to another path. */
    (void)post(&k, "https://pay.example/v1/x", NULL, NULL);
    past(&k, "https://pay.example/v1/x", 1);
    kit_expect(&k.d, VERDICT_DENY, "credential-not-for-here", "larger");
    assert_int_equal(k.d.credential, -1);
    /* With a body that is not here, nobody knows what would be held. */
    kit_judge(&k, "ci-1", "POST", URL, FORM, "", 0, false);
    assert_true(k.d.need_body && k.d.verdict == VERDICT_DENY);
    kit_free(&k);
}

/* A hold outside its hours asks nobody: what it would take is denied. */
static void test_over_outside_its_hours(void **state)
{
    enum { MONDAY = 1767571200 }; /* 2026-01-05T00:00:00Z */
    struct kit k;
    (void)state;
    load(&k, HEAD "  - { id: refund, match: { host: pay.example, method: POST }, decide: allow, over: larger,\n"
                  "      limits: { requests: 3/1d } }\n"
                  "  - { id: larger, match: { host: pay.example, method: PUT }, decide: hold,\n"
                  "      when: { days: mon, hours: \"08:00-18:00\", zone: UTC } }\n");
    for (unsigned hour = 7; hour <= 18; hour += 11) {
        k.now_ms = (MONDAY + hour * 3600ull) * 1000;
        (void)post(&k, URL, NULL, NULL);
        past(&k, URL, 1);
        kit_expect(&k.d, VERDICT_DENY, "over-limit", "refund");
        assert_int_equal(k.d.nlimits, 0);
    }
    k.now_ms = (MONDAY + 12 * 3600ull) * 1000;
    (void)post(&k, URL, NULL, NULL);
    past(&k, URL, 1);
    kit_expect(&k.d, VERDICT_HOLD, "over-limit", "larger");
    kit_free(&k);
}

/* What is past two limits is what both say: without over: it is denied; two holds that differ are a denial. */
static void test_several_past(void **state)
{
    struct kit k;
    (void)state;
    load(
        &k, HEAD
        "  - { id: a, match: { host: pay.example, method: POST }, decide: allow, over: h, limits: { requests: 1/1d } "
        "}\n"
        "  - { id: b, match: { host: pay.example, path: /v1/** }, decide: allow, say: slower, limits: { requests: "
        "1/1d } "
        "}\n"
        "  - { id: c, match: { host: pay.example, path: /v2 }, decide: allow, over: i, limits: { requests: 1/1d } }\n"
        "  - { id: d, match: { host: pay.example, path: /v2 }, decide: allow, over: h, limits: { requests: 1/1d } }\n"
        "  - { id: h, match: { host: pay.example, path: /h }, decide: hold, use: small }\n"
        "  - { id: i, match: { host: pay.example, path: /h }, decide: hold, use: large }\n");
    (void)post(&k, URL, NULL, NULL);
    past(&k, URL, 1);
    kit_expect(&k.d, VERDICT_HOLD, "over-limit", "h");
    assert_int_equal(k.d.nlimits, 0);
    (void)post(&k, URL, NULL, NULL);
    past(&k, URL, 3);
    kit_expect(&k.d, VERDICT_DENY, "over-limit", "b");
    (void)post(&k, URL, NULL, NULL);
    past(&k, URL, 2);
    kit_expect(&k.d, VERDICT_DENY, "over-limit", "b");
    assert_true(span_eq(k.d.say, SPAN("slower")));
    (void)post(&k, "https://pay.example/v2", NULL, NULL);
    assert_int_equal(k.d.nlimits, 3);
    past(&k, "https://pay.example/v2", 5); /* a and d: one hold */
    kit_expect(&k.d, VERDICT_HOLD, "over-limit", "h");
    (void)post(&k, "https://pay.example/v2", NULL, NULL);
    past(&k, "https://pay.example/v2", 7);
    kit_expect(&k.d, VERDICT_DENY, "ambiguous-credential", "h");
    kit_free(&k);
}

/* B46: a deny and a hold go before an allow, limits or not; and a hold has limits of its own. */
static void test_stricter_wins(void **state)
{
    struct kit k;
    (void)state;
    load(&k, HEAD REFUND "  - { id: h, match: { host: pay.example, path: /v1/h }, decide: hold, limits: { requests: "
                         "4/1d, per: all } }\n"
                         "  - { id: never, match: { host: pay.example, path: /v1/n }, decide: deny }\n");
    (void)post(&k, "https://pay.example/v1/h", form, "amount=1");
    kit_expect(&k.d, VERDICT_HOLD, "rule", "h");
    assert_int_equal(k.d.nlimits, 1);
    is_limit(&k.d.limits[0], "h", "requests", 4, 86400000, 1, false);
    past(&k, "https://pay.example/v1/h", 1);
    kit_expect(&k.d, VERDICT_DENY, "over-limit", "h");
    (void)post(&k, "https://pay.example/v1/n", form, "amount=1");
    kit_expect(&k.d, VERDICT_DENY, "rule", "never");
    assert_int_equal(k.d.nlimits, 0);
    past(&k, "https://pay.example/v1/n", 1);
    kit_expect(&k.d, VERDICT_DENY, "rule", "never");
    kit_free(&k);
    kit_covered("B46");
}

/* A push of several refs is one request, whichever rules let its members through; the list of refs before it is none.
 */
static void test_push_counts_once(void **state)
{
    static const char *const two[] = {ZERO40 " " AAAA40 " refs/heads/a", ZERO40 " " BBBB40 " refs/heads/b", NULL};
    static const char *const mixed[] = {ZERO40 " " AAAA40 " refs/heads/a", ZERO40 " " BBBB40 " refs/heads/h", NULL};
    struct kit k;
    (void)state;
    load(&k, HEAD "  - { id: p, match: { host: git.example, git: { refs: refs/heads/a } }, decide: allow, limits: { "
                  "requests: 5/1d } }\n"
                  "  - { id: q, match: { host: git.example, git: { refs: refs/heads/* } }, decide: allow, limits: { "
                  "requests: 6/1d } }\n"
                  "  - { id: z, match: { host: git.example, git: { refs: refs/heads/h } }, decide: hold, limits: { "
                  "requests: 7/1d } }\n");
    (void)kit_judge_push(&k, "https://git.example/x.git", two);
    kit_expect(&k.d, VERDICT_ALLOW, "rule", "p");
    assert_int_equal(k.d.nlimits, 2);
    is_limit(&k.d.limits[0], "p", "requests", 5, 86400000, 1, false);
    is_limit(&k.d.limits[1], "q", "requests", 6, 86400000, 1, false);
    (void)kit_judge_push(&k, "https://git.example/x.git", mixed);
    kit_expect(&k.d, VERDICT_HOLD, "rule", "z");
    assert_int_equal(k.d.nlimits, 1);
    (void)kit_get(&k, "https://git.example/x.git/info/refs?service=git-receive-pack");
    assert_int_equal(k.d.verdict, VERDICT_ALLOW);
    assert_int_equal(k.d.nlimits, 0);
    kit_free(&k);
}

static void test_refused(void **state)
{
#define R "  - id: r\n    match: { host: pay.example, method: POST"
#define A " }\n    decide: allow\n    limits: "
    static const struct {
        const char *rule, *code, *words;
    } v[] = {
        {R A "{ requests: 0/1d }\n", "P008", "from 1 to 10000"},
        {R A "{ requests: 10001/1d }\n", "P008", "from 1 to 10000"},
        {R A "{ requests: 1/32d }\n", "P008", "of 1s to 31d"},
        {R A "{ requests: 1/999ms }\n", "P008", "of 1s to 31d"},
        {R A "{ requests: 20 }\n", "P009", "a number to YAML"},
        {R A "{ requests: 20 a day }\n", "P008", "such as 20/1d"},
        {R A "{ requests: 18446744073709551616/1d }\n", "P008", "such as 20/1d"},
        {R A "{ requests: [] }\n", "P008", "empty list"},
        {R A "{ requests: { a: b } }\n", "P008", "single value"},
        {R A "{ requests: [5/1d, 6/24h] }\n", "P012", "already"},
        {R A "{ requests: [1/1s, 1/2s, 1/3s, 1/4s, 1/5s, 1/6s, 1/7s, 1/8s, 1/9s, 1/10s, 1/11s, 1/12s, 1/13s, 1/14s, "
             "1/15s, 1/16s, 1/17s] }\n",
         "P017", "more than 16"},
        {R A "{ per: all }\n", "P015", "how much"},
        {R A "{ per: everybody, requests: 1/1d }\n", "P008", "sandbox, session, all"},
        {R A "{ sum: [] }\n", "P008", "empty list"},
        {R A "{ sum: { field: a, max: 0, every: 1d } }\n", "P008", "from 1 to"},
        {R A "{ sum: { field: a, max: 9007199254740993, every: 1d } }\n", "P008", "9007199254740992"},
        {R A "{ sum: { field: a, max: 1, every: 32d } }\n", "P008", "every"},
        {R A "{ sum: { field: a, max: 1 } }\n", "P010", "\"every\""},
        {R A "{ sum: { field: a, every: 1d } }\n", "P010", "\"max\""},
        {R A "{ sum: { max: 1, every: 1d } }\n", "P015", "field: of a form, or pointer:"},
        {R A "{ sum: { field: a, pointer: /a, max: 1, every: 1d } }\n", "P015", "one thing"},
        {R A "{ sum: { pointer: a, max: 1, every: 1d } }\n", "P013", "no JSON pointer"},
        {R A "{ sum: { pointer: /a~2, max: 1, every: 1d } }\n", "P013", "~0"},
        {R A "{ sum: [{ field: a, max: 1, every: 1d }, { pointer: /a, max: 1, every: 1d }] }\n", "P015",
         "of one kind"},
        {R A "{ sum: [{ field: a, max: 1, every: 1d }, { field: a, max: 2, every: 24h }] }\n", "P012", "already"},
        {R ", json: [{ pointer: /a, exists: true }]" A "{ sum: { field: a, max: 1, every: 1d } }\n", "P015", "forms"},
        {R ", form: [{ field: a, exists: true }]" A "{ sum: { pointer: /a, max: 1, every: 1d } }\n", "P015", "forms"},
        {R ", git: { force: false }" A "{ sum: { pointer: /a, max: 1, every: 1d } }\n", "P015", "a push"},
        {R " }\n    decide: deny\n    limits: { requests: 1/1d }\n", "P015", "nothing to limit"},
        {R A "{ requests: 1/1d }\n    over: s\n", "P011", "no rule \"s\""},
        {R A "{ requests: 1/1d }\n    over: r\n", "P015", "does not hold"},
        {R " }\n    decide: allow\n    over: larger\n" LARGER, "P015", "has limits"},
        {R " }\n    decide: hold\n    over: larger\n    limits: { requests: 1/1d }\n" LARGER, "P015", "allows"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        struct kit k;
        char yaml[4000];
        snprintf(yaml, sizeof(yaml), HEAD "%s", v[i].rule);
        if (kit_load(&k, yaml, NULL) || !kit_problem(&k, v[i].code, NULL, v[i].words))
            fail_msg("%s gets %s", v[i].rule, k.nproblems ? k.problems[0] : "no problem");
        kit_free(&k);
    }
}

static void test_warned(void **state)
{
#define OVER                                                                                                         \
    "  - { id: a, match: { host: pay.example, path: /v1/x, method: POST }, decide: allow, over: h, limits: { "       \
    "requests: 1/1d } }\n  - { id: h, decide: hold, match: { host: pay.example"
    static const struct {
        const char *hold;
        bool warned;
    } v[] = {
        {" } }\n", true},
        {", path: /v1/** } }\n", true},
        {", method: [POST, PUT] } }\n", true},
        {", path: /v2/** } }\n", false},
        {", method: GET } }\n", false},
        {", port: 8443 } }\n", false},
        {", scheme: http } }\n", false},
        {", form: [{ field: a, exists: true }] } }\n", false},
        {" }, except: [{ path: /v1/x }] }\n", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        struct kit k;
        char yaml[3000];
        snprintf(yaml, sizeof(yaml), HEAD OVER "%s", v[i].hold);
        load(&k, yaml);
        if (kit_problem(&k, "P113", NULL, "add except:") != v[i].warned)
            fail_msg("%s: %s", v[i].hold, v[i].warned ? "no warning" : "a warning");
        kit_free(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_request_takes),
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_past),
        cmocka_unit_test(test_union),
        cmocka_unit_test(test_spelt_bounds),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_over_becomes_a_hold),
        cmocka_unit_test(test_over_outside_its_hours),
        cmocka_unit_test(test_several_past),
        cmocka_unit_test(test_stricter_wins),
        cmocka_unit_test(test_push_counts_once),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_warned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
