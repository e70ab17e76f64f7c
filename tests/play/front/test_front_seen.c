/* The front: that what it refuses is seen, how TLS is refused, and that every state has its end. */
#include "tests/play/front/front_ways.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- TLS ---- */

static void captured_hello(struct stage *s, struct span hello, uint8_t alert, const char *code)
{
    const uint8_t want[] = {0x15, 3, 3, 0, 2, 2, alert};
    struct cl c;
    cl_adopt_way(s, &c, WAY_CAPTURED, 443, "", hello);
    expect_bytes(&c, span_of(want, sizeof(want)));
    assert_int_equal(cl_end(&c), END_FIN);
    took_note(s, WALK_INTERCEPT, code, "https", "", 443);
    silent(s, &s->judge);
    cl_close(&c);
}

static void a_hello_names_one_host(void **state)
{
    static const char *const names[] = {"10.0.0.1", "127.1",      "0x7f.1",   "_a.test",    "a.test.",  "a..test",
                                        "-a.test",  "2130706433", "*.a.test", "a.test:443", "a b.test", "xn--a"};
    struct stage s;
    struct span hello;
    uint8_t broken[600];
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        hello = hello_of(&s, names[i]);
        captured_hello(&s, hello, ALERT_NO_NAME, "bad-server-name");
        free((void *)hello.p);
    }
    hello = hello_of(&s, NULL);
    captured_hello(&s, hello, ALERT_NO_NAME, "no-server-name");
    free((void *)hello.p);
    hello = hello_of(&s, "a.test");
    assert_true(hello.n < sizeof(broken));
    memcpy(broken, hello.p, hello.n);
    broken[5] = 2; /* a ServerHello */
    captured_hello(&s, span_of(broken, hello.n), ALERT_DECODE_ERROR, "bad-hello");
    broken[5] = 1;
    broken[1] = 2; /* SSL 2 */
    captured_hello(&s, span_of(broken, hello.n), ALERT_DECODE_ERROR, "bad-hello");
    free((void *)hello.p);
    stage_close(&s);
    covers("C4 C6");
}

