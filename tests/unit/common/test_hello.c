/* The name in a ClientHello: what is taken, what is refused, the same for every cut (A41). */
#include "tests/unit/common/handshake_cases.h"

#include <openssl/ssl.h>

#include "common/dynbuf.h"

static void parse_hello(struct span in, struct outcome *o)
{
    o->result = hello_parse(in, &o->hello);
}

enum { FRAGMENT_WHOLE = 16384 };

static void put_number(struct dynbuf *b, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        assert_int_equal(dynbuf_add_byte(b, (uint8_t)(v >> 8 * i)), 0);
}

static void put_vector(struct dynbuf *b, struct span s, int bytes)
{
    put_number(b, s.n, bytes);
    assert_int_equal(dynbuf_add(b, s), 0);
}

static void put_records(struct dynbuf *out, struct span message, size_t fragment)
{
    for (size_t at = 0; at < message.n; at += fragment) {
        put_number(out, 0x160301, 3);
        put_vector(out, span_first(span_from(message, at), fragment), 2);
    }
}

/* A ClientHello with these extensions in records of at most `fragment` bytes. */
static void put_hello(struct dynbuf *out, struct span extensions, size_t fragment)
{
    struct dynbuf body, message;
    dynbuf_init(&body, 1 << 20);
    dynbuf_init(&message, 1 << 20);
    put_number(&body, 0x0303, 2);
    for (int i = 0; i < 32; i++)
        put_number(&body, (uint64_t)i, 1);
    put_vector(&body, SPAN("12345678901234567890123456789012"), 1);
    put_vector(&body, SPAN("\x13\x01\x13\x02"), 2);
    put_vector(&body, SPAN("\0"), 1);
    put_vector(&body, extensions, 2);
    put_number(&message, 1, 1);
    put_vector(&message, dynbuf_span(&body), 3);
    put_records(out, dynbuf_span(&message), fragment);
    dynbuf_free(&body);
    dynbuf_free(&message);
}

/* A server_name extension with n times this name. */
static void put_names(struct dynbuf *b, struct span name, int n, uint8_t type)
{
    struct dynbuf list, ext;
    dynbuf_init(&list, 1 << 20);
    dynbuf_init(&ext, 1 << 20);
    for (int i = 0; i < n; i++) {
        put_number(&list, type, 1);
        put_vector(&list, name, 2);
    }
    put_vector(&ext, dynbuf_span(&list), 2);
    put_number(b, 0, 2);
    put_vector(b, dynbuf_span(&ext), 2);
    dynbuf_free(&list);
    dynbuf_free(&ext);
}

static void expect_hello(const char *id, struct span bytes, enum hello_result want, const char *name)
{
    struct outcome o;
    check_cuts(id, parse_hello, bytes, &o);
    if (o.result != (int)want)
        fail_msg("%s: wanted %d, got %d", id, want, o.result);
    assert_string_equal(o.hello.name, name);
    assert_int_equal(o.hello.nname, strlen(name));
}

struct name_case {
    const char *id;
    struct span name;
    enum hello_result want;
    const char *taken;
};

#define LABEL_63 "a23456789012345678901234567890123456789012345678901234567890123"
#define NAME_253                                                                                                     \
    LABEL_63 "." LABEL_63 "." LABEL_63 "."                                                                           \
             "b234567890123456789012345678901234567890123456789012345678901"

