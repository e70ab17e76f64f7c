/* The decision, on policies as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy_kit.h"

static const char demo[] =
    "version: 1\n"
    "name: demo\n"
    "packs: [git@1, npm@1]\n"
    "scopes:\n"
    "  ci: { sandboxes: [\"ci-*\"] }\n"
    "  lab: { labels: { team: research } }\n"
    "credentials:\n"
    "  git:\n"
    "    source: { store: git }\n"
    "    inject: { basic: { user: x-access-token } }\n"
    "    only: [{ host: git.demo.test, port: 8443, path: \"/demo/**\" }, { host: github.com }]\n"
    "  other:\n"
    "    source: { env: OTHER }\n"
    "    inject: { header: Authorization, format: \"Bearer {}\" }\n"
    "    only: [{ host: api.demo.test }]\n"
    "approvers:\n"
    "  maintainers: { operators: [alice] }\n"
    "rules:\n"
    "  - id: fetch\n"
    "    match: { host: git.demo.test, port: 8443, op: \"git.fetch.**\", effect: read }\n"
    "    decide: allow\n"
    "    use: git\n"
    "  - id: push\n"
    "    match: { host: git.demo.test, port: 8443, op: git.push }\n"
    "    decide: hold\n"
    "    use: git\n"
    "    approve: { by: maintainers, within: 15m, reason: required, inline_wait: 20s }\n"
    "  - id: push-topic\n"
    "    match: { host: git.demo.test, port: 8443, op: git.push, git: { refs: [\"refs/heads/agent/*\"], force: false "
    "} }\n"
    "    decide: allow\n"
    "    use: git\n"
    "  - id: no-release\n"
    "    match: { op: git.push, git: { refs: [\"refs/heads/release/**\"] } }\n"
    "    decide: deny\n"
    "    say: Releases are made by people.\n"
    "  - id: gh\n"
    "    scope: ci\n"
    "    match: { resource: \"github:acme/*\", op: git.push }\n"
    "    decide: hold\n"
    "    use: git\n"
    "  - id: api-read\n"
    "    match: { host: api.demo.test, method: GET, path: \"/v1/**\" }\n"
    "    decide: allow\n"
    "    use: other\n"
    "  - id: api-no-admin\n"
    "    match: { host: api.demo.test, path: \"/v1/admin/**\" }\n"
    "    decide: deny\n"
    "  - id: api-write\n"
    "    match: { host: api.demo.test, effect: [write, delete], path: \"/v1/**\" }\n"
    "    except: [{ path: /v1/never }]\n"
    "    decide: hold\n";

static struct kit kit;

static int setup(void **state)
{
    (void)state;
    if (kit_load(&kit, demo, NULL))
        return 0;
    for (size_t i = 0; i < kit.nproblems; i++)
        fprintf(stderr, "%s\n", kit.problems[i]);
    return -1;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(&kit);
    return 0;
}

/* Only reached when the test's assertions held. */
static void covered(const char *ids)
{
    for (struct span rest = span_str(ids); rest.n;) {
        struct span id = span_first(rest, span_index(rest, ' '));
        printf("ok %.*s policy\n", SPAN_FMT(id));
        rest = span_from(rest, id.n + 1);
    }
}

static void expect(const struct decision *d, enum verdict v, const char *code, const char *rule)
{
    char got[200], want[200];
    snprintf(got, sizeof(got), "%s%s %s %.*s", verdict_name(d->verdict), d->need_body ? "?" : "", d->code,
             SPAN_FMT(d->rule.id));
    snprintf(want, sizeof(want), "%s %s %s", verdict_name(v), code, rule);
    assert_string_equal(got, want);
}

#define GIT     "https://git.demo.test:8443/demo/app.git"
#define RP_TYPE "Content-Type: application/x-git-receive-pack-request"

static const struct decision *push(struct kit *k, const char *base, const char *const *commands)
{
    static char body[8192], url[300];
    size_t n = kit_push(body, sizeof(body), "report-status-v2 side-band-64k agent=git/2.39.5", commands, "PACKxxxx");
    snprintf(url, sizeof(url), "%s/git-receive-pack", base);
    return kit_judge(k, "ci-1", "POST", url, RP_TYPE, body, n, true);
}

