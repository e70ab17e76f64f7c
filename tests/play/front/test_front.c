/* The front: CONNECT, TLS, heads, identities, and whose frame is whose. */
#include "tests/play/front/front_peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void a_tunnel_carries_requests_each_decided(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_tunnel(&s, &c, "api.test");
    SAY(&c, "GET /a%7Eb?x=%2f&y HTTP/1.1\r\nHost: API.test\r\nAccept: */*\r\nCountersign-Reason: to see\r\n\r\n");
    struct ask a = take_request(&s);
    assert_true(span_eq(a.r.scheme, SPAN("https")) && span_eq(a.r.host, SPAN("api.test")) && a.r.port == 443);
    assert_true(span_eq(a.r.path, SPAN("/a~b")) && span_eq(a.r.query, SPAN("x=%2F&y")) && a.r.has_query);
    assert_true(span_eq(a.reason, SPAN("to see")));
    assert_int_equal(a.r.nfields, 1);
    assert_int_equal(a.body, 0);
    give_answer(&s, a.id, 200, HTTP_LENGTH, 2, true, SPAN("hi"));
    cl_expect(&c, "hi");
    cl_is(&c, "HTTP/1.1 200 OK\r\nX-From: upstream\r\nContent-Length: 2\r\n\r\nhi");
    SAY(&c, "DELETE /a HTTP/1.1\r\nHost: api.test:443\r\n\r\n");
    a = take_request(&s);
    assert_true(span_eq(a.r.method, SPAN("DELETE")));
    give_reply(&s, a.id, 403, "no", false);
    cl_expect(&c, "Content-Length: 2\r\n\r\nno");
    assert_int_equal(s.f->nclients, 1);
    silent(&s, &s.judge);
    cl_close(&c);
    silent(&s, &s.judge);
    stage_close(&s);
    covers("A33 C7");
}

static void connect_is_understood_at_every_split(void **state)
{
    static const char *const heads[] = {
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nUser-Agent: x\r\nProxy-Connection: Keep-Alive\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.0\r\n\r\n", "\r\nCONNECT A.Test.:443 HTTP/1.0\r\nHost: a.test\r\n\r\n"};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t h = 0; h < sizeof(heads) / sizeof(heads[0]); h++) {
        struct span all = span_str(heads[h]);
        for (size_t k = 0; k < all.n; k++) {
            cl_open(&s, &c);
            cl_say(&c, span_first(all, k));
            silent(&s, &s.judge);
            cl_say(&c, span_from(all, k));
            give_refused_leaf(&s, take_connect(&s, "a.test", 443), 403, "not there");
            cl_expect(&c, "HTTP/1.1 403 Said so\r\nConnection: close\r\nContent-Length: 9\r\n\r\nnot there");
            assert_int_equal(cl_end(&c), END_FIN);
            cl_close(&c);
        }
    }
    assert_int_equal(s.f->nclients, 0);
    stage_close(&s);
    covers("A41 C8");
}

static void one_request(struct stage *s, struct cl *c, struct span first, struct span all, size_t k)
{
    cl_say(c, span_first(all, k));
    silent(s, &s->judge);
    cl_say(c, span_from(all, k));
    struct got g = take(s, &s->judge, M_REQUEST);
    if (!span_eq(g.payload, first))
        fail_msg("split at %zu, the request reads differently", k);
    give_reply(s, g.id, 200, "ok", false);
    cl_expect(c, "\r\n\r\nok");
    cl_forget(c);
}

static void every_split(struct stage *s, struct cl *c, struct span all)
{
    uint8_t seen[2048];
    cl_say(c, all);
    struct got g = take(s, &s->judge, M_REQUEST);
    assert_true(g.payload.n < sizeof(seen));
    memcpy(seen, g.payload.p, g.payload.n);
    struct span first = span_of(seen, g.payload.n);
    give_reply(s, g.id, 200, "ok", false);
    cl_expect(c, "\r\n\r\nok");
    cl_forget(c);
    for (size_t k = 1; k < all.n; k++)
        one_request(s, c, first, all, k);
    for (size_t k = 0; k + 1 < all.n; k++)
        cl_say(c, span_first(span_from(all, k), 1));
    one_request(s, c, first, span_from(all, all.n - 1), 0);
}

