/* common/net/addr: literals, classes, ranges. attacks.tsv: C10 C11 C12 C13 C14 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "common/net/addr.h"

static struct addr lit(const char *s)
{
    struct addr a;
    if (addr_parse(span_str(s), &a) != 0)
        fail_msg("%s is a literal", s);
    return a;
}

static void test_hosts_that_need_no_resolver(void **state)
{
    static const char *const local[] = {"localhost", "a.localhost", "127.0.0.1"}, *const names[] = {
                                                                                      "localhost.example",
                                                                                      "xlocalhost", "a.example", ""};
    struct addr a, want = lit("127.0.0.1");
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        assert_true(addr_of_host(span_str(local[i]), &a) == 0 && addr_eq(&a, &want));
    assert_true(addr_of_host(SPAN("[::1]"), &a) == 0 && addr_class(&a) == ADDR_LOOPBACK);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(addr_of_host(span_str(names[i]), &a), -1);
}

/* C10, C11: spellings that some resolver or library takes for an address, and that we do not. */
static void test_not_literals(void **state)
{
    static const char *const rows[] = {
        "",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "127.000.000.001",
        "0",
        "127.0.0.1.",
        ".127.0.0.1",
        "127..0.1",
        "1.2.3.256",
        "1.2.3.4.5",
        " 1.2.3.4",
        "1.2.3.4 ",
        "+1.2.3.4",
        "1.2.3.-4",
        "1.2.3.4/8",
        "1.2.3.00",
        "a.b.c.d",
        "localhost",
        "[::1",
        "::1]",
        "[[::1]]",
        "[]",
        "[127.0.0.1]",
        "fe80::1%lo",
        "[fe80::1%25eth0]",
        "::1%1",
        ":::",
        "1::2::3",
        "12345::",
        "::ffff:1.2.3",
        "::g",
        ":",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "\xef\xbc\x91.2.3.4",
        "::ffff:01.2.3.4",
    };
    struct addr a;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (addr_parse(span_str(rows[i]), &a) == 0)
            fail_msg("C10: \"%s\" was taken for an address", rows[i]);
        assert_int_equal(a.family == 0 || addr_class(&a) == ADDR_BAD, 1);
    }
    assert_int_equal(addr_parse(span_of("1.2.3.4\0", 8), &a), -1); /* a NUL is a byte like any other */
    assert_int_equal(addr_parse(span_of("::1\0", 4), &a), -1);
}

static void test_text(void **state)
{
    static const char *const rows[][2] = {
        {"1.2.3.4", "1.2.3.4"},
        {"255.255.255.255", "255.255.255.255"},
        {"::1", "::1"},
        {"[2001:DB8::1]", "2001:db8::1"},
        {"0:0:0:0:0:0:0:1", "::1"},
        {"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
    };
    char text[INET6_ADDRSTRLEN];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct addr a = lit(rows[i][0]);
        assert_non_null(inet_ntop(a.family == 4 ? AF_INET : AF_INET6, a.b, text, sizeof(text)));
        assert_string_equal(text, rows[i][1]);
    }
}