static const struct name_case names[] = {
    {"C4", SPAN("api.example"), HELLO_OK, "api.example"},
    {"C4 upper case", SPAN("API.Example"), HELLO_OK, "api.example"},
    {"C4 one label", SPAN("localhost"), HELLO_OK, "localhost"},
    {"C4 punycode", SPAN("xn--bcher-kva.example"), HELLO_OK, "xn--bcher-kva.example"},
    {"C4 digits inside", SPAN("1.2.3.4.example"), HELLO_OK, "1.2.3.4.example"},
    {"C4 253", SPAN(NAME_253), HELLO_OK, NAME_253},
    {"C4 254", SPAN(NAME_253 "x"), HELLO_BAD_NAME, ""},
    {"C4 256", SPAN(NAME_253 "xyz"), HELLO_BAD_NAME, ""},
    {"C4 label of 64", SPAN(LABEL_63 "x.example"), HELLO_BAD_NAME, ""},
    {"C4 empty", SPAN(""), HELLO_BAD_NAME, ""},
    {"C4 IPv4", SPAN("127.0.0.1"), HELLO_BAD_NAME, ""},
    {"C4 IPv4 short", SPAN("127.1"), HELLO_BAD_NAME, ""},
    {"C4 IPv4 hex", SPAN("a.0x7F"), HELLO_BAD_NAME, ""},
    {"C4 IPv4 number", SPAN("2130706433"), HELLO_BAD_NAME, ""},
    {"C4 IPv6", SPAN("::1"), HELLO_BAD_NAME, ""},
    {"C4 IPv6 in brackets", SPAN("[::1]"), HELLO_BAD_NAME, ""},
    {"C4 NUL", SPAN("evil.example\0.good.example"), HELLO_BAD_NAME, ""},
    {"C4 NUL at the end", SPAN("api.example\0"), HELLO_BAD_NAME, ""},
    {"C4 trailing dot", SPAN("api.example."), HELLO_BAD_NAME, ""},
    {"C4 leading dot", SPAN(".example"), HELLO_BAD_NAME, ""},
    {"C4 two dots", SPAN("api..example"), HELLO_BAD_NAME, ""},
    {"C4 dot", SPAN("."), HELLO_BAD_NAME, ""},
    {"C4 underscore", SPAN("_a.example"), HELLO_BAD_NAME, ""},
    {"C4 underscore", SPAN("a_.example"), HELLO_BAD_NAME, ""},
    {"C4 underscore inside", SPAN("A_b.example"), HELLO_OK, "a_b.example"},
    {"C4 hyphens", SPAN("-a.example"), HELLO_BAD_NAME, ""},
    {"C4 hyphens", SPAN("a-.example"), HELLO_BAD_NAME, ""},
    {"C4 wildcard", SPAN("*.example"), HELLO_BAD_NAME, ""},
    {"C4 port", SPAN("api.example:443"), HELLO_BAD_NAME, ""},
    {"C4 space", SPAN("api.example "), HELLO_BAD_NAME, ""},
    {"C4 UTF-8", SPAN("b\303\274cher.example"), HELLO_BAD_NAME, ""},
    {"C4 high bit",
     SPAN("api\xae"
          "example"),
     HELLO_BAD_NAME, ""},
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct name_case *c = &names[i];
        struct dynbuf ext, out;
        dynbuf_init(&ext, 1 << 16);
        dynbuf_init(&out, 1 << 16);
        put_names(&ext, c->name, 1, 0);
        put_hello(&out, dynbuf_span(&ext), FRAGMENT_WHOLE);
        enum hello_result want = c->name.n ? c->want : HELLO_BAD_NAME;
        expect_hello(c->id, dynbuf_span(&out), want, c->taken);
        dynbuf_reset(&out); /* C6: one byte a record */
        put_hello(&out, dynbuf_span(&ext), 1);
        expect_hello(c->id, dynbuf_span(&out), want, c->taken);
        dynbuf_free(&ext);
        dynbuf_free(&out);
    }
}

struct extension_case {
    const char *id;
    struct span bytes; /* after a server_name, when good says so */
    bool named;
    enum hello_result want;
    bool ech;
};

