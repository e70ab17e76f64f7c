/* common/sign: AWS's published examples, and the rules one by one. tests/differential/sign.py has the breadth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/sign/sign.h"

static void path_is(const char *path, enum sign_path how, const char *expected)
{
    struct dynbuf out;
    dynbuf_init(&out, 1024);
    assert_int_equal(sign_canonical_path(span_str(path), how, &out), 0);
    dynbuf_add_byte(&out, 0);
    assert_string_equal((char *)out.p, expected);
    dynbuf_free(&out);
}

static void paths(void **state)
{
    struct dynbuf out;
    path_is("/", SIGN_PATH_ONCE, "/");
    path_is("/a//b/./c/../%7e(d)", SIGN_PATH_ONCE, "/a//b/./c/../~%28d%29");
    path_is("/a%2Fb", SIGN_PATH_ONCE, "/a%2Fb");
    path_is("/a+b c", SIGN_PATH_ONCE, "/a%2Bb%20c");
    path_is("/a//b/./c/../%7E", SIGN_PATH_TWICE, "/a/b/%257E");
    path_is("/../..", SIGN_PATH_TWICE, "/");
    path_is("/a/..", SIGN_PATH_TWICE, "/");
    path_is("/a/b/..", SIGN_PATH_TWICE, "/a");
    path_is("/a/", SIGN_PATH_TWICE, "/a/");
    path_is("//", SIGN_PATH_TWICE, "/");
    path_is("/a b", SIGN_PATH_AS_SENT, "/a b");
    dynbuf_init(&out, 1024);
    assert_int_equal(sign_canonical_path(SPAN(""), SIGN_PATH_ONCE, &out), -1);
    assert_int_equal(sign_canonical_path(SPAN("a"), SIGN_PATH_TWICE, &out), -1);
    assert_int_equal(sign_canonical_path(SPAN("/%4"), SIGN_PATH_ONCE, &out), -1);
    dynbuf_free(&out);
}

static void query_is(const char *query, const char *expected)
{
    struct dynbuf out;
    dynbuf_init(&out, 1024);
    assert_int_equal(sign_canonical_query(span_str(query), &out), 0);
    dynbuf_add_byte(&out, 0);
    assert_string_equal((char *)out.p, expected);
    dynbuf_free(&out);
}

static void queries(void **state)
{
    char many[4 * SIGN_QUERY_MAX + 4];
    struct dynbuf out;
    query_is("", "");
    query_is("b=2&a=1&a=0", "a=0&a=1&b=2");
    query_is("uploads", "uploads=");
    query_is("a=1&a-b=2", "a=1&a-b=2"); /* by name: as texts, the other one would be first */
    query_is("p=a+b%2fc=d&&", "p=a%20b%2Fc%3Dd");
    query_is("%61=%7e", "a=~");
    query_is("a=%7B%7C%7D%5E%60%5C", "a=%7B%7C%7D%5E%60%5C"); /* what the front makes of them raw */
    dynbuf_init(&out, 8192);
    assert_int_equal(sign_canonical_query(SPAN("a=%4"), &out), -1);
    for (size_t i = 0; i <= SIGN_QUERY_MAX; i++)
        memcpy(many + 4 * i, "a=1&", 4);
    assert_int_equal(sign_canonical_query(span_of(many, 4 * SIGN_QUERY_MAX), &out), 0);
    assert_int_equal(sign_canonical_query(span_of(many, 4 * SIGN_QUERY_MAX + 4), &out), -1);
    dynbuf_free(&out);
}

static void presigned(void **state)
{
    assert_true(sign_is_presigned(SPAN("X-Amz-Signature=1")));
    assert_true(sign_is_presigned(SPAN("a=b&x%2damz%2Dalgorithm=AWS4-HMAC-SHA256")));
    assert_true(sign_is_presigned(SPAN("AWSAccessKeyId=A&Expires=1&Signature=b")));
    assert_true(sign_is_presigned(SPAN("%4=1")));
    assert_false(sign_is_presigned(SPAN("list-type=2&prefix=x-amz-signature")));
    assert_false(sign_is_presigned(SPAN("")));
}

