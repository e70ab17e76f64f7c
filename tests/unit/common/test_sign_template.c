/* common/sign/template.h and hmac.h: what a policy's own signature is made over, and what is made of it. The same
 * beside Python's hmac: tests/differential/templates.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/sign/hmac.h"

#define NOW 1795424523456 /* Mon, 23 Nov 2026 09:02:03.456 */

static const struct http_field given[] = {{SPAN("header.content-type"), SPAN("text/plain; a=b")},
                                          {SPAN("body_sha256"), SPAN("0123")}};
static const struct sign_facts facts = {.method = SPAN("POST"),
                                        .path = SPAN("/a/b"),
                                        .query = SPAN("?b=2&a=1"),
                                        .host = SPAN("api.example:8443"),
                                        .body = SPAN("{}\n{x"),
                                        .given = given,
                                        .ngiven = 2,
                                        .now_ms = NOW,
                                        .id = SPAN("key-1"),
                                        .token = SPAN("pass"),
                                        .signature = SPAN("c2ln")};

static void expands_to(const struct sign_facts *f, const char *text, const char *want)
{
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    int rc = sign_expand(span_str(text), f, &b);
    if (want == NULL)
        assert_int_equal(rc, -1);
    else
        assert_true(rc == 0 && span_eq(dynbuf_span(&b), span_str(want)));
    dynbuf_free(&b);
}

static void each_part_is_what_it_says(void **state)
{
    struct sign_facts bare = facts;
    bare.query = bare.id = bare.token = SPAN_NONE;
    expands_to(&facts, "{method} {path} {query} {target}", "POST /a/b b=2&a=1 /a/b?b=2&a=1");
    expands_to(&bare, "{path}|{query}|{target}|", "/a/b||/a/b|");
    bare.query = SPAN("?");
    expands_to(&bare, "{query}|{target}|", "|/a/b?|");
    expands_to(&facts, "{host}\n{header.content-type}\n", "api.example:8443\ntext/plain; a=b\n");
    expands_to(&facts, "{time}.{time_ms}.{body}", "1795424523.1795424523456.{}\n{x");
    expands_to(&facts, "{date}, {iso_time}", "Mon, 23 Nov 2026 09:02:03 GMT, 2026-11-23T09:02:03Z");
    expands_to(&facts, "HMAC {id}:{token}:{signature}", "HMAC key-1:pass:c2ln");
    expands_to(&facts, "{body_sha256}", "0123");
    /* what was not given is not signed as if it were empty */
    expands_to(&facts, "{header.x-other}", NULL);
    expands_to(&facts, "{body_sha512}", NULL);
    expands_to(&facts, "{sorted_query}", NULL);
    expands_to(&bare, "{id}", NULL);
    expands_to(&bare, "{token}", NULL);
    expands_to(&facts, "{what}", NULL);
    expands_to(&facts, "{method", NULL);
    bare.now_ms = UINT64_MAX;
    expands_to(&bare, "{date}", NULL);
}

static void what_is_no_template_is_told(void **state)
{
    static const char *const good[] = {"{method}", "a{body}", "{method}\n{target}\n{header.x-a}\n{time}", "{id}"};
    static const char *const bad[] = {
        "",           "no part",    "{Method}",     "{}",           "{method",         "method}",      "{method}}",
        "{{method}}", "{header.}",  "{header.X}",   "{header.a b}", "{body}\n",        "{body}{body}", "{signature}",
        "{token}",    "\t{method}", "{method}\r\n", "{method}\x7f", "{method}\xc3\xa4"};
    static const char *const good_field[] = {"{signature}", "t={time},v1={signature}", "{body_sha512_base64}",
                                             "{token}"};
    static const char *const bad_field[] = {"{body}",        "{method}", "{target}", "{header.x-a}",
                                            "{signature}\n", "key",      "{host}"};
    char long_one[SIGN_TEMPLATE_MAX + 2] = "{method}";
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_null(sign_template_wrong(span_str(good[i]), IN_TEMPLATE));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_non_null(sign_template_wrong(span_str(bad[i]), IN_TEMPLATE));
    for (size_t i = 0; i < sizeof(good_field) / sizeof(good_field[0]); i++)
        assert_null(sign_template_wrong(span_str(good_field[i]), IN_FIELD));
    for (size_t i = 0; i < sizeof(bad_field) / sizeof(bad_field[0]); i++)
        assert_non_null(sign_template_wrong(span_str(bad_field[i]), IN_FIELD));
    memset(long_one + 8, 'x', sizeof(long_one) - 8);
    assert_null(sign_template_wrong(span_of(long_one, SIGN_TEMPLATE_MAX), IN_TEMPLATE));
    assert_non_null(sign_template_wrong(span_of(long_one, SIGN_TEMPLATE_MAX + 1), IN_TEMPLATE));
    assert_null(sign_template_wrong(span_of(long_one, SIGN_FORMAT_MAX), IN_TEMPLATE));
    assert_non_null(sign_template_wrong(span_of("{signature}x", 12), IN_TEMPLATE));
    memcpy(long_one, "{time}xx", 8);
    assert_null(sign_template_wrong(span_of(long_one, SIGN_FORMAT_MAX), IN_FIELD));
    assert_non_null(sign_template_wrong(span_of(long_one, SIGN_FORMAT_MAX + 1), IN_FIELD));
}

