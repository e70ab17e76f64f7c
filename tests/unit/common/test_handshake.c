/* SOCKS5 and the PROXY protocol: what is taken, what is refused, the same for every cut (A41). */
#include "tests/unit/common/handshake_cases.h"

static void expect(const char *id, parse_fn *parse, struct span in, int result, size_t used, struct outcome *o)
{
    check_cuts(id, parse, in, o);
    if (o->result != result || o->used != used)
        fail_msg("%s: wanted %d after %zu, got %d after %zu", id, result, used, o->result, o->used);
}

static void parse_greeting(struct span in, struct outcome *o)
{
    o->result = (int)socks5_greeting(in, SOCKS5_PASSWORD, &o->method, &o->used);
}

static void parse_greeting_none(struct span in, struct outcome *o)
{
    o->result = (int)socks5_greeting(in, SOCKS5_NONE, &o->method, &o->used);
}

static void parse_login(struct span in, struct outcome *o)
{
    struct span user, password;
    o->result = (int)socks5_login(in, &user, &password, &o->used);
    assert_true(user.n < 256 && password.n < 256);
    if (user.n)
        memcpy(o->user, user.p, user.n);
    if (password.n)
        memcpy(o->password, password.p, password.n);
}

static void parse_request(struct span in, struct outcome *o)
{
    enum socks5_reply why;
    o->result = (int)socks5_request(in, &o->request, &o->used, &why);
    o->why = o->result == SOCKS5_MORE ? 0 : (int)why;
}

static const struct {
    const char *id;
    struct span in;
    int result;
    size_t used;
    enum socks5_method method;
    bool none;
} greetings[] = {
    {"password", SPAN("\x05\x01\x02"), SOCKS5_OK, 3, SOCKS5_PASSWORD, false},
    {"both", SPAN("\x05\x02\0\x02"), SOCKS5_OK, 4, SOCKS5_PASSWORD, false},
    {"login behind it", SPAN("\x05\x02\0\x02\x01\x01u\x01p"), SOCKS5_OK, 4, SOCKS5_PASSWORD, false},
    {"none only", SPAN("\x05\x01\0"), SOCKS5_OK, 3, SOCKS5_NO_METHOD, false},
    {"none wanted", SPAN("\x05\x02\x02\0"), SOCKS5_OK, 4, SOCKS5_NONE, true},
    {"password only, none wanted", SPAN("\x05\x01\x02"), SOCKS5_OK, 3, SOCKS5_NO_METHOD, true},
    {"nothing", SPAN(""), SOCKS5_MORE, 0, SOCKS5_NO_METHOD, false},
    {"cut", SPAN("\x05\x03\0\x02"), SOCKS5_MORE, 0, SOCKS5_NO_METHOD, false},
    {"no methods", SPAN("\x05\0"), SOCKS5_BAD, 0, SOCKS5_NO_METHOD, false},
    {"the answer as an offer", SPAN("\x05\x02\x02\xff"), SOCKS5_BAD, 0, SOCKS5_NO_METHOD, false},
    {"A52 SOCKS4", SPAN("\x04\x01\0\x50\x7f\0\0\x01u\0"), SOCKS5_BAD, 0, SOCKS5_NO_METHOD, false},
    {"A52 HTTP", SPAN("GET / HTTP/1.1\r\n\r\n"), SOCKS5_BAD, 0, SOCKS5_NO_METHOD, false},
    {"A52 TLS", SPAN("\x16\x03\x01"), SOCKS5_BAD, 0, SOCKS5_NO_METHOD, false},
    {"A52 SSH", SPAN("SSH-2.0-x\r\n"), SOCKS5_BAD, 0, SOCKS5_NO_METHOD, false},
    {"A53 PROXY v1", SPAN("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n"), SOCKS5_BAD, 0, SOCKS5_NO_METHOD, false},
    {"A53 PROXY v2", SPAN("\r\n\r\n\0\r\nQUIT\n"), SOCKS5_BAD, 0, SOCKS5_NO_METHOD, false},
};

static void test_greeting(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof greetings / sizeof greetings[0]; i++) {
        struct outcome o;
        expect(greetings[i].id, greetings[i].none ? parse_greeting_none : parse_greeting, greetings[i].in,
               greetings[i].result, greetings[i].used, &o);
        assert_int_equal(o.method, greetings[i].method);
    }
    enum socks5_method m;
    size_t used; /* asking for what is no method is refused, not granted */
    assert_int_equal(socks5_greeting(SPAN("\x05\x01\xff"), SOCKS5_NO_METHOD, &m, &used), SOCKS5_BAD);
}

