/* Decisions where rules meet: credentials, holds, queries, packs, refs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy_kit.h"

static const char second[] =
    "version: 1\n"
    "packs: [git@1, { pack: npm@1, hosts: [\"npm.test:4873\"] }, pypi@1]\n"
    "credentials:\n"
    "  a: { source: { env: A }, inject: { basic: true }, only: [{ host: a.test, path: \"/in/**\" }] }\n"
    "  b: { source: { env: B }, inject: { basic: true }, only: [{ host: a.test }, { host: w.test }, { host: w.test, "
    "port: 8443 }] }\n"
    "approvers: { m: { operators: [x] }, o: { operators: [z] } }\n"
    "rules:\n"
    "  - { id: one, match: { host: a.test, path: \"/in/**\", method: GET }, decide: allow, use: a }\n"
    "  - { id: two, match: { host: a.test, path: \"/in/both/**\", method: GET }, decide: allow, use: b }\n"
    "  - { id: plain, match: { host: a.test, method: GET }, decide: allow }\n"
    "  - { id: held, match: { host: a.test, path: \"/**\", effect: write }, decide: hold, use: a, approve: { by: m, "
    "within: 2h } }\n"
    "  - { id: held-more, match: { host: a.test, path: /in/m, effect: write }, decide: hold, approve: { within: 1h, "
    "reason: required } }\n"
    "  - { id: held-other, match: { host: a.test, path: /in/o, effect: write }, decide: hold, approve: { by: o } }\n"
    "  - { id: list, match: { host: q.test, query: { action: [list, \"get*\"] }, header: { X-Mode: safe } }, decide: "
    "allow }\n"
    "  - { id: no-drop, match: { host: q.test, query: { action: drop } }, decide: deny }\n"
    "  - { id: npm, match: { resource: \"npm:@acme/*\", op: [npm.metadata, npm.tarball] }, decide: allow }\n"
    "  - { id: topic, match: { host: g.test, op: git.push, git: { refs: [\"refs/heads/t/*\"], force: false, delete: "
    "false } }, "
    "decide: allow }\n"
    "  - { id: forced, match: { host: g.test, op: git.push, git: { refs: \"refs/heads/t/*\", force: true, delete: "
    "false } }, decide: hold "
    "}\n"
    "  - { id: wide, match: { host: w.test, port: [443, 8443] }, decide: allow, use: b }\n"
    "  - { id: wide-hold, match: { host: w.test, path: /keep }, decide: hold, approve: { by: o, reason: required } "
    "}\n"
    "  - { id: wide-deny, match: { host: w.test, path: /drop }, decide: deny }\n"
    "  - { id: but, match: { host: e.test }, except: [{ path: \"/no/**\" }, { path: /a/b/c/d/e }], decide: allow }\n"
    "  - { id: but-deny, match: { host: e.test, path: \"/d/**\" }, except: [{ path: /d/ok }], decide: deny }\n"
    "  - { id: deep, match: { host: deep.test, path: [/a/b/c/d/e, /a/b/c/x] }, decide: allow }\n"
    "  - { id: h1, match: { host: h.test, op: git.push, git: { refs: \"refs/heads/a\" } }, decide: hold, approve: { "
    "by: m, within: 2h, "
    "inline_wait: 5s } }\n"
    "  - { id: h2, match: { host: h.test, op: git.push, git: { refs: \"refs/heads/b\" } }, decide: hold, approve: { "
    "within: 1h, "
    "inline_wait: 9s, reason: required } }\n"
    "  - { id: h3, match: { host: h.test, op: git.push, git: { refs: \"refs/heads/c\" } }, decide: hold, approve: { "
    "by: o } }\n"
    "  - { id: sends, match: { host: g.test, git: { service: receive-pack, refs: \"refs/heads/main\" } }, decide: "
    "deny }\n";

static void load_second(struct kit *k)
{
    if (!kit_load(k, second, NULL))
        fail_msg("%s", k->e.text);
}

/* B50: what brings no credential here is refused, not sent without one. */
static void test_credentials(void **state)
{
    struct kit k;
    (void)state;
    load_second(&k);
    kit_expect(kit_get(&k, "https://a.test/in/x"), VERDICT_ALLOW, "rule", "one");
    assert_int_equal(k.d.credential, 0);
    kit_expect(kit_get(&k, "https://a.test/out"), VERDICT_ALLOW, "rule", "plain");
    assert_int_equal(k.d.credential, -1);
    kit_expect(kit_get(&k, "https://a.test/in/both/x"), VERDICT_DENY, "ambiguous-credential", "one");
    assert_int_equal(k.d.credential, -1);
    kit_expect(kit_judge(&k, "s", "POST", "https://a.test/out", NULL, "", 0, true), VERDICT_DENY,
               "credential-not-for-here", "held");
    assert_int_equal(k.d.credential, -1);
    kit_covered("B50");
    kit_free(&k);
}

