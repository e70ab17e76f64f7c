/* Where two holds, refs, fields or readings meet, the stricter of each part wins, whichever comes first: every row is
 * tried in both directions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/identity.h"
#include "policy_kit.h"

static const char before[] = "version: 1\npacks: [git@1]\n"
                             "credentials:\n"
                             "  a: { source: { env: A }, inject: { basic: true }, only: [{ host: g.test }] }\n"
                             "  b: { source: { env: B }, inject: { basic: true }, only: [{ host: g.test }] }\n"
                             "approvers: { m: { operators: [x] }, o: { operators: [z] } }\n"
                             "rules:\n";

static const struct {
    const char *ref, *decide;
} rules[] = {
    {"plain", "hold, approve: { within: 9h }"},
    {"reason", "hold, approve: { within: 9h, reason: required }"},
    {"by", "hold, approve: { within: 9h, by: m }"},
    {"other", "hold, approve: { within: 9h, by: o }"},
    {"short", "hold, approve: { within: 1h }"},
    {"soon", "hold, approve: { within: 9h, inline_wait: 3s }"},
    {"key", "hold, use: a, approve: { within: 9h }"},
    {"key2", "hold, use: b, approve: { within: 9h }"},
    {"free", "allow"},
    {"never", "deny"},
};
enum { RULES = sizeof(rules) / sizeof(rules[0]) };

/* Rules stand in the order of their ids: this one, or the other one. */
static void load_rules(struct kit *k, bool reversed)
{
    char yaml[4096];
    int n = snprintf(yaml, sizeof(yaml), "%s", before);
    for (size_t i = 0; i < RULES; i++)
        n += snprintf(
            yaml + n, sizeof(yaml) - (size_t)n,
            "  - { id: r%zu, match: { host: g.test, op: git.push, git: { refs: refs/heads/%s } }, decide: %s "
            "}\n",
            reversed ? RULES - 1 - i : i, rules[i].ref, rules[i].decide);
    if (!kit_load(k, yaml, NULL))
        fail_msg("%s", k->e.text);
}

struct wanted {
    enum verdict verdict;
    const char *code, *by;
    bool reason;
    uint64_t within, wait;
    bool credential;
};

enum { HOURS = 3600 * 1000 };
static const struct {
    const char *a, *b;
    struct wanted w;
} refs[] = {
    {"plain", "reason", {VERDICT_HOLD, "rule", "", true, 9 * HOURS, UINT64_MAX, false}},
    {"plain", "by", {VERDICT_HOLD, "rule", "m", false, 9 * HOURS, UINT64_MAX, false}},
    {"reason", "by", {VERDICT_HOLD, "rule", "m", true, 9 * HOURS, UINT64_MAX, false}},
    {"by", "other", {.verdict = VERDICT_DENY, .code = "ambiguous-approvers"}},
    {"plain", "short", {VERDICT_HOLD, "rule", "", false, 1 * HOURS, UINT64_MAX, false}},
    {"short", "by", {VERDICT_HOLD, "rule", "m", false, 1 * HOURS, UINT64_MAX, false}},
    {"plain", "soon", {VERDICT_HOLD, "rule", "", false, 9 * HOURS, 3000, false}},
    {"soon", "short", {VERDICT_HOLD, "rule", "", false, 1 * HOURS, 3000, false}},
    {"plain", "key", {VERDICT_HOLD, "rule", "", false, 9 * HOURS, UINT64_MAX, true}},
    {"key", "key2", {.verdict = VERDICT_DENY, .code = "ambiguous-credential"}},
    {"free", "reason", {VERDICT_HOLD, "rule", "", true, 9 * HOURS, UINT64_MAX, false}},
    {"free", "by", {VERDICT_HOLD, "rule", "m", false, 9 * HOURS, UINT64_MAX, false}},
    {"never", "by", {.verdict = VERDICT_DENY, .code = "rule"}},
    {"never", "free", {.verdict = VERDICT_DENY, .code = "rule"}},
    {"unheard-of", "free", {.verdict = VERDICT_DENY, .code = "no-rule"}},
};