static void fields(void **state)
{
    struct sign_request r = {.nfields = 0};
    struct dynbuf names;
    struct arena a;
    arena_init(&a, 1 << 16);
    assert_int_equal(sign_add_field(&r, &a, SPAN("X-Amz-B"), SPAN("  two \t  words ")), 0);
    assert_int_equal(sign_add_field(&r, &a, SPAN("Host"), SPAN("h")), 0);
    assert_int_equal(sign_add_field(&r, &a, SPAN("x-amz-b"), SPAN("three")), 0);
    assert_int_equal(sign_add_field(&r, &a, SPAN("x-amz-a"), SPAN("")), 0);
    dynbuf_init(&names, 100);
    assert_int_equal(sign_names(&r, &names), 0);
    assert_true(span_eq(dynbuf_span(&names), SPAN("host;x-amz-a;x-amz-b")));
    assert_true(span_eq(r.field[2].value, SPAN("two words,three")));
    assert_int_equal(sign_add_field(&r, &a, SPAN("no name"), SPAN("")), -1);
    char name[] = "n00";
    for (size_t i = r.nfields; i < SIGN_FIELDS_MAX; i++) {
        name[1] = (char)('a' + i / 26);
        name[2] = (char)('a' + i % 26);
        assert_int_equal(sign_add_field(&r, &a, span_of(name, 3), SPAN("v")), 0);
    }
    assert_int_equal(sign_add_field(&r, &a, SPAN("one-more"), SPAN("v")), -1);
    dynbuf_free(&names);
    arena_free(&a);
    assert_true(sign_covers(SPAN("X-Amz-Meta-Color")));
    assert_true(sign_covers(SPAN("Content-Type")));
    assert_false(sign_covers(SPAN("x-amz-date")));
    assert_false(sign_covers(SPAN("X-Amz-Security-Token")));
    assert_false(sign_covers(SPAN("user-agent")));
}