static void test_login(void **state)
{
    struct outcome o;
    uint8_t longest[2 + 255 + 1 + 255];
    (void)state;
    expect("login", parse_login, SPAN("\x01\x04user\x06secret"), SOCKS5_OK, 13, &o);
    assert_string_equal(o.user, "user");
    assert_string_equal(o.password, "secret");
    expect("request behind it", parse_login, SPAN("\x01\x01u\x01p\x05\x01"), SOCKS5_OK, 5, &o);
    expect("any byte", parse_login, SPAN("\x01\x01\0\x01\xff"), SOCKS5_OK, 5, &o);
    expect("no user", parse_login, SPAN("\x01\0\x01p"), SOCKS5_BAD, 0, &o);
    expect("no password", parse_login, SPAN("\x01\x01u\0"), SOCKS5_BAD, 0, &o);
    expect("version 5", parse_login, SPAN("\x05\x01u\x01p"), SOCKS5_BAD, 0, &o);
    expect("cut", parse_login, SPAN("\x01\x01u\x02p"), SOCKS5_MORE, 0, &o);
    memset(longest, 'x', sizeof longest);
    longest[0] = 1;
    longest[1] = longest[2 + 255] = 255;
    expect("longest", parse_login, span_of(longest, sizeof longest), SOCKS5_OK, sizeof longest, &o);
    assert_true(strlen(o.user) == 255 && strlen(o.password) == 255);
}

static const struct {
    const char *id;
    struct span in;
    int result;
    enum socks5_reply why;
} requests[] = {
    {"name",
     SPAN("\x05\x01\0\x03\x0b"
          "api.example\x01\xbb"),
     SOCKS5_OK, SOCKS5_SUCCEEDED},
    {"an address as a name",
     SPAN("\x05\x01\0\x03\x09"
          "127.0.0.1\0\x50"),
     SOCKS5_OK, SOCKS5_SUCCEEDED},
    {"IPv4", SPAN("\x05\x01\0\x01\xc0\0\x02\x01\x01\xbb"), SOCKS5_OK, SOCKS5_SUCCEEDED},
    {"IPv6",
     SPAN("\x05\x01\0\x04"
          "0123456789abcdef\xff\xff"),
     SOCKS5_OK, SOCKS5_SUCCEEDED},
    {"version", SPAN("\x04\x01\0\x01"), SOCKS5_BAD, SOCKS5_FAILURE},
    {"BIND", SPAN("\x05\x02\0\x01"), SOCKS5_BAD, SOCKS5_BAD_COMMAND},
    {"UDP ASSOCIATE", SPAN("\x05\x03\0\x01"), SOCKS5_BAD, SOCKS5_BAD_COMMAND},
    {"command 0", SPAN("\x05\0\0\x01"), SOCKS5_BAD, SOCKS5_BAD_COMMAND},
    {"reserved", SPAN("\x05\x01\x01\x01"), SOCKS5_BAD, SOCKS5_FAILURE},
    {"address type 2", SPAN("\x05\x01\0\x02"), SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"address type 0", SPAN("\x05\x01\0\0"), SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"A17 NUL in the name",
     SPAN("\x05\x01\0\x03\x14"
          "evil.example\0.ok.tld\x01\xbb"),
     SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"empty name", SPAN("\x05\x01\0\x03\0\x01\xbb"), SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"space",
     SPAN("\x05\x01\0\x03\x03"
          "a b\x01\xbb"),
     SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"slash",
     SPAN("\x05\x01\0\x03\x03"
          "a/b\x01\xbb"),
     SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"user",
     SPAN("\x05\x01\0\x03\x03"
          "a@b\x01\xbb"),
     SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"IPv6 as a name",
     SPAN("\x05\x01\0\x03\x03"
          "::1\x01\xbb"),
     SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"UTF-8", SPAN("\x05\x01\0\x03\x02\xc3\xbc\x01\xbb"), SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"port 0",
     SPAN("\x05\x01\0\x03\x01"
          "a\0\0"),
     SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"port 0 of an address", SPAN("\x05\x01\0\x01\xc0\0\x02\x01\0\0"), SOCKS5_BAD, SOCKS5_BAD_ADDRESS},
    {"cut",
     SPAN("\x05\x01\0\x03\x02"
          "a"),
     SOCKS5_MORE, SOCKS5_SUCCEEDED},
};

