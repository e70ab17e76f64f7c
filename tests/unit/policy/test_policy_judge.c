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

#define GIT "https://git.demo.test:8443/demo/app.git"

static void test_rest(void **state)
{
    (void)state;
    const struct decision *d = kit_get(&kit, "https://api.demo.test/v1/things");
    kit_expect(d, VERDICT_ALLOW, "rule", "api-read");
    assert_int_equal(d->credential, 1);
    assert_int_equal(d->effect, EFFECT_READ);
    kit_expect(kit_get(&kit, "https://api.demo.test/v1/admin/users"), VERDICT_DENY, "rule", "api-no-admin");
    kit_expect(kit_get(&kit, "https://api.demo.test/v2"), VERDICT_DENY, "no-rule", "");
    kit_expect(kit_get(&kit, "https://api.demo.test:444/v1/things"), VERDICT_DENY, "host-not-named", "");
    kit_expect(kit_get(&kit, "https://evil.test/"), VERDICT_DENY, "host-not-named", "");
    kit_expect(kit_judge(&kit, "ci-1", "POST", "https://api.demo.test/v1/things", NULL, "x", 1, false), VERDICT_HOLD,
               "rule", "api-write");
    kit_expect(kit_judge(&kit, "ci-1", "POST", "https://api.demo.test/v1/never", NULL, "x", 1, false), VERDICT_DENY,
               "no-rule", "");
    kit_expect(kit_judge(&kit, "ci-1", "TRACE", "https://api.demo.test/v1/never", NULL, NULL, 0, true), VERDICT_DENY,
               "bad-method", "");
}

/* B41: only bodyless GET, HEAD and OPTIONS are reads without a pack. B44: http:// gets no more. */
static void test_effects(void **state)
{
    (void)state;
    kit_expect(kit_judge(&kit, "ci-1", "GET", "https://api.demo.test/v1/a", NULL, "x", 1, true), VERDICT_HOLD, "rule",
               "api-write");
    kit_expect(kit_judge(&kit, "ci-1", "PROPFIND", "https://api.demo.test/v1/a", NULL, NULL, 0, true), VERDICT_HOLD,
               "rule", "api-write");
    kit_expect(kit_get(&kit, "http://api.demo.test/v1/a"), VERDICT_DENY, "host-not-named", "");
    kit_expect(
        kit_judge(&kit, "ci-1", "GET", "https://api.demo.test/v1/a", "x-http-method-override: DELETE", NULL, 0, true),
        VERDICT_HOLD, "rule", "api-write");
    kit_expect(kit_get(&kit, "https://api.demo.test/v1/a?a=b&_method=DELETE"), VERDICT_HOLD, "rule", "api-write");
    kit_covered("B1 B2 B41 B44");
}

static void test_git_reads(void **state)
{
    (void)state;
    const struct decision *d = kit_get(&kit, GIT "/info/refs?service=git-upload-pack");
    kit_expect(d, VERDICT_ALLOW, "rule", "fetch");
    assert_int_equal(d->credential, 0);
    assert_int_equal(d->dialect, DIALECT_GIT_INFO_REFS);
    assert_true(span_eq(d->resource, SPAN("git:git.demo.test/demo/app")));
    d = kit_judge(&kit, "ci-1", "POST", GIT "/git-upload-pack",
                  "Content-Type: application/x-git-upload-pack-request\nContent-Encoding: gzip", "", 0, false);
    kit_expect(d, VERDICT_ALLOW, "rule", "fetch");
    assert_false(d->need_body);
    kit_expect(kit_get(&kit, "https://git.demo.test:8443/other/x.git/info/refs?service=git-upload-pack"),
               VERDICT_DENY, "credential-not-for-here", "fetch");
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
        kit_expect(kit_get(&kit, urls[i]), VERDICT_DENY, "no-rule", "");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-upload-pack", NULL, "", 0, false), VERDICT_DENY, "no-rule",
               "");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-upload-pack/",
                         "Content-Type: application/x-git-upload-pack-request", "", 0, false),
               VERDICT_DENY, "no-rule", "");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack/", RP_TYPE, "0000", 4, true), VERDICT_DENY,
               "unclassified", "");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-PACK", RP_TYPE, "0000", 4, true), VERDICT_DENY,
               "unclassified", "");
    assert_string_equal(kit.ambiguity.word, "path-spelling");
    assert_string_equal(kit.ambiguity.told, "ambiguous"); /* or a refusal would tell which packs there are */
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack?a=b", RP_TYPE, "0000", 4, true), VERDICT_DENY,
               "unclassified", "");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-upload-pack?a=b",
                         "Content-Type: application/x-git-upload-pack-request", "", 0, false),
               VERDICT_DENY, "no-rule", "");
    static const char *const others[] = {"DELETE", "PUT", "PATCH", "GET", "MOVE"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        kit_expect(kit_judge(&kit, "ci-1", others[i], GIT "/git-receive-pack", RP_TYPE, "0000", 4, true),
                   VERDICT_DENY, "unclassified", "");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/GIT-RECEIVE-PACK", RP_TYPE, "0000", 4, true), VERDICT_DENY,
               "unclassified", "");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", "Content-Type: text/plain", "0000", 4, true),
               VERDICT_DENY, "unclassified", "");
    kit_expect(
        kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE "\nContent-Encoding: gzip", "0000", 4, true),
        VERDICT_DENY, "unclassified", "");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE "\n" RP_TYPE, "0000", 4, true),
               VERDICT_DENY, "unclassified", "");
}

