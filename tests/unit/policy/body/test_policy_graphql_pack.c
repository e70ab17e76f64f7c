/* GraphQL in policies: what the pack makes of requests, what limits count, what a person is shown, and what is no
 * condition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/body/graphql.h"
#include "policy/limit.h"
#include "tests/unit/policy/policy_kit.h"

#define JSON       "Content-Type: application/json\n"
#define GRAPHQL    "Content-Type: application/graphql\n"
#define TRY(k, v)  kit_rows(k, v, sizeof(v) / sizeof((v)[0]))
#define Q(text)    "{\"query\":\"" text "\"}"
#define A          "https://api.github.com/graphql"
#define ALLOWED(r) VERDICT_ALLOW, "rule", r
#define HELD       VERDICT_HOLD, "rule", "write"
#define NO_RULE    VERDICT_DENY, "no-rule", ""

/* ---- the pack ---- */

static void the_pack_tells_reads_from_writes(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "packs: [graphql@1]\n"
        "rules:\n"
        "  - { id: read, match: { host: api.github.com, effect: read }, decide: allow }\n"
        "  - { id: write, match: { host: api.github.com, effect: [write, delete] }, decide: hold }\n";
    static const struct kit_row rows[] = {
        {"POST", A, JSON, Q("query PullRequestList($o:String!){repository(owner:$o){id}}"), ALLOWED("read")},
        {"POST", A, JSON, "[" Q("{a}") "," Q("{b}") "]", ALLOWED("read")},
        {"GET", A "?query=%7Ba%7D", NULL, NULL, ALLOWED("read")},
        {"POST", A, GRAPHQL, "{a}", ALLOWED("read")},
        {"POST", A, JSON, Q("mutation PullRequestCreate($i:In!){createPullRequest(input:$i){id}}"), HELD},
        {"POST", A, JSON, Q("subscription{a}"), HELD},
        {"POST", A, JSON, "[" Q("{a}") "," Q("mutation{b}") "]", HELD},
        {"POST", A, JSON, "{\"query\":\"query A{a} mutation B{b}\",\"operationName\":\"A\"}", HELD},
        {"POST", A, JSON, Q("{a"), HELD},
        {"POST", A, JSON, "{\"id\":\"abc\"}", HELD},
        {"POST", A, JSON, "[]", HELD},
        {"POST", A "?query=mutation%7Bb%7D", JSON, Q("{a}"), HELD},
        {"POST", A, "Content-Type: text/plain\n", Q("{a}"), HELD},
        {"POST", A, JSON "Content-Encoding: gzip\n", Q("{a}"), HELD},
        {"POST", A, "Content-Type: multipart/form-data; boundary=x\n", "--x--\r\n", HELD},
        {"GET", A "?query=mutation%7Bb%7D", NULL, NULL, HELD},
        {"GET", A "?documentId=abc", NULL, NULL, HELD},
        {"GET", A, NULL, NULL, HELD},
        {"PUT", A, JSON, Q("{a}"), HELD},
        {"HEAD", A "?query=mutation%7Bb%7D", NULL, NULL, HELD},
        {"POST", A "/", JSON, Q("{a}"), ALLOWED("read")},
        {"POST", A "/", JSON, Q("mutation{a}"), HELD},
        {"POST", "https://api.github.com/api/graphql", JSON, Q("{a}"), ALLOWED("read")},
        /* names of repositories, and of who has them */
        {"GET", "https://api.github.com/repos/acme/graphql", NULL, NULL, ALLOWED("read")},
        {"GET", "https://api.github.com/orgs/graphql", NULL, NULL, ALLOWED("read")},
        {"GET", "https://api.github.com/repos/graphql/graphql/issues?page=1", NULL, NULL, ALLOWED("read")},
        {"DELETE", "https://api.github.com/repos/acme/graphql", NULL, NULL, HELD},
        {"DELETE", A, NULL, NULL, HELD},
    };
    struct kit k;
    (void)state;
    if (!kit_load(&k, yaml, NULL))
        fail_msg("%s: %s", k.e.text, k.problems[0]);
    TRY(&k, rows);
    const struct decision *d = kit_judge(&k, "sb", "POST", A, JSON, Q("mutation M{x:createIssue addLabels}"),
                                         strlen(Q("mutation M{x:createIssue addLabels}")), true);
    assert_true(span_eq(d->op, SPAN("graphql.mutation")) && d->nfacts == 1);
    assert_true(span_eq(d->facts[0].value, SPAN("mutation M: createIssue, addLabels")));
    d = kit_judge(&k, "sb", "POST", A, JSON, Q("{"), strlen(Q("{")), true);
    assert_true(d->nfacts == 1 && span_eq(d->facts[0].label, SPAN("Not understood")));
    d = kit_judge(&k, "sb", "POST", A, JSON, "", 0, false);
    assert_true(d->need_body);
    d = kit_judge(&k, "sb", "POST", A, JSON, Q("{a}"), strlen(Q("{a}")), true);
    assert_true(span_eq(d->op, SPAN("graphql.query")) && d->effect == EFFECT_READ);
    kit_covered("B24 B25 B26 B27 B28 B29");
    kit_free(&k);
}

