/* Which requests a stub answers, for whom, and with leases of which credential. */
#include "tests/kit.h"
#include "tests/unit/policy/policy_kit.h"

static const char yaml[] =
    "version: 1\n"
    "name: stubs\n"
    "scopes:\n"
    "  ci: { sandboxes: [\"ci-*\"] }\n"
    "  docs: { sandboxes: [docs] }\n"
    "credentials:\n"
    "  keys: { source: { store: k }, inject: { sigv4: { region: eu-central-1, service: s3 } }, lease: aws, stub: "
    "aws, only: [{ host: s3.test }] }\n"
    "  others: { source: { store: o }, inject: { sigv4: { region: us-east-1, service: s3 } }, lease: aws, stub: aws, "
    "only: [{ host: s3.test }] }\n"
    "  goog: { source: { store: g }, inject: { header: Authorization, format: \"Bearer {}\" }, lease: generic, stub: "
    "google, only: [{ host: api.test }] }\n"
    "  auth: { source: { store: a }, inject: { header: Authorization, format: \"Bearer {}\" }, lease: generic, stub: "
    "oauth,\n"
    "    token_url: \"https://login.test:8443/oauth2/token\", only: [{ host: app.test }] }\n"
    "  idle: { source: { store: i }, inject: { header: Authorization, format: \"Bearer {}\" }, lease: generic, stub: "
    "oauth,\n"
    "    token_url: \"https://idle.test/token\", only: [{ host: app.test }] }\n"
    "rules:\n"
    "  - { id: s3-ci, scope: [ci], match: { host: s3.test, effect: read }, decide: allow, use: keys }\n"
    "  - { id: s3-docs, scope: [docs], match: { host: s3.test, effect: read }, decide: hold, use: others }\n"
    "  - { id: goog, scope: [ci], match: { host: api.test, effect: read }, decide: allow, use: goog }\n"
    "  - { id: app, match: { host: app.test, effect: read }, decide: allow, use: auth }\n"
    "  - { id: login, match: { host: login.test, port: 8443 }, decide: allow }\n"
    "%s";

static struct kit kit;

static void load(const char *more, const char *floors)
{
    char text[4096];
    snprintf(text, sizeof(text), yaml, more);
    if (!kit_load(&kit, text, floors))
        fail_msg("%s", kit.problems[0]);
}

struct place {
    const char *scheme, *host, *path;
    uint16_t port;
};

static enum stub_kind stub_of(const char *sandbox, const char *method, const struct place *at, const char **whose)
{
    static char name[64];
    struct subject s = {.sandbox = span_str(sandbox)};
    struct request r = {.scheme = span_str(at->scheme),
                        .host = span_str(at->host),
                        .port = at->port,
                        .method = span_str(method),
                        .path = span_str(at->path),
                        .body_complete = true};
    struct decision d;
    struct credential c;
    size_t i = 99;
    arena_free(&kit.a);
    policy_judge(kit.p, &s, &r, 0, &kit.a, &d);
    enum stub_kind kind = policy_stub(kit.p, &s, &r, &d, &i);
    *whose = "";
    if (kind != STUB_NONE) {
        assert_true(policy_credential(kit.p, i, &c));
        snprintf(name, sizeof(name), "%.*s", SPAN_FMT(c.name));
        *whose = name;
    }
    return kind;
}

static void expect(const char *sandbox, const char *method, struct place at, enum stub_kind kind, const char *whose)
{
    const char *is;
    enum stub_kind got = stub_of(sandbox, method, &at, &is);
    if (got != kind || strcmp(is, whose) != 0)
        fail_msg("%s %s %s%s: stub %d of \"%s\", expected %d of \"%s\"", sandbox, method, at.host, at.path, (int)got,
                 is, (int)kind, whose);
}

#define INSTANCE(path)  ((struct place){"http", "169.254.169.254", path, 80})
#define CONTAINER(path) ((struct place){"http", "169.254.170.2", path, 80})
#define GOOGLE(path)    ((struct place){"http", "metadata.google.internal", path, 80})
#define LOGIN(path)     ((struct place){"https", "login.test", path, 8443})

