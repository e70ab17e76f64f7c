/* What a job makes of a message to people, and of what it is answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "proxy/fetcher/job/tell.h"
#include "proxy/tell/wire_tell.h"

static void a_status_says_whether_it_is_told_again(void **state)
{
    static const unsigned told[] = {200, 202, 204, 299}, later[] = {0, 199, 300, 302, 307, 400, 404, 429, 500, 503};
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        assert_int_equal(tell_status(told[i]), TELL_SAYS_TOLD);
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        assert_int_equal(tell_status(later[i]), TELL_SAYS_LATER);
    assert_int_equal(tell_status(410), TELL_SAYS_NEVER);
}

static void nothing_begins_a_line_of_a_mails_header(void **state)
{
    struct wire_fetch f = {.kind = FETCH_TELL, .nsettings = 6};
    struct dynbuf b;
    f.setting[0] = (struct wire_setting){SPAN("from"), SPAN("gate@corp.example")};
    f.setting[1] = (struct wire_setting){SPAN("to"), SPAN("a@corp.example\r\nBcc: x@evil.example")};
    f.setting[2] = (struct wire_setting){SPAN("to"), SPAN("b@corp.example")};
    f.setting[3] = (struct wire_setting){SPAN("id"), SPAN("msg_1\r\nX: y")};
    f.setting[4] = (struct wire_setting){SPAN("title"), SPAN("One\nTwo: \xc3\xa4")};
    f.setting[5] = (struct wire_setting){SPAN("body"), SPAN("first\n.\nlast\r\nX: y\n")};
    assert_int_equal(tell_mail(&f, 1800000000000, &b), 0);
    static const char want[] = "Date: Fri, 15 Jan 2027 08:00:00 +0000\r\n"
                               "From: Countersign <gate@corp.example>\r\n"
                               "To: a@corp.example??Bcc: x@evil.example,\r\n b@corp.example\r\n"
                               "Message-ID: <msg_1??X: y@corp.example>\r\n"
                               "Subject: One?Two: ??\r\n"
                               "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                               "Content-Type: text/plain; charset=us-ascii\r\nContent-Transfer-Encoding: 7bit\r\n\r\n"
                               "first\r\n.\r\nlast?\r\nX: y\r\n\r\n";
    assert_int_equal(b.n, sizeof(want) - 1);
    assert_memory_equal(b.p, want, b.n);
    dynbuf_free(&b);
}

static void only_messages_go_without_tls(void **state)
{
    struct wire_fetch f = {.kind = FETCH_TELL, .nsettings = 1};
    f.setting[0] = (struct wire_setting){SPAN("url"), SPAN("http://127.0.0.1/x")};
    assert_true(tell_is_clear(&f));
    f.kind = FETCH_GATE;
    assert_false(tell_is_clear(&f));
    f.kind = FETCH_TELL;
    f.setting[0].value = SPAN("https://127.0.0.1/x");
    assert_false(tell_is_clear(&f));
}

static void urls_and_addresses(void **state)
{
    static const struct {
        struct span url;
        const char *host;
        unsigned port;
        bool loopback;
    } good[] = {{SPAN("https://hooks.example/a?b=c"), "hooks.example", 443, false},
                {SPAN("https://hooks.example:8443"), "hooks.example", 8443, false},
                {SPAN("http://127.0.0.1:80/"), "127.0.0.1", 80, true},
                {SPAN("http://127.example.com/"), "127.example.com", 80, false},
                {SPAN("http://127.0.0.1.example/"), "127.0.0.1.example", 80, false},
                {SPAN("http://localhost/"), "localhost", 80, true},
                {SPAN("smtps://mail.example"), "mail.example", 465, false},
                {SPAN("smtp://mail.example:587"), "mail.example", 587, false}};
    static const struct span bad[] = {SPAN(""),
                                      SPAN("hooks.example"),
                                      SPAN("ftp://x/"),
                                      SPAN("https:/x"),
                                      SPAN("https://"),
                                      SPAN("https://user@host/"),
                                      SPAN("https://user:pw@host/"),
                                      SPAN("https://host:0/"),
                                      SPAN("https://host:65536/"),
                                      SPAN("https://host:/"),
                                      SPAN("https://[::1/"),
                                      SPAN("http://[::1]:81/"),
                                      SPAN("https://[::1]x/"),
                                      SPAN("https://ho st/"),
                                      SPAN("https://host/\r\nX: y"),
                                      SPAN("https://host/#a"),
                                      SPAN("https://HOST/"),
                                      SPAN("https://host\\x/"),
                                      SPAN("smtp://host/path"),
                                      SPAN("https://h\xc3\xb6st/")};
    static const struct span no_mail[] = {SPAN(""),      SPAN("a"),        SPAN("@b"),    SPAN("a@"),
                                          SPAN("a b@c"), SPAN("a@b\r\nc"), SPAN("a@b@c"), SPAN("<a@b>"),
                                          SPAN("a@-b"),  SPAN("\"a\"@b")};
    struct tell_url u;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(tell_url_parse(good[i].url, &u), 0);
        assert_true(span_eq(u.host, span_str(good[i].host)) && u.port == good[i].port);
        assert_int_equal(tell_url_is_loopback(&u), good[i].loopback);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(tell_url_parse(bad[i], &u), -1);
    for (size_t i = 0; i < sizeof(no_mail) / sizeof(no_mail[0]); i++)
        assert_false(tell_address_ok(no_mail[i]));
    assert_true(tell_address_ok(SPAN("on-call+gate@corp.example")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_status_says_whether_it_is_told_again),
                                       cmocka_unit_test(nothing_begins_a_line_of_a_mails_header),
                                       cmocka_unit_test(only_messages_go_without_tls),
                                       cmocka_unit_test(urls_and_addresses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