#define LFS_TYPE "Content-Type: application/vnd.git-lfs+json"

/* Who has locked what is asked with a POST before a push; by its path and type alone it is a read. */
static void test_lfs_locks(void **state)
{
    static const struct {
        const char *method, *url, *fields, *op;
        enum effect effect;
    } rows[] = {
        {"POST", GIT "/info/lfs/locks/verify", LFS_TYPE "; charset=utf-8", "git.lfs.locks", EFFECT_READ},
        {"POST", GIT "/info/lfs/locks/verify", LFS_TYPE, "git.lfs.locks", EFFECT_READ},
        {"POST", GIT "/info/lfs/locks/verify?a=b", LFS_TYPE, "git.lfs", EFFECT_WRITE},
        {"POST", GIT "/info/lfs/locks/verify", LFS_TYPE "\n" LFS_TYPE, "git.lfs", EFFECT_WRITE},
        {"POST", GIT "/info/lfs/locks/verify", "Content-Type: text/plain", "git.lfs", EFFECT_WRITE},
        {"PUT", GIT "/info/lfs/locks/verify", LFS_TYPE, "git.lfs", EFFECT_WRITE},
        {"POST", GIT "/info/lfs/locks/7/unlock", LFS_TYPE, "git.lfs", EFFECT_WRITE},
        {"POST", GIT "/info/lfs/locks", LFS_TYPE, "git.lfs", EFFECT_WRITE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct decision *d =
            kit_judge(&kit, "ci-1", rows[i].method, rows[i].url, rows[i].fields, "{}", 2, true);
        assert_true(span_eq(d->op, span_str(rows[i].op)));
        assert_int_equal(d->effect, rows[i].effect);
    }
}

static void test_push(void **state)
{
    (void)state;
    const char *main_ref[] = {AAAA40 " " BBBB40 " refs/heads/main", NULL};
    const struct decision *d = kit_judge_push(&kit, GIT, main_ref);
    kit_expect(d, VERDICT_HOLD, "rule", "push");
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
    kit_expect(kit_judge_push(&kit, GIT, topic), VERDICT_HOLD, "rule", "push"); /* push holds every ref */
    const char *release[] = {ZERO40 " " BBBB40 " refs/heads/agent/x", AAAA40 " " BBBB40 " refs/heads/release/1",
                             NULL};
    d = kit_judge_push(&kit, GIT, release);
    kit_expect(d, VERDICT_DENY, "rule", "no-release");
    assert_true(span_eq(d->say, SPAN("Releases are made by people.")));
    kit_expect(kit_judge_push(&kit, "https://github.com/acme/app.git", main_ref), VERDICT_HOLD, "rule", "gh");
    assert_true(span_eq(kit.d.resource, SPAN("github:acme/app")));
    kit_expect(kit_judge_push(&kit, "https://github.com/evil/app.git", main_ref), VERDICT_DENY, "no-rule", "");
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
    kit_expect(d, VERDICT_DENY, "no-rule", "");
}

/* B39 too: refs and probe of a push are reads, with its credential, only where a push could be. */
static void test_push_refs(void **state)
{
    (void)state;
    const struct decision *d = kit_get(&kit, GIT "/info/refs?service=git-receive-pack");
    kit_expect(d, VERDICT_ALLOW, "rule", "push");
    assert_int_equal(d->credential, 0);
    assert_int_equal(d->effect, EFFECT_READ);
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, "0000", 4, true), VERDICT_ALLOW,
               "rule", "push");
    assert_true(span_eq(kit.d.op, SPAN("git.push.probe")));
    kit_expect(kit_get(&kit, "https://github.com/acme/app/info/refs?service=git-receive-pack"), VERDICT_ALLOW, "rule",
               "gh");
    kit_expect(kit_get(&kit, "https://github.com/evil/app/info/refs?service=git-receive-pack"), VERDICT_DENY,
               "no-rule", "");
    kit_expect(kit_judge(&kit, "vm-1", "GET", "https://github.com/acme/app/info/refs?service=git-receive-pack", NULL,
                         NULL, 0, true),
               VERDICT_DENY, "host-not-named", "");
    kit_covered("B39");
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
        kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, bad[i], strlen(bad[i]), true),
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
        kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
                   "unclassified", "");
    }
    const char *twice[] = {AAAA40 " " BBBB40 " refs/heads/a", AAAA40 " " ZERO40 " refs/heads/a", NULL};
    size_t n = kit_push(body, sizeof(body), "report-status", twice, "PACK");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
               "unclassified", "");
    const char *good[] = {AAAA40 " " BBBB40 " refs/heads/a", NULL};
    n = kit_push(body, sizeof(body), "report-status", good, "JUNK");
    kit_expect(kit_judge(&kit, "ci-1", "POST", GIT "/git-receive-pack", RP_TYPE, body, n, true), VERDICT_DENY,
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
        kit_expect(kit_get(&kit, url), VERDICT_DENY, "bad-path", "");
    }
    kit_expect(kit_get(&kit, "https://api.demo.test/v1/%C3%A9/%3Dx"), VERDICT_ALLOW, "rule", "api-read");
    kit_covered("B4 B5 B8 B9");
}