static void a_head_is_understood_at_every_split(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    every_split(&s, &c,
                SPAN("\r\nGET http://a.test:80/p/q?r HTTP/1.1\r\nHost: a.test\r\nX-A: 1\r\nX-B:  two \r\n\r\n"));
    cl_close(&c);
    cl_tunnel(&s, &c, "a.test");
    every_split(&s, &c, SPAN("PUT /p HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nX-B: two\r\n\r\n"));
    cl_close(&c);
    stage_close(&s);
    covers("A41 A40");
}

static size_t as_the_judge_sees_it(struct stage *s, struct cl *c, struct span request, uint8_t *out, size_t room)
{
    cl_say(c, request);
    struct got g = take(s, &s->judge, M_REQUEST);
    size_t n = g.payload.n;
    assert_true(n <= room);
    memcpy(out, g.payload.p, n);
    give_reply(s, g.id, 200, "ok", false);
    cl_expect(c, "\r\n\r\nok");
    cl_forget(c);
    return n;
}

/* Java's client declares one of no bytes with every GET: still a read. What else declares it says something. */
static void an_empty_body_of_a_get_is_none(void **state)
{
#define HEAD_OF(method, more) SPAN(method " /p HTTP/1.1\r\nHost: a.test\r\n" more "\r\n")
    uint8_t plain[2048], empty[2048];
    struct stage s;
    struct cl c;
    stage_open(&s);
    cl_tunnel(&s, &c, "a.test");
    size_t n = as_the_judge_sees_it(&s, &c, HEAD_OF("GET", ""), plain, sizeof(plain));
    assert_int_equal(as_the_judge_sees_it(&s, &c, HEAD_OF("GET", "Content-Length: 0\r\n"), empty, sizeof(empty)), n);
    assert_memory_equal(plain, empty, n);
    n = as_the_judge_sees_it(&s, &c, HEAD_OF("POST", ""), plain, sizeof(plain));
    size_t m = as_the_judge_sees_it(&s, &c, HEAD_OF("POST", "Content-Length: 0\r\n"), empty, sizeof(empty));
    assert_true(m != n || memcmp(plain, empty, n) != 0);
    cl_close(&c);
    stage_close(&s);
#undef HEAD_OF
}

/* The first flight of a client, as bytes. */
static struct span hello_of(struct stage *s, SSL **ssl, const char *sni)
{
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    unsigned char *p;
    *ssl = SSL_new(s->tls);
    SSL_set_bio(*ssl, in, out);
    SSL_set_connect_state(*ssl);
    SSL_set_tlsext_host_name(*ssl, sni);
    assert_int_equal(SSL_do_handshake(*ssl), -1);
    long n = BIO_get_mem_data(out, &p);
    uint8_t *copy = malloc((size_t)n);
    memcpy(copy, p, (size_t)n);
    return span_of(copy, (size_t)n);
}

static void finish_hello(struct stage *s, struct cl *c, SSL *ssl)
{
    uint64_t until = now_ms() + 5000;
    give_leaf(s, take_connect(s, "a.test", 443), "a.test");
    cl_expect(c, "established\r\n");
    while (!cl_has(c, "\r\n\r\n"))
        cl_read(c);
    /* What came behind the 200 belongs to TLS. */
    size_t at = span_find(dynbuf_span(&c->in), SPAN("\r\n\r\n")) + 4;
    BIO *in = BIO_new(BIO_s_mem());
    BIO_write(in, c->in.p + at, (int)(c->in.n - at));
    cl_forget(c);
    SSL_set0_rbio(ssl, in);
    while (SSL_do_handshake(ssl) != 1) {
        turn(s);
        cl_read(c);
        BIO_write(in, c->in.p, (int)c->in.n);
        cl_forget(c);
        assert_true(now_ms() < until);
    }
    unsigned char *p;
    long n = BIO_get_mem_data(SSL_get_wbio(ssl), &p);
    struct span all = span_of(p, (size_t)n);
    cl_say(c, all);
    UNTIL(s, s->f->clients->state == CLIENT_TUNNEL);
}