/* Several holds: all that any of them asks; approvers that exclude each other refuse. */
static void test_holds(void **state)
{
    struct kit k;
    (void)state;
    load_second(&k);
    const struct decision *d = kit_judge(&k, "s", "POST", "https://a.test/in/m", NULL, "", 0, true);
    kit_expect(d, VERDICT_HOLD, "rule", "held");
    assert_true(span_eq(d->approve_by, SPAN("m")) && d->reason_required && d->within_ms == 3600000 &&
                d->credential == 0);
    kit_expect(kit_judge(&k, "s", "POST", "https://a.test/in/o", NULL, "", 0, true), VERDICT_DENY,
               "ambiguous-approvers", "held");
    kit_free(&k);
}

/* B12: every occurrence counts, whatever separates them. B40: a GET nobody named is denied. */
static void test_query(void **state)
{
    static const char safe[] = "X-Mode: safe";
    struct kit k;
    (void)state;
    load_second(&k);
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list", safe, NULL, 0, true), VERDICT_ALLOW, "rule",
               "list");
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?a=b&action=getAll", safe, NULL, 0, true), VERDICT_ALLOW,
               "rule", "list");
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list", NULL, NULL, 0, true), VERDICT_DENY, "no-rule",
               "");
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list", "X-Mode: safe\nx-mode: not", NULL, 0, true),
               VERDICT_DENY, "no-rule", "");
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list&action=put", safe, NULL, 0, true), VERDICT_DENY,
               "no-rule", "");
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list;action=put", safe, NULL, 0, true), VERDICT_DENY,
               "no-rule", "");
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list&Action=DROP", safe, NULL, 0, true),
               VERDICT_DENY, "rule", "no-drop");
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list&a=1;action=%64rop", safe, NULL, 0, true),
               VERDICT_DENY, "rule", "no-drop");
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?%61ction=drop", safe, NULL, 0, true), VERDICT_DENY, "rule",
               "no-drop");
    static const char *const spellings[] = {"Action=put", "action[]=put", "%5Baction%5D=put", "+action=put",
                                            "action.=put"};
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        char url[100];
        snprintf(url, sizeof(url), "https://q.test/?action=list&%s", spellings[i]);
        kit_expect(kit_judge(&k, "s", "GET", url, safe, NULL, 0, true), VERDICT_DENY, "no-rule", "");
    }
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list&action[]=drop", safe, NULL, 0, true),
               VERDICT_DENY, "rule", "no-drop");
    kit_expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list&actions=1&re.action=2", safe, NULL, 0, true),
               VERDICT_ALLOW, "rule", "list");
    kit_expect(kit_get(&k, "https://webhook.test/?text=hi"), VERDICT_DENY, "host-not-named", "");
    kit_covered("B12 B40");
    kit_free(&k);
}

/* A hold fits other spellings too, with all it asks, where an allow would let them pass; not other places.
 * A deny that names no port is about all of them. */