/* C11, C12, C13 */
static const struct {
    const char *a;
    enum addr_class c;
} classes[] = {
    {"8.8.8.8", ADDR_PUBLIC},
    {"1.1.1.1", ADDR_PUBLIC},
    {"9.255.255.255", ADDR_PUBLIC},
    {"11.0.0.0", ADDR_PUBLIC},
    {"10.0.0.0", ADDR_PRIVATE},
    {"10.255.255.255", ADDR_PRIVATE},
    {"172.15.255.255", ADDR_PUBLIC},
    {"172.16.0.0", ADDR_PRIVATE},
    {"172.31.255.255", ADDR_PRIVATE},
    {"172.32.0.0", ADDR_PUBLIC},
    {"172.17.0.1", ADDR_PRIVATE},
    {"192.168.0.1", ADDR_PRIVATE},
    {"192.169.0.0", ADDR_PUBLIC},
    {"127.0.0.1", ADDR_LOOPBACK},
    {"127.255.255.255", ADDR_LOOPBACK},
    {"0.0.0.0", ADDR_BAD},
    {"0.1.2.3", ADDR_BAD},
    {"169.254.1.1", ADDR_LINK_LOCAL},
    {"169.253.255.255", ADDR_PUBLIC},
    {"100.64.0.0", ADDR_PRIVATE},
    {"100.127.255.255", ADDR_PRIVATE},
    {"100.128.0.0", ADDR_PUBLIC},
    {"100.63.255.255", ADDR_PUBLIC},
    {"192.0.0.1", ADDR_PRIVATE},
    {"192.0.2.1", ADDR_PRIVATE},
    {"198.18.0.1", ADDR_PRIVATE},
    {"198.19.255.255", ADDR_PRIVATE},
    {"198.20.0.0", ADDR_PUBLIC},
    {"198.51.100.1", ADDR_PRIVATE},
    {"203.0.113.1", ADDR_PRIVATE},
    {"224.0.0.1", ADDR_BAD},
    {"239.255.255.255", ADDR_BAD},
    {"240.0.0.1", ADDR_BAD},
    {"255.255.255.255", ADDR_BAD},
    {"223.255.255.255", ADDR_PUBLIC},
    {"169.254.169.254", ADDR_METADATA},
    {"169.254.170.2", ADDR_METADATA},
    {"100.100.100.200", ADDR_METADATA},
    {"168.63.129.16", ADDR_METADATA},
    {"fd00:ec2::254", ADDR_METADATA},
    {"::ffff:169.254.169.254", ADDR_METADATA},
    {"64:ff9b::a9fe:a9fe", ADDR_METADATA},
    {"2002:a9fe:a9fe::", ADDR_METADATA},
    {"::", ADDR_BAD},
    {"::1", ADDR_LOOPBACK},
    {"::2", ADDR_BAD},
    {"::127.0.0.1", ADDR_LOOPBACK},
    {"::ffff:127.0.0.1", ADDR_LOOPBACK},
    {"::ffff:7f00:1", ADDR_LOOPBACK},
    {"::ffff:8.8.8.8", ADDR_PUBLIC},
    {"::ffff:0.0.0.0", ADDR_BAD},
    {"64:ff9b::7f00:1", ADDR_LOOPBACK},
    {"64:ff9b::808:808", ADDR_PUBLIC},
    {"64:ff9b:1::808:808", ADDR_PRIVATE},
    {"2002:7f00:1::", ADDR_LOOPBACK},
    {"2002:a00:1::5", ADDR_PRIVATE},
    {"2001:0:1:2:3:4:f5ff:fffe", ADDR_PRIVATE}, /* Teredo of 10.0.0.1 */
    {"2001:0:1:2:3:4:80ff:fffe", ADDR_LOOPBACK},
    {"fe80::1", ADDR_LINK_LOCAL},
    {"febf::1", ADDR_LINK_LOCAL},
    {"fec0::1", ADDR_PRIVATE},
    {"fc00::1", ADDR_PRIVATE},
    {"fdff::1", ADDR_PRIVATE},
    {"ff02::1", ADDR_BAD},
    {"2001:db8::1", ADDR_PRIVATE},
    {"2001:2::1", ADDR_PRIVATE},
    {"2001:4860:4860::8888", ADDR_PUBLIC},
    {"2606:4700::1111", ADDR_PUBLIC},
    {"4000::1", ADDR_BAD},
    {"100::1", ADDR_BAD},
    {"5f00::1", ADDR_BAD},
};

static void test_classes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
        struct addr a = lit(classes[i].a);
        if (addr_class(&a) != classes[i].c)
            fail_msg("C12: %s is %s, not %s", classes[i].a, addr_class_name(addr_class(&a)),
                     addr_class_name(classes[i].c));
    }
    struct addr none = {0};
    assert_int_equal(addr_class(&none), ADDR_BAD);
}

static void test_ranges(void **state)
{
    static const char *const bad[] = {"10.0.0.1/8",   "10.0.0.0/33", "10.0.0.0/",   "10.0.0.0/08", "10.0.0.0/-1",
                                      "10.0.0.0/8 ",  "fd00::/129",  "fd00::1/64",  "/8",          "10/8",
                                      "10.0.0.0/8/8", "[::1]/128",   "10.0.0.0/ 8", "1.2.3.4/31x", ""};
    static const struct {
        const char *range, *addr;
        bool in;
    } rows[] = {
        {"10.0.0.0/8", "10.255.0.1", true}, {"10.0.0.0/8", "11.0.0.0", false},
        {"0.0.0.0/0", "8.8.8.8", true},     {"0.0.0.0/0", "::1", false},
        {"10.1.2.3", "10.1.2.3", true},     {"10.1.2.3", "10.1.2.2", false},
        {"10.1.2.2/31", "10.1.2.3", true},  {"10.1.2.2/31", "10.1.2.4", false},
        {"fd00::/9", "fd7f::1", true},      {"fd00::/9", "fd80::1", false},
        {"::1/128", "::1", true},           {"2001:db8::/33", "2001:db8:8000::", false},
    };
    struct cidr c;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (cidr_parse(span_str(bad[i]), &c) == 0)
            fail_msg("\"%s\" was taken for a range", bad[i]);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct addr a = lit(rows[i].addr);
        assert_int_equal(cidr_parse(span_str(rows[i].range), &c), 0);
        if (cidr_has(&c, &a) != rows[i].in)
            fail_msg("%s and %s", rows[i].range, rows[i].addr);
    }
}