static void test_rest(void **state)
{
    (void)state;
    const struct decision *d = kit_get(&kit, "https://api.demo.test/v1/things");
    expect(d, VERDICT_ALLOW, "rule", "api-read");
    assert_int_equal(d->credential, 1);
    assert_int_equal(d->effect, EFFECT_READ);
    expect(kit_get(&kit, "https://api.demo.test/v1/admin/users"), VERDICT_DENY, "rule", "api-no-admin");
    expect(kit_get(&kit, "https://api.demo.test/v2"), VERDICT_DENY, "no-rule", "");
    expect(kit_get(&kit, "https://api.demo.test:444/v1/things"), VERDICT_DENY, "host-not-named", "");
    expect(kit_get(&kit, "https://evil.test/"), VERDICT_DENY, "host-not-named", "");
    expect(kit_judge(&kit, "ci-1", "POST", "https://api.demo.test/v1/things", NULL, "x", 1, false), VERDICT_HOLD,
           "rule", "api-write");
    expect(kit_judge(&kit, "ci-1", "POST", "https://api.demo.test/v1/never", NULL, "x", 1, false), VERDICT_DENY,
           "no-rule", "");
    expect(kit_judge(&kit, "ci-1", "TRACE", "https://api.demo.test/v1/never", NULL, NULL, 0, true), VERDICT_DENY,
           "bad-method", "");
}

/* B41: only bodyless GET, HEAD and OPTIONS are reads without a pack. B44: http:// gets no more. */
static void test_effects(void **state)
{
    (void)state;
    expect(kit_judge(&kit, "ci-1", "GET", "https://api.demo.test/v1/a", NULL, "x", 1, true), VERDICT_HOLD, "rule",
           "api-write");
    expect(kit_judge(&kit, "ci-1", "PROPFIND", "https://api.demo.test/v1/a", NULL, NULL, 0, true), VERDICT_HOLD,
           "rule", "api-write");
    expect(kit_get(&kit, "http://api.demo.test/v1/a"), VERDICT_DENY, "host-not-named", "");
    expect(
        kit_judge(&kit, "ci-1", "GET", "https://api.demo.test/v1/a", "x-http-method-override: DELETE", NULL, 0, true),
        VERDICT_HOLD, "rule", "api-write");
    expect(kit_get(&kit, "https://api.demo.test/v1/a?a=b&_method=DELETE"), VERDICT_HOLD, "rule", "api-write");
    covered("B1 B2 B41 B44");
}

static void test_git_reads(void **state)
{
    (void)state;
    const struct decision *d = kit_get(&kit, GIT "/info/refs?service=git-upload-pack");
    expect(d, VERDICT_ALLOW, "rule", "fetch");
    assert_int_equal(d->credential, 0);
    assert_int_equal(d->dialect, DIALECT_GIT_INFO_REFS);
    assert_true(span_eq(d->resource, SPAN("git:git.demo.test/demo/app")));
    d = kit_judge(&kit, "ci-1", "POST", GIT "/git-upload-pack",
                  "Content-Type: application/x-git-upload-pack-request\nContent-Encoding: gzip", "", 0, false);
    expect(d, VERDICT_ALLOW, "rule", "fetch");
    assert_false(d->need_body);
    expect(kit_get(&kit, "https://git.demo.test:8443/other/x.git/info/refs?service=git-upload-pack"), VERDICT_DENY,
           "credential-not-for-here", "fetch");
}

/* B39 */
static void test_git_lookalikes(void **state)
{
    static const char *const urls[] = {
        GIT "/info/refs",
        GIT "/info/refs?service=git-upload-pack&service=git-receive-pack",
        GIT "/info/refs?service=GIT-UPLOAD-PACK",
        GIT "/info/refs/?service=git-upload-pack",
        GIT "/info/lfs/objects/batch",
        GIT "/git-upload-archive",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        expect(kit_get(&kit, urls[i]), VERDICT_DENY, "no-rule", "");
    expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-upload-pack", NULL, "", 0, false), VERDICT_DENY, "no-rule", "");
    expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-upload-pack/",
                     "Content-Type: application/x-git-upload-pack-request", "", 0, false),
           VERDICT_DENY, "no-rule", "");
    expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack/", RP_TYPE, "0000", 4, true), VERDICT_ALLOW, "rule",
           "push");
    expect(kit_judge(&kit, "ci-1", "POST", GIT "/GIT-RECEIVE-PACK", RP_TYPE, "0000", 4, true), VERDICT_DENY,
           "unclassified", "");
    expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", "Content-Type: text/plain", "0000", 4, true),
           VERDICT_DENY, "unclassified", "");
    expect(
        kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE "\nContent-Encoding: gzip", "0000", 4, true),
        VERDICT_DENY, "unclassified", "");
    expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE "\n" RP_TYPE, "0000", 4, true),
           VERDICT_DENY, "unclassified", "");
}