/* Before the body is here nobody knows whether a rule about reads or one about writes is asked. */
static void nothing_is_decided_before_the_body(void **state)
{
    static const char *const yaml[] = {
        "version: 1\npacks: [graphql@1]\nrules:\n  - { id: r, match: { op: graphql.query }, decide: allow }\n",
        "version: 1\npacks: [graphql@1]\nrules:\n  - { id: w, match: { op: graphql.mutation }, decide: hold }\n",
        "version: 1\npacks: [graphql@1]\nrules:\n  - { id: r, match: { host: api.github.com, effect: read }, decide: "
        "allow }\n  - { id: w, match: { host: api.github.com, effect: write }, decide: deny }\n"};
    static const char *const of_query[] = {"r", "", "r"}, *const of_mutation[] = {"", "w", "w"};
    struct kit k;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        if (!kit_load(&k, yaml[i], NULL))
            fail_msg("%s: %s", k.e.text, k.problems[0]);
        assert_true(kit_judge(&k, "sb", "POST", A, JSON, "", 0, false)->need_body);
        assert_string_equal(k.ambiguity.word, "body-cut");
        const struct decision *d = kit_judge(&k, "sb", "POST", A, JSON, Q("{a}"), strlen(Q("{a}")), true);
        assert_true(span_eq(d->rule.id, span_str(of_query[i])));
        d = kit_judge(&k, "sb", "POST", A, JSON, Q("mutation{a}"), strlen(Q("mutation{a}")), true);
        assert_true(span_eq(d->rule.id, span_str(of_mutation[i])));
        kit_free(&k);
    }
    kit_covered("B18 B49");
}