/* C12, C13: only what a range names, metadata only by its own address, nonsense never. */
static void test_may_dial(void **state)
{
    static const struct {
        const char *addr, *range;
        bool may;
    } rows[] = {
        {"8.8.8.8", NULL, true},
        {"10.1.2.3", NULL, false},
        {"10.1.2.3", "10.0.0.0/8", true},
        {"10.1.2.3", "10.1.2.0/24", true},
        {"10.1.2.3", "10.1.3.0/24", false},
        {"64:ff9b::a01:203", "10.0.0.0/8", true},
        {"::ffff:10.1.2.3", "10.0.0.0/8", true},
        {"2002:a01:203::1", "10.0.0.0/8", false},
        {"2002:a01:203::1", "2002:a01:203::/48", true},
        {"::10.1.2.3", "10.0.0.0/8", false},
        {"127.0.0.1", "127.0.0.0/8", true},
        {"::1", "::1", true},
        {"::1", "127.0.0.0/8", false},
        {"169.254.169.254", "169.254.0.0/16", false},
        {"169.254.169.254", "0.0.0.0/0", false},
        {"169.254.169.254", "169.254.169.254/32", true},
        {"169.254.169.254", "169.254.169.254", true},
        {"169.254.1.1", "169.254.0.0/16", true},
        {"fd00:ec2::254", "fd00::/8", false},
        {"fd00:ec2::254", "fd00:ec2::254/128", true},
        {"100.100.100.200", "100.64.0.0/10", false},
        {"168.63.129.16", NULL, false},
        {"::ffff:169.254.169.254", "::/0", false},
        {"0.0.0.0", "0.0.0.0/0", false},
        {"224.0.0.1", "224.0.0.0/4", false},
        {"255.255.255.255", "255.255.255.255", false},
        {"::", "::/0", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct addr a = lit(rows[i].addr);
        struct cidr c;
        size_t n = rows[i].range != NULL;
        if (n > 0)
            assert_int_equal(cidr_parse(span_str(rows[i].range), &c), 0);
        if (addr_may_dial(&a, &c, n) != rows[i].may)
            fail_msg("C13: %s with %s", rows[i].addr, n ? rows[i].range : "nothing allowed");
    }
}

static void test_sockaddr(void **state)
{
    struct sockaddr_storage ss;
    struct addr a = lit("2001:db8::7"), b, own[64];
    uint16_t port;
    (void)state;
    assert_true(addr_sockaddr(&a, 443, &ss) > 0);
    assert_int_equal(addr_of_sockaddr((struct sockaddr *)&ss, &b, &port), 0);
    assert_true(addr_eq(&a, &b));
    assert_int_equal(port, 443);
    a = lit("192.0.2.7");
    assert_true(addr_sockaddr(&a, 80, &ss) > 0);
    assert_int_equal(addr_of_sockaddr((struct sockaddr *)&ss, &b, &port), 0);
    assert_true(addr_eq(&a, &b));
    ss.ss_family = AF_UNIX;
    assert_int_equal(addr_of_sockaddr((struct sockaddr *)&ss, &b, &port), -1);
    a = (struct addr){0};
    assert_int_equal(addr_sockaddr(&a, 80, &ss), 0);
    assert_int_equal(addr_from_bytes(4, span_of("\x7f\0\0\x01", 4), &a), 0);
    assert_int_equal(addr_class(&a), ADDR_LOOPBACK);
    assert_int_equal(addr_from_bytes(6, span_of("\x7f\0\0\x01", 4), &a), -1);
    assert_int_equal(addr_from_bytes(5, span_of("\x7f\0\0\x01", 4), &a), -1);
    int n = addr_own(own, 64);
    bool loopback = false;
    for (int i = 0; i < n && i < 64; i++)
        loopback = loopback || addr_class(&own[i]) == ADDR_LOOPBACK;
    assert_true(loopback);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_that_need_no_resolver),
        cmocka_unit_test(test_not_literals),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_may_dial),
        cmocka_unit_test(test_sockaddr),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