static void test_spelt_holds(void **state)
{
    struct kit k;
    (void)state;
    load_second(&k);
    kit_expect(kit_get(&k, "https://w.test/keep"), VERDICT_HOLD, "rule", "wide-hold");
    kit_expect(kit_get(&k, "https://w.test/KEEP"), VERDICT_HOLD, "rule", "wide-hold");
    assert_true(span_eq(k.d.approve_by, SPAN("o")) && k.d.reason_required && k.d.credential == -1);
    kit_expect(kit_get(&k, "https://w.test/keep/"), VERDICT_HOLD, "rule", "wide-hold");
    kit_expect(kit_get(&k, "https://w.test:8443/keep"), VERDICT_ALLOW, "rule", "wide");
    kit_expect(kit_get(&k, "https://w.test:8443/Drop"), VERDICT_DENY, "rule", "wide-deny");
    kit_expect(kit_get(&k, "https://w.test/other"), VERDICT_ALLOW, "rule", "wide");
    assert_int_equal(k.d.credential, 1);
    kit_covered("B8");
    kit_free(&k);
}

/* Who must agree to the other spelling must agree where another hold has it, too. */
static void test_spelt_holds_together(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "approvers: { dev: { operators: [a] }, sec: { operators: [b] } }\n"
        "rules:\n"
        "  - { id: all, match: { host: [h.test, i.test] }, except: [{ path: /admin }], decide: hold, approve: { by: "
        "dev } }\n"
        "  - { id: few, match: { host: h.test, path: /admin }, decide: hold, approve: { by: sec } }\n"
        "  - { id: why, match: { host: i.test, path: [/admin, /why] }, decide: hold, approve: { by: dev, reason: "
        "required, within: 5m } }\n";
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, yaml, NULL));
    kit_expect(kit_get(&k, "https://h.test/x"), VERDICT_HOLD, "rule", "all");
    kit_expect(kit_get(&k, "https://h.test/admin"), VERDICT_HOLD, "rule", "few");
    kit_expect(kit_get(&k, "https://h.test/Admin"), VERDICT_DENY, "ambiguous-approvers", "all");
    kit_expect(kit_get(&k, "https://h.test/admin/"), VERDICT_DENY, "ambiguous-approvers", "all");
    kit_expect(kit_get(&k, "https://i.test/WHY"), VERDICT_HOLD, "rule", "all");
    assert_true(k.d.reason_required && k.d.within_ms == 300000 && span_eq(k.d.approve_by, SPAN("dev")));
    kit_expect(kit_get(&k, "https://i.test/x"), VERDICT_HOLD, "rule", "all");
    assert_true(!k.d.reason_required && k.d.within_ms == 0);
    kit_covered("B6 B8");
    kit_free(&k);
}

static void test_npm(void **state)
{
    struct kit k;
    (void)state;
    load_second(&k);
    kit_expect(kit_get(&k, "https://npm.test:4873/@acme%2Fapp"), VERDICT_ALLOW, "rule", "npm");
    assert_int_equal(k.d.dialect, DIALECT_NPM);
    assert_true(span_eq(k.d.resource, SPAN("npm:@acme/app")));
    kit_expect(kit_get(&k, "https://npm.test:4873/@acme/app"), VERDICT_ALLOW, "rule", "npm");
    kit_expect(kit_get(&k, "https://npm.test:4873/@acme%2F..%2F@evil%2Fapp"), VERDICT_DENY, "bad-path", "");
    kit_expect(kit_get(&k, "https://npm.test:4873/@evil%2Fapp"), VERDICT_DENY, "no-rule", "");
    kit_expect(kit_get(&k, "https://npm.test/@acme%2Fapp"), VERDICT_DENY, "bad-path", "");
    kit_expect(kit_get(&k, "https://a.test/in%2Fx"), VERDICT_DENY, "bad-path", "");
    kit_expect(kit_judge(&k, "s", "PUT", "https://npm.test:4873/@acme%2Fapp", NULL, "{}", 2, true), VERDICT_DENY,
               "no-rule", "");
    assert_true(span_eq(k.d.op, SPAN("npm.publish")) && span_eq(k.d.summary, SPAN("Publish @acme/app")));
    kit_expect(kit_get(&k, "https://pypi.org/simple/x/"), VERDICT_DENY, "host-not-named", "");
    assert_int_equal(k.d.dialect, DIALECT_PIP);
    kit_free(&k);
}

