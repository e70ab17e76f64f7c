/* Names and their canonical forms. */
#include "tests/unit/http/http_cases.h"

/* want NULL: refused */
static void host(const char *id, struct span in, const char *want)
{
    char dst[HTTP_HOST_MAX + 1];
    size_t n;
    uint8_t *p = http_case_copy(in);
    int r = http_canonical_host(span_of(p, in.n), dst, &n);
    free(p);
    if ((r == 0) != (want != NULL) || (want && (strcmp(dst, want) != 0 || n != strlen(want))))
        fail_msg("%s: %.*s gave %d %s", id, SPAN_FMT(in), r, r ? "" : dst);
}

static const char *const bad_hosts[] = {
    "",
    ".",
    "..",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "0x",
    "0177.0.0.1",
    "017700000001",
    "127.000.000.001",
    "0",
    "256.0.0.1",
    "1.2.3.4.5",
    "127.0.0.1.",
    "a.0x7F",
    "a.1",
    "a.1.",
    "\xe2\x91\xa0.\xe2\x93\xaa",
    "[::1",
    "::1",
    "[[::1]]",
    "[::1%lo]",
    "[fe80::1%25eth0]",
    "[allowed.example]",
    "[::1].",
    "[]",
    "[:]",
    "[1:2:3]",
    "[::127.0.0.256]",
    "[v1.x]",
    "a..b",
    ".a",
    "a..",
    "-a",
    "a-",
    "a.-b.c",
    "_a",
    "a_",
    "a._b",
    "_",
    "a._.b",
    "xn--a_b-kva.example",
    "[::ffff:7f00:1]",
    "[::ffff:93.184.216.34]",
    "[0:0:0:0:0:FFFF:5db8:d822]",
    "a_1.2",
    "a.0_1_",
    "a b",
    "a,b",
    "a;b",
    "a@b",
    "a#b",
    "a\\b",
    "a%2eb",
    "a/b",
    "a:b",
    "a?b",
    "a\tb",
    "a\r\n",
    "a*",
    "*.a",
    "\xd0\xb0pi.github.com",
    "a\xe3\x80\x82"
    "b",
    "a~b",
};

static void hosts(void **state)
{
    host("plain", SPAN("api.GitHub.com"), "api.github.com");
    host("single label", SPAN("localhost"), "localhost");
    host("quad", SPAN("127.0.0.1"), "127.0.0.1");
    host("C11 v6", SPAN("[::1]"), "[::1]");
    host("C11 v6, one spelling", SPAN("[0:0:0:0:0:0:0:1]"), "[::1]");
    host("C11 v6", SPAN("[2001:DB8::A]"), "[2001:db8::a]");
    host("C11 compatible", SPAN("[::7f00:1]"), "[::127.0.0.1]");
    host("C17 dot", SPAN("api.github.com."), "api.github.com");
    host("C19 A-label", SPAN("XN--pi-6kc.example"), "xn--pi-6kc.example");
    host("underscore inside", SPAN("My_Bucket.s3.example"), "my_bucket.s3.example");
    host("digits first", SPAN("1.example"), "1.example");
    host("digits inside", SPAN("a.1b"), "a.1b");
    host("0x", SPAN("0xg"), "0xg");
    for (size_t i = 0; i < sizeof bad_hosts / sizeof bad_hosts[0]; i++)
        host("C10 C11 C17 C18 C19", span_str(bad_hosts[i]), NULL);
    host("C18 NUL", SPAN("github.com\0.evil"), NULL);
    host("C18 NUL", SPAN("[::1\0]"), NULL);
}