/* {method}{target} cannot be cut in two ways, {target}{body} can. */
static void parts_without_an_end_are_found(void **state)
{
    static const struct {
        const char *text, *open;
    } row[] = {{"{method}{target}\n{body}", ""},
               {"{time}.{body}", ""},
               {"{time}{method}{path}", ""},
               {"{date};{host};{body_sha256}{body}", ""},
               {"{header.a}\n{header.b}\n", ""},
               {"{target} HTTP/1.1", ""},
               {"{path}?{query}", ""},
               {"{target}{body}", "target"},
               {"{method}{host}", "method"},
               {"{method}-{path}", "method"},
               {"{path}:{query}", "path"},
               {"{header.a},{header.b}", "header.a"},
               {"{host}.{path}", "host"},
               {"{query}&{path}", "query"},
               {"{id}.{time}", "id"},
               {"{id}:{time}", ""}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        assert_true(span_eq(sign_template_open_end(span_str(row[i].text)), span_str(row[i].open)));
}

static void is_signed(enum sign_hash h, struct span key, enum sign_coding c, const char *want)
{
    struct dynbuf b;
    dynbuf_init(&b, 256);
    assert_int_equal(sign_hmac(h, key, SPAN("what do ya want for nothing?"), c, &b), 0);
    assert_true(span_eq(dynbuf_span(&b), span_str(want)));
    dynbuf_free(&b);
}

/* RFC 4231 and RFC 2202, test case 2. */
static void the_examples_of_the_rfcs(void **state)
{
    is_signed(SIGN_SHA256, SPAN("Jefe"), SIGN_HEX,
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    is_signed(
        SIGN_SHA512, SPAN("Jefe"), SIGN_HEX,
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a3"
        "4d4a6b4b636e070a38bce737");
    is_signed(SIGN_SHA1, SPAN("Jefe"), SIGN_HEX, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    is_signed(SIGN_SHA1, SPAN("Jefe"), SIGN_BASE64, "7/zfauXrL6LSdBbV8YTfnCWafHk=");
    is_signed(SIGN_SHA256, SPAN("Jefe"), SIGN_BASE64, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
    is_signed(SIGN_SHA256, SPAN("Jefe"), SIGN_BASE64URL, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM");
}

static void key_is(enum sign_coding c, const char *text, const char *want, size_t nwant)
{
    uint8_t key[SIGN_HMAC_KEY_MAX];
    size_t n = 0;
    int rc = sign_hmac_key(c, span_str(text), key, &n);
    if (want == NULL)
        assert_int_equal(rc, -1);
    else
        assert_true(rc == 0 && span_eq(span_of(key, n), span_of(want, nwant)));
}

static void keys_are_read_as_they_are_written(void **state)
{
    static uint8_t large[SIGN_HMAC_KEY_MAX + 1], key[SIGN_HMAC_KEY_MAX];
    size_t n;
    key_is(SIGN_AS_TEXT, "+/+/", "+/+/", 4);
    key_is(SIGN_HEX, "00fFa0", "\x00\xff\xa0", 3);
    key_is(SIGN_HEX, "00f", NULL, 0);
    key_is(SIGN_HEX, "zz", NULL, 0);
    key_is(SIGN_BASE64, "+/+/", "\xfb\xff\xbf", 3);
    key_is(SIGN_BASE64, "-_-_", NULL, 0);
    key_is(SIGN_BASE64, "+/8=", "\xfb\xff", 2);
    key_is(SIGN_BASE64, "+/8", NULL, 0);
    key_is(SIGN_BASE64URL, "-_-_", "\xfb\xff\xbf", 3);
    key_is(SIGN_BASE64URL, "-_8", "\xfb\xff", 2);
    key_is(SIGN_BASE64URL, "-_8=", "\xfb\xff", 2);
    key_is(SIGN_BASE64URL, "+/+/", NULL, 0);
    key_is(SIGN_BASE64URL, "-_-_-", NULL, 0);
    key_is(SIGN_BASE64URL, "", NULL, 0);
    memset(large, 'a', sizeof(large));
    assert_int_equal(sign_hmac_key(SIGN_AS_TEXT, span_of(large, SIGN_HMAC_KEY_MAX), key, &n), 0);
    assert_int_equal(sign_hmac_key(SIGN_AS_TEXT, span_of(large, sizeof(large)), key, &n), -1);
}

static void digests_of_a_body(void **state)
{
    static const struct {
        enum sign_part_kind k;
        const char *want;
    } row[] = {{PART_BODY_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
               {PART_BODY_SHA256_BASE64, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
               {PART_BODY_SHA512,
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd"
                "454d4423643ce80e2a9ac94fa54ca49f"},
               {PART_BODY_SHA512_BASE64,
                "3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw=="}};
    struct dynbuf b;
    dynbuf_init(&b, 256);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        dynbuf_reset(&b);
        assert_int_equal(sign_body_part(row[i].k, SPAN("abc"), &b), 0);
        assert_true(span_eq(dynbuf_span(&b), span_str(row[i].want)));
    }
    assert_int_equal(sign_body_part(PART_BODY, SPAN("abc"), &b), -1);
    assert_int_equal(sign_body_part(PART_METHOD, SPAN("abc"), &b), -1);
    dynbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_is_what_it_says),         cmocka_unit_test(what_is_no_template_is_told),
        cmocka_unit_test(parts_without_an_end_are_found),    cmocka_unit_test(the_examples_of_the_rfcs),
        cmocka_unit_test(keys_are_read_as_they_are_written), cmocka_unit_test(digests_of_a_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
