/* The front: ways in other than HTTP's own. SOCKS5 after its login, what was captured by a redirect (its port known),
 * and the listener of `countersign run --transparent`, where a PROXY header says so. */
#include "tests/play/front/front_ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void answered(struct stage *s, struct cl *c, const char *scheme, const char *host, uint16_t port)
{
    struct ask a = take_request(s);
    assert_true(span_eq(a.r.scheme, span_str(scheme)));
    assert_true(span_eq(a.r.host, span_str(host)));
    assert_int_equal(a.r.port, port);
    assert_true(span_eq(a.r.path, SPAN("/x")));
    give_reply(s, a.id, 200, "fine", false);
    cl_expect(c, "fine");
    cl_forget(c);
}

/* What the first process of a started sandbox says in front of each connection. */
#define STEP_HEADER(said) "\r\n\r\n\0\r\nQUIT\n\x20\0\0\x0f\xe0\0\x0c" said
#define STEP_3_7          STEP_HEADER("\0\0\0\0\0\0\0\3\0\0\0\7")

static void said_step(struct stage *s)
{
    struct wire_step by;
    struct got g = take(s, &s->judge, M_STEP);
    struct msg_in m = msg_in(g.payload);
    assert_int_equal(wire_get_step(&m, &by), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_true(by.born == 3 && by.number == 7);
}

/* Before each question of a connection that is of a step the judge hears which; no connection is of none. */
static void of_a_started_sandbox_each_is_of_a_step(void **state)
{
    static const struct span none[] = {SPAN(GET_A), SPAN(PROXY_TO("\1\xbb")),
                                       SPAN(STEP_HEADER("\0\0\0\0\0\0\0\3\0\0\0\0")),
                                       SPAN("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0" GET_A)};
    const struct span whole = SPAN(STEP_3_7 "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n");
    struct stage s;
    struct cl c;
    (void)state;
    stage_open_as(&s, LISTEN_STEPS);
    for (size_t cut = 1; cut < 32; cut += 10) {
        cl_open(&s, &c);
        cl_say(&c, span_first(whole, cut));
        silent(&s, &s.judge);
        cl_say(&c, span_from(whole, cut));
        said_step(&s);
        answered(&s, &c, "http", "a.test", 80);
        cl_close(&c);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        cl_open(&s, &c);
        cl_say(&c, none[i]);
        cl_expect(&c, "HTTP/1.1 400 ");
        took_note(&s, WALK_PARSE, "bad-proxy-header", "http", "", 0);
        cl_close(&c);
    }
    silent(&s, &s.judge);
    stage_close(&s);
}

/* ---- what works ---- */

static void socks_leads_to_tls(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    socks_open(&s, &c, SPAN(SOCKS_A_443));
    silent(&s, &s.judge); /* nothing is asked, nothing dialled, before the client says something */
    cl_tls_begin(&c, "a.test", NULL);
    give_leaf(&s, take_connect(&s, "a.test", 443), "a.test");
    assert_true(cl_tls_end(&c));
    for (int i = 0; i < 3; i++) { /* kept alive */
        SAY(&c, GET_A);
        answered(&s, &c, "https", "a.test", 443);
    }
    SAY(&c, "GET /x HTTP/1.1\r\nHost: b.test\r\n\r\n"); /* C3 */
    cl_expect(&c, "HTTP/1.1 421 ");
    assert_int_equal(cl_end(&c), END_NOTIFY);
    took_note(&s, WALK_PARSE, "misdirected", "https", "a.test", 443);
    silent(&s, &s.judge);
    cl_close(&c);
    stage_close(&s);
    covers("C3 A33");
}

static void socks_leads_to_http(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    socks_open(&s, &c, SPAN(SOCKS_A_80));
    SAY(&c, GET_A GET_A);
    answered(&s, &c, "http", "a.test", 80);
    answered(&s, &c, "http", "a.test", 80);
    SAY(&c, "GET /x HTTP/1.1\r\nHost: A.test.:80\r\n\r\n");
    answered(&s, &c, "http", "a.test", 80);
    SAY(&c, "GET /x HTTP/1.1\r\nHost: b.test\r\n\r\n");
    cl_expect(&c, "\"code\":\"misdirected\"");
    assert_int_equal(cl_end(&c), END_FIN);
    took_note(&s, WALK_PARSE, "misdirected", "http", "a.test", 80);
    cl_close(&c);

    socks_open(&s, &c, SPAN(SOCKS_NAME("\6A.Test\x1f\x90"))); /* 8080; the name in its canonical form */
    SAY(&c, "GET /x HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
    answered(&s, &c, "http", "a.test", 8080);
    SAY(&c, GET_A); /* C7: to port 80, says its Host */
    cl_expect(&c, "HTTP/1.1 421 ");
    cl_close(&c);
    silent(&s, &s.judge);
    stage_close(&s);
    covers("C7");
}

/* After CONNECT, up to the 200; `behind` comes in one piece with it. */
static void connect_open(struct stage *s, struct cl *c, uint16_t port, const char *behind)
{
    char head[512];
    snprintf(head, sizeof(head), "CONNECT a.test:%u HTTP/1.1\r\nHost: a.test:%u\r\n\r\n%s", port, port, behind);
    cl_open(s, c);
    SAY(c, head);
    give_leaf(s, take_connect(s, "a.test", port), "a.test");
    cl_expect(c, "HTTP/1.1 200 Connection established\r\n\r\n");
    cl_forget(c);
}

/* What undici and Node send for an http:// URL: judged as http, and held to what CONNECT named. */
static void connect_leads_to_http(void **state)
{
    static const struct {
        uint16_t port;
        const char *head, *code;
    } bad[] = {
        {80, "GET /x HTTP/1.1\r\nHost: b.test\r\n\r\n", "misdirected"},
        {80, "GET /x HTTP/1.1\r\nHost: a.test:443\r\n\r\n", "misdirected"},
        {443, GET_A, "misdirected"},
        {8080, GET_A, "misdirected"},
        {80, "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "target-form"},
        {80, "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n", "connect-in-tunnel"},
        {80, "\x80\x2e\1\0\2", "not-http"},
    };
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    connect_open(&s, &c, 80, "");
    silent(&s, &s.judge);
    SAY(&c, GET_A GET_A);
    answered(&s, &c, "http", "a.test", 80);
    answered(&s, &c, "http", "a.test", 80);
    cl_close(&c);
    connect_open(&s, &c, 80, GET_A);
    answered(&s, &c, "http", "a.test", 80);
    cl_close(&c);
    connect_open(&s, &c, 443, "");
    SAY(&c, "GET /x HTTP/1.1\r\nHost: a.test:443\r\n\r\n"); /* the port of TLS, without TLS */
    answered(&s, &c, "http", "a.test", 443);
    cl_close(&c);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        connect_open(&s, &c, bad[i].port, "");
        SAY(&c, bad[i].head);
        cl_expect(&c, bad[i].code);
        assert_int_equal(cl_end(&c), END_FIN);
        took_note(&s, WALK_PARSE, bad[i].code, "http", "a.test", bad[i].port);
        cl_close(&c);
    }
    silent(&s, &s.judge);
    stage_close(&s);
    covers("C2 C3 C7 C37");
}

/* The leaf is waiting for a hello when it is replaced by others; and for one that never comes. */
static void connect_keeps_its_leaf_until_the_hello(void **state)
{
    char host[32];
    struct stage s;
    struct cl c, other;
    (void)state;
    stage_open(&s);
    connect_open(&s, &c, 443, "");
    for (int i = 0; i < FRONT_LEAFS_MAX; i++) {
        snprintf(host, sizeof(host), "h%d.test", i);
        cl_tunnel(&s, &other, host);
        cl_close(&other);
    }
    cl_tls_begin(&c, "a.test", NULL);
    assert_true(cl_tls_end(&c));
    cl_close(&c);
    s.f->limits.tls_ms = 20;
    connect_open(&s, &c, 443, "");
    assert_int_equal(cl_end(&c), END_FIN);
    took_note(&s, WALK_INTERCEPT, "tls-too-slow", "https", "a.test", 443);
    cl_close(&c);
    stage_close(&s);
}

/* The address is a claim nobody uses: who is asked for is what TLS or Host says, the port is what was asked. */
static void an_address_in_socks_is_not_the_destination(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    socks_open(&s, &c, SPAN(SOCKS_V4_443));
    cl_tls_begin(&c, "b.test", NULL);
    give_leaf(&s, take_connect(&s, "b.test", 443), "b.test");
    assert_true(cl_tls_end(&c));
    SAY(&c, "GET /x HTTP/1.1\r\nHost: b.test\r\n\r\n");
    answered(&s, &c, "https", "b.test", 443);
    cl_close(&c);

    socks_open(&s, &c, SPAN(SOCKS_V6_443));
    cl_tls_begin(&c, "c.test", NULL);
    give_leaf(&s, take_connect(&s, "c.test", 443), "c.test");
    assert_true(cl_tls_end(&c));
    cl_close(&c);

    socks_open(&s, &c, SPAN(SOCKS_V4_80));
    SAY(&c, "GET /x HTTP/1.1\r\nHost: b.test\r\n\r\n");
    answered(&s, &c, "http", "b.test", 80);
    SAY(&c, "GET /x HTTP/1.1\r\nHost: 10.0.0.7\r\n\r\n"); /* C9: a literal is a host like one in CONNECT, and decided
                                                             as such */
    answered(&s, &c, "http", "10.0.0.7", 80);
    cl_close(&c);
    stage_close(&s);
    covers("C9");
}

static void captured_tls_goes_where_its_name_says(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_adopt_way(&s, &c, WAY_CAPTURED, 8443, "", SPAN_NONE);
    cl_tls_begin(&c, "A.test", NULL);
    give_leaf(&s, take_connect(&s, "a.test", 8443), "a.test");
    assert_true(cl_tls_end(&c));
    SAY(&c, "GET /x HTTP/1.1\r\nHost: a.test:8443\r\n\r\n");
    answered(&s, &c, "https", "a.test", 8443);
    SAY(&c, GET_A);
    cl_expect(&c, "HTTP/1.1 421 ");
    cl_close(&c);

    struct span hello = hello_of(&s, "a.test"); /* all of it handed over by the lobby */
    cl_adopt_way(&s, &c, WAY_CAPTURED, 443, "", hello);
    (void)take_connect(&s, "a.test", 443);
    cl_close(&c);
    assert_int_equal(take(&s, &s.judge, M_CANCEL).type, M_CANCEL);
    free((void *)hello.p);
    stage_close(&s);
}

static void captured_http_goes_where_its_host_says(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_adopt_way(&s, &c, WAY_CAPTURED, 80, "", SPAN(GET_A));
    answered(&s, &c, "http", "a.test", 80);
    SAY(&c, "POST /x HTTP/1.1\r\nHost: b.test\r\nContent-Length: 2\r\n\r\nhi" GET_A);
    struct ask a = take_request(&s);
    assert_true(span_eq(a.inlined, SPAN("hi")));
    silent(&s, &s.judge); /* what came behind waits */
    give_reply(&s, a.id, 403, "no", false);
    cl_expect(&c, "no");
    cl_forget(&c);
    answered(&s, &c, "http", "a.test", 80);
    SAY(&c, "GET /x HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
    cl_expect(&c, "HTTP/1.1 421 ");
    assert_int_equal(cl_end(&c), END_FIN);
    took_note(&s, WALK_PARSE, "misdirected", "http", "", 80);
    cl_close(&c);
    stage_close(&s);
}

static void a_proxy_header_makes_it_captured(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open_as(&s, LISTEN_CAPTURED_UNIX);
    cl_open(&s, &c);
    cl_say(&c, SPAN(PROXY_TO("\1\xbb")));
    silent(&s, &s.judge);
    cl_tls_begin(&c, "a.test", NULL);
    give_leaf(&s, take_connect(&s, "a.test", 443), "a.test");
    assert_true(cl_tls_end(&c));
    SAY(&c, GET_A);
    answered(&s, &c, "https", "a.test", 443);
    cl_close(&c);

    cl_open(&s, &c);
    cl_say(&c, SPAN(PROXY_TO("\0\x50") GET_A));
    answered(&s, &c, "http", "a.test", 80);
    cl_close(&c);

    cl_tunnel(&s, &c, "a.test"); /* without: a proxy as ever */
    cl_close(&c);
    cl_open(&s, &c);
    SAY(&c, "\r\nGET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n");
    answered(&s, &c, "http", "a.test", 80);
    cl_close(&c);
    stage_close(&s);
}

/* ---- every cut ---- */

static void cut_at(struct cl *c, struct span all, size_t at)
{
    cl_say(c, span_first(all, at));
    cl_say(c, span_from(all, at));
}

static void no_cut_makes_a_difference(void **state)
{
    struct stage s;
    struct cl c;
    uint8_t all[2048];
    (void)state;
    stage_open_as(&s, LISTEN_CAPTURED_UNIX);
    struct span hello = hello_of(&s, "a.test"), plain = SPAN(SOCKS_A_80 GET_A);
    struct span socks = SPAN(SOCKS_V4_443), header = SPAN(PROXY_TO("\1\xbb")),
                header80 = SPAN(PROXY_TO("\0\x50") GET_A);
    assert_true(hello.n + header.n < sizeof(all));
    for (size_t i = 1; i < plain.n; i++) { /* SOCKS and a head */
        cl_adopt_way(&s, &c, WAY_SOCKS, 0, "", SPAN_NONE);
        cut_at(&c, plain, i);
        answered(&s, &c, "http", "a.test", 80);
        cl_close(&c);
    }
    for (size_t i = 1; i < header80.n; i++) { /* a PROXY header and a head */
        cl_open(&s, &c);
        cut_at(&c, header80, i);
        answered(&s, &c, "http", "a.test", 80);
        cl_close(&c);
    }
    for (int way = 0; way < 2; way++) { /* either, and a ClientHello */
        struct span first = way ? header : socks;
        memcpy(all, first.p, first.n);
        memcpy(all + first.n, hello.p, hello.n);
        for (size_t i = 1; i < first.n + hello.n; i++) {
            if (way)
                cl_open(&s, &c);
            else
                cl_adopt_way(&s, &c, WAY_SOCKS, 0, "", SPAN_NONE);
            cl_say(&c, span_of(all, i));
            silent(&s, &s.judge);
            cl_say(&c, span_of(all + i, first.n + hello.n - i));
            (void)take_connect(&s, "a.test", 443);
            cl_close(&c);
            assert_int_equal(take(&s, &s.judge, M_CANCEL).type, M_CANCEL);
        }
    }
    cl_adopt_way(&s, &c, WAY_SOCKS, 0, "", SPAN_NONE); /* and byte by byte */
    for (size_t i = 0; i < socks.n; i++)
        cl_say(&c, span_of(socks.p + i, 1));
    for (size_t i = 0; i < hello.n; i++)
        cl_say(&c, span_of(hello.p + i, 1));
    (void)take_connect(&s, "a.test", 443);
    cl_close(&c);
    free((void *)hello.p);
    stage_close(&s);
    covers("A41 C6");
}

/* ---- refusals ---- */

struct refused {
    enum way way; /* NONE: through the listener that takes PROXY headers */
    uint16_t port;
    struct span bytes;
    enum walk_step step;
    const char *code, *scheme, *host;
    uint16_t noted;
    struct span answer; /* how what comes back begins; empty: HTTP's 4xx */
};

static void refused(struct stage *s, const struct refused *r)
{
    struct cl c;
    if (r->way == WAY_NONE)
        cl_open(s, &c);
    else
        cl_adopt_way(s, &c, r->way, r->port, "", SPAN_NONE);
    cl_say(&c, r->bytes);
    cl_end(&c);
    struct span got = dynbuf_span(&c.in), granted = SPAN(SOCKS_GRANTED);
    if (span_starts(got, granted))
        got = span_from(got, granted.n);
    if (r->answer.n ? !span_eq(got, r->answer) : !span_starts(got, SPAN("HTTP/1.1 4")))
        fail_msg("%s: it answered \"%.*s\"", r->code, SPAN_FMT(got));
    if (span_find(got, SPAN("secret-marker")) < got.n)
        fail_msg("%s: reflected", r->code);
    assert_int_not_equal(c.ended, END_NOT_YET);
    took_note(s, r->step, r->code, r->scheme, r->host, r->noted);
    silent(s, &s->judge);
    cl_close(&c);
}

#define ONLY "Only HTTP and HTTPS pass the gateway of this sandbox. "
/* A version, then a disconnect: its payload and the padding are 132 bytes. */
#define SSH_NO                                                                                                       \
    "SSH-2.0-countersign\r\n\0\0\0\x84\x08\1\0\0\0\x0b\0\0\0\x6e" ONLY                                               \
    "For Git use https://HOST/PATH in place of git@HOST:PATH."                                                       \
    "\0\0\0\0"                                                                                                       \
    "\0\0\0\0\0\0\0\0"
#define PG_SSL   "\0\0\0\x08\x04\xd2\x16\x2f"
#define PG_GSS   "\0\0\0\x08\x04\xd2\x16\x30"
#define PG_START "\0\0\0\x18\0\3\0\0user\0me\0\0"
#define PG_NO                                                                                                        \
    "E\0\0\0\x8bSFATAL\0VFATAL\0C28000\0M" ONLY "A database is reached by an API over HTTP, or not at all.\0\0"
#define SOCKS_NO(code) SPAN("\5" code "\0\1\0\0\0\0\0\0")

static const struct refused all[] = {
    /* SOCKS: BIND, UDP, another version, port 0, NUL in a name (A17), an IPv4 address as a name (C10) */
    {WAY_SOCKS, 0, SPAN("\5\2\0\1\1\2\3\4\0\x50"), WALK_PARSE, "socks-command", "http", "", 0, SOCKS_NO("\7")},
    {WAY_SOCKS, 0, SPAN("\5\3\0\1\1\2\3\4\0\x50"), WALK_PARSE, "socks-command", "http", "", 0, SOCKS_NO("\7")},
    {WAY_SOCKS, 0, SPAN("\4\1\0\x50\1\2\3\4secret-marker\0"), WALK_PARSE, "bad-socks", "http", "", 0, SOCKS_NO("\1")},
    {WAY_SOCKS, 0, SPAN(SOCKS_NAME("\6a.test\0\0")), WALK_PARSE, "socks-address", "http", "", 0, SOCKS_NO("\x8")},
    {WAY_SOCKS, 0, SPAN(SOCKS_NAME("\6a\0test\0\x50")), WALK_PARSE, "socks-address", "http", "", 0, SOCKS_NO("\x8")},
    {WAY_SOCKS, 0,
     SPAN(SOCKS_NAME("\x5"
                     "127.1"
                     "\0\x50")),
     WALK_PARSE, "bad-host", "http", "", 80, SOCKS_NO("\2")},
    {WAY_SOCKS, 0,
     SPAN(SOCKS_NAME("\xa"
                     "0x7f000001"
                     "\0\x50")),
     WALK_PARSE, "bad-host", "http", "", 80, SOCKS_NO("\2")},
    {WAY_SOCKS, 0,
     SPAN(SOCKS_NAME("\x7"
                     "a..test"
                     "\0\x50")),
     WALK_PARSE, "bad-host", "http", "", 80, SOCKS_NO("\2")},
    {WAY_SOCKS, 0, SPAN("GET http://secret-marker/ HTTP/1.1\r\n\r\n"), WALK_PARSE, "bad-socks", "http", "", 0,
     SOCKS_NO("\1")},
    /* captured: neither TLS nor origin-form HTTP (A39, A52) */
    {WAY_CAPTURED, 22, SPAN("SSH-2.0-secret-marker\r\n"), WALK_PARSE, "ssh", "http", "", 22, SPAN(SSH_NO)},
    {WAY_NONE, 0, SPAN(PROXY_TO("\0\x16") "SSH-2.0-secret-marker\r\n"), WALK_PARSE, "ssh", "http", "", 22,
     SPAN(SSH_NO)},
    {WAY_CAPTURED, 22, SPAN("SSH\r\n"), WALK_PARSE, "bad-method", "http", "", 22, SPAN_NONE},
    /* PostgreSQL: without encryption, with TLS asked for, with GSSAPI and then TLS; and what is only nearly so */
    {WAY_CAPTURED, 5432, SPAN("\0\0\0\x18\0\3\0\0user\0secret-marker\0"), WALK_PARSE, "postgresql", "http", "", 5432,
     SPAN(PG_NO)},
    {WAY_CAPTURED, 5432, SPAN(PG_SSL PG_START), WALK_PARSE, "postgresql", "http", "", 5432, SPAN("N" PG_NO)},
    {WAY_CAPTURED, 5432, SPAN(PG_GSS PG_SSL PG_START), WALK_PARSE, "postgresql", "http", "", 5432, SPAN("NN" PG_NO)},
    {WAY_SOCKS, 0, SPAN(SOCKS_V4_80 PG_SSL PG_START), WALK_PARSE, "postgresql", "http", "", 80, SPAN("N" PG_NO)},
    {WAY_CAPTURED, 5432,
     SPAN("\0\0\0\x10\x04\xd2\x16\x2e"
          "12345678"),
     WALK_PARSE, "not-http", "http", "", 5432, SPAN_NONE},
    {WAY_CAPTURED, 5432, SPAN("\0\0\0\x09\x04\xd2\x16\x2f"), WALK_PARSE, "not-http", "http", "", 5432, SPAN_NONE},
    {WAY_CAPTURED, 5432, SPAN("\0\0\0\x08\0\3\0\0"), WALK_PARSE, "not-http", "http", "", 5432, SPAN_NONE},
    {WAY_CAPTURED, 25, SPAN("EHLO secret-marker\r\n"), WALK_PARSE, "bad-target", "http", "", 25, SPAN_NONE},
    {WAY_CAPTURED, 80, SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), WALK_PARSE, "http2-preface", "http", "", 80,
     SPAN_NONE},
    {WAY_CAPTURED, 1080, SPAN("\5\1\0secret-marker"), WALK_PARSE, "not-http", "http", "", 1080, SPAN_NONE},
    {WAY_CAPTURED, 80, SPAN("GET http://a.test/secret-marker HTTP/1.1\r\nHost: a.test\r\n\r\n"), WALK_PARSE,
     "target-form", "http", "", 80, SPAN_NONE},
    {WAY_CAPTURED, 80, SPAN("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"), WALK_PARSE,
     "connect-in-tunnel", "http", "", 80, SPAN_NONE},
    {WAY_CAPTURED, 80, SPAN("GET / HTTP/1.0\r\n\r\n"), WALK_PARSE, "missing-host", "http", "", 80, SPAN_NONE},
    {WAY_CAPTURED, 80, SPAN("GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n"), WALK_PARSE, "bad-host", "http", "", 80,
     SPAN_NONE},
    {WAY_CAPTURED, 80,
     SPAN("GET / HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic c2VjcmV0LW1hcmtlcg==\r\n\r\n"), WALK_PARSE,
     "second-identity", "http", "", 80, SPAN_NONE},
    {WAY_SOCKS, 0, SPAN(SOCKS_V4_80 "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), WALK_PARSE, "http2-preface", "http", "", 80,
     SPAN("")},
    /* a PROXY header where there is none to be (A53) */
    {WAY_HTTP, 0, SPAN(PROXY_TO("\1\xbb")), WALK_PARSE, "not-http", "http", "", 0, SPAN_NONE},
    {WAY_CAPTURED, 443, SPAN(PROXY_TO("\1\xbb")), WALK_PARSE, "not-http", "http", "", 443, SPAN_NONE},
    {WAY_SOCKS, 0, SPAN(PROXY_TO("\1\xbb")), WALK_PARSE, "bad-socks", "http", "", 0, SOCKS_NO("\1")},
    {WAY_HTTP, 0, SPAN("PROXY TCP4 10.0.0.2 10.0.0.3 1 443\r\n"), WALK_PARSE, "bad-request-line", "http", "", 0,
     SPAN_NONE},
    {WAY_NONE, 0, SPAN("PROXY TCP4 10.0.0.2 10.0.0.3 1 443\r\n"), WALK_PARSE, "bad-request-line", "http", "", 0,
     SPAN_NONE},
    {WAY_NONE, 0, SPAN(PROXY_TO("\1\xbb") PROXY_TO("\1\xbb")), WALK_PARSE, "not-http", "http", "", 443, SPAN_NONE},
    {WAY_NONE, 0, SPAN(PROXY_TO("\0\0")), WALK_PARSE, "bad-proxy-header", "http", "", 0, SPAN_NONE},
    {WAY_NONE, 0, SPAN("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"), WALK_PARSE, "bad-proxy-header", "http", "", 0, SPAN_NONE},
    {WAY_NONE, 0, SPAN("\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c"), WALK_PARSE, "bad-proxy-header", "http", "", 0,
     SPAN_NONE},
    {WAY_NONE, 0, SPAN("\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c"), WALK_PARSE, "bad-proxy-header", "http", "", 0,
     SPAN_NONE},
};

/* However its first message is cut. */
static void a_stranger_is_told_whatever_the_cut(void **state)
{
    static const struct {
        struct span bytes, answer;
    } rows[] = {{SPAN("SSH-2.0-x\r\n"), SPAN(SSH_NO)}, {SPAN(PG_GSS PG_SSL PG_START), SPAN("NN" PG_NO)}};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (size_t at = 1; at < rows[i].bytes.n; at++) {
            cl_adopt_way(&s, &c, WAY_CAPTURED, 22, "", SPAN_NONE);
            cut_at(&c, rows[i].bytes, at);
            cl_end(&c);
            assert_true(span_eq(dynbuf_span(&c.in), rows[i].answer));
            took_note(&s, WALK_PARSE, i ? "postgresql" : "ssh", "http", "", 22);
            cl_close(&c);
        }
    stage_close(&s);
}

static void what_is_not_understood_is_refused(void **state)
{
    struct stage s;
    (void)state;
    stage_open_as(&s, LISTEN_CAPTURED_UNIX);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        refused(&s, &all[i]);
    stage_close(&s);
    covers("A39 A52 A53 A17 C10 A26");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(socks_leads_to_tls),
        cmocka_unit_test(socks_leads_to_http),
        cmocka_unit_test(connect_leads_to_http),
        cmocka_unit_test(connect_keeps_its_leaf_until_the_hello),
        cmocka_unit_test(an_address_in_socks_is_not_the_destination),
        cmocka_unit_test(captured_tls_goes_where_its_name_says),
        cmocka_unit_test(captured_http_goes_where_its_host_says),
        cmocka_unit_test(a_proxy_header_makes_it_captured),
        cmocka_unit_test(of_a_started_sandbox_each_is_of_a_step),
        cmocka_unit_test(no_cut_makes_a_difference),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(a_stranger_is_told_whatever_the_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
