/* What a sandbox may reach of what the policy lets it: names, addresses, in whatever spelling, and which rule wins.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include "common/net/addr.h"
#include "proxy/reach/reach.h"
#include "tests/kit.h"

static void which_names(void **state)
{
    static const struct {
        const char *text, *host;
        enum reach_said said;
    } row[] = {
        {"", "any.test", REACH_YES},
        {"+n api.test\n", "api.test", REACH_YES},
        {"+n api.test\n", "API.test.", REACH_YES},
        {"+n api.test\n", "x.api.test", REACH_NO},
        {"+n api.test\n", "xapi.test", REACH_NO},
        {"+n *.api.test\n", "x.y.api.test", REACH_YES},
        {"+n *.api.test\n", "api.test", REACH_NO},
        {"+n *.api.test\n", ".api.test", REACH_NO},
        {"+n *.api.test\n", "xapi.test", REACH_NO},
        {"-n api.test\n", "other.test", REACH_YES},
        {"-n api.test\n", "api.test.", REACH_NO},
        {"+n api.test\n-n api.test\n", "api.test", REACH_NO}, /* what is denied wins, wherever it stands */
        {"-n *.test\n+n api.test\n", "api.test", REACH_NO},
        {"-a 10.0.0.0/8\n", "api.test", REACH_BY_ADDRESS},
        {"-a 10.0.0.0/8\n-n api.test\n", "api.test", REACH_NO},
        {"+n api.test\n+a 10.0.0.0/8\n", "other.test", REACH_BY_ADDRESS},
        {"+n api.test\n-a 10.0.0.0/8\n", "other.test", REACH_NO}, /* whatever it resolves to */
        {"0\n", "api.test", REACH_NO},
        {"+n api.test\n&\n-n api.test\n", "api.test", REACH_NO}, /* each layer has to let it */
        {"+n *.test\n&\n+n api.test\n", "api.test", REACH_YES},
        {"+n *.test\n&\n+n api.test\n", "x.test", REACH_NO},
        {"+n api.test\n&\n-a 10.0.0.0/8\n", "api.test", REACH_BY_ADDRESS},
        {"+n api.test", "api.test", REACH_NO}, /* none that is understood whole */
        {"+x api.test\n", "api.test", REACH_NO},
        {"=n api.test\n", "api.test", REACH_NO},
        {"+n api.test\nnonsense\n", "api.test", REACH_NO},
        {"+n api.test\n&\n", "api.test", REACH_NO},
        {"&\n+n api.test\n", "api.test", REACH_NO},
        {"+n API.test\n", "api.test", REACH_NO},
        {"-a 10.0.0.1/8\n", "api.test", REACH_NO},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (reach_by_name(span_str(row[i].text), span_str(row[i].host), SPAN_NONE) != row[i].said)
            fail_msg("row %zu: %s", i, row[i].text);
}