/* Force is what cannot be ruled out: an update counts as forced, a creation does not. */
static void test_git_matcher(void **state)
{
    const char *create[] = {ZERO40 " " BBBB40 " refs/heads/t/x", NULL},
               *update[] = {AAAA40 " " BBBB40 " refs/heads/t/x", NULL};
    const char *delete[] = {AAAA40 " " ZERO40 " refs/heads/t/x", NULL},
               *deep[] = {ZERO40 " " BBBB40 " refs/heads/t/x/y", NULL};
    const char *shout[] = {ZERO40 " " BBBB40 " refs/heads/MAIN", NULL};
    struct kit k;
    char body[1000];
    (void)state;
    load_second(&k);
    kit_expect(kit_judge_push(&k, "https://g.test/r", create), VERDICT_ALLOW, "rule", "topic");
    kit_expect(kit_judge_push(&k, "https://g.test/r", update), VERDICT_HOLD, "rule", "forced");
    size_t n = kit_push(body, sizeof(body), "report-status delete-refs", delete, "");
    kit_expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
               "no-rule", "");
    kit_expect(kit_judge_push(&k, "https://g.test/r", deep), VERDICT_DENY, "no-rule", "");
    kit_expect(kit_judge_push(&k, "https://g.test/r", shout), VERDICT_DENY, "rule",
               "sends"); /* rules that deny fit any case */
    /* B19: a deny that cannot be evaluated is no "did not fit". */
    kit_expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, "0008junk0000PACK", 16, true),
               VERDICT_DENY, "unclassified", "");
    kit_expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack",
                         RP_TYPE "\nX-HTTP-Method-Override: GET", "0000", 4, true),
               VERDICT_DENY, "no-rule", "");
    kit_covered("B19");
    kit_free(&k);
}

/* A request that may mean another method to the server gets the stricter of what stands there and what may be meant:
 * a deny or hold of any method or operation fits, an allow of one method does not (B1, B2). */