static void test_request(void **state)
{
    struct outcome o;
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        expect(requests[i].id, parse_request, requests[i].in, requests[i].result,
               requests[i].result == SOCKS5_OK ? requests[i].in.n : 0, &o);
        assert_int_equal(o.why, requests[i].why);
    }
    expect("hello behind it", parse_request,
           SPAN("\x05\x01\0\x03\x01"
                "A\0\x50\x16\x03"),
           SOCKS5_OK, 8, &o);
    assert_string_equal(o.request.host, "A"); /* as sent */
    assert_true(o.request.nhost == 1 && o.request.port == 80 && o.request.family == 0);
    expect("IPv4", parse_request, SPAN("\x05\x01\0\x01\xc0\0\x02\x01\x01\xbb"), SOCKS5_OK, 10, &o);
    assert_true(o.request.family == 4 && o.request.nhost == 0 && o.request.port == 443);
    assert_memory_equal(o.request.address, "\xc0\0\x02\x01", 4);
}

static void test_request_limit(void **state)
{
    uint8_t in[5 + 255 + 2];
    struct outcome o;
    (void)state;
    for (size_t n = SOCKS5_NAME_MAX - 1; n <= 255; n++) {
        memset(in, 'a', sizeof in);
        memcpy(in, "\x05\x01\0\x03", 4);
        in[4] = (uint8_t)n;
        bool good = n <= SOCKS5_NAME_MAX;
        expect("name", parse_request, span_of(in, 5 + n + 2), good ? SOCKS5_OK : SOCKS5_BAD, good ? n + 7 : 0, &o);
        assert_int_equal(o.request.nhost, good ? n : 0);
    }
}

static void test_reply(void **state)
{
    uint8_t out[SOCKS5_REPLY_BYTES];
    (void)state;
    socks5_reply(SOCKS5_NOT_ALLOWED, out);
    assert_memory_equal(out, "\x05\x02\0\x01\0\0\0\0\0\0", sizeof out);
}

/* --- PROXY protocol --- */

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define TCP4      "\xc0\0\x02\x01\xc0\0\x02\x02\x30\x39\x01\xbb"

/* A piece of the input, which is gone when the outcome is looked at. */
static uint8_t own[8];

static void parse_proxy(struct span in, struct outcome *o)
{
    o->result = (int)proxy2_parse(in, &o->proxy, &o->used);
    if (o->result != PROXY2_OK || o->proxy.own.n == 0)
        return;
    assert_true(o->proxy.own.n <= sizeof(own));
    memcpy(own, o->proxy.own.p, o->proxy.own.n);
    o->proxy.own.p = own;
}

