/* What a refusal says would be let through instead: other refs of a push, a path near by; only what a rule in the
 * subject's own scope says, and only where all rules together make it so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/near_change.h"
#include "policy_kit.h"

#define OLD_MAIN AAAA40 " " BBBB40 " refs/heads/main"

static void expect(struct kit *k, struct request *r, const char *sandbox, const char *words)
{
    struct subject s = {.sandbox = span_str(sandbox)};
    struct span near = policy_near_change(k->p, &s, r, &k->d, k->now_ms, &k->a);
    if (!span_eq(near, span_str(words)))
        fail_msg("\"%.*s\" is not \"%s\" (%s)", SPAN_FMT(near), words, k->d.code);
}

/* Of a push its body may be gone by then: the refs are known from the decision. */
static void pushed(struct kit *k, const char *sandbox, const char *command, const char *words)
{
    static struct http_field f = {SPAN("Content-Type"), SPAN("application/x-git-receive-pack-request")};
    const char *const commands[] = {command, NULL};
    struct request r = {.scheme = SPAN("https"),
                        .host = SPAN("git.test"),
                        .port = 443,
                        .method = SPAN("POST"),
                        .path = SPAN("/acme/app.git/git-receive-pack"),
                        .fields = &f,
                        .nfields = 1,
                        .has_body = true};
    char body[1024];
    size_t n = kit_push(body, sizeof(body), "report-status", commands, "PACKxxxx");
    (void)kit_judge(k, sandbox, "POST", "https://git.test/acme/app.git/git-receive-pack", RP_TYPE, body, n, true);
    expect(k, &r, sandbox, words);
}

static void asked(struct kit *k, const char *method, const char *path, const char *words)
{
    char url[200];
    struct request r = {.scheme = SPAN("https"),
                        .host = SPAN("api.test"),
                        .port = 443,
                        .method = span_str(method),
                        .path = span_str(path),
                        .body_complete = true};
    snprintf(url, sizeof(url), "https://api.test%s", path);
    (void)kit_judge(k, "vm", method, url, NULL, NULL, 0, true);
    expect(k, &r, "vm", words);
}

static void load(struct kit *k, const char *yaml)
{
    if (!kit_load(k, yaml, NULL))
        fail_msg("%s", k->e.text);
}

static void other_refs_of_a_push(void **state)
{
    struct kit k;
    (void)state;
    load(&k,
         "version: 1\npacks: [git@1]\nscopes: { ci: { sandboxes: [\"ci-*\"] } }\nrules:\n"
         "  - { id: own, scope: ci, match: { host: git.test, op: git.push, git: { refs: [\"refs/heads/agent/*\"],\n"
         "      force: false, delete: false } }, decide: allow }\n"
         "  - { id: others, match: { host: git.test, op: git.push }, decide: hold,\n"
         "      except: [{ git: { refs: [\"refs/heads/agent/*\"], force: false, delete: false } }] }\n"
         "  - { id: tags, match: { host: git.test, op: git.push, git: { refs: [\"refs/tags/**\"] } }, decide: deny "
         "}\n");
    pushed(&k, "ci-1", OLD_MAIN, "To refs/heads/agent/* it is allowed.");
    kit_expect(&k.d, VERDICT_HOLD, "rule", "others");
    pushed(&k, "ci-1", ZERO40 " " BBBB40 " refs/tags/v1", "To refs/heads/agent/* it is allowed.");
    kit_expect(&k.d, VERDICT_DENY, "rule", "tags");
    pushed(&k, "vm", OLD_MAIN, ""); /* whose manifest does not have it is not told */
    pushed(&k, "ci-1", ZERO40 " " BBBB40 " refs/heads/agent/x", "");
    kit_expect(&k.d, VERDICT_ALLOW, "rule", "own");
    kit_free(&k);
}

/* Also where it would be so, by another rule: what is told of a rule is for its own scope. */
static void a_rule_of_another_scope_is_not_told(void **state)
{
    struct kit k;
    (void)state;
    load(&k,
         "version: 1\npacks: [git@1]\nscopes: { ci: { sandboxes: [\"ci-*\"] } }\nrules:\n"
         "  - { id: a, scope: ci, match: { host: git.test, op: git.push, git: { refs: [\"refs/heads/ci/x\"] } },\n"
         "      decide: allow }\n"
         "  - { id: b, match: { host: git.test, op: git.push, git: { refs: [\"refs/heads/ci/*\"] } }, decide: allow "
         "}\n");
    pushed(&k, "ci-1", OLD_MAIN, "To refs/heads/ci/x it is allowed.");
    pushed(&k, "vm", OLD_MAIN, "To refs/heads/ci/* it is allowed.");
    kit_free(&k);
}

static void what_other_rules_stop_is_not_offered(void **state)
{
    struct kit k;
    (void)state;
    load(&k,
         "version: 1\npacks: [git@1]\nrules:\n"
         "  - { id: a, match: { host: git.test, op: git.push, git: { refs: [\"refs/heads/agent/*\"] } }, decide: "
         "allow }\n"
         "  - { id: b, match: { host: git.test, op: git.push, git: { refs: [\"refs/heads/**\"] } }, decide: hold }\n"
         "  - { id: c, match: { host: git.test, op: git.push, git: { refs: [\"refs/heads/main\"] } }, decide: deny "
         "}\n");
    pushed(&k, "vm", OLD_MAIN, "");
    kit_expect(&k.d, VERDICT_DENY, "rule", "c");
    kit_free(&k);
    load(&k, "version: 1\nrules:\n"
             "  - { id: a, match: { host: api.test, method: POST, path: /v1/shut }, decide: allow }\n"
             "  - { id: b, match: { host: api.test, path: /v1/shut }, decide: deny }\n");
    asked(&k, "POST", "/v1/shuttle", "");
    kit_free(&k);
}

static void a_path_near_by(void **state)
{
    struct kit k;
    (void)state;
    load(&k,
         "version: 1\nscopes: { ci: { sandboxes: [\"ci-*\"] } }\nrules:\n"
         "  - { id: a, match: { host: api.test, method: POST, path: \"/v1/things/{thing}/notes\" }, decide: allow }\n"
         "  - { id: b, match: { host: api.test, method: POST, path: /v1/other }, decide: hold }\n"
         "  - { id: c, match: { host: api.test, path: \"/v1/secret/**\" }, decide: deny }\n"
         "  - { id: d, match: { host: api.test, method: GET, path: /far }, decide: allow }\n"
         "  - { id: e, scope: ci, match: { host: api.test, method: PUT, path: /v1/ci }, decide: allow }\n");
    asked(&k, "POST", "/v1/things/7/note", "At /v1/things/{thing}/notes it is allowed.");
    asked(&k, "POST", "/v1/thing", "At /v1/things/{thing}/notes it is allowed.");
    asked(&k, "POST", "/elsewhere", "");
    asked(&k, "GET", "/v1/things", "");    /* with its method there is none near by */
    asked(&k, "POST", "/v1/secret/a", ""); /* a rule says no to it */
    asked(&k, "PUT", "/v1/x", "");         /* another's scope */
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_refs_of_a_push), cmocka_unit_test(a_rule_of_another_scope_is_not_told),
        cmocka_unit_test(what_other_rules_stop_is_not_offered), cmocka_unit_test(a_path_near_by)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