static void test_push(void **state)
{
    (void)state;
    const char *main_ref[] = {AAAA40 " " BBBB40 " refs/heads/main", NULL};
    const struct decision *d = push(&kit, GIT, main_ref);
    expect(d, VERDICT_HOLD, "rule", "push");
    assert_true(span_eq(d->approve_by, SPAN("maintainers")));
    assert_true(d->reason_required);
    assert_int_equal(d->within_ms, 15 * 60000);
    assert_int_equal(d->inline_wait_ms, 20000);
    assert_int_equal(d->dialect, DIALECT_GIT_RECEIVE_PACK);
    assert_non_null(d->push);
    assert_int_equal(d->push->nrefs, 1);
    assert_true(d->push->report_status_v2 && d->push->side_band);
    assert_true(
        span_eq(d->summary, SPAN("Push 1 ref to git.demo.test/demo/app: refs/heads/main aaaaaaa -> bbbbbbb")));
    assert_true(span_ends(d->join_body, SPAN("0000")));
    assert_int_equal(d->nfacts, 2);

    const char *topic[] = {ZERO40 " " BBBB40 " refs/heads/agent/x", NULL};
    expect(push(&kit, GIT, topic), VERDICT_HOLD, "rule", "push"); /* push holds every ref */
    const char *release[] = {ZERO40 " " BBBB40 " refs/heads/agent/x", AAAA40 " " BBBB40 " refs/heads/release/1",
                             NULL};
    d = push(&kit, GIT, release);
    expect(d, VERDICT_DENY, "rule", "no-release");
    assert_true(span_eq(d->say, SPAN("Releases are made by people.")));
    expect(push(&kit, "https://github.com/acme/app.git", main_ref), VERDICT_HOLD, "rule", "gh");
    assert_true(span_eq(kit.d.resource, SPAN("github:acme/app")));
    expect(push(&kit, "https://github.com/evil/app.git", main_ref), VERDICT_DENY, "no-rule", "");
}

/* Before the body is here: asked for when it could matter, refused at once when nothing could help. */
static void test_push_head(void **state)
{
    (void)state;
    const struct decision *d = kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, "", 0, false);
    assert_true(d->need_body);
    assert_int_equal(d->body_max, 64 << 20);
    assert_int_equal(d->dialect, DIALECT_GIT_RECEIVE_PACK);
    d = kit_judge(&kit, "ci-1", "POST", "https://github.com/evil/x/git-receive-pack", RP_TYPE, "", 0, false);
    assert_false(d->need_body);
    expect(d, VERDICT_DENY, "no-rule", "");
}

/* B39 too: refs and probe of a push are reads, with its credential, only where a push could be. */
static void test_push_refs(void **state)
{
    (void)state;
    const struct decision *d = kit_get(&kit, GIT "/info/refs?service=git-receive-pack");
    expect(d, VERDICT_ALLOW, "rule", "push");
    assert_int_equal(d->credential, 0);
    assert_int_equal(d->effect, EFFECT_READ);
    expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, "0000", 4, true), VERDICT_ALLOW, "rule",
           "push");
    assert_true(span_eq(kit.d.op, SPAN("git.push.probe")));
    expect(kit_get(&kit, "https://github.com/acme/app/info/refs?service=git-receive-pack"), VERDICT_ALLOW, "rule",
           "gh");
    expect(kit_get(&kit, "https://github.com/evil/app/info/refs?service=git-receive-pack"), VERDICT_DENY, "no-rule",
           "");
    expect(kit_judge(&kit, "vm-1", "GET", "https://github.com/acme/app/info/refs?service=git-receive-pack", NULL,
                     NULL, 0, true),
           VERDICT_DENY, "host-not-named", "");
    covered("B39");
}