static void long_hosts(void **state)
{
    char name[300];
    memset(name, 'a', sizeof name);
    host("C17 label 63", span_of(name, 63), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    host("C17 label 64", span_of(name, 64), NULL);
    for (size_t i = 63; i < sizeof name; i += 64)
        name[i] = '.';
    char want[300];
    memcpy(want, name, 253);
    want[253] = 0;
    host("C17 name 253", span_of(name, 253), want);
    host("C17 name 254", span_of(name, 254), NULL);
    name[253] = '.';
    host("C17 name 253 and a dot", span_of(name, 254), want);
}

static void authorities(void **state)
{
    struct {
        const char *in;
        const char *host; /* NULL: refused */
        unsigned port;
    } rows[] = {
        {"a", "a", 0},         {"a:1", "a", 1},     {"a:65535", "a", 65535}, {"[::1]:80", "[::1]", 80},
        {"[::1]", "[::1]", 0}, {"", NULL, 0},       {":80", NULL, 0},        {"a:", NULL, 0},
        {"a:0", NULL, 0},      {"a:00", NULL, 0},   {"a:080", NULL, 0},      {"a:65536", NULL, 0},
        {"a:+80", NULL, 0},    {"a:-1", NULL, 0},   {"a:8 0", NULL, 0},      {"a:80:80", NULL, 0},
        {"[::1", NULL, 0},     {"[::1]a", NULL, 0}, {"[::1]:", NULL, 0},     {"u@a", NULL, 0},
        {"u:p@a:80", NULL, 0}, {"::1", NULL, 0},    {"a:http", NULL, 0},     {"a:4294967376", NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct span h;
        uint16_t port;
        int r = http_split_authority(span_str(rows[i].in), &h, &port);
        if ((r == 0) != (rows[i].host != NULL))
            fail_msg("%s: %d", rows[i].in, r);
        if (r == 0) {
            assert_true(span_eq(h, span_str(rows[i].host)));
            assert_int_equal(port, rows[i].port);
        }
    }
}

struct form {
    const char *id, *in, *want; /* NULL: refused */
};

static void forms(const struct form *rows, size_t n, int (*f)(struct span in, struct dynbuf *out))
{
    for (size_t i = 0; i < n; i++) {
        struct dynbuf out;
        struct span in = span_str(rows[i].in);
        uint8_t *p = http_case_copy(in);
        dynbuf_init(&out, 4096);
        assert_int_equal(dynbuf_add(&out, SPAN("x")), 0);
        int r = f(span_of(p, in.n), &out);
        struct span got = span_from(dynbuf_span(&out), 1);
        if ((r == 0) != (rows[i].want != NULL) || (r == 0 && !span_eq(got, span_str(rows[i].want))))
            fail_msg("%s: %s gave %d %.*s", rows[i].id, rows[i].in, r, SPAN_FMT(got));
        if (r == 0) { /* canonical means: nothing changes a second time */
            struct dynbuf again;
            dynbuf_init(&again, 4096);
            assert_int_equal(f(got, &again), 0);
            assert_true(span_eq(got, dynbuf_span(&again)));
            dynbuf_free(&again);
        }
        dynbuf_free(&out);
        free(p);
    }
}

static int path(struct span in, struct dynbuf *out)
{
    return http_canonical_path(in, false, out);
}

static int path_keep(struct span in, struct dynbuf *out)
{
    return http_canonical_path(in, true, out);
}

static const struct form path_rows[] = {
    {"root", "/", "/"},
    {"plain", "/a/b;c=d/e:f@g!$&'()*+,=[]/", "/a/b;c=d/e:f@g!$&'()*+,=[]/"},
    {"B8 unreserved", "/%61dmin%2D%2e%5f%7E%41", "/admin-._~A"},
    {"B8 hex", "/%c3%a9%3a%3B", "/%C3%A9%3A%3B"},
    {"B6 inner", "/a//b/", "/a//b/"},
    {"B7", "/users;x=1/1", "/users;x=1/1"},
    {"B9 double", "/%252e%252E/a", "/%252e%252E/a"},
    {"B9 double", "/%25%32%65/a", "/%252e/a"},
    {"B10 fullwidth", "/%ef%bc%8f%ef%bc%8e", "/%EF%BC%8F%EF%BC%8E"},
    {"B11", "/delete.", "/delete."},
    {"B11", "/delete%20", "/delete%20"},
    {"dots that are no segment", "/.../..a/a../.a/a.b", "/.../..a/a../.a/a.b"},
    {"B4", "/a/../b", NULL},
    {"B4", "/a/./b", NULL},
    {"B4", "/%2e%2e/", NULL},
    {"B4", "/.%2e/", NULL},
    {"B4", "/%2E/", NULL},
    {"B4", "/..;/", NULL},
    {"B4", "/..;a=b/c", NULL},
    {"B4", "/.;", NULL},
    {"B4", "/..%3b/", NULL},
    {"B4", "/a/..", NULL},
    {"B4", "/.", NULL},
    {"B4", "/../..", NULL},
    {"B4", "/..%2f", NULL},
    {"B7", "/a;/../b", NULL},
    {"B5", "/a%2Fb", NULL},
    {"B5", "/a%2fb", NULL},
    {"B5", "/a%5Cb", NULL},
    {"B5", "/a%5cb", NULL},
    {"B5", "/a\\b", NULL},
    {"B6", "//a/b", NULL},
    {"B6", "//", NULL},
    {"B9", "/%u002e", NULL},
    {"B9", "/%c0%ae", NULL},
    {"B9", "/%ff", NULL},
    {"B9", "/%e9", NULL},
    {"B9", "/%c3", NULL},
    {"B9", "/%c3x%a9", NULL},
    {"B9", "/%ed%a0%80", NULL},
    {"B9", "/%a9", NULL},
    {"B9", "/%00", NULL},
    {"B9", "/%0d", NULL},
    {"B9", "/%0A", NULL},
    {"B9", "/%7f", NULL},
    {"B9", "/%", NULL},
    {"B9", "/%4", NULL},
    {"B9", "/%zz", NULL},
    {"B9", "/%+1", NULL},
    {"not a path", "", NULL},
    {"not a path", "a", NULL},
    {"not a path", "*", NULL},
    {"A27", "/a?b", NULL},
    {"A27", "/a#b", NULL},
    {"A27", "/a b", NULL},
    {"A27 as WHATWG URL leaves it", "/a|b^/|", "/a%7Cb%5E/%7C"},
    {"A27 beside dots", "/|../..|;x", "/%7C../..%7C;x"},
    {"A27", "/|/../b", NULL},
    {"A27", "/a|\\b", NULL},
    {"A27", "/a{b", NULL},
    {"A27", "/a}b", NULL},
    {"A27", "/a`b", NULL},
    {"A27", "/a\"b", NULL},
    {"A27", "/a<b", NULL},
    {"A27", "/a>b", NULL},
    {"A27", "/\xc3\xa9", NULL},
    {"A27", "/\x01", NULL},
};

static void paths(void **state)
{
    static const struct form keep[] = {
        {"B5", "/a%2fb", "/a%2Fb"},  {"B5", "/a%5cb", NULL},   {"B5", "/a/..%2fb", NULL},
        {"B5", "/a%2f..%2Fb", NULL}, {"B5", "/a%2F%2e", NULL}, {"B6", "/%2fa", NULL},
    };
    forms(path_rows, sizeof path_rows / sizeof path_rows[0], path);
    forms(keep, sizeof keep / sizeof keep[0], path_keep);
}

static void queries(void **state)
{
    static const struct form rows[] = {
        {"none", "", ""},
        {"plain", "a=1&b[]=2;c+d?/:@", "a=1&b[]=2;c+d?/:@"},
        {"B8", "%61=%2f%2F%0a%e9", "a=%2F%2F%0A%E9"},
        {"B12", "&&=&a&a=", "&&=&a&a="},
        {"A27 as WHATWG URL leaves it", "a={|}^`\\&|=%7c", "a=%7B%7C%7D%5E%60%5C&%7C=%7C"},
        {"A27", "a=|\"", NULL},
        {"A27", "a=|<", NULL},
        {"A27", "a=|>", NULL},
        {"A27", "a=|%0", NULL},
        {"B9", "a=%00", NULL},
        {"B9", "a=%", NULL},
        {"B9", "a=%4", NULL},
        {"B9", "a=%zz", NULL},
        {"A27", "a#b", NULL},
        {"A27", "a b", NULL},
        {"A27", "\xc3\xa9", NULL},
    };
    forms(rows, sizeof rows / sizeof rows[0], http_canonical_query);
    struct dynbuf out = {.max = 9};
    assert_int_equal(http_canonical_query(SPAN("a\0b"), &out), -1);
    dynbuf_free(&out);
}

static void field_classes(void **state)
{
    struct http_head h = {.nfields = 2};
    h.field[0] = (struct http_field){SPAN("connection"), SPAN("close, X-Mine ,Authorization")};
    h.field[1] = (struct http_field){SPAN("Connection"), SPAN("Host,Content-Length,,x-other")};
    static const char *const hop[] = {
        "Connection",     "keep-alive", "PROXY-AUTHORIZATION", "te",     "Trailer", "Upgrade", "Transfer-Encoding",
        "HTTP2-Settings", "x-mine",     "AUTHORIZATION",       "X-Other"};
    for (size_t i = 0; i < sizeof hop / sizeof hop[0]; i++)
        assert_true(http_is_hop_by_hop(&h, span_str(hop[i])));
    static const char *const end[] = {"Host", "Content-Length", "Accept", "X-Min", "Cookie", ""}; /* A37 */
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++)
        assert_false(http_is_hop_by_hop(&h, span_str(end[i])));
    static const char *const forwarding[] = {"Via",
                                             "forwarded",
                                             "X-Forwarded-For",
                                             "X_Forwarded_Host",
                                             "X-Original-URL",
                                             "X-Rewrite-URL",
                                             "x-real-ip",
                                             "X-Forwarded-Method",
                                             "X-Envoy-Original-Path",
                                             "Proxy",
                                             "X-Forwarded-Path"}; /* A51 B3 */
    for (size_t i = 0; i < sizeof forwarding / sizeof forwarding[0]; i++)
        assert_true(http_is_forwarding(span_str(forwarding[i])));
    assert_false(http_is_forwarding(SPAN("X-Api-Key")));
    assert_false(http_is_forwarding(SPAN("Vi")));
    assert_true(http_is_framing(SPAN("content_length")));
    assert_true(http_is_framing(SPAN("HOST")));
    assert_false(http_is_framing(SPAN("Content-Type")));
    assert_false(http_is_token(SPAN("")));
    assert_false(http_is_token(SPAN("a b")));
    assert_true(http_is_token(SPAN("!#$%&'*+-.^_`|~09azAZ")));
    assert_ptr_equal(http_find(&h, SPAN("CONNECTION")), &h.field[0]);
    assert_null(http_find(&h, SPAN("X")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts), cmocka_unit_test(long_hosts), cmocka_unit_test(authorities),
        cmocka_unit_test(paths), cmocka_unit_test(queries),    cmocka_unit_test(field_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