/* A22, A27: what a client should have written otherwise is handed on in its one form. */
static void raw_bytes_have_one_form(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_tunnel(&s, &c, "a_b.test");
    SAY(&c, "DELETE /a|%7c?{`}\\ HTTP/1.1\r\nHost: A_b.test\r\nX: \xa0"
            "caf\xe9\r\nCountersign-Reason: l\xc3\xb6schen\xe9 ja\r\n\r\n");
    struct ask a = take_request(&s);
    assert_true(span_eq(a.r.host, SPAN("a_b.test")));
    assert_true(span_eq(a.r.path, SPAN("/a%7C%7C")) && span_eq(a.r.query, SPAN("%7B%60%7D%5C")));
    assert_true(a.r.nfields == 1 && span_eq(a.r.field[0].value, SPAN("\xa0"
                                                                     "caf\xe9")));
    assert_true(span_eq(a.reason, SPAN("l\xc3\xb6schen")));
    give_reply(&s, a.id, 403, "no", false);
    cl_expect(&c, "Content-Length: 2\r\n\r\nno");
    cl_close(&c);
    static const char *const bad[][2] = {
        {"/x\\y HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-target"},
        {"/ HTTP/1.1\r\nHost: a.test\r\nX-Api-Key: \xe9\r\n\r\n", "bad-field-value"},
        {"/ HTTP/1.1\r\nHost: a.test\r\nX_Vault_Token: a\xa0\r\n\r\n", "bad-field-value"},
        {"/ HTTP/1.1\r\nHost: a.test\r\nCookie: \xe9\r\n\r\n", "bad-field-value"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cl_tunnel(&s, &c, "a.test");
        SAY(&c, "GET ");
        SAY(&c, bad[i][0]);
        assert_int_equal(cl_end(&c), END_NOTIFY);
        if (!cl_has(&c, "HTTP/1.1 400 ") || !cl_has(&c, bad[i][1]))
            fail_msg("%s: \"%.*s\"", bad[i][1], SPAN_FMT(dynbuf_span(&c.in)));
        cl_close(&c);
    }
    silent(&s, &s.judge);
    stage_close(&s);
    covers("A22 A27");
}

static void a_name_inside_an_encrypted_hello_is_not_heard(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    assert_int_equal(SSL_CTX_add_client_custom_ext(s.tls, 0xfe0d, NULL, NULL, NULL, NULL, NULL), 1);
    cl_adopt_way(&s, &c, WAY_CAPTURED, 443, "", SPAN_NONE);
    cl_tls_begin(&c, "outer.test", NULL);
    give_leaf(&s, take_connect(&s, "outer.test", 443), "outer.test");
    assert_true(cl_tls_end(&c));
    cl_close(&c);
    cl_tunnel(&s, &c, "a.test");
    cl_close(&c);
    stage_close(&s);
    covers("C5");
}

static void sni_is_what_socks_or_connect_named(void **state)
{
    static const char *const others[] = {"b.test", "a.test.b.test", "a.test.", "A.tests", NULL};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < 2 * sizeof(others) / sizeof(*others); i++) {
        if (i % 2) {
            cl_open(&s, &c);
            SAY(&c, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
            give_leaf(&s, take_connect(&s, "a.test", 443), "a.test");
            cl_expect(&c, "\r\n\r\n");
            cl_tls_begin(&c, others[i / 2], NULL);
        } else {
            socks_open(&s, &c, SPAN(SOCKS_A_443));
            cl_tls_begin(&c, others[i / 2], NULL);
            give_leaf(&s, take_connect(&s, "a.test", 443), "a.test");
        }
        assert_false(cl_tls_end(&c));
        took_note(&s, WALK_INTERCEPT, "sni-mismatch", "https", "a.test", 443);
        cl_close(&c);
    }
    silent(&s, &s.judge);
    stage_close(&s);
    covers("C1 C2 C4");
}

/* Every failed handshake has its code, whatever way it came. */
static void failed(struct stage *s, enum way way, const char *sni, const char *alpn, const char *code)
{
    struct cl c;
    if (way == WAY_SOCKS)
        socks_open(s, &c, SPAN(SOCKS_A_443));
    else
        cl_adopt_way(s, &c, way, 443, "", SPAN_NONE);
    cl_tls_begin(&c, sni, alpn);
    give_leaf(s, take_connect(s, "a.test", 443), "a.test");
    (void)cl_tls_end(&c); /* who does not trust us may think it is done */
    took_note(s, WALK_INTERCEPT, code, "https", "a.test", 443);
    cl_close(&c);
}

static void a_handshake_that_fails_has_a_code(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (enum way way = WAY_SOCKS; way <= WAY_CAPTURED; way++) {
        failed(&s, way, "a.test", "\2h2", "tls-alpn");
        SSL_CTX_set_security_level(s.tls, 0);
        SSL_CTX_set_min_proto_version(s.tls, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(s.tls, TLS1_VERSION);
        failed(&s, way, "a.test", NULL, "tls-version");
        SSL_CTX_set_max_proto_version(s.tls, TLS1_1_VERSION);
        failed(&s, way, "a.test", NULL, "tls-version");
        SSL_CTX_set_max_proto_version(s.tls, 0);
        SSL_CTX_set_security_level(s.tls, 2);
    }
    X509_STORE *none = X509_STORE_new();
    SSL_CTX_set1_cert_store(s.tls, none);
    X509_STORE_free(none);
    failed(&s, WAY_SOCKS, "a.test", NULL, "ca-not-trusted");
    cl_open(&s, &c);
    SAY(&c, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
    give_leaf(&s, take_connect(&s, "a.test", 443), "a.test");
    cl_expect(&c, "\r\n\r\n");
    SAY(&c, "\x80\x2e\1\0\2"); /* SSL 2 is no TLS, and no HTTP */
    cl_expect(&c, "\"code\":\"not-http\"");
    took_note(&s, WALK_PARSE, "not-http", "http", "a.test", 443);
    cl_close(&c);
    stage_close(&s);
    covers("A39 C6");
}

static void without_a_leaf_there_is_an_alert(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    socks_open(&s, &c, SPAN(SOCKS_A_443));
    cl_tls_begin(&c, "a.test", NULL);
    give_refused_leaf(&s, take_connect(&s, "a.test", 443), 403, "past the budget");
    assert_false(cl_tls_end(&c));
    settle(&s);
    assert_null(s.books.first); /* the judge has said so itself */
    cl_close(&c);

    cl_adopt_way(&s, &c, WAY_CAPTURED, 443, "", SPAN_NONE);
    cl_tls_begin(&c, "a.test", NULL);
    (void)take_connect(&s, "a.test", 443);
    stage_peer(&s, ROLE_JUDGE); /* a new one */
    assert_false(cl_tls_end(&c));
    cl_close(&c);

    cl_adopt_way(&s, &c, WAY_CAPTURED, 443, "", SPAN_NONE);
    chan_free(&s.judge.chan);
    settle(&s);
    cl_tls_begin(&c, "a.test", NULL);
    assert_false(cl_tls_end(&c));
    cl_close(&c);
    stage_close(&s);
    covers("C28 INV7");
}

/* ---- time ---- */

static void pass(struct stage *s, struct cl *c)
{
    uint64_t start = now_ms();
    cl_end(c);
    assert_true(now_ms() - start < 3000);
    cl_read(c);
    (void)s;
}

static void every_state_has_its_end(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open_as(&s, LISTEN_CAPTURED_UNIX);
    struct span hello = hello_of(&s, "a.test");
    s.f->limits.head_ms = s.f->limits.leaf_ms = s.f->limits.tls_ms = 60;
    cl_adopt_way(&s, &c, WAY_SOCKS, 0, "", SPAN("\5\1")); /* a SOCKS request that does not come */
    pass(&s, &c);
    assert_true(span_eq(dynbuf_span(&c.in), SPAN("\5\1\0\1\0\0\0\0\0\0")));
    took_note(&s, WALK_PARSE, "head-too-slow", "http", "", 0);
    cl_close(&c);
    socks_open(&s, &c, SPAN(SOCKS_A_443)); /* granted, and then the server is to speak first */
    pass(&s, &c);
    assert_int_equal(c.in.n, 0);
    took_note(&s, WALK_PARSE, "client-silent", "http", "a.test", 443);
    cl_close(&c);
    cl_adopt_way(&s, &c, WAY_CAPTURED, 25, "", SPAN_NONE);
    pass(&s, &c);
    assert_int_equal(c.in.n, 0);
    took_note(&s, WALK_PARSE, "client-silent", "http", "", 25);
    cl_close(&c);
    cl_adopt_way(&s, &c, WAY_CAPTURED, 443, "", span_first(hello, 40)); /* half a hello */
    pass(&s, &c);
    assert_true(span_eq(dynbuf_span(&c.in), SPAN(ALERT("\x50"))));
    took_note(&s, WALK_INTERCEPT, "head-too-slow", "https", "", 443);
    cl_close(&c);
    cl_adopt_way(&s, &c, WAY_CAPTURED, 443, "", hello); /* a leaf that does not come */
    (void)take_connect(&s, "a.test", 443);
    pass(&s, &c);
    assert_true(span_eq(dynbuf_span(&c.in), SPAN(ALERT("\x50"))));
    took_note(&s, WALK_INTERCEPT, "tls-refused", "https", "a.test", 443);
    assert_int_equal(take(&s, &s.judge, M_CANCEL).type, M_CANCEL);
    cl_close(&c);
    cl_adopt_way(&s, &c, WAY_CAPTURED, 443, "", hello); /* a handshake that does not go on */
    give_leaf(&s, take_connect(&s, "a.test", 443), "a.test");
    pass(&s, &c);
    took_note(&s, WALK_INTERCEPT, "tls-too-slow", "https", "a.test", 443);
    cl_close(&c);
    cl_adopt_way(&s, &c, WAY_CAPTURED, 80, "", SPAN("GET / HTTP/1.1\r\n"));
    pass(&s, &c);
    took_note(&s, WALK_PARSE, "head-too-slow", "http", "", 80);
    cl_close(&c);
    cl_open(&s, &c); /* half a PROXY header */
    SAY(&c, "\r\n\r");
    pass(&s, &c);
    took_note(&s, WALK_PARSE, "head-too-slow", "http", "", 0);
    cl_close(&c);
    free((void *)hello.p);
    stage_close(&s);
    covers("F1");
}

/* ---- doors ---- */

static void a_captured_listener_takes_nothing_else(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open_as(&s, LISTEN_CAPTURED);
    cl_dial(&s, &c);
    cl_expect(&c, "not-captured");
    SAY(&c, "GET / HTTP/1.1\r\n\r\n"); /* is not read, and not answered with a reset */
    assert_int_equal(cl_end(&c), END_FIN);
    took_note(&s, WALK_PARSE, "not-captured", "http", "", 0);
    silent(&s, &s.judge);
    cl_close(&c);
    stage_close(&s);
    covers("C21");
}

static void a_way_that_is_none_is_closed(void **state)
{
    static const struct {
        enum way way;
        uint16_t port;
    } none[] = {{WAY_NONE, 0},  {WAY_NONE, 443},  {(enum way)9, 0},
                {WAY_HTTP, 80}, {WAY_SOCKS, 443}, {WAY_CAPTURED, 0}};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        cl_adopt_way(&s, &c, none[i].way, none[i].port, "", SPAN(GET_A));
        (void)cl_end(&c);
        assert_int_equal(c.in.n, 0);
        assert_int_equal(s.f->nclients, 0);
        cl_close(&c);
    }
    for (unsigned kind = 0; kind < 12; kind++) {
        if (kind == LISTEN_OWN || kind == LISTEN_CAPTURED || kind == LISTEN_CAPTURED_UNIX || kind == LISTEN_STEPS)
            continue;
        struct dynbuf *b = chan_begin(s.parent.chan, M_LISTEN, 0);
        msg_put_u8(b, (uint8_t)kind);
        msg_put_span(b, SPAN("sb"));
        assert_int_equal(chan_commit_fd(s.parent.chan, s.listener), 0);
        settle(&s);
        assert_int_equal(s.f->ndoors, 1);
    }
    stage_close(&s);
}

/* ---- the books ---- */

static void refusals_are_counted_for_the_parent(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    uint64_t start = now_ms();
    for (int i = 0; i < 5; i++) {
        cl_open(&s, &c);
        SAY(&c, i < 3 ? "GET / HTTP/1.1\r\n\r\n" : "\5\1\0");
        cl_end(&c);
        took_note(&s, WALK_PARSE, i < 3 ? "target-form" : "not-http", "http", "", 0);
        cl_close(&c);
    }
    struct got g = take(&s, &s.books, M_REFUSED);
    assert_true(now_ms() - start >= 200);
    struct refusals r = {.n = 0};
    struct msg_in m = msg_in(g.payload);
    assert_int_equal(wire_get_refusals(&m, SPAN_NONE, &r), 0);
    assert_int_equal(r.n, 2);
    assert_string_equal(r.row[0].listener, "sb");
    assert_string_equal(r.row[0].code, "target-form");
    assert_int_equal(r.row[0].count, 3);
    assert_string_equal(r.row[1].code, "not-http");
    assert_int_equal(r.row[1].count, 2);

    s.f->limits.clients = 1; /* one past the limit, let in by the parent */
    cl_open(&s, &c);
    struct cl more;
    cl_adopt_way(&s, &more, WAY_CAPTURED, 443, "", SPAN_NONE);
    cl_expect(&more, "too-many-connections");
    took_note(&s, WALK_ACCEPT, "too-many-connections", "", "", 443);
    cl_close(&more);
    cl_adopt_way(&s, &more, WAY_SOCKS, 0, "", SPAN_NONE);
    expect_bytes(&more, SPAN("\5\1\0\1\0\0\0\0\0\0"));
    cl_close(&more);
    cl_close(&c);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_names_one_host),
        cmocka_unit_test(raw_bytes_have_one_form),
        cmocka_unit_test(a_name_inside_an_encrypted_hello_is_not_heard),
        cmocka_unit_test(sni_is_what_socks_or_connect_named),
        cmocka_unit_test(a_handshake_that_fails_has_a_code),
        cmocka_unit_test(without_a_leaf_there_is_an_alert),
        cmocka_unit_test(every_state_has_its_end),
        cmocka_unit_test(a_captured_listener_takes_nothing_else),
        cmocka_unit_test(a_way_that_is_none_is_closed),
        cmocka_unit_test(refusals_are_counted_for_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