static const struct extension_case extension_cases[] = {
    {"C4 none at all", SPAN(""), false, HELLO_NO_NAME, false},
    {"another one", SPAN("\0\x10\0\x02hi"), false, HELLO_NO_NAME, false},
    {"C4 empty list", SPAN("\0\0\0\x02\0\0"), false, HELLO_BAD, false},
    {"C4 empty extension", SPAN("\0\0\0\0"), false, HELLO_BAD, false},
    {"C4 bytes after the list",
     SPAN("\0\0\0\x07\0\x04\0\0\x01"
          "ax"),
     false, HELLO_BAD, false},
    {"C4 list longer than it is",
     SPAN("\0\0\0\x06\0\x05\0\0\x01"
          "a"),
     false, HELLO_BAD, false},
    {"C4 name longer than its list",
     SPAN("\0\0\0\x06\0\x04\0\0\x02"
          "a"),
     false, HELLO_BAD, false},
    {"twice",
     SPAN("\0\0\0\x06\0\x04\0\0\x01"
          "a"),
     true, HELLO_BAD, false},
    {"another one twice", SPAN("\xab\xcd\0\0\xab\xcd\0\0"), true, HELLO_BAD, false},
    {"a broken one", SPAN("\xab\xcd\0"), true, HELLO_BAD, false},
    {"one that runs over",
     SPAN("\xab\xcd\0\x02"
          "a"),
     true, HELLO_BAD, false},
    {"C5 GREASE", SPAN("\x0a\x0a\0\0\xfa\xfa\0\x01x"), true, HELLO_OK, false},
    {"C5 ECH", SPAN("\xfe\x0d\0\x04\0\0\x01x"), true, HELLO_OK, true},
    {"C5 ECH without a name", SPAN("\xfe\x0d\0\0"), false, HELLO_NO_NAME, true},
    {"C5 ESNI", SPAN("\xff\xce\0\0"), true, HELLO_OK, true},
};

static void test_extensions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof extension_cases / sizeof extension_cases[0]; i++) {
        const struct extension_case *c = &extension_cases[i];
        struct dynbuf ext, out;
        struct outcome o;
        dynbuf_init(&ext, 1 << 16);
        dynbuf_init(&out, 1 << 16);
        if (c->named)
            put_names(&ext, SPAN("api.example"), 1, 0);
        assert_int_equal(dynbuf_add(&ext, c->bytes), 0);
        put_hello(&out, dynbuf_span(&ext), 50);
        expect_hello(c->id, dynbuf_span(&out), c->want, c->want == HELLO_OK ? "api.example" : "");
        check_cuts(c->id, parse_hello, dynbuf_span(&out), &o);
        if (c->want != HELLO_BAD && o.hello.has_ech != c->ech)
            fail_msg("%s: ech %d", c->id, o.hello.has_ech);
        dynbuf_free(&ext);
        dynbuf_free(&out);
    }
}

/* C4: exactly one name, and it is a host_name. */
static void test_many_names(void **state)
{
    static const struct {
        int names;
        uint8_t type;
    } cases[] = {{2, 0}, {3, 0}, {1, 1}, {2, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dynbuf ext, out;
        dynbuf_init(&ext, 1 << 16);
        dynbuf_init(&out, 1 << 16);
        put_names(&ext, SPAN("api.example"), cases[i].names, cases[i].type);
        put_hello(&out, dynbuf_span(&ext), FRAGMENT_WHOLE);
        expect_hello("C4 two names", dynbuf_span(&out), HELLO_BAD_NAME, "");
        dynbuf_free(&ext);
        dynbuf_free(&out);
    }
}

/* C6: a hello with one byte changed, or cut, or of another protocol. */
static void test_not_a_hello(void **state)
{
    static const struct {
        const char *id;
        size_t at;
        uint8_t to;
        enum hello_result want;
    } changes[] = {
        {"C6 alert record", 0, 0x15, HELLO_BAD},
        {"C6 SSLv2", 0, 0x80, HELLO_BAD},
        {"A52 HTTP", 0, 'G', HELLO_BAD},
        {"A52 SSH", 0, 'S', HELLO_BAD},
        {"A52 SOCKS5", 0, 5, HELLO_BAD},
        {"record version 2.x", 1, 2, HELLO_BAD},
        {"C6 record of SSLv3", 2, 0, HELLO_BAD},
        {"record of TLS 1.2", 2, 3, HELLO_OK},
        {"record version 3.4", 2, 4, HELLO_BAD},
        {"ServerHello", 5, 2, HELLO_BAD},
        {"message past the limit", 6, 1, HELLO_BAD},
        {"message shorter than its record", 8, 60, HELLO_BAD},
        {"message version 2.3", 9, 2, HELLO_BAD},
        {"message of SSLv3", 10, 0, HELLO_BAD},
        {"C6 message of TLS 1.0", 10, 1, HELLO_OK},
        {"message version 3.4", 10, 4, HELLO_BAD},
        {"session id of 33", 43, 33, HELLO_BAD},
        {"odd cipher suites", 77, 3, HELLO_BAD},
        {"no cipher suites", 77, 0, HELLO_BAD},
        {"C6 compression alone", 83, 1, HELLO_BAD},
        {"extensions longer than they are", 85, 21, HELLO_BAD},
        {"extensions shorter", 85, 1, HELLO_BAD},
        {"no compression", 82, 0, HELLO_BAD},
    };
    struct dynbuf ext, out;
    (void)state;
    dynbuf_init(&ext, 1 << 16);
    dynbuf_init(&out, 1 << 16);
    put_names(&ext, SPAN("api.example"), 1, 0);
    put_hello(&out, dynbuf_span(&ext), FRAGMENT_WHOLE);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        uint8_t was = out.p[changes[i].at];
        assert_int_not_equal(was, changes[i].to);
        out.p[changes[i].at] = changes[i].to;
        expect_hello(changes[i].id, dynbuf_span(&out), changes[i].want,
                     changes[i].want == HELLO_OK ? "api.example" : "");
        out.p[changes[i].at] = was;
    }
    for (size_t n = 0; n < out.n; n++)
        expect_hello("cut", span_first(dynbuf_span(&out), n), HELLO_MORE, "");
    dynbuf_free(&ext);
    dynbuf_free(&out);
}