static void push_of(struct kit *k, const char *first, const char *second, const struct wanted *w)
{
    char one[200], two[200];
    snprintf(one, sizeof(one), AAAA40 " " BBBB40 " refs/heads/%s", first);
    snprintf(two, sizeof(two), AAAA40 " " BBBB40 " refs/heads/%s", second);
    const char *const commands[] = {one, two, NULL};
    const struct decision *d = kit_judge_push(k, "https://g.test/acme/app.git", commands);
    bool terms = span_eq(d->approve_by, span_str(w->by)) && d->reason_required == w->reason &&
                 d->within_ms == w->within && d->inline_wait_ms == w->wait && (d->credential >= 0) == w->credential;
    if (d->verdict != w->verdict || strcmp(d->code, w->code) != 0 || (d->verdict == VERDICT_HOLD && !terms))
        fail_msg("%s then %s: %s %s by %.*s, reason %d, within %llu, wait %llu, credential %d", first, second,
                 verdict_name(d->verdict), d->code, SPAN_FMT(d->approve_by), d->reason_required,
                 (unsigned long long)d->within_ms, (unsigned long long)d->inline_wait_ms, d->credential);
}

static void refs_of_one_push_meet(void **state)
{
    for (unsigned reversed = 0; reversed < 2; reversed++) {
        struct kit k;
        load_rules(&k, reversed);
        for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
            push_of(&k, refs[i].a, refs[i].b, &refs[i].w);
            push_of(&k, refs[i].b, refs[i].a, &refs[i].w);
        }
        kit_free(&k);
    }
}

/* The same of one request that several holds take: in whatever order the rules stand. */
static void holds_of_one_request_meet(void **state)
{
    static const char *const terms[] = {"within: 2h, by: m, gates: [ga]", "within: 1h, reason: required, gates: [gb]",
                                        "within: 3h, inline_wait: 3s"};
    static const unsigned order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < 6; i++) {
        struct kit k;
        char yaml[1500];
        int n = snprintf(yaml, sizeof(yaml),
                         "version: 1\napprovers: { m: { operators: [x] } }\n"
                         "gates: { ga: { program: [/x] }, gb: { program: [/y] }, gc: { program: [/z] } }\nrules:\n");
        for (size_t r = 0; r < 3; r++)
            n += snprintf(yaml + n, sizeof(yaml) - (size_t)n,
                          "  - { id: r%zu, match: { host: a.test, method: POST }, decide: hold, approve: { %s } }\n",
                          r, terms[order[i][r]]);
        if (!kit_load(&k, yaml, NULL))
            fail_msg("%s", k.e.text);
        const struct decision *d = kit_judge(&k, "s", "POST", "https://a.test/x", NULL, "b", 1, true);
        kit_expect(d, VERDICT_HOLD, "rule", "r0");
        assert_true(span_eq(d->approve_by, SPAN("m")) && d->reason_required);
        assert_int_equal(d->within_ms, 1 * HOURS);
        assert_int_equal(d->inline_wait_ms, 3000);
        assert_int_equal(d->approval.gates, 1 | 2); /* each that one of them names */
        assert_int_equal(d->grants.uses, 0);
        kit_free(&k);
    }
}

/* Whom a hold escalates to: those alone whom all of them name, at the same time; one that names no approvers at all
 * leaves it to the others. */
static void escalations_meet(void **state)
{
    static const struct {
        const char *a, *b, *then;
    } row[] = {
        {"by: m, within: 9h, escalate: [{ after: 10m, to: b }, { after: 1h, to: o }]",
         "by: m, within: 9h, escalate: { after: 10m, to: b }", "600000 b;"},
        {"by: m, within: 9h, escalate: { after: 10m, to: b }", "by: m, within: 9h, escalate: { after: 20m, to: b }",
         ""},
        {"by: m, within: 9h, escalate: { after: 10m, to: b }", "by: m", ""},
        {"by: m, within: 9h, escalate: [{ after: 1h, to: o }, { after: 10m, to: b }]", "within: 2h",
         "600000 b;3600000 o;"},
        {"within: 3h", "within: 2h", ""},
    };
    for (size_t i = 0; i < 2 * sizeof(row) / sizeof(row[0]); i++) {
        struct kit k;
        char yaml[1500], got[200] = "";
        const char *first = i % 2 ? row[i / 2].b : row[i / 2].a, *second = i % 2 ? row[i / 2].a : row[i / 2].b;
        struct escalation e[ESCALATE_MAX];
        (void)snprintf(yaml, sizeof(yaml),
                       "version: 1\napprovers: { m: { operators: [x] }, b: { groups: [g] }, o: { operators: [z] } }\n"
                       "rules:\n"
                       "  - { id: r0, match: { host: a.test, method: POST }, decide: hold, approve: { %s } }\n"
                       "  - { id: r1, match: { host: a.test, method: POST }, decide: hold, approve: { %s } }\n",
                       first, second);
        if (!kit_load(&k, yaml, NULL))
            fail_msg("%s", k.e.text);
        const struct decision *d = kit_judge(&k, "s", "POST", "https://a.test/x", NULL, "b", 1, true);
        kit_expect(d, VERDICT_HOLD, "rule", "r0");
        size_t n = policy_escalations(k.p, d, e);
        for (size_t j = 0; j < n; j++)
            (void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%llu %.*s;",
                           (unsigned long long)e[j].after_ms, SPAN_FMT(e[j].to));
        assert_string_equal(got, row[i / 2].then);
        kit_free(&k);
    }
}

