/* What the gateway and a store of S3's API answer, taken apart (sandbox-shim/checkpoint/away/answer.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox-shim/checkpoint/away/answer.h"

static void is(struct span s, const char *text)
{
    char room[512];
    (void)snprintf(room, sizeof(room), "%.*s", SPAN_FMT(s));
    assert_string_equal(room, text);
}

static void a_lease_has_what_signs(void **state)
{
    struct answer_lease l;
    assert_int_equal(answer_lease(SPAN("{\"Code\":\"Success\",\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"s/+=\","
                                       "\"Token\":\"t\",\"Expiration\":\"2026-11-30T12:00:00Z\"}"),
                                  &l),
                     0);
    is(l.id, "AK");
    is(l.secret, "s/+=");
    is(l.token, "t");
    is(l.expires, "2026-11-30T12:00:00Z");
    assert_int_equal(answer_lease(SPAN("{\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"s\"}"), &l), 0);
    assert_int_equal(l.token.n + l.expires.n, 0);
    static const char *const none[] = {"",
                                       "{}",
                                       "{\"AccessKeyId\":\"AK\"}",
                                       "{\"SecretAccessKey\":\"s\"}",
                                       "{\"AccessKeyId\":\"\",\"SecretAccessKey\":\"s\"}",
                                       "{\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"s"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_int_equal(answer_lease(span_str(none[i]), &l), -1);
}

static void of_a_refusal_a_code_is_told_and_no_other_word(void **state)
{
    static const struct {
        const char *all, *code;
        bool ours;
    } row[] = {
        {"{\"error\":{\"code\":\"denied\",\"rule\":\"x\"}}", "denied", true},
        {"<Error><Code>AccessDenied</Code><CountersignCode>held</CountersignCode></Error>", "held", true},
        {"<Error><Code>SlowDown</Code><Message>later</Message></Error>", "SlowDown", false},
        {"<Error><Code>\x1b[31mred</Code></Error>", "", false},
        {"<Error><Code>two words</Code></Error>", "", false},
        {"<Error><Code>no-end", "", false},
        {"{\"code\":\"not plain!\"}<Code>NoSuchKey</Code>", "NoSuchKey", true},
        {"<Code>a123456789012345678901234567890123456789012345678901234567890123</Code>",
         "a123456789012345678901234567890123456789012345678901234567890123", false},
        {"<Code>a1234567890123456789012345678901234567890123456789012345678901234</Code>", "", false},
        {"", "", false},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        is(answer_code(span_str(row[i].all)), row[i].code);
        assert_int_equal(answer_is_ours(span_str(row[i].all)), row[i].ours);
    }
}

static void names_come_one_after_the_other(void **state)
{
    struct span rest = SPAN("<Contents><Key>a/b</Key><Size>1</Size></Contents><Contents><Key></Key></Contents>"
                            "<Contents><Key>c</Key></Contents><Key>no end"),
                name;
    assert_true(answer_name(&rest, &name));
    is(name, "a/b");
    assert_true(answer_name(&rest, &name));
    is(name, "");
    assert_true(answer_name(&rest, &name));
    is(name, "c");
    assert_false(answer_name(&rest, &name));
    assert_int_equal(name.n + rest.n, 0);
    assert_false(answer_name(&rest, &name));
}

/* Megabytes of begins without an end are looked through once, not once for each of them. */
static void what_begins_and_does_not_end_is_looked_for_once(void **state)
{
    const size_t n = 4u << 20;
    uint8_t *p = malloc(n);
    struct span rest, name;
    assert_non_null(p);
    for (size_t i = 0; i + 5 <= n; i += 5)
        memcpy(p + i, "<Key>", 5);
    rest = span_of(p, n / 5 * 5);
    assert_false(answer_name(&rest, &name));
    assert_int_equal(rest.n, 0);
    free(p);
}

static void how_a_list_goes_on_is_said_or_it_is_none(void **state)
{
    static const struct {
        const char *all, *token;
        int rc;
    } row[] = {
        {"<IsTruncated>false</IsTruncated>", "", 0},
        {"<IsTruncated>false</IsTruncated><NextContinuationToken>left over</NextContinuationToken>", "", 0},
        {"<IsTruncated>true</IsTruncated><NextContinuationToken>ab+/=</NextContinuationToken>", "ab+/=", 0},
        {"<NextContinuationToken>a&amp;b&lt;&gt;&quot;&apos;&#61;</NextContinuationToken><IsTruncated>true</"
         "IsTruncated>",
         "a&b<>\"'=", 0},
        {"<IsTruncated>true</IsTruncated>", NULL, -1},
        {"<IsTruncated>true</IsTruncated><NextContinuationToken></NextContinuationToken>", NULL, -1},
        {"<IsTruncated>true</IsTruncated><NextContinuationToken>a&b</NextContinuationToken>", NULL, -1},
        {"<IsTruncated>true</IsTruncated><NextContinuationToken>a&nbsp;b</NextContinuationToken>", NULL, -1},
        {"<IsTruncated>true</IsTruncated><NextContinuationToken>&#10;</NextContinuationToken>", NULL, -1},
        {"<IsTruncated>true</IsTruncated><NextContinuationToken>0123456789012345</NextContinuationToken>", NULL, -1},
        {"<IsTruncated>maybe</IsTruncated><NextContinuationToken>a</NextContinuationToken>", NULL, -1},
        {"<html>502</html>", NULL, -1},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct dynbuf token;
        dynbuf_init(&token, 15);
        (void)dynbuf_add(&token, SPAN("before"));
        assert_int_equal(answer_more(span_str(row[i].all), &token), row[i].rc);
        if (row[i].rc == 0)
            is(dynbuf_span(&token), row[i].token);
        dynbuf_free(&token);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_has_what_signs),
        cmocka_unit_test(of_a_refusal_a_code_is_told_and_no_other_word),
        cmocka_unit_test(names_come_one_after_the_other),
        cmocka_unit_test(what_begins_and_does_not_end_is_looked_for_once),
        cmocka_unit_test(how_a_list_goes_on_is_said_or_it_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