/* An empty record, and a second message behind the hello in its own record. */
static void test_records(void **state)
{
    struct dynbuf out;
    (void)state;
    dynbuf_init(&out, 1 << 16);
    expect_hello("C6 empty record", SPAN("\x16\x03\x01\0\0"), HELLO_BAD, "");
    expect_hello("C6 record past the limit", SPAN("\x16\x03\x01\x40\x01"), HELLO_BAD, "");
    put_hello(&out, SPAN(""), FRAGMENT_WHOLE);
    out.p[4] += 4; /* the record goes on with another message */
    assert_int_equal(dynbuf_add(&out, SPAN("\x01\0\0\0")), 0);
    expect_hello("two messages", dynbuf_span(&out), HELLO_BAD, "");
    dynbuf_reset(&out);
    put_hello(&out, SPAN(""), FRAGMENT_WHOLE);
    assert_int_equal(dynbuf_add(&out, SPAN("\x17\x03\x03\0\x01x")), 0); /* early data: OpenSSL's to refuse */
    expect_hello("bytes behind", dynbuf_span(&out), HELLO_NO_NAME, "");
    dynbuf_free(&out);
}

/* C6: exactly HELLO_MAX bytes of records, and one more. */
static void test_hello_limit(void **state)
{
    enum { WITHOUT = 5 + 4 + 2 + 32 + 33 + 6 + 2 + 2 + 4 };
    static const size_t sizes[] = {HELLO_MAX, HELLO_MAX + 1, HELLO_MAX + 2};
    static const uint8_t zeros[HELLO_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct dynbuf ext, out;
        dynbuf_init(&ext, 1 << 16);
        dynbuf_init(&out, 1 << 17);
        put_number(&ext, 21, 2); /* padding, RFC 7685 */
        put_vector(&ext, span_of(zeros, sizes[i] - WITHOUT), 2);
        put_hello(&out, dynbuf_span(&ext), FRAGMENT_WHOLE);
        assert_int_equal(out.n, sizes[i]);
        expect_hello("C6 limit", dynbuf_span(&out), i == 0 ? HELLO_NO_NAME : HELLO_BAD, "");
        dynbuf_reset(&out); /* in small records it is too long in any case */
        put_hello(&out, dynbuf_span(&ext), 1);
        expect_hello("C6 limit", dynbuf_span(&out), HELLO_BAD, "");
        dynbuf_free(&ext);
        dynbuf_free(&out);
    }
}

