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

/* A policy with one thing said otherwise, as what is written of its i-th credential. */
static void identity_in(const char *policy, size_t i, const char *from, const char *to, struct dynbuf *out)
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
    policy_put_credential(k.p, i, out);
    assert_true(dynbuf_ok(out) && out->n > 0);
    kit_free(&k);
    dynbuf_free(&changed);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_differs_in_anything_is_another),
                                       cmocka_unit_test(a_token_is_another_when_who_asks_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