static void what_is_no_condition_is_refused(void **state)
{
    static const struct {
        const char *conds, *code, *words;
    } bad[] = {
        {"graphql: {}", "P015", "asks nothing"},
        {"graphql: { type: Query }", "P013", "no type"},
        {"graphql: { type: query, name: x }", "P006", "name"},
        {"graphql: { fields: \"a-b\" }", "P013", "no name"},
        {"graphql: { fields: \"1a\" }", "P013", "no name"},
        {"graphql: { arguments: [] }", "P008", "asks nothing"},
        {"graphql: { arguments: [{ pointer: /a, exists: true }] }", "P013", "argument"},
        {"graphql: { arguments: [{ pointer: a/b, exists: true }] }", "P013", "pointer"},
        {"graphql: { arguments: [{ pointer: /*/b, exists: true }] }", "P013", "whole names"},
        {"graphql: { arguments: [{ pointer: /a*/b, exists: true }] }", "P013", "whole names"},
        {"graphql: { arguments: [{ pointer: /a/b*, exists: true }] }", "P013", "whole names"},
        {"graphql: { arguments: [{ pointer: //b, exists: true }] }", "P013", "whole names"},
        {"graphql: { fields: [a, \"c*\"], arguments: [{ pointer: /b/x, exists: true }] }", "P015", "add it there"},
        {"graphql: { arguments: [{ pointer: /a/b }] }", "P015", "one thing"},
        {"graphql: { persisted: abc, type: query }", "P015", "stands alone"},
        {"graphql: { type: query }, json: [{ pointer: /a, exists: true }]", "P015", "two rules"},
        {"graphql: { type: query }, form: [{ field: a, exists: true }]", "P015", "two rules"},
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

/* Where writes are let through by no rule, none passes in another spelling of the path, by whatever method. */
static void no_spelling_of_the_path_makes_a_read(void **state)
{
    static const char yaml[] =
        "version: 1\npacks: [git@1, graphql@1]\n"
        "rules:\n  - { id: read, match: { host: api.github.com, effect: read }, decide: allow }\n";
    static const char *const paths[] = {
        "/graphql",       "/graphql/",      "/graphql//",   "//graphql",     "/graphql;x=1",  "/graphql/;x=1",
        "/graphql;",      "/;/graphql",     "/graphql%3Bx", "/graphql%20",   "/graphql/%20",  "/graphql+",
        "/graphql.",      "/graphql%2E",    "/./graphql",   "/x/../graphql", "/%67raphql",    "/GraphQL",
        "/GRAPHQL/",      "/gr%61phql/",    "/api/graphql", "/api/graphql/", "/api//graphql", "/api/./graphql",
        "/api%2Fgraphql", "/api%5Cgraphql", "/graphql%2F",  "/Api/GraphQL/", "/graphql/%2e",  "/graphql%00",
    };
    static const char *const ways[] = {"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"};
    struct kit k;
    char url[200];
    (void)state;
    if (!kit_load(&k, yaml, NULL))
        fail_msg("%s", k.problems[0]);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
            const char *body = w > 2 ? Q("mutation{a}") : NULL;
            snprintf(url, sizeof(url), "https://api.github.com%s%s", paths[i], body ? "" : "?query=mutation%7Ba%7D");
            const struct decision *d =
                kit_judge(&k, "sb", ways[w], url, body ? JSON : NULL, body, body ? strlen(body) : 0, true);
            if (d->verdict != VERDICT_DENY || d->need_body)
                fail_msg("%s %s: verdict %d, %.*s", ways[w], url, d->verdict, SPAN_FMT(d->op));
            arena_free(&k.a);
            arena_init(&k.a, 1 << 20);
        }
    /* A pack that knows the path without its slash alone: a write, by whatever the other pack calls it. */
    assert_int_equal(kit_get(&k, "https://api.github.com/acme/app.git/git-upload-archive/")->verdict, VERDICT_DENY);
    assert_int_equal(kit_get(&k, "https://api.github.com/acme/app/pulls/")->verdict, VERDICT_ALLOW);
    snprintf(url, sizeof(url), A "%%3Fquery=mutation%%7Ba%%7D");
    assert_int_equal(kit_judge(&k, "sb", "GET", url, NULL, NULL, 0, true)->verdict, VERDICT_DENY);
    kit_covered("B6 B24 B27");
    kit_free(&k);
}

/* The name of what reads is given to no write, in a pack that has no other name for it either. */
static void a_pack_without_writes_names_none_a_read(void **state)
{
    static const char yaml[] = "version: 1\npacks: [own@1]\nrules:\n"
                               "  - { id: look, match: { host: own.test, op: own.query }, decide: allow }\n";
    static const struct kit_row rows[] = {
        {"POST", "https://own.test/v1", JSON, Q("{a}"), ALLOWED("look")},
        {"POST", "https://own.test/v1", JSON, Q("mutation{deleteAll}"), NO_RULE},
        {"POST", "https://own.test/v1", JSON, Q("mutation{"), NO_RULE},
        {"POST", "https://own.test/v1", "Content-Type: text/plain\n", Q("{a}"), NO_RULE},
    };
    struct kit k;
    (void)state;
    kit_own_pack = "pack: own@1\nabout: one address\nhosts: [own.test]\noperations:\n"
                   "  - { op: own.query, effect: read, method: POST, path: /v1, body: graphql }\n";
    if (!kit_load(&k, yaml, NULL))
        fail_msg("%s: %s", k.e.text, k.problems[0]);
    TRY(&k, rows);
    const char *body = Q("mutation{deleteAll}");
    const struct decision *d = kit_judge(&k, "sb", "POST", "https://own.test/v1", JSON, body, strlen(body), true);
    assert_true(span_eq(d->op, SPAN("http.post")) && d->effect == EFFECT_WRITE && d->nfacts == 1);
    kit_free(&k);
}

/* ---- limits ---- */

static const char limited[] =
    "version: 1\npacks: [graphql@1]\nrules:\n"
    "  - { id: say, match: { host: api.github.com, effect: [read, write] }, decide: allow, limits: { requests: 20/1d "
    "} }\n"
    "  - { id: plain, match: { host: p.test }, decide: allow, limits: { requests: 20/1d } }\n"
    "  - { id: named, match: { host: g.test, graphql: { persisted: [abc, def] } }, decide: allow, limits: { "
    "requests: "
    "20/1d } }\n"
    "  - { id: some, match: { host: s.test, graphql: { fields: \"*\" } }, decide: allow, limits: { requests: 20/1d } "
    "}\n";

/* 500 mutations in one request are 500, and what cannot be counted is past every limit. */
static void a_limit_counts_what_is_done(void **state)
{
    static const struct {
        const char *method, *url, *body;
        uint64_t amount; /* 0: nobody can tell */
    } rows[] = {
        {"POST", A, Q("{a b c}"), 1},
        {"POST", A, "[" Q("{a b}") "," Q("{c}") "]", 2},
        {"POST", A, Q("mutation{a}"), 1},
        {"POST", A, Q("mutation{x:a(n:1) y:a(n:2) ...F} fragment F on M{a ...on M{b}}"), 4},
        {"POST", A, "[" Q("mutation{a b}") "," Q("{c d}") "," Q("subscription{e}") "]", 4},
        {"POST", A, "{\"query\":\"query A{a} mutation B{b c}\",\"operationName\":\"A\"}", 3},
        {"POST", A, Q("mutation{a"), 0},
        {"POST", A, "{\"query\":\"mutation{a}\",\"x\":1}", 0},
        {"POST", A, "{\"id\":\"abc\"}", 0},
        {"POST", A, "[" Q("{a}") ",{\"id\":\"abc\"}]", 0},
        {"GET", A "?query=mutation%7Ba%20b%7D", NULL, 2},
        {"GET", A "?x=1", NULL, 1}, /* nothing is asked for */
        {"GET", A "?hash=1", NULL, 0},
        {"GET", "https://api.github.com/user", NULL, 1},
        {"POST", "https://p.test/", Q("mutation{a b}"), 1}, /* nobody looks into it */
        {"POST", "https://g.test/", "{\"id\":\"abc\"}", 1},
        {"POST", "https://g.test/", "[{\"id\":\"abc\"},{\"id\":\"def\"}]", 2},
        {"POST", "https://s.test/", Q("mutation{a b}"), 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct kit k;
        bool past[LIMITS_MAX] = {false};
        if (!kit_load(&k, limited, NULL))
            fail_msg("%s", k.problems[0]);
        const char *body = rows[i].body;
        (void)kit_judge(&k, "sb", rows[i].method, rows[i].url, body ? JSON : NULL, body, body ? strlen(body) : 0,
                        true);
        const struct limit *l = k.d.limits;
        if (k.d.verdict != VERDICT_ALLOW || k.d.nlimits != 1 || l->uncountable != (rows[i].amount == 0) ||
            (!l->uncountable && l->amount != rows[i].amount))
            fail_msg("%s %s: verdict %d, %zu limits, the first takes %llu", rows[i].url, body ? body : "",
                     k.d.verdict, k.d.nlimits, k.d.nlimits ? (unsigned long long)l->amount : 0);
        struct request r = {
            .scheme = SPAN("https"), .method = SPAN("POST"), .host = SPAN("x.test"), .path = SPAN("/")};
        policy_past_limits(k.p, &r, past, 0, &k.a, &k.d);
        assert_int_equal(k.d.verdict, rows[i].amount ? VERDICT_ALLOW : VERDICT_DENY);
        kit_free(&k);
    }
}

/* ---- what a person is shown ---- */

static void every_field_is_shown(void **state)
{
    static const char yaml[] =
        "version: 1\npacks: [graphql@1]\nrules:\n  - { id: write, match: { op: graphql.mutation "
        "}, decide: hold }\n";
    struct kit k;
    char body[20000];
    size_t n = 0, seen = 0;
    (void)state;
    if (!kit_load(&k, yaml, NULL))
        fail_msg("%s", k.problems[0]);
    n = (size_t)snprintf(body, sizeof(body), "{\"operationName\":\"M\",\"query\":\"mutation M{");
    for (unsigned i = 0; i < 300; i++)
        n += (size_t)snprintf(body + n, sizeof(body) - n, "harmlessField%u ", i);
    for (unsigned i = 0; i < 50; i++)
        n += (size_t)snprintf(body + n, sizeof(body) - n, "a%u:again ", i);
    n += (size_t)snprintf(body + n, sizeof(body) - n, "deleteAll} query Q{c}\"}");
    const struct decision *d = kit_judge(&k, "sb", "POST", A, JSON, body, n, true);
    assert_int_equal(d->verdict, VERDICT_HOLD);
    for (size_t i = 0; i < d->nfacts; i++) {
        struct span value = d->facts[i].value;
        assert_true(value.n < 700);
        seen += span_find(value, SPAN("deleteAll")) < value.n;
        seen += span_find(value, SPAN("harmlessField299,")) < value.n;
        seen += span_find(value, SPAN("again (50 times)")) < value.n;
        seen += span_eq(value, SPAN("query Q: c"));
    }
    assert_int_equal(seen, 4);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pack_tells_reads_from_writes),
        cmocka_unit_test(nothing_is_decided_before_the_body),
        cmocka_unit_test(no_spelling_of_the_path_makes_a_read),
        cmocka_unit_test(what_is_no_condition_is_refused),
        cmocka_unit_test(a_pack_without_writes_names_none_a_read),
        cmocka_unit_test(a_limit_counts_what_is_done),
        cmocka_unit_test(every_field_is_shown),
    };
    return cmocka_run_group_tests_name("policy graphql pack", tests, NULL, NULL);
}
