/* The scan of audit records: what is read, what is refused; which records are one request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/policy/record/once.h"
#include "cli/policy/record/record.h"

static uint8_t room[RECORD_BYTES_MAX];

static bool scan(const char *json, struct record *r)
{
    const char *why;
    struct span s = span_str(json);
    uint8_t *exact = malloc(s.n ? s.n : 1); /* a read past its end is seen */
    static struct record kept;
    memcpy(exact, s.p, s.n);
    bool good = record_scan(span_of(exact, s.n), room, &kept, &why);
    assert_true(good || why != NULL);
    free(exact);
    return good && record_scan(s, room, r, &why);
}

static void a_record_is_read(void **state)
{
    struct record r;
    (void)state;
    assert_true(
        scan("{\"seq\":7,\"time\":\"2026-11-22T10:20:30.123Z\",\"kind\":\"result\",\"exchange\":\"b-1\","
             "\"outcome\":\"answered\",\"status\":200,\"more\":{\"a\":[1,{\"b\":\"}\"}]},\"sandbox\":\"ci\\u002d1\","
             "\"method\":\"GET\",\"path\":\"/a\\\"b\\n\\u00e9\\ud83d\\ude00\",\"port\":443,\"rule\":{\"id\":\"r\","
             "\"file\":\"p.yaml\",\"line\":3},\"body\":true,\"refs\":[\"create refs/heads/x\",\"delete "
             "refs/heads/\\u0079\"],\"enforced\":false}",
             &r));
    assert_int_equal(r.seq, 7);
    assert_true(span_eq(r.sandbox, SPAN("ci-1")));
    assert_true(span_eq(r.path, SPAN("/a\"b\n\xc3\xa9\xf0\x9f\x98\x80")));
    assert_true(span_eq(r.rule, SPAN("r")) && r.rule_line == 3 && r.port == 443 && r.body && r.shadow && !r.upgrade);
    assert_true(span_eq(r.refs, SPAN("create refs/heads/x\ndelete refs/heads/y")));
    assert_true(scan("{}", &r) && scan(" { \"seq\" : 1 } \n", &r));
}

static void what_is_no_record_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{",
                                      "{\"seq\":1",
                                      "{\"seq\":1}x",
                                      "{\"seq\":1,}",
                                      "{\"seq\":-1}",
                                      "{\"seq\":\"1\"}",
                                      "{\"seq\":1,\"seq\":1}",
                                      "{\"kind\":5}",
                                      "{\"kind\":\"a",
                                      "{\"kind\":\"a\\",
                                      "{\"kind\":\"\\x\"}",
                                      "{\"kind\":\"\\u12\"}",
                                      "{\"kind\":\"\\ud800\"}",
                                      "{\"kind\":\"\\udc00\"}",
                                      "{\"kind\":\"a\nb\"}",
                                      "{\"kind\":\"\xff\"}",
                                      "{\"body\":1}",
                                      "{\"body\":tru}",
                                      "{\"refs\":[\"a\\nb\"]}",
                                      "{\"refs\":[\"a\"}",
                                      "{\"rule\":[]}",
                                      "{\"x\":[[[[[[[[[1]]]]]]]]]}",
                                      "{\"x\":}",
                                      "{\"x\":]}",
                                      "{\"x\":[}]}",
                                      "{\"x\"}",
                                      "{x:1}"};
    struct record r;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (scan(bad[i], &r))
            fail_msg("taken for a record: %s", bad[i]);
}

static void long_ones_are_refused(void **state)
{
    const char *why;
    struct record r;
    char *text = malloc(RECORD_BYTES_MAX + 64);
    (void)state;
    for (int over = 0; over < 2; over++) {
        size_t n = (size_t)sprintf(text, "{\"path\":\"");
        memset(text + n, 'a', RECORD_BYTES_MAX - n);
        memcpy(text + RECORD_BYTES_MAX - 2 + over, "\"}", 2);
        assert_int_equal(record_scan(span_of(text, RECORD_BYTES_MAX + (size_t)over), room, &r, &why), !over);
    }
    free(text);
}

static void times_are_read(void **state)
{
    uint64_t ms;
    (void)state;
    assert_int_equal(record_time(SPAN("1970-01-01T00:00:00Z"), &ms), 0);
    assert_int_equal(ms, 0);
    assert_int_equal(record_time(SPAN("2024-02-29T12:34:56.789Z"), &ms), 0);
    assert_true(ms == 1709210096789u);
    assert_int_equal(record_time(SPAN("2026-13-01T00:00:00Z"), &ms), -1);
    assert_int_equal(record_time(SPAN("2026-02-29T00:00:00Z"), &ms), -1);
    assert_int_equal(record_time(SPAN("2026-11-22 10:00:00Z"), &ms), -1);
    assert_int_equal(record_time(SPAN("2026-11-22T10:00:00"), &ms), -1);
}

static enum once_is ask(struct once *o, const char *kind, const char *exchange, const char *ticket,
                        const char *verdict, const char *digest)
{
    struct record r = {.kind = span_str(kind),
                       .exchange = span_str(exchange),
                       .ticket = span_str(ticket),
                       .verdict = span_str(verdict),
                       .request = span_str(digest)};
    return once_ask(o, &r);
}

static void a_request_is_told_once(void **state)
{
    struct once *o = calloc(1, sizeof(*o));
    (void)state;
    assert_int_equal(ask(o, "intent", "b-1", "", "allow", "d1"), ONCE_NEW);
    assert_int_equal(ask(o, "sent", "b-1", "", "", ""), ONCE_OTHER);
    assert_int_equal(ask(o, "denied", "b-1", "", "deny", "d1"), ONCE_AGAIN); /* a message */
    assert_int_equal(ask(o, "result", "b-1", "", "allow", "d1"), ONCE_AGAIN);
    assert_int_equal(ask(o, "result", "b-2", "", "allow", "d1"), ONCE_NEW); /* a read has no intent */
    assert_int_equal(ask(o, "ticket-opened", "", "t1", "hold", "d2"), ONCE_NEW);
    assert_int_equal(ask(o, "denied", "b-3", "", "hold", "d2"), ONCE_AGAIN); /* waited, and came again */
    assert_int_equal(ask(o, "intent", "b-4", "t1", "hold", "d2"), ONCE_AGAIN);
    assert_int_equal(ask(o, "result", "b-4", "t1", "hold", "d2"), ONCE_AGAIN);
    assert_int_equal(ask(o, "intent", "b-5", "t9", "hold", "d9"), ONCE_NEW); /* its ticket is older than the record */
    free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_record_is_read),
                                       cmocka_unit_test(what_is_no_record_is_refused),
                                       cmocka_unit_test(long_ones_are_refused), cmocka_unit_test(times_are_read),
                                       cmocka_unit_test(a_request_is_told_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