static void whose_leases(void **state)
{
    (void)state;
    load("", NULL);
    expect("ci-1", "PUT", INSTANCE("/latest/api/token"), STUB_AWS, "keys");
    expect("ci-1", "GET", INSTANCE("/latest/meta-data/iam/security-credentials/"), STUB_AWS, "keys");
    expect("docs", "GET", INSTANCE("/latest/meta-data/"), STUB_AWS, "others");
    expect("ci-1", "GET", CONTAINER("/v2/credentials"), STUB_AWS_CONTAINER, "keys");
    expect("ci-1", "GET", INSTANCE("/computeMetadata/v1/instance"), STUB_GOOGLE, "goog");
    expect("ci-1", "GET", INSTANCE("/"), STUB_GOOGLE, "goog");
    expect("ci-1", "GET", GOOGLE("/computeMetadata/v1/"), STUB_GOOGLE, "goog");
    expect("ci-1", "POST", LOGIN("/oauth2/token"), STUB_OAUTH, "auth");
    expect("anybody", "POST", LOGIN("/oauth2/token"), STUB_OAUTH, "auth");
    kit_free(&kit);
}

/* Elsewhere, for others, and of a credential that no rule uses: nothing. */
static void no_stub(void **state)
{
    (void)state;
    load("", NULL);
    expect("anybody", "GET", INSTANCE("/latest/meta-data/"), STUB_NONE, "");
    expect("docs", "GET", GOOGLE("/computeMetadata/v1/"), STUB_NONE, "");
    expect("ci-1", "GET", INSTANCE("/latest"), STUB_NONE, "");
    expect("ci-1", "GET", INSTANCE("/1.0/meta-data/"), STUB_NONE, "");
    expect("ci-1", "GET", CONTAINER("/v2/credentials/x"), STUB_NONE, "");
    expect("ci-1", "GET", CONTAINER("/latest/api/token"), STUB_NONE, "");
    expect("ci-1", "GET", ((struct place){"http", "169.254.169.254", "/latest/meta-data/", 8080}), STUB_NONE, "");
    expect("ci-1", "GET", ((struct place){"https", "169.254.169.254", "/latest/meta-data/", 443}), STUB_NONE, "");
    expect("ci-1", "POST", LOGIN("/oauth2/token/"), STUB_NONE, "");
    expect("ci-1", "POST", LOGIN("/oauth2"), STUB_NONE, "");
    expect("ci-1", "POST", ((struct place){"https", "login.test", "/oauth2/token", 443}), STUB_NONE, "");
    expect("ci-1", "POST", ((struct place){"https", "idle.test", "/token", 443}), STUB_NONE, "");
    assert_true(policy_stub_host(kit.p, SPAN("https"), SPAN("login.test"), 8443));
    assert_true(policy_stub_host(kit.p, SPAN("http"), SPAN("169.254.169.254"), 80));
    assert_false(policy_stub_host(kit.p, SPAN("https"), SPAN("login.test"), 443));
    assert_false(policy_stub_host(kit.p, SPAN("http"), SPAN("login.test"), 8443));
    kit_free(&kit);
}

/* C13: what a rule or a floor says of such an address stands. */
static void rules_stand(void **state)
{
    (void)state;
    load(
        "  - { id: not, match: { host: 169.254.169.254, port: 80, scheme: http, path: \"/latest/**\" }, decide: deny "
        "}\n"
        "  - { id: ask, match: { host: 169.254.170.2, port: 80, scheme: http }, decide: hold }\n",
        "version: 1\nrules:\n  - { id: f, match: { host: metadata.google.internal }, decide: deny }\n");
    expect("ci-1", "PUT", INSTANCE("/latest/api/token"), STUB_NONE, "");
    expect("ci-1", "GET", CONTAINER("/v2/credentials"), STUB_NONE, "");
    expect("ci-1", "GET", GOOGLE("/computeMetadata/v1/"), STUB_NONE, "");
    expect("ci-1", "GET", INSTANCE("/computeMetadata/v1/"), STUB_GOOGLE, "goog");
    kit_free(&kit);
    kit_covered("C13");
}

/* An address that some body would have to decide is not answered before that is known. */
static void not_before_it_is_decided(void **state)
{
    struct subject s = {.sandbox = SPAN("ci-1")};
    struct request r = {.scheme = SPAN("https"),
                        .host = SPAN("login.test"),
                        .port = 8443,
                        .method = SPAN("POST"),
                        .path = SPAN("/oauth2/token"),
                        .has_body = true};
    struct decision d;
    size_t i;
    (void)state;
    load("  - { id: b, match: { host: login.test, port: 8443, form: [{ field: scope, equals: admin }] }, decide: "
         "deny }\n",
         NULL);
    policy_judge(kit.p, &s, &r, 0, &kit.a, &d);
    assert_true(d.need_body);
    assert_int_equal(policy_stub(kit.p, &s, &r, &d, &i), STUB_NONE);
    kit_free(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whose_leases), cmocka_unit_test(no_stub),
                                       cmocka_unit_test(rules_stand), cmocka_unit_test(not_before_it_is_decided)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
