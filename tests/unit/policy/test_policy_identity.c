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

/* text with one thing said otherwise, as what is written of its credential. */
static void identity(const char *from, const char *to, struct dynbuf *out)
{
    struct dynbuf changed;
    struct kit k;
    size_t at = span_find(span_str(text), span_str(from));
    dynbuf_init(&changed, 4096);
    (void)dynbuf_add(&changed, span_of(text, at));
    (void)dynbuf_add(&changed, span_str(to));
    (void)dynbuf_add(&changed, span_str(text + at + strlen(from)));
    (void)dynbuf_add_byte(&changed, 0);
    assert_true(at < sizeof(text) - 1 && dynbuf_ok(&changed));
    assert_true(kit_load(&k, (const char *)changed.p, NULL));
    dynbuf_init(out, 4096);
    policy_put_credential(k.p, 0, out);
    assert_true(dynbuf_ok(out) && out->n > 0);
    kit_free(&k);
    dynbuf_free(&changed);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_differs_in_anything_is_another)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