static void a_hello_behind_connect_is_not_lost(void **state)
{
    static const struct span head = SPAN("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t k = 0; k < 12; k++) {
        SSL *ssl;
        struct dynbuf all;
        struct span hello = hello_of(&s, &ssl, "a.test");
        dynbuf_init(&all, 8192);
        dynbuf_add(&all, head);
        dynbuf_add(&all, hello);
        size_t cut = k < 10 ? head.n - 4 + k : all.n; /* around the border, at the end, and as the lobby gives it */
        if (k < 11) {
            cl_open(&s, &c);
            cl_say(&c, span_first(dynbuf_span(&all), cut));
            cl_say(&c, span_from(dynbuf_span(&all), cut));
        } else {
            cl_adopt(&s, &c, "", dynbuf_span(&all));
        }
        /* The wbio still holds the hello. */
        (void)BIO_reset(SSL_get_wbio(ssl));
        finish_hello(&s, &c, ssl);
        SSL_free(ssl);
        free((void *)hello.p);
        dynbuf_free(&all);
        cl_close(&c);
    }
    stage_close(&s);
    covers("A42");
}

static void a_token_belongs_to_its_connection(void **state)
{
#define AUTH "Proxy-Authorization: Basic eDp0b2tlbg==\r\n"
    static const struct span get = SPAN("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n" AUTH "\r\n");
    static const char *const others[] = {
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic eDp0b2tlbh==\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Bearer eDp0b2tlbg==\r\n\r\n"};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        cl_adopt(&s, &c, "Basic eDp0b2tlbg==", get);
        for (int n = 0; n < 3; n++) { /* each request of the connection brings it again */
            struct ask a = take_request(&s);
            assert_int_equal(a.r.nfields, 0);
            give_reply(&s, a.id, 200, "ok", false);
            cl_expect(&c, "\r\n\r\nok");
            cl_forget(&c);
            if (n < 2)
                cl_say(&c, get);
        }
        SAY(&c, others[i]);
        cl_expect(&c, "HTTP/1.1 407 ");
        cl_expect(&c, "Proxy-Authenticate: Basic realm=\"countersign\"\r\n");
        assert_int_equal(cl_end(&c), END_FIN);
        cl_close(&c);
    }
    cl_adopt(&s, &c, "Basic eDp0b2tlbg==", SPAN("CONNECT a.test:443 HTTP/1.0\r\n" AUTH "\r\n"));
    give_leaf(&s, take_connect(&s, "a.test", 443), "a.test");
    cl_expect(&c, "established\r\n\r\n");
    cl_forget(&c);
    assert_true(cl_tls(&c, "a.test", NULL));
    SAY(&c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); /* inside, nothing is asked for */
    give_reply(&s, take_request(&s).id, 200, "ok", false);
    cl_expect(&c, "ok");
    cl_close(&c);
    silent(&s, &s.judge);
    stage_close(&s);
    covers("D32 D33 C37");
}