static void test_push_malformed(void **state)
{
    static const char *const bad[] = {
        "",
        "000",
        "0004",
        "0001",
        "0000x",
        "zzzz",
        "0009done\n0000",
        "0067" AAAA40 " " BBBB40 " refs/heads/main\n0000", /* a length past the end */
    };
    char body[4096];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, bad[i], strlen(bad[i]), true),
               VERDICT_DENY, "unclassified", "");
    static const char *const commands[] = {
        AAAA40 " " BBBB40 " main",
        AAAA40 " " BBBB40 " refs/heads/a..b",
        AAAA40 "  refs/heads/a",
        ZERO40 " " ZERO40 " refs/heads/a",
        AAAA40 " " BBBB40 " refs/heads/a b",
        AAAA40 " " BBBB40 " refs/heads/x.lock",
        AAAA40 "  " BBBB40 " refs/heads/a",
        "push-cert",
        AAAA40 " " BBBB40 " refs/heads/",
    };
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const char *one[] = {commands[i], NULL};
        size_t n = kit_push(body, sizeof(body), "report-status", one, "PACK");
        expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
               "unclassified", "");
    }
    const char *twice[] = {AAAA40 " " BBBB40 " refs/heads/a", AAAA40 " " ZERO40 " refs/heads/a", NULL};
    size_t n = kit_push(body, sizeof(body), "report-status", twice, "PACK");
    expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
           "unclassified", "");
    const char *good[] = {AAAA40 " " BBBB40 " refs/heads/a", NULL};
    n = kit_push(body, sizeof(body), "report-status", good, "JUNK");
    expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
           "unclassified", "");
}

/* B4, B5, B8, B9: a path that hides something is not judged. */
static void test_bad_paths(void **state)
{
    static const char *const paths[] = {
        "/v1/../x", "/v1/./x",    "/..",         "/v1/..;/x",     "/v1/..;x=1/x",   "/v1/%2e%2e/x", "//api/x",
        "/v1/%5Cx", "/v1/a\\b",   "/v1/%00",     "/v1/%0D%0A",    "/v1/%252e%252e", "/v1/%c0%ae",   "/v1/%",
        "/v1/%zz",  "/v1/%u002e", "/v1/%61dmin", "/v1/%ED%A0%80", "/v1/a b",        "/v1/\xc3\xa9", "/v1/;x/../b",
    };
    char url[200];
    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        snprintf(url, sizeof(url), "https://api.demo.test%s", paths[i]);
        expect(kit_get(&kit, url), VERDICT_DENY, "bad-path", "");
    }
    expect(kit_get(&kit, "https://api.demo.test/v1/%C3%A9/%3Dx"), VERDICT_ALLOW, "rule", "api-read");
    covered("B4 B5 B8 B9");
}

/* B6, B7, B8: every reading and, for rules that restrict, every spelling. */
static void test_readings(void **state)
{
    (void)state;
    expect(kit_get(&kit, "https://api.demo.test/v1//admin/x"), VERDICT_DENY, "rule", "api-no-admin");
    expect(kit_get(&kit, "https://api.demo.test/v1;a=b/admin/x"), VERDICT_DENY, "rule", "api-no-admin");
    expect(kit_get(&kit, "https://api.demo.test/v1/;p/admin/x"), VERDICT_DENY, "rule", "api-no-admin");
    expect(kit_get(&kit, "https://api.demo.test/V1/Admin/x"), VERDICT_DENY, "rule", "api-no-admin");
    expect(kit_get(&kit, "https://api.demo.test/v1/admin/"), VERDICT_DENY, "rule", "api-no-admin");
    expect(kit_get(&kit, "https://api.demo.test/v1//things;x=1"), VERDICT_ALLOW, "rule", "api-read");
    expect(kit_get(&kit, "https://api.demo.test//v1/things"), VERDICT_DENY, "bad-path", "");
    expect(kit_get(&kit, "https://api.demo.test/;x/v1/things"), VERDICT_DENY, "bad-path", "");
    covered("B6 B7");
}