/* B6, B7, B8: every reading and, for rules that restrict, every spelling. */
static void test_readings(void **state)
{
    (void)state;
    kit_expect(kit_get(&kit, "https://api.demo.test/v1//admin/x"), VERDICT_DENY, "rule", "api-no-admin");
    kit_expect(kit_get(&kit, "https://api.demo.test/v1;a=b/admin/x"), VERDICT_DENY, "rule", "api-no-admin");
    kit_expect(kit_get(&kit, "https://api.demo.test/v1/;p/admin/x"), VERDICT_DENY, "rule", "api-no-admin");
    kit_expect(kit_get(&kit, "https://api.demo.test/v1/admin%3bx"), VERDICT_DENY, "rule", "api-no-admin");
    kit_expect(kit_get(&kit, "https://api.demo.test/v1%3Ba/admin/x"), VERDICT_DENY, "rule", "api-no-admin");
    kit_expect(kit_get(&kit, "https://api.demo.test/V1/Admin/x"), VERDICT_DENY, "rule", "api-no-admin");
    kit_expect(kit_get(&kit, "https://api.demo.test/v1/admin/"), VERDICT_DENY, "rule", "api-no-admin");
    kit_expect(kit_get(&kit, "https://api.demo.test/v1//things;x=1"), VERDICT_ALLOW, "rule", "api-read");
    kit_expect(kit_get(&kit, "https://api.demo.test//v1/things"), VERDICT_DENY, "bad-path", "");
    kit_expect(kit_get(&kit, "https://api.demo.test/;x/v1/things"), VERDICT_DENY, "bad-path", "");
    kit_covered("B6 B7");
}

static void test_names_host(void **state)
{
    (void)state;
    struct subject ci = {.sandbox = SPAN("ci-1")}, vm = {.sandbox = SPAN("vm")};
    assert_true(policy_names_host(kit.p, &ci, SPAN("https"), SPAN("api.demo.test"), 443, 0));
    assert_false(policy_names_host(kit.p, &ci, SPAN("https"), SPAN("api.demo.test"), 8080, 0));
    assert_true(policy_names_host(kit.p, &ci, SPAN("https"), SPAN("github.com"), 443, 0));
    assert_false(policy_names_host(kit.p, &vm, SPAN("https"), SPAN("github.com"), 443, 0));
    assert_false(policy_names_host(kit.p, &ci, SPAN("http"), SPAN("api.demo.test"), 80, 0));
    assert_true(policy_credential_may_go(kit.p, 0, SPAN("https"), SPAN("git.demo.test"), 8443, SPAN("/demo/x")));
    assert_false(policy_credential_may_go(kit.p, 0, SPAN("https"), SPAN("git.demo.test"), 8443, SPAN("/demo;/../x")));
    assert_false(policy_credential_may_go(kit.p, 0, SPAN("https"), SPAN("git.demo.test"), 443, SPAN("/demo/x")));
    assert_false(policy_credential_may_go(kit.p, 0, SPAN("http"), SPAN("git.demo.test"), 8443, SPAN("/demo/x")));
    assert_false(policy_credential_may_go(kit.p, 7, SPAN("https"), SPAN("git.demo.test"), 8443, SPAN("/demo/x")));
    assert_true(policy_may_approve(kit.p, SPAN("maintainers"), &(struct approver){.name = SPAN("alice")}));
    assert_false(policy_may_approve(kit.p, SPAN("maintainers"), &(struct approver){.name = SPAN("bob")}));
    assert_true(policy_may_approve(kit.p, SPAN_NONE, &(struct approver){.name = SPAN("bob")}));
    assert_false(policy_may_approve(kit.p, SPAN("nobody"), &(struct approver){.name = SPAN("bob")}));
}