/* What an entry says of those it names holds also where they are asked later, and the rule says nothing. */
static void a_step_that_lets_nobody_approve_their_own_is_heard(void **state)
{
    static const struct {
        const char *more;
        enum self_approval then;
    } row[] = {
        {"", SELF_OF_MACHINE},
        {", escalate: { after: 10m, to: b }", SELF_OF_MACHINE},
        {", escalate: { after: 10m, to: o }", SELF_NO},
        {", escalate: [{ after: 10m, to: b }, { after: 20m, to: o }]", SELF_NO},
        {", self_approval: false, escalate: { after: 10m, to: b }", SELF_NO},
        {", self_approval: true, escalate: { after: 10m, to: b }", SELF_YES},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct kit k;
        char yaml[1000];
        (void)snprintf(yaml, sizeof(yaml),
                       "version: 1\napprovers: { m: { operators: [\"uid 7\"] }, b: { operators: [\"uid 8\"] }, o: { "
                       "operators: [\"uid 9\"], self_approval: false } }\nrules:\n"
                       "  - { id: r0, match: { host: a.test, method: POST }, decide: hold, approve: { by: m, within: "
                       "1h%s } }\n",
                       row[i].more);
        if (!kit_load(&k, yaml, NULL))
            fail_msg("%s", k.e.text);
        const struct decision *d = kit_judge(&k, "s", "POST", "https://a.test/x", NULL, "b", 1, true);
        if (d->approval.self != row[i].then)
            fail_msg("row %zu: %u", i, d->approval.self);
        kit_free(&k);
    }
}

/* Whom it escalates to, when, and who that is are a part of what it is held on. */
static void terms_have_the_escalation(void **state)
{
    static const char *const more[] = {", escalate: { after: 10m, to: b }", ", escalate: { after: 11m, to: b }",
                                       ", escalate: { after: 10m, to: o }", ""};
    static const char *const whose[] = {"g", "h"};
    struct dynbuf all[8];
    for (size_t i = 0; i < 8; i++) {
        struct kit k;
        char yaml[1000];
        (void)snprintf(
            yaml, sizeof(yaml),
            "version: 1\napprovers: { m: { operators: [x] }, b: { groups: [%s] }, o: { operators: [z] } }\n"
            "rules:\n"
            "  - { id: r0, match: { host: a.test, method: POST }, decide: hold, approve: { by: m, within: 9h%s } }\n",
            whose[i / 4], more[i % 4]);
        if (!kit_load(&k, yaml, NULL))
            fail_msg("%s", k.e.text);
        dynbuf_init(&all[i], 1 << 16);
        policy_put_terms(k.p, kit_judge(&k, "s", "POST", "https://a.test/x", NULL, "b", 1, true), &all[i]);
        kit_free(&k);
    }
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < i; j++) /* the group of an entry that is not asked is no part of it */
            assert_int_equal(span_eq(dynbuf_span(&all[i]), dynbuf_span(&all[j])), i % 4 == j % 4 && i % 4 >= 2);
    for (size_t i = 0; i < 8; i++)
        dynbuf_free(&all[i]);
}

static const char fields_policy[] =
    "version: 1\nrules:\n"
    "  - { id: danger, match: { host: a.test, header: { X-Danger: \"1\" } }, decide: deny }\n"
    "  - { id: mode, match: { host: b.test, header: { X-Mode: [safe, safer] } }, decide: allow }\n"
    "  - { id: but, match: { host: c.test }, except: [{ header: { X-Danger: \"1\" } }], decide: allow }\n"
    "  - { id: ask, match: { host: d.test, header: { X-Danger: \"1\" } }, decide: hold }\n"
    "  - { id: rest, match: { host: [a.test, d.test] }, decide: allow }\n";