static const struct {
    const char *id;
    struct span in;
    int result;
} headers[] = {
    {"TCP4", SPAN(SIGNATURE "\x21\x11\0\x0c" TCP4), PROXY2_OK},
    {"TCP6",
     SPAN(SIGNATURE "\x21\x21\0\x24"
                    "0123456789abcdef"
                    "fedcba9876543210"
                    "\0\x01\0\x02"),
     PROXY2_OK},
    {"LOCAL", SPAN(SIGNATURE "\x20\0\0\0"), PROXY2_OK},
    {"LOCAL with addresses", SPAN(SIGNATURE "\x20\x11\0\x0c" TCP4), PROXY2_OK},
    {"TLV", SPAN(SIGNATURE "\x21\x11\0\x11" TCP4 "\x04\0\x02hi"), PROXY2_OK},
    {"TLV, empty", SPAN(SIGNATURE "\x21\x11\0\x0f" TCP4 "\x04\0\0"), PROXY2_OK},
    {"A53 TLV runs over", SPAN(SIGNATURE "\x21\x11\0\x11" TCP4 "\x04\0\x03hi"), PROXY2_BAD},
    {"A53 TLV stops short", SPAN(SIGNATURE "\x21\x11\0\x11" TCP4 "\x04\0\x01hi"), PROXY2_BAD},
    {"A53 half a TLV", SPAN(SIGNATURE "\x21\x11\0\x0e" TCP4 "\x04\0"), PROXY2_BAD},
    {"sum", SPAN(SIGNATURE "\x21\x11\0\x13" TCP4 "\x03\0\x04\x3e\xe8\x86\xa1"), PROXY2_OK},
    {"sum, wrong", SPAN(SIGNATURE "\x21\x11\0\x13" TCP4 "\x03\0\x04\x3e\xe8\x86\xa0"), PROXY2_BAD},
    {"sum, short", SPAN(SIGNATURE "\x21\x11\0\x12" TCP4 "\x03\0\x03\0\0\0"), PROXY2_BAD},
    {"sum, twice", SPAN(SIGNATURE "\x21\x11\0\x1a" TCP4 "\x03\0\x04\0\0\0\0\x03\0\x04\0\0\0\0"), PROXY2_BAD},
    {"addresses missing", SPAN(SIGNATURE "\x21\x11\0\x0b\xc0\0\x02\x01\xc0\0\x02\x02\x30\x39\x01"), PROXY2_BAD},
    {"UDP4", SPAN(SIGNATURE "\x21\x12\0\x0c" TCP4), PROXY2_BAD},
    {"UNIX", SPAN(SIGNATURE "\x21\x31"), PROXY2_BAD},
    {"unspecified, not local", SPAN(SIGNATURE "\x21\0\0\0"), PROXY2_BAD},
    {"version 1 in binary", SPAN(SIGNATURE "\x11\x11\0\x0c" TCP4), PROXY2_BAD},
    {"command 2", SPAN(SIGNATURE "\x22\x11\0\x0c" TCP4), PROXY2_BAD},
    {"A53 version 1", SPAN("PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n"), PROXY2_BAD},
    {"HTTP", SPAN("GET / HTTP/1.1\r\n\r\n"), PROXY2_BAD},
    {"a wrong last byte", SPAN("\r\n\r\n\0\r\nQUIT\r"), PROXY2_BAD},
    {"TLS", SPAN("\x16\x03\x01"), PROXY2_BAD},
};

static void test_proxy2(void **state)
{
    struct outcome o;
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        expect(headers[i].id, parse_proxy, headers[i].in, headers[i].result,
               headers[i].result == PROXY2_OK ? headers[i].in.n : 0, &o);
    expect("hello behind it", parse_proxy, SPAN(SIGNATURE "\x21\x11\0\x0c" TCP4 "\x16\x03"), PROXY2_OK, 28, &o);
    assert_true(o.proxy.family == 4 && o.proxy.src_port == 12345 && o.proxy.dst_port == 443 && !o.proxy.local);
    assert_memory_equal(o.proxy.src, "\xc0\0\x02\x01", 4);
    assert_memory_equal(o.proxy.dst, "\xc0\0\x02\x02", 4);
    expect("LOCAL", parse_proxy, headers[3].in, PROXY2_OK, 28, &o);
    assert_true(o.proxy.local && o.proxy.family == 0 && o.proxy.src_port == 0 && o.proxy.own.n == 0);
    expect("own", parse_proxy, SPAN(SIGNATURE "\x20\0\0\x0b\x04\0\0\xe0\0\2ab\xe0\0\0"), PROXY2_OK, 27, &o);
    assert_true(span_eq(o.proxy.own, SPAN("ab")));
    expect("own, of a proxy", parse_proxy, SPAN(SIGNATURE "\x21\x11\0\x10" TCP4 "\xe0\0\1x"), PROXY2_OK, 32, &o);
    assert_true(!o.proxy.local && span_eq(o.proxy.own, SPAN("x")));
}

static void test_proxy2_limit(void **state)
{
    uint8_t in[PROXY2_MAX + 1] = SIGNATURE "\x21\x11";
    struct outcome o;
    (void)state;
    for (size_t n = PROXY2_MAX - 1; n <= PROXY2_MAX + 1; n++) {
        size_t tlv = n - 28 - 3;
        in[14] = (uint8_t)((n - 16) >> 8);
        in[15] = (uint8_t)(n - 16);
        in[28] = 4;
        in[29] = (uint8_t)(tlv >> 8);
        in[30] = (uint8_t)tlv;
        expect("limit", parse_proxy, span_of(in, n), n <= PROXY2_MAX ? PROXY2_OK : PROXY2_BAD,
               n <= PROXY2_MAX ? n : 0, &o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greeting),      cmocka_unit_test(test_login), cmocka_unit_test(test_request),
        cmocka_unit_test(test_request_limit), cmocka_unit_test(test_reply), cmocka_unit_test(test_proxy2),
        cmocka_unit_test(test_proxy2_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
