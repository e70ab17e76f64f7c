/* A damaged image is refused or at worst judged wrongly, never read outside of itself (run under
 * the sanitizers), and every rule means the same wherever it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/load/load.h"
#include "policy_kit.h"

static const char yaml[] =
    "version: 1\n"
    "packs: [git@1]\n"
    "scopes: { s: { sandboxes: [\"ci-*\"], labels: { team: research } } }\n"
    "credentials: { c: { source: { env: A }, inject: { basic: true }, only: [{ host: a.example, path: \"/x/**\" "
    "}] }, h: { source: { env: B }, inject: { hmac: { sign: \"{body}\", headers: { X-A: \"{signature}\" } } }, "
    "only: [{ host: a.example }] } }\n"
    "upstreams: [{ host: a.example, allow_private: [10.0.0.0/8], ca: ca.pem }]\n"
    "approvers: { m: { operators: [alice] } }\n"
    "rules:\n"
    "  - { id: a, scope: s, match: { host: [a.example, \"*.b.example\"], path: \"/x/**\", effect: read }, decide: "
    "allow, use: c }\n"
    "  - { id: b, match: { host: a.example, op: git.push, git: { refs: [\"refs/heads/*\"] } }, decide: hold, "
    "approve: { by: m } }\n"
    "  - { id: d, match: { query: { a: b }, header: { X: yy } }, except: [{ path: /z }], decide: deny }\n";

static const char push[] = "0067" AAAA40 " " BBBB40 " refs/heads/main0000PACK";

/* Every question there is. */
static void ask_all(struct kit *k)
{
    struct upstream u;
    struct credential c;
    struct span name, format;
    struct subject s = {.sandbox = SPAN("ci-1")};
    (void)kit_get(k, "https://a.example/x/y?a=b;c=d");
    (void)kit_get(k, "https://q.b.example/x//y;z");
    (void)kit_get(k, "https://a.example/x/r.git/info/refs?service=git-receive-pack");
    (void)kit_judge(k, "ci-1", "POST", "https://a.example/x/r/git-receive-pack",
                    "X: yy\nContent-Type: application/x-git-receive-pack-request", push, sizeof(push) - 1, true);
    (void)policy_upstream(k->p, SPAN("a.example"), 443, &k->a, &u);
    for (size_t i = 0; i < policy_credentials(k->p) && i < 3; i++) {
        (void)policy_credential(k->p, i, &c);
        for (size_t at = 0; at < 3 && policy_signed_field(k->p, &c, at, &name, &format); at++)
            (void)(span_index(name, 'X') + span_index(format, '{') + span_index(c.hmac.sign, '{'));
        (void)policy_credential_may_go(k->p, i, SPAN("https"), SPAN("a.example"), 443, SPAN("/x/y"));
    }
    (void)policy_may_approve(k->p, SPAN("m"), &(struct approver){.name = SPAN("alice")});
    (void)policy_names_host(k->p, &s, SPAN("https"), SPAN("q.b.example"), 443, 0);
    (void)policy_keeps_slash(k->p, SPAN("https"), SPAN("a.example"), 443);
    arena_free(&k->a);
}

static void test_damage(void **state)
{
    struct kit k, broken = {0};
    size_t opened = 0, refused = 0;
    (void)state;
    assert_true(kit_load(&k, yaml, NULL));
    ask_all(&k);
    arena_init(&broken.a, 1 << 20);
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < k.image_n; at++)
        for (size_t v = 0; v < sizeof(values); v++) {
            uint8_t *copy = malloc(k.image_n); /* its own block, so that a byte past it is seen */
            memcpy(copy, k.image, k.image_n);
            copy[at] = values[v];
            broken.p = policy_open(span_of(copy, k.image_n), NULL);
            if (broken.p)
                ask_all(&broken);
            opened += broken.p != NULL;
            refused += broken.p == NULL;
            policy_close(broken.p);
            free(copy);
        }
    assert_true(opened > 0 && refused > 1000);
    for (size_t n = 0; n < k.image_n; n += n < 600 ? 1 : 97)
        assert_null(policy_open(span_of(k.image, n), NULL));
    broken.p = NULL;
    kit_free(&broken);
    kit_free(&k);
}

static void test_unaligned(void **state)
{
    struct kit k;
    struct err e = {""};
    (void)state;
    assert_true(kit_load(&k, yaml, NULL));
    uint8_t *copy = malloc(k.image_n + 1);
    memcpy(copy + 1, k.image, k.image_n);
    assert_null(policy_open(span_of(copy + 1, k.image_n), &e));
    assert_true(strlen(e.text) > 0);
    free(copy);
    kit_free(&k);
}

/* The same text gives the same image; another byte, another digest. */
static void test_digest(void **state)
{
    struct kit a, b, c;
    (void)state;
    assert_true(kit_load(&a, yaml, NULL) && kit_load(&b, yaml, NULL));
    assert_true(span_eq(span_of(a.image, a.image_n), span_of(b.image, b.image_n)));
    assert_true(kit_load(&c, "version: 1\n", NULL));
    assert_int_equal(policy_digest(a.p).n, 32);
    assert_false(span_eq(policy_digest(a.p), policy_digest(c.p)));
    kit_free(&a);
    kit_free(&b);
    kit_free(&c);
}

static void test_upstream(void **state)
{
    struct kit k;
    struct upstream u;
    (void)state;
    assert_true(kit_load(&k,
                         "version: 1\nupstreams:\n"
                         "  - { host: b.example, port: 8443, address: 127.0.0.1, allow_private: [127.0.0.1/32, "
                         "10.0.0.0/8], ca: ca.pem }\n"
                         "  - { host: a.example, cleartext_credentials: true }\n  - { host: b.example }\n"
                         "  - { host: t.example, tls: { ca: ca.pem, crl: [crl.pem, crl.pem], min: \"1.3\", pin: ["
                         "\"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\", "
                         "\"sha256///////////////////////////////////////////8=\"] } }\n",
                         NULL));
    assert_true(policy_upstream(k.p, SPAN("b.example"), 8443, &k.a, &u));
    assert_true(span_eq(u.address, SPAN("127.0.0.1")) && u.nallow_private == 2 && !u.cleartext_credentials);
    assert_true(span_eq(u.allow_private[1], SPAN("10.0.0.0/8")) && u.ca_pem.n > 0);
    assert_true(policy_upstream(k.p, SPAN("b.example"), 443, &k.a, &u) && u.address.n == 0);
    assert_true(policy_upstream(k.p, SPAN("a.example"), 443, &k.a, &u) && u.cleartext_credentials);
    assert_true(u.crl_pem.n == 0 && u.npins == 0 && !u.only_tls13);
    assert_true(policy_upstream(k.p, SPAN("t.example"), 443, &k.a, &u) && u.only_tls13 && u.npins == 2);
    assert_true(span_eq(u.pin[1], span_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                                          "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                          32)));
    assert_true(u.ca_pem.n > 0 && u.crl_pem.n > 2 * 24);
    assert_false(policy_upstream(k.p, SPAN("a.example"), 80, &k.a, &u));
    assert_false(policy_upstream(k.p, SPAN("c.example"), 443, &k.a, &u));
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_upstream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