static const struct {
    const char *host, *fields;
    enum verdict verdict;
} fields[] = {
    {"a.test", "X-Danger: 1", VERDICT_DENY},
    {"a.test", "X-Other: 1", VERDICT_ALLOW},
    {"a.test", "X-Danger: 1\nX-Danger: 0", VERDICT_DENY},
    {"a.test", "X-Danger: 0\nX-Danger: 1", VERDICT_DENY},
    {"a.test", "X-Danger: 0\nX-Other: 1\nx-danger: 1\nX-Danger: 0", VERDICT_DENY},
    {"b.test", "X-Mode: safe", VERDICT_ALLOW},
    {"b.test", "X-Mode: safe\nX-Mode: safer", VERDICT_ALLOW},
    {"b.test", "X-Mode: safe\nX-Mode: wild", VERDICT_DENY},
    {"b.test", "X-Mode: wild\nX-Mode: safe", VERDICT_DENY},
    {"b.test", "X-Other: safe", VERDICT_DENY},
    {"c.test", "X-Danger: 0", VERDICT_ALLOW},
    {"c.test", "X-Danger: 1\nX-Danger: 0", VERDICT_DENY},
    {"c.test", "X-Danger: 0\nX-Danger: 1", VERDICT_DENY},
    {"d.test", "X-Danger: 1\nX-Danger: 0", VERDICT_HOLD},
    {"d.test", "X-Danger: 0\nX-Danger: 1", VERDICT_HOLD},
};

static void fields_of_one_name_meet(void **state)
{
    struct kit k;
    char url[60];
    if (!kit_load(&k, fields_policy, NULL))
        fail_msg("%s", k.e.text);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        snprintf(url, sizeof(url), "https://%s/x", fields[i].host);
        const struct decision *d = kit_judge(&k, "s", "GET", url, fields[i].fields, NULL, 0, true);
        if (d->verdict != fields[i].verdict)
            fail_msg("%s %s: %s", fields[i].host, fields[i].fields, verdict_name(d->verdict));
    }
    kit_free(&k);
}

static const char effects_policy[] =
    "version: 1\nrules:\n"
    "  - { id: reads, match: { host: r.test, effect: read }, decide: allow }\n"
    "  - { id: writes, match: { host: w.test, effect: write }, decide: allow }\n"
    "  - { id: both, match: { host: b.test, effect: [write, delete] }, decide: allow }\n"
    "  - { id: all, match: { host: a.test, effect: [read, write, delete] }, decide: allow }\n"
    "  - { id: but, match: { host: d.test, effect: delete }, decide: deny }\n"
    "  - { id: rest, match: { host: d.test }, decide: allow }\n";

static const struct {
    const char *method, *host, *fields;
    enum verdict verdict;
} effects[] = {
    {"GET", "r.test", NULL, VERDICT_ALLOW},
    {"GET", "r.test", "X-HTTP-Method-Override: DELETE", VERDICT_DENY},
    {"POST", "w.test", NULL, VERDICT_ALLOW},
    {"POST", "w.test", "X-HTTP-Method-Override: DELETE", VERDICT_DENY}, /* a delete to who follows it */
    {"POST", "w.test", "X-HTTP-Method-Override: PUT", VERDICT_DENY},    /* whichever one it names */
    {"POST", "b.test", "X-HTTP-Method-Override: DELETE", VERDICT_ALLOW},
    {"GET", "b.test", "X-HTTP-Method-Override: DELETE", VERDICT_DENY}, /* a read to who does not follow it */
    {"GET", "a.test", "X-HTTP-Method-Override: DELETE", VERDICT_ALLOW},
    {"DELETE", "b.test", NULL, VERDICT_ALLOW},
    {"DELETE", "w.test", NULL, VERDICT_DENY},
    {"POST", "d.test", NULL, VERDICT_ALLOW},
    {"POST", "d.test", "X-HTTP-Method-Override: DELETE", VERDICT_DENY},
    {"POST", "d.test", "X-Method-Override: PUT", VERDICT_DENY},
};

static void an_overridden_method_is_each_of_its_effects(void **state)
{
    struct kit k;
    char url[60];
    if (!kit_load(&k, effects_policy, NULL))
        fail_msg("%s", k.e.text);
    for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
        snprintf(url, sizeof(url), "https://%s/x", effects[i].host);
        const struct decision *d = kit_judge(&k, "s", effects[i].method, url, effects[i].fields, NULL, 0, true);
        if (d->verdict != effects[i].verdict)
            fail_msg("%s %s %s: %s", effects[i].method, effects[i].host, effects[i].fields, verdict_name(d->verdict));
        assert_true(effects[i].fields == NULL || d->effect != EFFECT_READ || d->verdict == VERDICT_DENY);
    }
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refs_of_one_push_meet),
        cmocka_unit_test(holds_of_one_request_meet),
        cmocka_unit_test(escalations_meet),
        cmocka_unit_test(a_step_that_lets_nobody_approve_their_own_is_heard),
        cmocka_unit_test(terms_have_the_escalation),
        cmocka_unit_test(fields_of_one_name_meet),
        cmocka_unit_test(an_overridden_method_is_each_of_its_effects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