static void test_override(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "packs: [npm@1]\n"
        "rules:\n"
        "  - { id: n-any, match: { host: registry.npmjs.org }, decide: allow }\n"
        "  - { id: n-never, match: { op: npm.unpublish, resource: \"npm:@x/y\" }, decide: deny }\n"
        "  - { id: n-held, match: { op: npm.unpublish, resource: \"npm:@z/*\" }, decide: hold }\n"
        "  - { id: a-post, match: { host: a.test, method: POST }, decide: allow }\n"
        "  - { id: a-never, match: { host: a.test, path: /kept, effect: delete }, decide: deny }\n"
        "  - { id: b-all, match: { host: b.test, effect: [read, write, delete] }, decide: allow }\n"
        "  - { id: b-never, match: { host: b.test, method: DELETE, path: /kept }, decide: deny }\n"
        "  - { id: b-held, match: { host: b.test, path: /held, method: PUT }, decide: hold }\n"
        "  - { id: c-said, match: { host: c.test, op: [http.post, http.override], method: POST }, decide: allow }\n"
        "  - { id: d-none, match: { host: d.test, effect: delete }, decide: hold }\n";
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, yaml, NULL));
    static const struct {
        const char *method, *url, *rule;
        enum verdict v;
        const char *code;
    } rows[] = {
        {"POST", "https://a.test/x", "a-post", VERDICT_ALLOW, "rule"},
        /* a GET there is of nothing that has a name; a DELETE is of a package */
        {"GET", "https://registry.npmjs.org/@x/y/-rev/1", "n-any", VERDICT_ALLOW, "rule"},
        {"GET", "https://registry.npmjs.org/@x/y/-rev/1?_method=DELETE", "n-never", VERDICT_DENY, "rule"},
        {"POST", "https://a.test/x?_method=DELETE", "", VERDICT_DENY, "no-rule"},
        {"POST", "https://a.test/kept?_method=DELETE", "a-never", VERDICT_DENY, "rule"},
        {"POST", "https://b.test/x?_method=PUT", "b-all", VERDICT_ALLOW, "rule"},
        {"POST", "https://b.test/kept?x=1;_method=DELETE", "b-never", VERDICT_DENY, "rule"},
        {"POST", "https://b.test/held", "b-all", VERDICT_ALLOW, "rule"},
        {"POST", "https://b.test/held?a=b&_method=PUT", "b-held", VERDICT_HOLD, "rule"},
        {"POST", "https://c.test/x?_method=DELETE", "c-said", VERDICT_ALLOW, "rule"},
        {"POST", "https://d.test/x?_method=DELETE", "", VERDICT_DENY, "no-rule"}, /* nothing lets the POST through */
        {"DELETE", "https://d.test/x?_method=GET", "d-none", VERDICT_HOLD, "rule"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        kit_expect(kit_judge(&k, "s", rows[i].method, rows[i].url, NULL, NULL, 0, true), rows[i].v, rows[i].code,
                   rows[i].rule);
    assert_int_equal(kit_judge(&k, "s", "GET", "https://b.test/x?_method=GET", NULL, NULL, 0, true)->effect,
                     EFFECT_WRITE);
    kit_covered("B1 B2");
    kit_free(&k);
}

/* An exception takes any spelling from an allow, and from a deny only what is written. */
static void test_except(void **state)
{
    struct kit k;
    (void)state;
    load_second(&k);
    kit_expect(kit_get(&k, "https://e.test/yes"), VERDICT_ALLOW, "rule", "but");
    kit_expect(kit_get(&k, "https://e.test/no/x"), VERDICT_DENY, "no-rule", "");
    kit_expect(kit_get(&k, "https://e.test/NO/x"), VERDICT_DENY, "no-rule", "");
    kit_expect(kit_get(&k, "https://e.test/d/x"), VERDICT_DENY, "rule", "but-deny");
    kit_expect(kit_get(&k, "https://e.test/d/ok"), VERDICT_ALLOW, "rule", "but");
    kit_expect(kit_get(&k, "https://e.test/d/OK"), VERDICT_DENY, "rule", "but-deny");
    kit_expect(kit_get(&k, "https://deep.test/a/b/c/d/e"), VERDICT_ALLOW, "rule", "deep");
    kit_expect(kit_get(&k, "https://deep.test/a/b/c/x"), VERDICT_ALLOW, "rule", "deep");
    kit_expect(kit_get(&k, "https://deep.test/a/b/c"), VERDICT_DENY, "no-rule", "");
    kit_free(&k);
}

/* Rules that ask for refs may fit before the refs are known: then the body is asked for. */
static void test_refs_unknown(void **state)
{
    struct kit k;
    (void)state;
    load_second(&k);
    const struct decision *d = kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, "", 0, false);
    assert_true(d->need_body);
    kit_expect(kit_get(&k, "https://g.test/r/info/refs?service=git-receive-pack"), VERDICT_ALLOW, "rule", "forced");
    kit_expect(kit_get(&k, "https://g.test/r/info/refs?service=git-upload-pack"), VERDICT_DENY, "no-rule", "");
    kit_free(&k);
}