static void test_names_host(void **state)
{
    (void)state;
    struct subject ci = {.sandbox = SPAN("ci-1")}, vm = {.sandbox = SPAN("vm")};
    assert_true(policy_names_host(kit.p, &ci, SPAN("https"), SPAN("api.demo.test"), 443));
    assert_false(policy_names_host(kit.p, &ci, SPAN("https"), SPAN("api.demo.test"), 8080));
    assert_true(policy_names_host(kit.p, &ci, SPAN("https"), SPAN("github.com"), 443));
    assert_false(policy_names_host(kit.p, &vm, SPAN("https"), SPAN("github.com"), 443));
    assert_false(policy_names_host(kit.p, &ci, SPAN("http"), SPAN("api.demo.test"), 80));
    assert_true(policy_credential_may_go(kit.p, 0, SPAN("https"), SPAN("git.demo.test"), 8443, SPAN("/demo/x")));
    assert_false(policy_credential_may_go(kit.p, 0, SPAN("https"), SPAN("git.demo.test"), 8443, SPAN("/demo;/../x")));
    assert_false(policy_credential_may_go(kit.p, 0, SPAN("https"), SPAN("git.demo.test"), 443, SPAN("/demo/x")));
    assert_false(policy_credential_may_go(kit.p, 0, SPAN("http"), SPAN("git.demo.test"), 8443, SPAN("/demo/x")));
    assert_false(policy_credential_may_go(kit.p, 7, SPAN("https"), SPAN("git.demo.test"), 8443, SPAN("/demo/x")));
    assert_true(policy_may_approve(kit.p, SPAN("maintainers"), SPAN("alice")));
    assert_false(policy_may_approve(kit.p, SPAN("maintainers"), SPAN("bob")));
    assert_true(policy_may_approve(kit.p, SPAN_NONE, SPAN("bob")));
    assert_false(policy_may_approve(kit.p, SPAN("nobody"), SPAN("bob")));
}

static const char second[] =
    "version: 1\n"
    "packs: [git@1, { pack: npm@1, hosts: [\"npm.test:4873\"] }, pypi@1]\n"
    "credentials:\n"
    "  a: { source: { env: A }, inject: { basic: true }, only: [{ host: a.test, path: \"/in/**\" }] }\n"
    "  b: { source: { env: B }, inject: { basic: true }, only: [{ host: a.test }] }\n"
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
    expect(kit_get(&k, "https://a.test/in/x"), VERDICT_ALLOW, "rule", "one");
    assert_int_equal(k.d.credential, 0);
    expect(kit_get(&k, "https://a.test/out"), VERDICT_ALLOW, "rule", "plain");
    assert_int_equal(k.d.credential, -1);
    expect(kit_get(&k, "https://a.test/in/both/x"), VERDICT_DENY, "ambiguous-credential", "one");
    assert_int_equal(k.d.credential, -1);
    expect(kit_judge(&k, "s", "POST", "https://a.test/out", NULL, "", 0, true), VERDICT_DENY,
           "credential-not-for-here", "held");
    assert_int_equal(k.d.credential, -1);
    covered("B50");
    kit_free(&k);
}

/* Several holds: all that any of them asks; approvers that exclude each other refuse. */
static void test_holds(void **state)
{
    struct kit k;
    (void)state;
    load_second(&k);
    const struct decision *d = kit_judge(&k, "s", "POST", "https://a.test/in/m", NULL, "", 0, true);
    expect(d, VERDICT_HOLD, "rule", "held");
    assert_true(span_eq(d->approve_by, SPAN("m")) && d->reason_required && d->within_ms == 3600000 &&
                d->credential == 0);
    expect(kit_judge(&k, "s", "POST", "https://a.test/in/o", NULL, "", 0, true), VERDICT_DENY, "ambiguous-approvers",
           "held");
    kit_free(&k);
}

/* B12: every occurrence counts, whatever separates them. B40: a GET nobody named is denied. */
static void test_query(void **state)
{
    static const char safe[] = "X-Mode: safe";
    struct kit k;
    (void)state;
    load_second(&k);
    expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list", safe, NULL, 0, true), VERDICT_ALLOW, "rule",
           "list");
    expect(kit_judge(&k, "s", "GET", "https://q.test/?a=b&action=getAll", safe, NULL, 0, true), VERDICT_ALLOW, "rule",
           "list");
    expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list", NULL, NULL, 0, true), VERDICT_DENY, "no-rule",
           "");
    expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list", "X-Mode: safe\nx-mode: not", NULL, 0, true),
           VERDICT_DENY, "no-rule", "");
    expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list&action=put", safe, NULL, 0, true), VERDICT_DENY,
           "no-rule", "");
    expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list;action=put", safe, NULL, 0, true), VERDICT_DENY,
           "no-rule", "");
    expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list&Action=DROP", safe, NULL, 0, true), VERDICT_DENY,
           "rule", "no-drop");
    expect(kit_judge(&k, "s", "GET", "https://q.test/?action=list&a=1;action=%64rop", safe, NULL, 0, true),
           VERDICT_DENY, "rule", "no-drop");
    expect(kit_judge(&k, "s", "GET", "https://q.test/?%61ction=drop", safe, NULL, 0, true), VERDICT_DENY, "rule",
           "no-drop");
    expect(kit_get(&k, "https://webhook.test/?text=hi"), VERDICT_DENY, "host-not-named", "");
    covered("B12 B40");
    kit_free(&k);
}