/* "Authenticating Requests: Using the Authorization Header", Amazon S3 API reference: GET Object. */
static void example_of_s3(void **state)
{
    struct sign_request r = {.method = SPAN("GET"), .path = SPAN("/test.txt"), .query = SPAN("")};
    struct sign_scope s;
    struct arena a;
    struct dynbuf out;
    uint8_t key[SIGN_KEY];
    char signature[SIGN_TEXT + 1];
    arena_init(&a, 1 << 16);
    dynbuf_init(&out, 1024);
    r.payload = SPAN("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(sign_add_field(&r, &a, SPAN("Host"), SPAN("examplebucket.s3.amazonaws.com")), 0);
    assert_int_equal(sign_add_field(&r, &a, SPAN("Range"), SPAN("bytes=0-9")), 0);
    assert_int_equal(sign_add_field(&r, &a, SPAN("x-amz-content-sha256"), r.payload), 0);
    assert_int_equal(sign_add_field(&r, &a, SPAN("x-amz-date"), SPAN("20130524T000000Z")), 0);
    assert_int_equal(sign_scope_at(SIGN_AWS4, 1369353600, SPAN("us-east-1"), SPAN("s3"), &s), 0);
    assert_string_equal(s.stamp, "20130524T000000Z");
    assert_int_equal(sign_key(&s, SPAN("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), key), 0);
    assert_int_equal(sign_request(&s, key, &r, signature), 0);
    assert_string_equal(signature, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    assert_int_equal(sign_authorization(&s, SPAN("AKIAIOSFODNN7EXAMPLE"), &r, signature, &out), 0);
    struct sign_claim claim;
    assert_int_equal(sign_claim_read(dynbuf_span(&out), &claim), 0);
    assert_true(span_eq(claim.id, SPAN("AKIAIOSFODNN7EXAMPLE")) && span_eq(claim.day, SPAN("20130524")));
    assert_true(sign_claims(&claim, SPAN("Range")) && !sign_claims(&claim, SPAN("rang")));
    dynbuf_free(&out);
    arena_free(&a);
}

static void claims_are_read_strictly(void **state)
{
    static const char *const bad[] = {
        "",
        "AWS4-HMAC-SHA256",
        "Bearer Credential=a",
        "AWS4-HMAC-SHA256 Credential=A/20130524/r/s/aws4_request",
        "AWS4-HMAC-SHA256 Credential=A/20130524/r/s/aws4_request, SignedHeaders=host, Signature=00",
        "AWS4-HMAC-SHA256 Credential=A/20130524/r/s/x/aws4_request, SignedHeaders=host, Signature="
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        "AWS4-HMAC-SHA256 SignedHeaders=host, Credential=A/20130524/r/s/aws4_request, Signature="
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        "AWS4-HMAC-SHA256 Credential=A/20130524/r/s/aws4_request, SignedHeaders=host, Signature="
        "F0E8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        "AWS4-HMAC-SHA256 Credential=A/20130524/r/s/aws4_request, SignedHeaders=host, Signature="
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41, x",
        "AWS4-ECDSA-P256-SHA256 Credential=A/20130524/s/aws4_request, SignedHeaders=host, Signature=00"};
    struct sign_claim c;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(sign_claim_read(span_str(bad[i]), &c), -1);
        assert_int_equal(c.scheme, SIGN_NONE);
    }
    /* Without spaces behind the commas, as some clients write it. */
    assert_int_equal(
        sign_claim_read(
            SPAN("TC3-HMAC-SHA256 Credential=A/2020-01-02/tcb/tc3_request,SignedHeaders=content-type;host,"
                 "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            &c),
        0);
    assert_int_equal(c.scheme, SIGN_TC3);
    assert_true(span_eq(c.service, SPAN("tcb")));
}

static int64_t time_of(enum sign_scheme scheme, const char *stamp)
{
    struct sign_scope s;
    struct span region = scheme == SIGN_AWS4 ? SPAN("r") : SPAN_NONE;
    assert_int_equal(sign_scope_of(scheme, span_str(stamp), region, SPAN("s"), &s), 0);
    return sign_scope_time(&s);
}

static void times(void **state)
{
    assert_int_equal(time_of(SIGN_AWS4, "20130524T000000Z"), 1369353600);
    assert_int_equal(time_of(SIGN_AWS4, "20240229T235959Z"), 1709251199);
    assert_int_equal(time_of(SIGN_TC3, "1551113065"), 1551113065);
    static const char *const none[] = {"20230229T000000Z", "20130631T000000Z", "20131301T000000Z",
                                       "20130524T240000Z", "00000000T000000Z", "20130524T006000Z",
                                       "20130500T000000Z", "19691231T235959Z"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_int_equal(time_of(SIGN_AWS4, none[i]), -1);
    assert_int_equal(sign_scope_time(&(struct sign_scope){.scheme = SIGN_NONE}), -1);
}

static void scopes(void **state)
{
    struct sign_scope s;
    assert_int_equal(sign_scope_at(SIGN_TC3, 1551113065, SPAN_NONE, SPAN("cvm"), &s), 0);
    assert_string_equal(s.stamp, "1551113065");
    assert_string_equal(s.day, "2019-02-25");
    assert_int_equal(sign_scope_of(SIGN_TC3, SPAN("1551113065"), SPAN_NONE, SPAN("cvm"), &s), 0);
    assert_string_equal(s.day, "2019-02-25");
    assert_int_equal(sign_scope_of(SIGN_AWS4, SPAN("20130524T000000Z"), SPAN("r"), SPAN("s"), &s), 0);
    assert_string_equal(s.day, "20130524");
    assert_int_equal(sign_scope_of(SIGN_AWS4, SPAN("20130524T00000xZ"), SPAN("r"), SPAN("s"), &s), -1);
    assert_int_equal(sign_scope_of(SIGN_AWS4, SPAN("20130524"), SPAN("r"), SPAN("s"), &s), -1);
    assert_int_equal(sign_scope_at(SIGN_AWS4, -1, SPAN("r"), SPAN("s"), &s), -1);
    assert_int_equal(sign_scope_at(SIGN_AWS4, 253402300800, SPAN("r"), SPAN("s"), &s), -1);
    assert_int_equal(sign_scope_at(SIGN_AWS4, 253402300799, SPAN("r"), SPAN("s"), &s), 0);
    assert_int_equal(sign_scope_at(SIGN_AWS4, 0, SPAN("a/b"), SPAN("s"), &s), -1);
    assert_int_equal(sign_scope_at(SIGN_AWS4, 0, SPAN(""), SPAN("s"), &s), -1);
    assert_int_equal(sign_scope_at(SIGN_TC3, 0, SPAN("r"), SPAN("s"), &s), -1);
    assert_int_equal(sign_scope_at(SIGN_NONE, 0, SPAN("r"), SPAN("s"), &s), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),  cmocka_unit_test(queries),       cmocka_unit_test(presigned),
        cmocka_unit_test(fields), cmocka_unit_test(example_of_s3), cmocka_unit_test(claims_are_read_strictly),
        cmocka_unit_test(scopes), cmocka_unit_test(times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
