/* policy/identity.h: two credentials that differ in anything differ in what is written of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy/identity.h"
#include "policy_kit.h"

static const char text[] =
    "version: 1\ncredentials:\n"
    "  c:\n    source: { store: kept }\n"
    "    inject: { hmac: { sign: \"{time}.{body}\", algorithm: sha512, encoding: base64, key: hex,\n"
    "      headers: { X-Signature: \"{id}:{signature}\", X-Time: \"{time}\" } } }\n"
    "    lease: generic\n    only: [{ host: a.example }]\n"
    "rules: [{ id: r, match: { host: a.example, effect: read }, decide: allow, use: c }]\n";

/* A policy with one thing said otherwise, as what is written of its i-th credential, or gate. */
static void identity_of(bool gates, const char *policy, size_t i, const char *from, const char *to,
                        struct dynbuf *out)
{
    struct dynbuf changed;
    struct kit k;
    size_t at = span_find(span_str(policy), span_str(from));
    dynbuf_init(&changed, 4096);
    (void)dynbuf_add(&changed, span_of(policy, at));
    (void)dynbuf_add(&changed, span_str(to));
    (void)dynbuf_add(&changed, span_str(policy + at + strlen(from)));
    (void)dynbuf_add_byte(&changed, 0);
    assert_true(at < strlen(policy) && dynbuf_ok(&changed));
    assert_true(kit_load(&k, (const char *)changed.p, NULL));
    dynbuf_init(out, 4096);
    struct gate g;
    if (gates && policy_gate(k.p, i, &g))
        policy_put_gate(k.p, &g, out);
    else if (!gates)
        policy_put_credential(k.p, i, out);
    assert_true(dynbuf_ok(out) && out->n > 0);
    kit_free(&k);
    dynbuf_free(&changed);
}

static void identity_in(const char *policy, size_t i, const char *from, const char *to, struct dynbuf *out)
{
    identity_of(false, policy, i, from, to, out);
}

static void identity(const char *from, const char *to, struct dynbuf *out)
{
    identity_in(text, 0, from, to, out);
}

static void what_differs_in_anything_is_another(void **state)
{
    static const struct {
        const char *from, *to;
    } row[] = {{"store: kept", "env: kept"},
               {"kept", "other"},
               {"{time}.{body}", "{time}:{body}"},
               {"sha512", "sha256"},
               {"encoding: base64", "encoding: base64url"},
               {"key: hex", "key: text"},
               {"X-Signature", "X-Other"},
               {"{id}:{signature}", "{id};{signature}"},
               {", X-Time: \"{time}\"", ", X-Time: \"{time}\", X-Date: \"{date}\""},
               {", X-Time: \"{time}\"", ", X-Time: \"{time}\", X-Token: \"{token}\""},
               {"lease: generic", "scrub: refuse"},
               {"host: a.example }]\nrules", "host: a.example, port: 444 }]\nrules"}};
    struct dynbuf same, other;
    identity("{ id: r,", "{ id: another,", &same);
    identity("{ id: r,", "{ id: r,", &other);
    assert_true(span_eq(dynbuf_span(&same), dynbuf_span(&other)));
    dynbuf_free(&other);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        identity(row[i].from, row[i].to, &other);
        if (span_eq(dynbuf_span(&same), dynbuf_span(&other)))
            fail_msg("%s or %s is the same", row[i].from, row[i].to);
        dynbuf_free(&other);
    }
    dynbuf_free(&same);
}

/* A token that stands in an answer is of the account that it was asked for with. */
static void a_token_is_another_when_who_asks_is(void **state)
{
    static const char policy[] =
        "version: 1\ncredentials:\n"
        "  login:\n    source: { store: kept }\n    inject: { basic: true }\n    lease: generic\n"
        "    only: [{ host: a.example, path: /token }]\n"
        "  token:\n    source: { answer: { to: login, token: /token } }\n"
        "    inject: { header: Authorization, format: \"Bearer {}\" }\n    lease: generic\n"
        "    only: [{ host: b.example }]\n"
        "rules:\n  - { id: r, match: { host: a.example, effect: read }, decide: allow, use: login }\n"
        "  - { id: s, match: { host: b.example, effect: read }, decide: allow, use: token }\n";
    static const char *const row[][2] = {{"store: kept", "store: other"}, {"path: /token", "path: /other"}};
    struct dynbuf same, other;
    identity_in(policy, 1, "id: r,", "id: another,", &same);
    identity_in(policy, 1, "id: r,", "id: r,", &other);
    assert_true(span_eq(dynbuf_span(&same), dynbuf_span(&other)));
    dynbuf_free(&other);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        identity_in(policy, 1, row[i][0], row[i][1], &other);
        assert_false(span_eq(dynbuf_span(&same), dynbuf_span(&other)));
        dynbuf_free(&other);
    }
    dynbuf_free(&same);
}

/* What it said before is no verdict of another one. */
static void a_gate_is_another_when_it_asks_elsewhere(void **state)
{
    static const char policy[] =
        "version: 1\ncredentials:\n"
        "  key: { source: { store: kept }, inject: { header: x-api-key, format: \"{}\" }, only: [{ host: m.example "
        "}] }\n"
        "upstreams: [{ host: m.example, address: 192.0.2.1 }, { host: h.example, port: 8443 }]\n"
        "gates:\n"
        "  hook: { webhook: \"https://h.example:8443/a\", secret: { store: signs }, body: true, timeout: 9s }\n"
        "  model: { model: m-1, api: anthropic, url: \"https://m.example/v1\", credential: key, instructions: look "
        "}\n"
        "  scan: { program: [/bin/scan, -x] }\n"
        "rules:\n  - { id: r, match: { host: a.example, effect: write }, decide: hold, approve: { gates: [hook, "
        "model, scan] } }\n";
    static const struct {
        size_t i;
        const char *from, *to;
    } row[] = {{0, "8443/a", "8443/b"},
               {0, "store: signs", "store: other"},
               {0, ", body: true", ""},
               {0, "timeout: 9s", "timeout: 8s"},
               {0, "port: 8443 }", "port: 8443, allow_private: [\"10.0.0.0/8\"] }"},
               {0, "port: 8443 }", "port: 8443, tls: { min: \"1.3\" } }"},
               {1, "m-1", "m-2"},
               {1, "anthropic", "chat"},
               {1, "m.example/v1", "m.example/v2"},
               {1, "store: kept", "store: other"},
               {1, "instructions: look", "instructions: see"},
               {1, "192.0.2.1", "192.0.2.2"},
               {1, "look }", "look, body: true }"},
               {2, "-x", "-y"}};
    struct dynbuf same, other;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        identity_of(true, policy, row[i].i, "id: r,", "id: r,", &same);
        identity_of(true, policy, row[i].i, "id: r,", "id: another,", &other);
        assert_true(span_eq(dynbuf_span(&same), dynbuf_span(&other)));
        dynbuf_free(&other);
        identity_of(true, policy, row[i].i, row[i].from, row[i].to, &other);
        if (span_eq(dynbuf_span(&same), dynbuf_span(&other)))
            fail_msg("%s or %s is the same", row[i].from, row[i].to);
        dynbuf_free(&other);
        dynbuf_free(&same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_differs_in_anything_is_another),
                                       cmocka_unit_test(a_token_is_another_when_who_asks_is),
                                       cmocka_unit_test(a_gate_is_another_when_it_asks_elsewhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