/* What OpenSSL writes, once whole and once in records of another size. */
static void real_hello(const char *name, int version, struct dynbuf *out)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    BIO *in = BIO_new(BIO_s_mem()), *to = BIO_new(BIO_s_mem());
    uint8_t bytes[8192];
    assert_true(ssl && in && to);
    SSL_set_bio(ssl, in, to);
    SSL_set_connect_state(ssl);
    assert_int_equal(SSL_set_max_proto_version(ssl, version), 1);
    assert_int_equal(SSL_set_alpn_protos(ssl, (const uint8_t *)"\x02h2\x08http/1.1", 12), 0);
    if (name)
        assert_int_equal(SSL_set_tlsext_host_name(ssl, name), 1);
    assert_int_equal(SSL_do_handshake(ssl), -1);
    int n = BIO_read(to, bytes, sizeof bytes);
    assert_true(n > 100);
    assert_int_equal(dynbuf_add(out, span_of(bytes, (size_t)n)), 0);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}

static void test_real(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    static const char *const asked[] = {NULL, "api.example", "API.EXAMPLE"};
    static const size_t fragments[] = {1, 2, 3, 100};
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct dynbuf out, cut;
        const char *name = asked[i / 2], *want = name ? "api.example" : "";
        dynbuf_init(&out, 1 << 16);
        dynbuf_init(&cut, 1 << 16);
        real_hello(name, versions[i % 2], &out);
        expect_hello("real", dynbuf_span(&out), name ? HELLO_OK : HELLO_NO_NAME, want);
        for (size_t k = 0; k < sizeof fragments / sizeof fragments[0]; k++) {
            dynbuf_reset(&cut);
            put_records(&cut, span_from(dynbuf_span(&out), 5), fragments[k]);
            expect_hello("C6 real, in records", dynbuf_span(&cut), name ? HELLO_OK : HELLO_NO_NAME, want);
        }
        dynbuf_free(&out);
        dynbuf_free(&cut);
    }
}

/* C5: a real hello with an extension more. */
static void test_real_with_ech(void **state)
{
    static const struct {
        struct span ext;
        bool ech;
    } more[] = {{SPAN("\x1a\x1a\0\0"), false},
                {SPAN("\xfe\x0d\0\x0a\0\0\x01\0\x01\x07\0\x01x\0"), true},
                {SPAN("\x1a\x1a\0\x01\0\xfe\x0d\0\0"), true}};
    (void)state;
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        struct dynbuf out;
        struct outcome o;
        size_t extensions;
        dynbuf_init(&out, 1 << 16);
        real_hello("api.example", TLS1_3_VERSION, &out);
        extensions = 9 + 2 + 32;
        extensions += 1u + out.p[extensions];
        extensions += 2u + ((size_t)out.p[extensions] << 8 | out.p[extensions + 1]);
        extensions += 1u + out.p[extensions];
        assert_int_equal(extensions + 2 + ((size_t)out.p[extensions] << 8 | out.p[extensions + 1]), out.n);
        assert_int_equal(dynbuf_add(&out, more[i].ext), 0);
        const size_t lengths[] = {3, 7, extensions};
        for (size_t k = 0; k < 3; k++) {
            size_t at = lengths[k], n = ((size_t)out.p[at] << 8 | out.p[at + 1]) + more[i].ext.n;
            out.p[at] = (uint8_t)(n >> 8);
            out.p[at + 1] = (uint8_t)n;
        }
        expect_hello("C5 real", dynbuf_span(&out), HELLO_OK, "api.example");
        check_cuts("C5 real", parse_hello, dynbuf_span(&out), &o);
        assert_int_equal(o.hello.has_ech, more[i].ech);
        dynbuf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),       cmocka_unit_test(test_extensions),    cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_not_a_hello), cmocka_unit_test(test_records),       cmocka_unit_test(test_hello_limit),
        cmocka_unit_test(test_real),        cmocka_unit_test(test_real_with_ech),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