/* Nobody is asked to approve what cannot be reached: what is known before it is dialled is said before. */
static void what_is_known_before(void **state)
{
    static const struct {
        const char *text, *host, *address;
        enum reach_said said;
    } row[] = {
        {"-a 10.0.0.0/8\n", "x.test", "10.1.1.1", REACH_NO},
        {"-a 10.0.0.0/8\n", "x.test", "64:ff9b::10.1.1.1", REACH_NO},
        {"-a 10.0.0.0/8\n", "x.test", "11.1.1.1", REACH_BY_ADDRESS},
        {"-a 10.0.0.0/8\n", "10.1.1.1", "", REACH_NO},
        {"-a 10.0.0.0/8\n", "10.1.1.1", "11.1.1.1", REACH_NO}, /* as it is asked for */
        {"-a 10.0.0.0/8\n", "11.1.1.1", "10.1.1.1", REACH_NO},
        {"+a 10.0.0.0/8\n", "10.1.1.1", "11.1.1.1", REACH_NO},
        {"+a 10.0.0.0/8\n", "11.1.1.1", "", REACH_NO},
        {"+a 10.0.0.0/8\n", "10.1.1.1", "", REACH_BY_ADDRESS},
        {"+a 10.0.0.0/8\n", "x.test", "11.1.1.1", REACH_NO},
        {"-a 127.0.0.1/32\n", "localhost", "", REACH_NO},
        {"-a 127.0.0.1/32\n", "LOCALHOST.", "", REACH_NO},
        {"-a 127.0.0.1/32\n", "a.localhost", "", REACH_NO},
        {"-a 10.0.0.0/8\n", "[2002:a01:101::1]", "", REACH_NO},
        {"-a 10.0.0.0/8\n", "2002:a01:101::1", "", REACH_NO},
        {"-a 10.0.0.0/8\n", "x.test", "nonsense", REACH_BY_ADDRESS},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (reach_by_name(span_str(row[i].text), span_str(row[i].host), span_str(row[i].address)) != row[i].said)
            fail_msg("row %zu: %s %s", i, row[i].text, row[i].host);
}

static struct addr addr(const char *text)
{
    struct addr a;
    if (addr_parse(span_str(text), &a) != 0)
        fail_msg("%s", text);
    return a;
}

/* C12: for what is denied every reading counts, for what is allowed what is written alone. */
static void which_addresses(void **state)
{
    static const struct {
        const char *text, *host, *address;
        bool may;
    } row[] = {
        {"-a 10.0.0.0/8\n", "x.test", "11.0.0.1", true},
        {"-a 10.0.0.0/8\n", "x.test", "10.0.0.1", false},
        {"-a 10.0.0.0/8\n", "x.test", "::ffff:10.0.0.1", false},
        {"-a 10.0.0.0/8\n", "x.test", "::10.0.0.1", false},
        {"-a 10.0.0.0/8\n", "x.test", "64:ff9b::10.0.0.1", false},
        {"-a 10.0.0.0/8\n", "x.test", "64:ff9b:1:a00:0:100::", false}, /* /48 */
        {"-a 10.0.0.0/8\n", "x.test", "64:ff9b:1:c0a:0:1::", false},   /* /56 */
        {"-a 10.0.0.0/8\n", "x.test", "64:ff9b:1::a:0:100:0", false},  /* /64 */
        {"-a 10.0.0.0/8\n", "x.test", "64:ff9b:1::10.0.0.1", false},   /* /96 */
        {"-a 10.0.0.0/8\n", "x.test", "2002:a00:1::1", false},
        {"-a 10.0.0.0/8\n", "x.test", "2001:0:a00:1::", false},
        {"-a 10.0.0.0/8\n", "x.test", "2001:0:b00:1::f5ff:fffe", false},
        {"-a 10.0.0.0/8\n", "x.test", "2a00::5efe:10.0.0.1", false},
        {"-a 10.0.0.0/8\n", "x.test", "2a00::200:5efe:10.0.0.1", false},
        {"-a 10.0.0.0/8\n", "x.test", "2a00::5eff:10.0.0.1", true},
        {"-a 64:ff9b:0:0:0:0:a00:0/104\n", "x.test", "10.0.0.1", false},
        {"-a 2002:a00:0:0:0:0:0:0/24\n", "x.test", "10.0.0.1", false},
        {"-a 2002:0:0:0:0:0:0:0/16\n", "x.test", "10.0.0.1", true}, /* 6to4 itself, not all of IPv4 */
        {"+a 10.0.0.0/8\n", "x.test", "10.0.0.1", true},
        {"+a 10.0.0.0/8\n", "x.test", "::ffff:10.0.0.1", true}, /* the same address */
        {"+a 10.0.0.0/8\n", "x.test", "64:ff9b::10.0.0.1", false},
        {"+a 10.0.0.0/8\n", "x.test", "2002:a00:1::1", false},
        {"+a 10.0.0.0/8\n", "x.test", "2001:0:b00:1::f5ff:fffe", false},
        {"+a 10.0.0.0/8\n", "x.test", "::10.0.0.1", false},
        {"+a 10.0.0.0/8\n", "x.test", "11.0.0.1", false},
        {"+a 0.0.0.0/0\n", "x.test", "2a00::1", false},
        {"+a 0:0:0:0:0:0:0:0/0\n", "x.test", "1.1.1.1", false},
        {"+n x.test\n+a 10.0.0.0/8\n", "x.test", "11.0.0.1", true},
        {"+n x.test\n-a 10.0.0.0/8\n", "x.test", "10.0.0.1", false},
        {"+n x.test\n-a 10.0.0.0/8\n", "y.test", "11.0.0.1", false},
        {"+a 10.0.0.0/8\n-n x.test\n", "x.test", "10.0.0.1", false},
        {"+a 10.0.0.0/8\n-a 10.0.0.0/8\n", "x.test", "10.0.0.1", false},
        {"+a 10.0.0.0/8\n&\n+a 10.1.0.0/16\n", "x.test", "10.0.0.1", false},
        {"+a 10.0.0.0/8\n&\n+a 10.1.0.0/16\n", "x.test", "10.1.0.1", true},
        {"+a 10.0.0.0/8\n?\n", "x.test", "10.0.0.1", false},
        {"0\n", "x.test", "10.0.0.1", false},
        {"", "x.test", "10.0.0.1", true},
        {"+n x.test\n", "0x7f.1", "10.0.0.1", false}, /* no host */
        {"-n x.test\n", "0x7f.1", "10.0.0.1", false},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct addr a = addr(row[i].address);
        if (reach_by_address(span_str(row[i].text), span_str(row[i].host), &a) != row[i].may)
            fail_msg("row %zu: %s %s", i, row[i].text, row[i].address);
    }
}

/* C13, C15, C16: each spelling of a place is the one, or is refused; none is taken for another place. */
static const struct {
    const char *said, *text; /* NULL: none */
} spelled[] = {
    {"api.test", "n api.test"},
    {"API.Test.", "n api.test"},
    {"*.API.test.", "n *.api.test"},
    {"a_b-c.test", "n a_b-c.test"},
    {"xn--bcher-kva.example", "n xn--bcher-kva.example"},
    {"XN--BCHER-KVA.example", "n xn--bcher-kva.example"},
    {"10.0.0.1", "a 10.0.0.1/32"},
    {"10.0.0.0/8", "a 10.0.0.0/8"},
    {"::ffff:10.0.0.1", "a 10.0.0.1/32"},
    {"::ffff:a00:1", "a 10.0.0.1/32"},
    {"[::FFFF:10.0.0.1]", "a 10.0.0.1/32"},
    {"::ffff:10.0.0.0/104", "a 10.0.0.0/8"},
    {"::ffff:0:0/96", "a 0.0.0.0/0"},
    {"2001:DB8::1", "a 2001:db8:0:0:0:0:0:1/128"},
    {"[2001:db8::1]", "a 2001:db8:0:0:0:0:0:1/128"},
    {"::/0", "a 0:0:0:0:0:0:0:0/0"},
    {"localhost", "a 127.0.0.1/32"},
    {"LOCALHOST.", "a 127.0.0.1/32"},
    {"x.localhost", "a 127.0.0.1/32"},
    {"*.localhost", "a 127.0.0.1/32"},
    {"::/64", NULL}, /* is IPv4 meant, too? */
    {"::ffff:0:0/80", NULL},
    {"0x7f.1", NULL},
    {"0x7f000001", NULL},
    {"2130706433", NULL},
    {"0177.0.0.1", NULL},
    {"127.1", NULL},
    {"127.0.0.01", NULL},
    {"127.0.0.1.", NULL},
    {"999.1.1.1", NULL},
    {"1.2.3", NULL},
    {"a.1", NULL},
    {"a.0x1", NULL},
    {"*.1.2.3.4", NULL},
    {"10.0.0.1/8", NULL},
    {"10.0.0.0/33", NULL},
    {"10.0.0.0/", NULL},
    {"10.0.0.0/08", NULL},
    {"[10.0.0.1]", NULL},
    {"[::1]/128", NULL},
    {"[::/0]", NULL},
    {"fe80::1%eth0", NULL},
    {"b\xc3\xbc"
     "cher.example",
     NULL},
    {"xn--github-.com", NULL},
    {"xn--a.example", NULL},
    {"", NULL},
    {"*", NULL},
    {"*.", NULL},
    {".a", NULL},
    {"a..b", NULL},
    {"a.b..", NULL},
    {"a b", NULL},
    {"a\nb", NULL},
    {"*.*.a", NULL},
    {"a.*", NULL},
    {"a:1", NULL},
    {"a/b", NULL},
    {"http://a", NULL},
    {"a%2eb", NULL},
};

static void one_spelling(void **state)
{
    for (size_t i = 0; i < sizeof(spelled) / sizeof(spelled[0]); i++) {
        struct reach_what w;
        struct dynbuf b;
        dynbuf_init(&b, REACH_MAX);
        int rc = reach_read(span_str(spelled[i].said), &w);
        if (rc == 0)
            reach_put(&b, false, &w);
        char wanted[300];
        (void)snprintf(wanted, sizeof(wanted), "-%s\n", spelled[i].text ? spelled[i].text : "");
        if ((rc == 0) != (spelled[i].text != NULL) || (rc == 0 && !span_eq(dynbuf_span(&b), span_str(wanted))))
            fail_msg("%s", spelled[i].said);
        assert_true(rc != 0 || reach_ok(dynbuf_span(&b)));
        dynbuf_free(&b);
    }
}

static void what_is_a_text_of_rules(void **state)
{
    char text[(REACH_RULES_MAX + 1) * 8 + 4] = "", *at = text;
    static const char *const none[] = {
        "\n",  "&\n",    "-n a",      "-n a\n&\n",    "&\n-n a\n",       "-n a\n&\n&\n-n b\n",
        "1\n", "-n A\n", "-n a\n0\n", "-a 1.2.3.4\n", "-n 1.2.3.4/32\n", "-a a\n"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        if (reach_ok(span_str(none[i])))
            fail_msg("%s", none[i]);
    assert_true(reach_ok(SPAN_NONE));
    assert_true(reach_ok(REACH_NOTHING));
    for (size_t i = 0; i < REACH_RULES_MAX; i++, at += 5)
        memcpy(at, "-n a\n", 5);
    assert_true(reach_ok(span_of(text, (size_t)(at - text))));
    memcpy(at, "-n a\n", 5);
    assert_false(reach_ok(span_of(text, (size_t)(at - text) + 5)));
    memcpy(at, "&\n-n a\n", 7);
    assert_true(reach_ok(span_of(text, (size_t)(at - text) + 7)));
}

/* Each is looked at for each request, by a judge that other tenants' sandboxes have as well. */
static void rules_of_all_layers_are_bounded(void **state)
{
    struct dynbuf one, more, all;
    dynbuf_init(&one, REACH_MAX);
    dynbuf_init(&more, REACH_MAX);
    dynbuf_init(&all, REACH_MAX);
    for (unsigned i = 0; i < REACH_RULES_MAX; i++)
        (void)dynbuf_addf(&one, "-n a%u\n", i);
    for (unsigned i = 0; i < REACH_ALL_MAX - REACH_RULES_MAX; i++)
        (void)dynbuf_addf(&more, "-n b%u\n", i);
    assert_int_equal(reach_both(&all, dynbuf_span(&one), dynbuf_span(&more)), 0);
    assert_true(reach_ok(dynbuf_span(&all)));
    (void)dynbuf_addf(&all, "&\n-n c\n");
    assert_false(reach_ok(dynbuf_span(&all)));
    assert_int_equal(reach_by_name(dynbuf_span(&all), SPAN("other.test"), SPAN_NONE), REACH_NO);
    (void)dynbuf_addf(&more, "-n c\n");
    dynbuf_reset(&all);
    assert_int_equal(reach_both(&all, dynbuf_span(&one), dynbuf_span(&more)), -1);
    dynbuf_reset(&all);
    assert_int_equal(reach_both(&all, dynbuf_span(&one), dynbuf_span(&one)), 0); /* the same is no more */
    dynbuf_free(&one);
    dynbuf_free(&more);
    dynbuf_free(&all);
}

static void both(struct dynbuf *out, const char *a, const char *b, const char *wanted)
{
    dynbuf_reset(out);
    assert_int_equal(reach_both(out, span_str(a), span_str(b)), 0);
    if (!span_eq(dynbuf_span(out), span_str(wanted)))
        fail_msg("%s with %s is %.*s", a, b, SPAN_FMT(dynbuf_span(out)));
}

static void what_both_let(void **state)
{
    struct dynbuf out;
    char much[REACH_MAX];
    dynbuf_init(&out, REACH_MAX);
    both(&out, "", "", "");
    both(&out, "", "+n a\n", "+n a\n");
    both(&out, "+n a\n", "", "+n a\n");
    both(&out, "+n a\n", "+n a\n", "+n a\n");
    both(&out, "+n a\n", "+n b\n", "+n a\n&\n+n b\n");
    both(&out, "+n a\n&\n+n b\n", "+n c\n&\n+n b\n", "+n a\n&\n+n b\n&\n+n c\n");
    both(&out, "+n a\n", "0\n", "0\n");
    both(&out, "0\n", "+n a\n", "0\n");
    both(&out, "", "0\n", "0\n");
    for (size_t i = 0; i < sizeof(much) / 5; i++)
        memcpy(much + i * 5, "-n a\n", 5);
    dynbuf_reset(&out);
    assert_int_equal(reach_both(&out, span_of(much, sizeof(much) / 5 * 5), SPAN("-n b\n")), -1);
    dynbuf_free(&out);
}

/* ---- whatever is said, it narrows ---------------------------------------------------------- */

static uint64_t seed = 88172645463325252ull;

static unsigned any(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % n);
}

static const char *const said[] = {"a.test",
                                   "*.test",
                                   "b.a.test",
                                   "*.a.test",
                                   "10.0.0.0/8",
                                   "10.1.0.0/16",
                                   "0.0.0.0/0",
                                   "::/0",
                                   "2002::/16",
                                   "64:ff9b::/96",
                                   "64:ff9b::a00:0/104",
                                   "127.0.0.1",
                                   "2001:db8::/32",
                                   "::ffff:10.0.0.0/104",
                                   "localhost"};
static const char *const hosts[] = {"a.test",   "b.a.test",  "c.b.a.test",        "x.test",  "other.example",
                                    "10.1.2.3", "localhost", "[2002:a01:203::1]", "A.TEST.", "0x7f.1"};
static const char *const addresses[] = {"10.1.2.3",        "10.200.0.1",        "127.0.0.1",
                                        "8.8.8.8",         "::ffff:10.1.2.3",   "64:ff9b::a01:203",
                                        "2002:a01:203::1", "2001:db8::1",       "2001:0:b00:1::f5fe:fdfc",
                                        "2a00::1",         "2a00::5efe:a01:203"};

static void some_layer(struct dynbuf *b)
{
    dynbuf_reset(b);
    for (unsigned n = 1 + any(4); n > 0; n--) {
        struct reach_what w;
        assert_int_equal(reach_read(span_str(said[any(sizeof(said) / sizeof(said[0]))]), &w), 0);
        reach_put(b, any(2), &w);
    }
}

static bool may(struct span text, struct span host, const struct addr *a)
{
    bool by = reach_by_address(text, host, a);
    enum reach_said name = reach_by_name(text, host, SPAN_NONE);
    assert_true(name != REACH_NO || !by); /* what is said before is never less strict, nor stricter */
    assert_true(name != REACH_YES || by);
    return by;
}

static void it_never_loosens(void **state)
{
    struct dynbuf one, two, all;
    unsigned let = 0, not = 0;
    dynbuf_init(&one, REACH_MAX);
    dynbuf_init(&two, REACH_MAX);
    dynbuf_init(&all, REACH_MAX);
    for (unsigned i = 0; i < 50000; i++) {
        struct span host = span_str(hosts[any(sizeof(hosts) / sizeof(hosts[0]))]);
        struct addr a = addr(addresses[any(sizeof(addresses) / sizeof(addresses[0]))]);
        struct reach_what w;
        some_layer(&one);
        some_layer(&two);
        dynbuf_reset(&all);
        bool first = may(dynbuf_span(&one), host, &a), second = may(dynbuf_span(&two), host, &a);
        assert_int_equal(reach_both(&all, dynbuf_span(&one), dynbuf_span(&two)), 0);
        assert_true(reach_ok(dynbuf_span(&all)));
        assert_true(may(dynbuf_span(&all), host, &a) == (first && second));
        /* A denial more lets nothing more. */
        assert_int_equal(reach_read(span_str(said[any(sizeof(said) / sizeof(said[0]))]), &w), 0);
        reach_put(&one, false, &w);
        assert_true(first || !may(dynbuf_span(&one), host, &a));
        /* As IPv4 and as the same address in IPv6 it is one place. */
        if (a.family == 4) {
            struct addr six = {6, {[10] = 0xff, [11] = 0xff}};
            memcpy(six.b + 12, a.b, 4);
            assert_true(may(dynbuf_span(&two), host, &six) == second);
        }
        *(second ? &let : &not ) += 1;
    }
    assert_true(let > 5000 && not > 5000);
    dynbuf_free(&one);
    dynbuf_free(&two);
    dynbuf_free(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_names),
        cmocka_unit_test(what_is_known_before),
        cmocka_unit_test(which_addresses),
        cmocka_unit_test(one_spelling),
        cmocka_unit_test(what_is_a_text_of_rules),
        cmocka_unit_test(rules_of_all_layers_are_bounded),
        cmocka_unit_test(what_both_let),
        cmocka_unit_test(it_never_loosens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