static void test_npm(void **state)
{
    struct kit k;
    (void)state;
    load_second(&k);
    expect(kit_get(&k, "https://npm.test:4873/@acme%2Fapp"), VERDICT_ALLOW, "rule", "npm");
    assert_int_equal(k.d.dialect, DIALECT_NPM);
    assert_true(span_eq(k.d.resource, SPAN("npm:@acme/app")));
    expect(kit_get(&k, "https://npm.test:4873/@acme/app"), VERDICT_ALLOW, "rule", "npm");
    expect(kit_get(&k, "https://npm.test:4873/@acme%2F..%2F@evil%2Fapp"), VERDICT_DENY, "bad-path", "");
    expect(kit_get(&k, "https://npm.test:4873/@evil%2Fapp"), VERDICT_DENY, "no-rule", "");
    expect(kit_get(&k, "https://npm.test/@acme%2Fapp"), VERDICT_DENY, "bad-path", "");
    expect(kit_get(&k, "https://a.test/in%2Fx"), VERDICT_DENY, "bad-path", "");
    expect(kit_judge(&k, "s", "PUT", "https://npm.test:4873/@acme%2Fapp", NULL, "{}", 2, true), VERDICT_DENY,
           "no-rule", "");
    assert_true(span_eq(k.d.op, SPAN("npm.publish")) && span_eq(k.d.summary, SPAN("Publish @acme/app")));
    expect(kit_get(&k, "https://pypi.org/simple/x/"), VERDICT_DENY, "host-not-named", "");
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
    expect(push(&k, "https://g.test/r", create), VERDICT_ALLOW, "rule", "topic");
    expect(push(&k, "https://g.test/r", update), VERDICT_HOLD, "rule", "forced");
    size_t n = kit_push(body, sizeof(body), "report-status delete-refs", delete, "");
    expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
           "no-rule", "");
    expect(push(&k, "https://g.test/r", deep), VERDICT_DENY, "no-rule", "");
    expect(push(&k, "https://g.test/r", shout), VERDICT_DENY, "rule", "sends"); /* rules that deny fit any case */
    /* B19: a deny that cannot be evaluated is no "did not fit". */
    expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, "0008junk0000PACK", 16, true),
           VERDICT_DENY, "unclassified", "");
    expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE "\nX-HTTP-Method-Override: GET",
                     "0000", 4, true),
           VERDICT_DENY, "no-rule", "");
    covered("B19");
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
    expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
           "unclassified", "");
    n = kit_push(body, sizeof(body), "report-status push-options", refs, "000bci.skip0000PACK");
    expect(kit_judge(&k, "s", "POST", "https://g.test/r/git-receive-pack", RP_TYPE, body, n, true), VERDICT_ALLOW,
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
        expect(d, n == 1000 ? VERDICT_ALLOW : VERDICT_DENY, n == 1000 ? "rule" : "unclassified",
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
        assert_int_equal(push(&k, "https://g.test/r", refs)->verdict, VERDICT_DENY);
        assert_int_equal(kit_get(&k, "https://a.test/x;y//z?a=%41")->verdict == VERDICT_HOLD, false);
    }
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest),         cmocka_unit_test(test_effects),
        cmocka_unit_test(test_git_reads),    cmocka_unit_test(test_git_lookalikes),
        cmocka_unit_test(test_push),         cmocka_unit_test(test_push_head),
        cmocka_unit_test(test_push_refs),    cmocka_unit_test(test_push_malformed),
        cmocka_unit_test(test_bad_paths),    cmocka_unit_test(test_readings),
        cmocka_unit_test(test_names_host),   cmocka_unit_test(test_credentials),
        cmocka_unit_test(test_holds),        cmocka_unit_test(test_query),
        cmocka_unit_test(test_npm),          cmocka_unit_test(test_git_matcher),
        cmocka_unit_test(test_push_options), cmocka_unit_test(test_many_refs),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