static void connect_comes_first_or_never(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    SAY(&c, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    give_reply(&s, take_request(&s).id, 200, "ok", false);
    cl_expect(&c, "ok");
    SAY(&c, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
    cl_expect(&c, "\"code\":\"late-connect\"");
    assert_int_equal(cl_end(&c), END_FIN);
    cl_close(&c);
    cl_tunnel(&s, &c, "a.test");
    SAY(&c, "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n");
    cl_expect(&c, "HTTP/1.1 400 ");
    assert_int_equal(cl_end(&c), END_NOTIFY);
    cl_close(&c);
    cl_open(&s, &c);
    SAY(&c, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    give_leaf(&s, take_connect(&s, "a.test", 443), "a.test");
    cl_expect(&c, "established\r\n\r\n");
    SAY(&c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); /* plain text where TLS belongs */
    assert_true(cl_end(&c));
    silent(&s, &s.judge);
    cl_close(&c);
    stage_close(&s);
    covers("C37 B43");
}

static bool handshake(struct stage *s, const char *host, const char *sni, const char *alpn)
{
    struct cl c;
    char head[400];
    cl_open(s, &c);
    snprintf(head, sizeof(head), "CONNECT %s:443 HTTP/1.1\r\n\r\n", host);
    if (strcmp(host, "10.1.2.3") == 0)
        snprintf(head, sizeof(head), "CONNECT %s:443 HTTP/1.1\r\nHost: %s\r\n\r\n", host, host);
    else
        snprintf(head, sizeof(head), "CONNECT %s:443 HTTP/1.0\r\n\r\n", host);
    SAY(&c, head);
    give_leaf(s, take_connect(s, host, 443), host);
    cl_expect(&c, "established\r\n\r\n");
    bool ok = cl_tls(&c, sni, alpn);
    cl_close(&c);
    silent(s, &s->judge);
    return ok;
}

static void tls_says_the_name_of_connect(void **state)
{
    struct stage s;
    (void)state;
    stage_open(&s);
    assert_true(handshake(&s, "a.test", "a.test", NULL));
    assert_true(handshake(&s, "a.test", "A.TEST", NULL));
    assert_false(handshake(&s, "a.test", "b.test", NULL));
    assert_false(handshake(&s, "a.test", "a.test.evil", NULL));
    assert_false(handshake(&s, "a.test", NULL, NULL));
    assert_true(handshake(&s, "10.1.2.3", NULL, NULL));
    assert_true(handshake(&s, "a.test", "a.test", "\x08http/1.1\x02h2"));
    assert_false(handshake(&s, "a.test", "a.test", "\x02h2"));
    SSL_CTX_set_security_level(s.tls, 0);
    SSL_CTX_set_min_proto_version(s.tls, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(s.tls, TLS1_1_VERSION);
    assert_false(handshake(&s, "a.test", "a.test", NULL));
    assert_int_equal(s.f->nclients, 0);
    stage_close(&s);
    covers("C1 C4 C6 A39");
}

static void host_is_the_authority_of_the_tunnel(void **state)
{
    static const char *const others[] = {"b.test",        "a.test:444", "a.test:80",
                                         "a.test.b.test", "10.0.0.1",   "xn--bcher-kva.test"};
    char head[200];
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        cl_tunnel(&s, &c, "a.test");
        snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", others[i]);
        SAY(&c, head);
        cl_expect(&c, "HTTP/1.1 421 Misdirected Request\r\n");
        assert_int_equal(cl_end(&c), END_NOTIFY);
        cl_close(&c);
    }
    silent(&s, &s.judge);
    stage_close(&s);
    covers("C1 C2 C3 C7 C35");
}

/* At the proxy port, or in a tunnel to a.test. */
static const struct {
    const char *head, *code;
    unsigned status;
    bool tunnel;
} bad[] = {
    {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "target-form", 400, false},
    {"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "https-without-connect", 400, false},
    {"GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "target-form", 400, false},
    {"GET http://u:p@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-authority", 400, false},
    {"GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n", "host-mismatch", 400, false},
    {"GET http://a.test/ HTTP/1.1\r\n\r\n", "missing-host", 400, false},
    {"GET http://a.test//x HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-target", 400, false},
    {"GET http://a.test/%2e%2e/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-target", 400, false},
    {"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-authority", 400, false},
    {"CONNECT u@a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-authority", 400, false},
    {"CONNECT a.test:0443 HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-authority", 400, false},
    {"CONNECT a.test:65536 HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-authority", 400, false},
    {"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx", "body-on-connect", 400, false},
    {"CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n", "host-mismatch", 400, false},
    {"GET  http://a.test/ HTTP/1.1\r\n", "bad-target", 400, false},
    {"GET http://a.test/ HTTP/1.2\r\nHost: a.test\r\n\r\n", "bad-version", 505, false},
    {"\x16\x03\x01\x02", "not-http", 400, false},
    {"\x05\x01\x02", "not-http", 400, false},
    {"TRACE http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "method-refused", 405, false},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http2-preface", 400, true},
    {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "target-form", 400, true},
    {"GET / HTTP/1.1\r\n\r\n", "missing-host", 400, true},
    {"GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n", "duplicate-field", 400, true},
    {"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "bad-host", 400, true},
    {"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", "target-form", 400, true},
    {"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
     "length-and-coding", 400, true},
    {"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip\r\n\r\n", "bad-transfer-encoding", 400, true},
    {"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nExpect: x\r\n\r\n", "bad-expect", 417, true},
    {"GET / HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 0\r\n\r\n", "max-forwards", 405, true},
    {"GET /\xff HTTP/1.1\r\nHost: a.test\r\n\r\n", "bad-target", 400, true},
};

static void what_is_ambiguous_is_refused_in_words(void **state)
{
    char status[40], code[80];
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (bad[i].tunnel)
            cl_tunnel(&s, &c, "a.test");
        else
            cl_open(&s, &c);
        SAY(&c, bad[i].head);
        snprintf(status, sizeof(status), "HTTP/1.1 %u ", bad[i].status);
        snprintf(code, sizeof(code), "\"code\":\"%s\"", bad[i].code);
        enum ending how = cl_end(&c);
        if (!cl_has(&c, status) || !cl_has(&c, code) || how != (bad[i].tunnel ? END_NOTIFY : END_FIN))
            fail_msg("%s: %d, \"%.*s\"", bad[i].code, how, SPAN_FMT(dynbuf_span(&c.in)));
        /* The length that was promised is the length that came, and quotes in it are escaped. */
        struct span all = dynbuf_span(&c.in), body = span_from(all, span_find(all, SPAN("\r\n\r\n")) + 4);
        snprintf(code, sizeof(code), "Content-Length: %zu\r\n", body.n);
        assert_true(cl_has(&c, code));
        assert_true(span_starts(body, SPAN("{\"type\"")) &&
                    span_find(body, SPAN("\"retry\":false}\n")) + 15 == body.n);
        assert_false(cl_has(&c, "not \"chunked"));
        cl_close(&c);
    }
    silent(&s, &s.judge);
    assert_int_equal(s.f->nclients, 0);
    stage_close(&s);
    covers("A23 A24 A25 A26 A28 A29 A30 A39 A42 A43 B43 C8 C20 C35");
}

static void what_must_not_leave_is_taken_out(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_tunnel(&s, &c, "a.test");
    SAY(&c,
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nAccept: a\r\nExpect: 100-continue\r\n"
        "X-HTTP-Method-Override: DELETE\r\nX_HTTP_METHOD: DELETE\r\nx-Method_Override: PUT\r\n"
        "Countersign-Reason: r\r\nCountersign-Decision: allow\r\nCountersign_Ticket: t\r\nVia: v\r\n"
        "Proxy-Connection: keep-alive\r\nProxy_X: 1\r\nX-Forwarded-For: 1\r\nUpgrade: h2c\r\nTE: trailers\r\n"
        "HTTP2-Settings: AAA\r\nConnection: X-Gone, Upgrade, Authorization\r\nX-Gone: 1\r\nAuthorization: kept?\r\n"
        "Early-Data: 1\r\nEarlier: b\r\nProx: c\r\n\r\n");
    struct ask a = take_request(&s);
    assert_int_equal(a.r.nfields, 3);
    assert_true(span_eq(a.r.field[0].value, SPAN("a")) && span_eq(a.r.field[1].value, SPAN("b")) &&
                span_eq(a.r.field[2].value, SPAN("c")));
    assert_int_equal(a.body, 1 | REQUEST_FORWARDED);
    give_reply(&s, a.id, 200, "ok", false);
    cl_expect(&c, "ok");
    cl_close(&c);
    stage_close(&s);
    covers("A37 A38 D33");
}

static void plain_http_is_the_same_request(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    SAY(&c, "GET http://A.test:443/x?y HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    struct ask a = take_request(&s);
    assert_true(span_eq(a.r.scheme, SPAN("http")) && span_eq(a.r.host, SPAN("a.test")) && a.r.port == 443);
    assert_true(span_eq(a.r.path, SPAN("/x")) && span_eq(a.r.query, SPAN("y")));
    give_reply(&s, a.id, 200, "ok", false);
    cl_expect(&c, "Connection: keep-alive\r\nContent-Length: 2\r\n\r\nok");
    SAY(&c, "GET http://b.test HTTP/1.0\r\n\r\n");
    a = take_request(&s);
    assert_true(span_eq(a.r.host, SPAN("b.test")) && a.r.port == 80 && span_eq(a.r.path, SPAN("/")));
    give_reply(&s, a.id, 200, "ok", false);
    cl_expect(&c, "Connection: close\r\nContent-Length: 2\r\n\r\nok");
    assert_int_equal(cl_end(&c), END_FIN);
    cl_close(&c);
    stage_close(&s);
    covers("B44 C35");
}

static void a_late_frame_is_nobodys(void **state)
{
    struct stage s;
    struct cl c, d;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    SAY(&c, "GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    uint64_t gone = take_request(&s).id;
    cl_close(&c);
    assert_int_equal(take(&s, &s.judge, M_CANCEL).id, gone);
    cl_open(&s, &d);
    SAY(&d, "GET http://a.test/2 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    uint64_t id = take_request(&s).id;
    give_reply(&s, gone, 200, "for another", false);
    give_reply(&s, id ^ (UINT64_C(1) << FRONT_INSTANCE_SHIFT), 200, "of another front", false);
    give_reply(&s, id + FRONT_SLOTS, 200, "of the same slot", false);
    give_reply(&s, 0, 200, "of nobody", false);
    give_answer(&s, gone, 200, HTTP_LENGTH, 3, true, SPAN("old"));
    give_body(&s, gone, SPAN("old"));
    give_end(&s, gone, false);
    give_wanted(&s, gone, 2, 100);
    cl_is(&d, "");
    give_reply(&s, id, 200, "mine", false);
    cl_expect(&d, "mine");
    give_reply(&s, id, 200, "twice", false);
    give_body(&s, id, SPAN("late"));
    cl_is(&d, "HTTP/1.1 200 Said so\r\nContent-Length: 4\r\n\r\nmine");
    cl_close(&d);
    s.f->counter += FRONT_SLOTS - 1; /* the next id falls on the same slot */
    cl_open(&s, &d);
    SAY(&d, "GET http://a.test/3 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    uint64_t next = take_request(&s).id;
    assert_int_equal(next % FRONT_SLOTS, id % FRONT_SLOTS);
    give_reply(&s, id, 200, "late", false);
    cl_is(&d, "");
    cl_close(&d);
    stage_close(&s);
    covers("D32");
}

static void roles_that_die_leave_nobody_waiting(void **state)
{
    struct stage s;
    struct cl waits, leaf, flows;
    (void)state;
    stage_open(&s);
    cl_open(&s, &flows);
    SAY(&flows, "GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    uint64_t id = take_request(&s).id;
    give_answer(&s, id, 200, HTTP_CHUNKED, 0, false, SPAN("some"));
    cl_expect(&flows, "some");
    cl_open(&s, &waits);
    SAY(&waits, "GET http://a.test/2 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    take_request(&s);
    cl_open(&s, &leaf);
    SAY(&leaf, "CONNECT a.test:443 HTTP/1.0\r\n\r\n");
    take_connect(&s, "a.test", 443);
    stage_peer(&s, ROLE_JUDGE);
    cl_expect(&waits, "\"code\":\"gateway-restarting\"");
    cl_expect(&leaf, "HTTP/1.1 503 ");
    assert_int_equal(cl_end(&waits), END_FIN);
    assert_int_equal(cl_end(&leaf), END_FIN);
    cl_close(&waits);
    cl_close(&leaf);
    give_body(&s, id, SPAN(" more"));
    cl_expect(&flows, " more");

    cl_open(&s, &leaf);
    SAY(&leaf, "CONNECT a.test:443 HTTP/1.0\r\n\r\n");
    uint64_t connect = take_connect(&s, "a.test", 443);
    cl_open(&s, &waits);
    SAY(&waits, "GET http://a.test/3 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    uint64_t asked = take_request(&s).id;
    stage_peer(&s, ROLE_CARRIER);
    assert_true(cl_end(&flows)); /* cut, without an end mark */
    assert_false(cl_has(&flows, "0\r\n\r\n"));
    assert_int_equal(take(&s, &s.judge, M_CANCEL).id, id);
    give_refused_leaf(&s, connect, 403, "still here");
    cl_expect(&leaf, "still here");
    give_reply(&s, asked, 502, "no carrier", false);
    cl_expect(&waits, "no carrier");
    cl_close(&flows);
    cl_close(&leaf);
    cl_close(&waits);

    chan_free(&s.judge.chan);
    UNTIL(&s, s.f->judge == NULL);
    cl_open(&s, &waits);
    SAY(&waits, "GET http://a.test/4 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    cl_expect(&waits, "HTTP/1.1 503 ");
    cl_close(&waits);
    cl_open(&s, &waits);
    SAY(&waits, "CONNECT a.test:443 HTTP/1.0\r\n\r\n");
    cl_expect(&waits, "HTTP/1.1 503 ");
    cl_close(&waits);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tunnel_carries_requests_each_decided),
        cmocka_unit_test(connect_is_understood_at_every_split),
        cmocka_unit_test(a_head_is_understood_at_every_split),
        cmocka_unit_test(an_empty_body_of_a_get_is_none),
        cmocka_unit_test(a_hello_behind_connect_is_not_lost),
        cmocka_unit_test(a_token_belongs_to_its_connection),
        cmocka_unit_test(connect_comes_first_or_never),
        cmocka_unit_test(tls_says_the_name_of_connect),
        cmocka_unit_test(host_is_the_authority_of_the_tunnel),
        cmocka_unit_test(what_is_ambiguous_is_refused_in_words),
        cmocka_unit_test(what_must_not_leave_is_taken_out),
        cmocka_unit_test(plain_http_is_the_same_request),
        cmocka_unit_test(a_late_frame_is_nobodys),
        cmocka_unit_test(roles_that_die_leave_nobody_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