struct told {
    struct judged was[8];
    size_t n, no; /* the one that is not agreed to */
};

static bool tell(const struct judged *j, void *arg)
{
    struct told *t = arg;
    assert_true(t->n < 8);
    t->was[t->n++] = *j;
    return t->n != t->no;
}

static bool each_judged_at(const char *host, const char *path, const char *query, size_t no, size_t memory,
                           struct told *t)
{
    struct subject s = {.sandbox = SPAN("vm")};
    struct request r = {.scheme = SPAN("https"),
                        .host = span_str(host),
                        .port = 443,
                        .method = SPAN("GET"),
                        .path = span_str(path),
                        .query = span_str(query),
                        .has_query = query != NULL};
    static struct arena a; /* what is told borrows from it, until the next call */
    arena_free(&a);
    arena_init(&a, memory);
    *t = (struct told){.no = no};
    return policy_each_judged(kit.p, &s, &r, 0, &a, tell, t);
}

static bool each_judged(const char *path, const char *query, size_t no, size_t memory, struct told *t)
{
    return each_judged_at("api.demo.test", path, query, no, memory, t);
}

/* All that it may be taken for is told, and a path that is only spelt otherwise is not. */
static void test_each_judged(void **state)
{
    struct told t;
    (void)state;
    assert_true(each_judged("/v1/a%20b", NULL, 0, 65536, &t));
    assert_int_equal(t.n, 1);
    assert_true(span_eq(t.was[0].method, SPAN("GET")) && span_eq(t.was[0].path, SPAN("/v1/a%20b")));
    assert_true(span_eq(t.was[0].op, SPAN("http.get")) && t.was[0].effect == EFFECT_READ && !t.was[0].overridden);
    assert_false(each_judged("/v1/x", NULL, 1, 65536, &t));
    assert_true(each_judged("/v1/x", "_method=DELETE", 0, 65536, &t));
    assert_int_equal(t.n, 2);
    assert_true(t.was[1].overridden && span_eq(t.was[1].op, SPAN("http.override")));
    assert_true(each_judged("/v1//m;a=1", NULL, 0, 65536, &t));
    bool whole = false;
    for (size_t i = 0; i < t.n; i++)
        whole |= span_eq(t.was[i].path, SPAN("/v1/m"));
    assert_true(whole && t.n == 4);
    assert_false(each_judged("/v1//m;a=1", NULL, 3, 65536, &t));
    assert_false(each_judged("/v1//m;a=1", NULL, 0, 1, &t));   /* no memory */
    assert_false(each_judged("/v1/../m", NULL, 0, 65536, &t)); /* not to be read at all */
}

/* A name with a slash in it, which a server may take for two segments, and the blank of a '+': there it is an
 * operation that no pack has a name for. */
static void test_each_judged_of_a_pack(void **state)
{
    struct told t;
    bool other = false, known = false;
    (void)state;
    assert_true(each_judged_at("registry.npmjs.org", "/x%2Fy/a+b", NULL, 0, 65536, &t));
    for (size_t i = 0; i < t.n; i++) {
        other |= span_eq(t.was[i].op, SPAN("npm.other"));
        known |= span_eq(t.was[i].op, SPAN("npm.metadata"));
        assert_true(span_eq(t.was[i].path, SPAN("/x%2Fy/a+b")));
    }
    assert_true(other && known && t.n == 2);
    assert_true(each_judged_at("registry.npmjs.org", "/x%2Fy", NULL, 0, 65536, &t));
    assert_true(t.n == 1 && span_eq(t.was[0].op, SPAN("npm.metadata")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest),           cmocka_unit_test(test_effects),
        cmocka_unit_test(test_git_reads),      cmocka_unit_test(test_git_lookalikes),
        cmocka_unit_test(test_lfs_locks),      cmocka_unit_test(test_push),
        cmocka_unit_test(test_push_head),      cmocka_unit_test(test_push_refs),
        cmocka_unit_test(test_push_malformed), cmocka_unit_test(test_bad_paths),
        cmocka_unit_test(test_readings),       cmocka_unit_test(test_names_host),
        cmocka_unit_test(test_each_judged),    cmocka_unit_test(test_each_judged_of_a_pack),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