/* A push of refs that different rules hold asks all that any of them asks. */
static void test_held_together(void **state)
{
    const char *ab[] = {AAAA40 " " BBBB40 " refs/heads/a", AAAA40 " " BBBB40 " refs/heads/b", NULL};
    const char *ba[] = {ab[1], ab[0], NULL}, *ac[] = {ab[0], AAAA40 " " BBBB40 " refs/heads/c", NULL};
    const char *const *both[] = {ab, ba};
    struct kit k;
    (void)state;
    load_second(&k);
    for (size_t i = 0; i < 2; i++) {
        const struct decision *d = kit_judge_push(&k, "https://h.test/r", both[i]);
        kit_expect(d, VERDICT_HOLD, "rule", "h1");
        assert_true(span_eq(d->approve_by, SPAN("m")) && d->reason_required);
        assert_int_equal(d->within_ms, 3600000);
        assert_int_equal(d->inline_wait_ms, 5000);
    }
    kit_expect(kit_judge_push(&k, "https://h.test/r", ac), VERDICT_DENY, "ambiguous-approvers", "h1");
    kit_free(&k);
}

/* Push options change what a push does: they belong to what a retry must repeat. */
static void test_push_options(void **state)
{
    const char *refs[] = {ZERO40 " " BBBB40 " refs/heads/t/x", NULL};
    struct kit k;
    char body[1000];
    (void)state;
    load_second(&k);
    size_t n = kit_push(body, sizeof(body), "report-status push-options", refs, "000ci.skip0000PACK");
    kit_expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
               "unclassified", "");
    n = kit_push(body, sizeof(body), "report-status push-options", refs, "000bci.skip0000PACK");
    kit_expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, body, n, true), VERDICT_ALLOW,
               "rule", "topic");
    assert_true(span_ends(k.d.join_body, SPAN("ci.skip0000")));
    kit_free(&k);
}

/* PUSH_REFS_MAX: taken at it, refused one past it. */
static void test_many_refs(void **state)
{
    enum { LINE = 4 + 40 + 1 + 40 + 1 + 17 };
    struct kit k;
    char *body = malloc(1001 * LINE + 100);
    (void)state;
    load_second(&k);
    for (unsigned n = 1000; n <= 1001; n++) {
        size_t at = 0;
        for (unsigned i = 0; i < n; i++)
            at += (size_t)sprintf(body + at, "%04x" ZERO40 " " BBBB40 " refs/heads/t/%04u", LINE, i);
        at += (size_t)sprintf(body + at, "0000PACK");
        const struct decision *d =
            kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, body, at, true);
        kit_expect(d, n == 1000 ? VERDICT_ALLOW : VERDICT_DENY, n == 1000 ? "rule" : "unclassified",
                   n == 1000 ? "topic" : "");
        arena_free(&k.a);
    }
    free(body);
    kit_free(&k);
}

/* No memory is a denial, at whatever allocation it ends. */
static void test_no_memory(void **state)
{
    struct kit k;
    (void)state;
    load_second(&k);
    for (size_t max = 0; max < 600; max += 8) {
        arena_free(&k.a);
        arena_init(&k.a, max);
        const char *refs[] = {ZERO40 " " BBBB40 " refs/heads/main", NULL};
        assert_int_equal(kit_judge_push(&k, "https://g.test/r", refs)->verdict, VERDICT_DENY);
        assert_int_equal(kit_get(&k, "https://a.test/x;y//z?a=%41")->verdict == VERDICT_HOLD, false);
    }
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_credentials),
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_spelt_holds),
        cmocka_unit_test(test_spelt_holds_together),
        cmocka_unit_test(test_npm),
        cmocka_unit_test(test_git_matcher),
        cmocka_unit_test(test_push_options),
        cmocka_unit_test(test_except),
        cmocka_unit_test(test_override),
        cmocka_unit_test(test_held_together),
        cmocka_unit_test(test_refs_unknown),
        cmocka_unit_test(test_many_refs),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
