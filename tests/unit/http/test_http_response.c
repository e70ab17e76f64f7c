/* Response heads and the writer. Each row is delivered whole, at every cut and byte by byte (A41). */
#include "tests/unit/http/http_cases.h"

#define OK200 "HTTP/1.1 200 OK\r\n"
#define ROW(id, bytes, status, code)                                                                                 \
    {                                                                                                                \
        id, HTTP_IN_TUNNEL, SPAN(bytes), status, code                                                                \
    }

static struct span asked; /* method of the request that is answered */

static enum http_result parse(struct span in, const struct http_case *c, size_t *seen, struct http_head *h,
                              size_t *used, struct http_err *e)
{
    return http_parse_response(in, asked, seen, h, used, e);
}

static void run(struct span method, const struct http_case *rows, size_t n)
{
    asked = method;
    for (size_t i = 0; i < n; i++)
        http_case_check(&rows[i], parse);
}
#define RUN(method, rows) run(SPAN(method), rows, sizeof rows / sizeof rows[0])

static void refused(void **state)
{
    static const struct http_case rows[] = {
        ROW("A44", OK200 "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 502, "length-and-coding"),
        ROW("A44", OK200 "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 502, "duplicate-field"),
        ROW("A44", OK200 "Content-Length: 1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 502,
            "duplicate-field"),
        ROW("A44", OK200 "Content-Length: 1\r\nContent-Length: 01\r\n\r\n", 502, "duplicate-field"),
        ROW("A44", OK200 "Content-Length: x\r\nContent-Length: x\r\n\r\n", 502, "bad-content-length"),
        ROW("A44", OK200 "Content-Length: 1\r\nContent_Length: 1\r\n\r\n", 502, "field-look-alike"),
        ROW("A44", OK200 "Content-Length: 1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 502,
            "length-and-coding"),
        ROW("A44", OK200 "Content-Type: text/html\r\nContent-Type: text/HTML\r\n\r\n", 502, "duplicate-field"),
        ROW("A44", OK200 "Content-Length: 1, 1\r\n\r\n", 502, "bad-content-length"),
        ROW("A44", OK200 "Content-Length: -1\r\n\r\n", 502, "bad-content-length"),
        ROW("A44", OK200 "Transfer-Encoding: gzip, chunked\r\n\r\n", 502, "bad-transfer-encoding"),
        ROW("A44", OK200 "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 502, "duplicate-field"),
        ROW("A44", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 502, "coding-in-1.0"),
        ROW("A44", OK200 "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\n", 502, "duplicate-field"),
        ROW("A44", OK200 "Transfer_Encoding: chunked\r\n\r\n", 502, "field-look-alike"),
        ROW("A44", OK200 "X: a\0b\r\n\r\n", 502, "bad-field-value"),
        ROW("A44", OK200 "X: a\rb\r\n\r\n", 502, "bad-field-value"),
        ROW("A44", OK200 "X: a\r\n b\r\n\r\n", 502, "obs-fold"),
        ROW("A44", OK200 "X\r\n\r\n", 502, "no-colon"),
        ROW("A44", OK200 "X : a\r\n\r\n", 502, "bad-field-name"),
        ROW("A44", OK200 "X: a\n\r\n", 502, "bare-lf"),
        ROW("A44", "HTTP/1.1 200 OK\n\r\n", 502, "bare-lf"),
        ROW("A44", "\r\n" OK200 "\r\n", 502, "bad-status-line"),
        ROW("A44", "HTTP/1.1 2000\r\n\r\n", 502, "bad-status"),
        ROW("A44", "HTTP/1.1 -200 OK\r\n\r\n", 502, "bad-status"),
        ROW("A44", "HTTP/1.1 20 OK\r\n\r\n", 502, "bad-status"),
        ROW("A44", "HTTP/1.1 099 OK\r\n\r\n", 502, "bad-status"),
        ROW("A44", "HTTP/1.1 000 OK\r\n\r\n", 502, "bad-status"),
        ROW("A44", "HTTP/1.1 1000 OK\r\n\r\n", 502, "bad-status"),
        ROW("A44", "HTTP/1.1  200 OK\r\n\r\n", 502, "bad-status"),
        ROW("A44", "HTTP/1.1 200\tOK\r\n\r\n", 502, "bad-status"),
        ROW("A44", "HTTP/1.1 200 O\rK\r\n\r\n", 502, "bad-reason"),
        ROW("A44", "HTTP/1.2 200 OK\r\n\r\n", 502, "bad-status-line"),
        ROW("A44", "HTTP/2 200 OK\r\n\r\n", 502, "bad-status-line"),
        ROW("A44", "http/1.1 200 OK\r\n\r\n", 502, "bad-status-line"),
        ROW("A44", "ICY 200 OK\r\n\r\n", 502, "bad-status-line"),
        ROW("A45", "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n", 502, "body-on-1xx"),
        ROW("A45", "HTTP/1.1 103 Early\r\nTransfer-Encoding: chunked\r\n\r\n", 502, "body-on-1xx"),
    };
    RUN("GET", rows);
}

#define DUMP(line, minor, used, rest)                                                                                \
    "  form 0 host  port 0 path  query 0  status " line " minor " minor " used " used " framing " rest
static void framing(void **state)
{
    static const struct http_case get[] = {
        ROW("length", OK200 "Content-Length: 5\r\n\r\n", 0,
            DUMP("200 OK", "1", "38", "1 5 keep 1 expect 0 upgrade 0\n[Content-Length]=[5]\n")),
        ROW("chunked", OK200 "Transfer-Encoding: Chunked\r\n\r\n", 0,
            DUMP("200 OK", "1", "47", "2 0 keep 1 expect 0 upgrade 0\n[Transfer-Encoding]=[Chunked]\n")),
        ROW("A47 until close", OK200 "\r\n", 0, DUMP("200 OK", "1", "19", "3 0 keep 0 expect 0 upgrade 0\n")),
        ROW("1.0", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n", 0,
            DUMP("200 OK", "0", "62",
                 "1 0 keep 1 expect 0 upgrade 0\n[Content-Length]=[0]\n[Connection]=[Keep-Alive]\n")),
        ROW("close", OK200 "Content-Length: 0\r\nConnection: close\r\n\r\n", 0,
            DUMP("200 OK", "1", "57", "1 0 keep 0 expect 0 upgrade 0\n[Content-Length]=[0]\n[Connection]=[close]\n")),
        ROW("no reason", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", 0,
            DUMP("404 ", "1", "35", "1 0 keep 1 expect 0 upgrade 0\n[Content-Length]=[0]\n")),
        ROW("said again",
            OK200 "A: 1\r\nContent-Length: 5\r\nContent-Type: a/b\r\ncontent-length: 5 \r\nB: 2\r\n"
                  "CONTENT-TYPE: a/b\r\nContent-Length: 5\r\nA: 1\r\n\r\n",
            0,
            DUMP("200 OK", "1", "133",
                 "1 5 keep 1 expect 0 upgrade "
                 "0\n[A]=[1]\n[Content-Length]=[5]\n[Content-Type]=[a/b]\n[B]=[2]\n[A]=[1]\n")),
        ROW("a status of no class", "HTTP/1.1 600 Odd\r\nContent-Length: 5\r\n\r\n", 0,
            DUMP("600 Odd", "1", "39", "1 5 keep 1 expect 0 upgrade 0\n[Content-Length]=[5]\n")),
        ROW("the last status", "HTTP/1.1 999\r\n\r\n", 0, DUMP("999 ", "1", "16", "3 0 keep 0 expect 0 upgrade 0\n")),
        ROW("A22 obs-text", "HTTP/1.1 200 d\xe9j\xe0\r\nX: \x85 caf\xe9 \xa0\r\nContent-Length: 0\r\n\r\n", 0,
            DUMP("200 d\xe9j\xe0", "1", "53",
                 "1 0 keep 1 expect 0 upgrade 0\n[X]=[\x85 caf\xe9 \xa0]\n[Content-Length]=[0]\n")),
        ROW("A47 204", "HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", 0,
            DUMP("204 No", "1", "38", "0 0 keep 1 expect 0 upgrade 0\n[Content-Length]=[0]\n")),
        ROW("A47 204 that declares a body", "HTTP/1.1 204 No\r\nContent-Length: 7\r\n\r\n", 0,
            DUMP("204 No", "1", "38", "0 0 keep 0 expect 0 upgrade 0\n[Content-Length]=[7]\n")),
        ROW("A47 304", "HTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\n", 0,
            DUMP("304 No", "1", "38", "0 7 keep 1 expect 0 upgrade 0\n[Content-Length]=[7]\n")),
        ROW("A45 100", "HTTP/1.1 100 Continue\r\n\r\n" OK200, 0,
            DUMP("100 Continue", "1", "25", "0 0 keep 1 expect 0 upgrade 0\n")),
        ROW("101", "HTTP/1.1 101 Sw\r\nUpgrade: websocket\r\n\r\n", 0,
            DUMP("101 Sw", "1", "39", "0 0 keep 1 expect 0 upgrade 1\n[Upgrade]=[websocket]\n")),
        ROW("repeatable", OK200 "Set-Cookie: a\r\nSet-Cookie: b\r\nVary: a\r\nVary: b\r\n\r\n", 0, NULL),
    };
    static const struct http_case head[] = {
        ROW("A47 HEAD", OK200 "Content-Length: 5\r\n\r\n", 0,
            DUMP("200 OK", "1", "38", "0 5 keep 1 expect 0 upgrade 0\n[Content-Length]=[5]\n")),
        ROW("A47 HEAD", OK200 "Transfer-Encoding: chunked\r\n\r\n", 0,
            DUMP("200 OK", "1", "47", "0 0 keep 1 expect 0 upgrade 0\n[Transfer-Encoding]=[chunked]\n")),
        ROW("A47 HEAD", OK200 "\r\n", 0, DUMP("200 OK", "1", "19", "0 0 keep 1 expect 0 upgrade 0\n")),
    };
    static const struct http_case connect[] = {
        ROW("A47 CONNECT", OK200 "\r\n", 0, DUMP("200 OK", "1", "19", "0 0 keep 1 expect 0 upgrade 0\n")),
        ROW("A47 CONNECT", OK200 "Content-Length: 5\r\n\r\n", 0,
            DUMP("200 OK", "1", "38", "0 0 keep 0 expect 0 upgrade 0\n[Content-Length]=[5]\n")),
        ROW("A47 CONNECT", "HTTP/1.1 407 No\r\nContent-Length: 5\r\n\r\n", 0,
            DUMP("407 No", "1", "38", "1 5 keep 1 expect 0 upgrade 0\n[Content-Length]=[5]\n")),
    };
    RUN("GET", get);
    RUN("HEAD", head);
    RUN("CONNECT", connect);
}

/* A44: what a fold becomes, in any cut; framing and the status line have none. */
static void folds(void **state)
{
    static const struct {
        struct span in, out; /* out empty: nothing to join */
    } rows[] = {
        {SPAN(OK200 "A: b\r\n c\r\n\tD: e\r\nF: g\r\n\r\n"), SPAN(OK200 "A: b c D: e    \r\nF: g\r\n\r\n")},
        {SPAN(OK200 "A:\r\n b\r\n \r\n\r\n\r\n body"), SPAN(OK200 "A: b     \r\n\r\n\r\n body")},
        {SPAN(OK200 "A: b \t\r\n \t c \r\n d\r\n\r\n"), SPAN(OK200 "A: b c d         \r\n\r\n")},
        {SPAN(OK200 "A: b\r\n\r\n c\r\n d"), SPAN("")},
        {SPAN(OK200 "A: b\r\n c"), SPAN("")}, /* where it ends is still to come */
        {SPAN(OK200 "A: b\r\n c\n\r\n"), SPAN("")},
        {SPAN(OK200 " A: b\r\n\r\n"), SPAN("")},
        {SPAN("HTTP/1.1 200\r\n OK\r\n\r\n"), SPAN("")},
        {SPAN(OK200 "Content-Length: 1\r\n 0\r\n\r\n"), SPAN("")},
        {SPAN(OK200 "content_length:\r\n 1\r\n\r\n"), SPAN("")},
        {SPAN(OK200 "Transfer-Encoding:\r\n chunked\r\n\r\n"), SPAN("")},
        {SPAN(OK200 "A: b\n c\r\n\r\n"), SPAN("")},
        {SPAN(OK200 "A: b\r\n"), SPAN("")},
        {SPAN("\n a"), SPAN("")},
        {SPAN(""), SPAN("")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t cut = 0; cut <= rows[i].in.n; cut++) {
            uint8_t *p = http_case_copy(rows[i].in);
            struct span want = rows[i].out.n ? rows[i].out : rows[i].in;
            bool any = http_unfold(p, cut), more = http_unfold(p, rows[i].in.n);
            assert_int_equal(any || more, rows[i].out.n > 0);
            assert_memory_equal(p, want.p, want.n);
            assert_false(http_unfold(p, rows[i].in.n));
            free(p);
        }
}

/* A44: floods. */
static void limits(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 21);
    (void)dynbuf_add(&b, SPAN("HTTP/1.1 200 "));
    while (b.n < HTTP_ANSWER_HEAD_MAX - 4)
        (void)dynbuf_add_byte(&b, 'a');
    (void)dynbuf_add(&b, SPAN("\r\n\r\n"));
    struct http_case c = {"A44 at the limit", HTTP_IN_TUNNEL, dynbuf_span(&b), 0, NULL};
    asked = SPAN("GET");
    http_case_check(&c, parse);
    dynbuf_reset(&b);
    (void)dynbuf_add(&b, SPAN("HTTP/1.1 200 "));
    while (b.n < 1 << 20)
        (void)dynbuf_add_byte(&b, 'a');
    c = (struct http_case){"A44", HTTP_IN_TUNNEL, dynbuf_span(&b), 502, "head-too-long"};
    http_case_check(&c, parse);
    dynbuf_reset(&b);
    for (int more = 0; more < 2; more++) {
        dynbuf_reset(&b);
        (void)dynbuf_add(&b, SPAN(OK200));
        for (int i = 0; i < HTTP_ANSWER_FIELDS_MAX + more; i++)
            (void)dynbuf_add(&b, SPAN("Set-Cookie: a\r\n"));
        assert_int_equal(dynbuf_add(&b, SPAN("\r\n")), 0);
        c = (struct http_case){"A44", HTTP_IN_TUNNEL, dynbuf_span(&b), more ? 502 : 0,
                               more ? "too-many-fields" : NULL};
        http_case_check(&c, parse);
    }
    dynbuf_free(&b);
}

static void writer_refuses(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    assert_int_equal(http_write_request_line(&b, SPAN(""), SPAN("/")), -1);
    assert_int_equal(http_write_request_line(&b, SPAN("G T"), SPAN("/")), -1);
    assert_int_equal(http_write_request_line(&b, SPAN("GET"), SPAN("")), -1);
    assert_int_equal(http_write_request_line(&b, SPAN("GET"), SPAN("/ x")), -1);
    assert_int_equal(http_write_request_line(&b, SPAN("GET"), SPAN("/\r\nX: y")), -1);
    assert_int_equal(http_write_request_line(&b, SPAN("GET"), SPAN("/#")), -1);
    assert_int_equal(http_write_status_line(&b, 99, SPAN("x")), -1);
    assert_int_equal(http_write_status_line(&b, 1000, SPAN("x")), -1);
    assert_int_equal(http_write_status_line(&b, 200, SPAN("x\r\nX: y")), -1);
    assert_int_equal(http_write_field(&b, SPAN(""), SPAN("x")), -1);
    assert_int_equal(http_write_field(&b, SPAN("X:"), SPAN("x")), -1);
    assert_int_equal(http_write_field(&b, SPAN("X "), SPAN("x")), -1);
    assert_int_equal(http_write_field(&b, SPAN("X"), SPAN("a\r\nY: b")), -1);
    assert_int_equal(http_write_field(&b, SPAN("X"), SPAN("a\nb")), -1);
    assert_int_equal(http_write_field(&b, SPAN("X"), SPAN("a\0b")), -1);
    assert_int_equal(http_write_field(&b, SPAN("content-length"), SPAN("1")), -1);
    assert_int_equal(http_write_field(&b, SPAN("Transfer_Encoding"), SPAN("chunked")), -1);
    assert_int_equal(http_write_end(&b, HTTP_LENGTH, UINT64_MAX), -1);
    assert_int_equal(b.n, 0);
    assert_true(dynbuf_ok(&b));
    dynbuf_free(&b);
}

static void writer_writes(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    assert_int_equal(http_write_request_line(&b, SPAN("POST"), SPAN("/a?b")), 0);
    assert_int_equal(http_write_field(&b, SPAN("Host"), SPAN("a.example")), 0);
    assert_int_equal(http_write_field(&b, SPAN("X"), SPAN(" caf\xe9\t")), 0);
    assert_int_equal(http_write_end(&b, HTTP_LENGTH, 12), 0);
    assert_true(span_eq(dynbuf_span(&b), SPAN("POST /a?b HTTP/1.1\r\nHost: a.example\r\nX: caf\xe9\r\n"
                                              "Content-Length: 12\r\n\r\n")));
    dynbuf_reset(&b);
    assert_int_equal(http_write_status_line(&b, 200, SPAN("")), 0);
    assert_int_equal(http_write_end(&b, HTTP_CHUNKED, 0), 0);
    assert_int_equal(http_write_chunk(&b, SPAN("")), 0);
    assert_int_equal(http_write_chunk(&b, SPAN("0123456789abcdef")), 0);
    assert_int_equal(dynbuf_add(&b, SPAN("0\r\n\r\n")), 0);
    assert_true(span_eq(dynbuf_span(&b), SPAN("HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"
                                              "10\r\n0123456789abcdef\r\n0\r\n\r\n")));
    dynbuf_reset(&b);
    assert_int_equal(http_write_end(&b, HTTP_NO_BODY, 5), 0);
    assert_true(span_eq(dynbuf_span(&b), SPAN("\r\n")));
    dynbuf_free(&b);
    dynbuf_init(&b, 10); /* a full buffer is said, never cut silently */
    assert_int_equal(http_write_request_line(&b, SPAN("GET"), SPAN("/")), -1);
    dynbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused), cmocka_unit_test(framing),        cmocka_unit_test(folds),
        cmocka_unit_test(limits),  cmocka_unit_test(writer_refuses), cmocka_unit_test(writer_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
