/* Request heads. Each row is delivered whole, at every cut and byte by byte (A41). */
#include "tests/unit/http/http_cases.h"

#define GET  "GET / HTTP/1.1\r\nHost: a.example\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a.example\r\n"
#define TUN(id, bytes, status, code)                                                                                 \
    {                                                                                                                \
        id, HTTP_IN_TUNNEL, SPAN(bytes), status, code                                                                \
    }
#define PRX(id, bytes, status, code)                                                                                 \
    {                                                                                                                \
        id, HTTP_ON_PROXY_PORT, SPAN(bytes), status, code                                                            \
    }
#define HOST(id, value, status, code)                                                                                \
    {                                                                                                                \
        id, HTTP_IN_TUNNEL, SPAN("GET / HTTP/1.1\r\nHost: " value "\r\n\r\n"), status, code                          \
    }
#define LINE(id, line, status, code)                                                                                 \
    {                                                                                                                \
        id, HTTP_IN_TUNNEL, SPAN(line "\r\nHost: a.example\r\n\r\n"), status, code                                   \
    }

static enum http_result parse(struct span in, const struct http_case *c, size_t *seen, struct http_head *h,
                              size_t *used, struct http_err *e)
{
    return http_parse_request(in, c->place, seen, h, used, e);
}

static void run(const struct http_case *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        http_case_check(&rows[i], parse);
}
#define RUN(rows) run(rows, sizeof rows / sizeof rows[0])

static const struct http_case accepted_rows[] = {
    TUN("plain", GET "Accept:\t text/html \t\r\n\r\nnext", 0,
        "GET / form 1 host a.example port 0 path / query 0  status 0  minor 1 used 57 framing 0 0 keep 1 expect "
        "0 "
        "upgrade 0\n[Host]=[a.example]\n[Accept]=[text/html]\n"),
    TUN("query", "GET /a;b/%7e?x=[1]&y=?&z HTTP/1.1\r\nHost: A.example:8443\r\n\r\n", 0,
        "GET /a;b/%7e?x=[1]&y=?&z form 1 host A.example port 8443 path /a;b/%7e query 1 x=[1]&y=?&z status 0  "
        "minor 1 used 59 framing 0 0 keep 1 expect 0 upgrade 0\n[Host]=[A.example:8443]\n"),
    TUN("raw bytes", "GET /|^?{|}^`\\ HTTP/1.1\r\nHost: a\r\n\r\n", 0,
        "GET /|^?{|}^`\\ form 1 host a port 0 path /|^ query 1 {|}^`\\ status 0  minor 1 used 36 framing 0 0 keep 1 "
        "expect 0 upgrade 0\n[Host]=[a]\n"),
    TUN("empty query", "GET /? HTTP/1.1\r\nHost: a\r\n\r\n", 0,
        "GET /? form 1 host a port 0 path / query 1  status 0  minor 1 used 28 framing 0 0 keep 1 expect 0 "
        "upgrade 0\n[Host]=[a]\n"),
    TUN("A29 one empty line", "\r\n" GET "\r\n", 0, NULL),
    TUN("A36 body on GET", GET "Content-Length: 3\r\n\r\n", 0,
        "GET / form 1 host a.example port 0 path / query 0  status 0  minor 1 used 54 framing 1 3 keep 1 expect "
        "0 "
        "upgrade 0\n[Host]=[a.example]\n[Content-Length]=[3]\n"),
    TUN("chunked", POST "transfer-encoding: chunked\r\nexpect: 100-Continue\r\n\r\n", 0,
        "POST / form 1 host a.example port 0 path / query 0  status 0  minor 1 used 86 framing 2 0 keep 1 expect "
        "1 "
        "upgrade 0\n[Host]=[a.example]\n[transfer-encoding]=[chunked]\n[expect]=[100-Continue]\n"),
    TUN("chunked in any case", POST "Transfer-Encoding: cHUNKED\r\n\r\n", 0,
        "POST / form 1 host a.example port 0 path / query 0  status 0  minor 1 used 64 framing 2 0 keep 1 expect "
        "0 "
        "upgrade 0\n[Host]=[a.example]\n[Transfer-Encoding]=[cHUNKED]\n"),
    TUN("largest length", POST "Content-Length: 9223372036854775807\r\n\r\n", 0, NULL),
    TUN("length 0", POST "Content-Length: 0\r\nExpect: 100-continue\r\n\r\n", 0,
        "POST / form 1 host a.example port 0 path / query 0  status 0  minor 1 used 77 framing 1 0 keep 1 expect "
        "0 "
        "upgrade 0\n[Host]=[a.example]\n[Content-Length]=[0]\n[Expect]=[100-continue]\n"),
    TUN("A30 unknown method", "GETX / HTTP/1.1\r\nHost: a\r\n\r\n", 0, NULL),
    TUN("A30 lower case", "get / HTTP/1.1\r\nHost: a\r\n\r\n", 0, NULL),
    TUN("A37 close", GET "Connection: X-Injected , close\r\n\r\n", 0,
        "GET / form 1 host a.example port 0 path / query 0  status 0  minor 1 used 67 framing 0 0 keep 0 expect "
        "0 "
        "upgrade 0\n[Host]=[a.example]\n[Connection]=[X-Injected , close]\n"),
    TUN("A38 upgrade", GET "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 0,
        "GET / form 1 host a.example port 0 path / query 0  status 0  minor 1 used 76 framing 0 0 keep 1 expect "
        "0 "
        "upgrade 1\n[Host]=[a.example]\n[Connection]=[Upgrade]\n[Upgrade]=[websocket]\n"),
    TUN("1.0", "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", 0,
        "GET / form 1 host a port 0 path / query 0  status 0  minor 0 used 51 framing 0 0 keep 1 expect 0 "
        "upgrade "
        "0\n[Host]=[a]\n[Connection]=[keep-alive]\n"),
    TUN("A4 not framing", GET "Content-Encoding: chunked\r\n\r\n", 0, NULL),
    TUN("A50 own name", GET "X_Api_Key: 1\r\n\r\n", 0, NULL),
    TUN("A22 as it came", GET "X: \x85 caf\xe9 \xa0\r\nY: \xff\r\n\r\n", 0,
        "GET / form 1 host a.example port 0 path / query 0  status 0  minor 1 used 54 framing 0 0 keep 1 expect "
        "0 "
        "upgrade 0\n[Host]=[a.example]\n[X]=[\x85 caf\xe9 \xa0]\n[Y]=[\xff]\n"),
    TUN("empty value", GET "X:\r\nY: \t \r\n\r\n", 0, NULL),
    PRX("absolute", "GET http://A.example:80/x?y HTTP/1.1\r\nHost: a.example.\r\n\r\n", 0,
        "GET http://A.example:80/x?y form 2 host A.example port 80 path /x query 1 y status 0  minor 1 used 58 "
        "framing 0 0 keep 1 expect 0 upgrade 0\n[Host]=[a.example.]\n"),
    PRX("absolute without path", "GET http://a?y HTTP/1.1\r\nHost: a\r\n\r\n", 0,
        "GET http://a?y form 2 host a port 0 path / query 1 y status 0  minor 1 used 36 framing 0 0 keep 1 "
        "expect "
        "0 upgrade 0\n[Host]=[a]\n"),
    PRX("absolute 1.0", "GET http://a/ HTTP/1.0\r\n\r\n", 0, NULL),
    PRX("absolute v6", "GET http://[::1]:81/ HTTP/1.1\r\nHost: [0:0::1]:81\r\n\r\n", 0, NULL),
    PRX("connect", "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n\x16\x03", 0,
        "CONNECT a.example:443 form 3 host a.example port 443 path  query 0  status 0  minor 1 used 55 framing 0 "
        "0 "
        "keep 1 expect 0 upgrade 0\n[Host]=[a.example:443]\n"),
    PRX("connect, Host without port", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 0, NULL),
    PRX("connect 1.0", "CONNECT a:65535 HTTP/1.0\r\n\r\n", 0, NULL),
    {"origin server", HTTP_ORIGIN_SERVER, SPAN(GET "\r\n"), 0, NULL},
};

static void accepted(void **state)
{
    RUN(accepted_rows);
}

static void framing_in_doubt(void **state)
{
    static const struct http_case rows[] = {
        TUN("A1", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "length-and-coding"),
        TUN("A1", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400, "length-and-coding"),
        TUN("A1", "POST / HTTP/1.1\r\nContent-Length: 5\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", 400,
            "length-and-coding"),
        TUN("A2", POST "Transfer-Encoding: chunked,\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A2", POST "Transfer-Encoding: ,chunked\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A2", POST "Transfer-Encoding: chunked, gzip\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A2", POST "Transfer-Encoding: chunked;x=1\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A2", POST "Transfer-Encoding: identity, chunked\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A2", POST "Content-Length: 3\r\nTransfer-Encoding: chunked \r\n\r\n", 400, "length-and-coding"),
        TUN("A2", POST "Content-Length: 3\r\nTransfer-Encoding: chunked\t\r\n\r\n", 400, "length-and-coding"),
        TUN("A3", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "duplicate-field"),
        TUN("A3", POST "Transfer-Encoding: cow\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "duplicate-field"),
        TUN("A3", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", 400, "duplicate-field"),
        TUN("A3", POST "Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "duplicate-field"),
        TUN("A4", POST "Transfer_Encoding: chunked\r\n\r\n", 400, "field-look-alike"),
        TUN("A4", POST "Transfer Encoding: chunked\r\n\r\n", 400, "bad-field-name"),
        TUN("A4", POST "Transfer-Encoding: \"chunked\"\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A4", POST "Transfer-Encoding: Chunked\r\nContent-Length: 5\r\n\r\n", 400, "length-and-coding"),
        TUN("A4", POST "Transfer-Encoding: Chunke\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A3", POST "Transfer-Encoding: Chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "duplicate-field"),
        TUN("A5", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n", 400, "coding-in-1.0"),
        TUN("A4", POST "X:X\rTransfer-Encoding: chunked\r\n\r\n", 400, "bad-field-value"),
        TUN("A4", POST "X:X\nTransfer-Encoding: chunked\r\n\r\n", 400, "bare-lf"),
        TUN("A5", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "coding-in-1.0"),
        TUN("A5", "POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
            "coding-in-1.0"),
        TUN("A6", POST "Transfer-Encoding: gzip\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A6", POST "Transfer-Encoding: gzip, chunked\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A6", POST "Transfer-Encoding: xchunked\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A6", POST "Transfer-Encoding:\r\n\r\n", 400, "bad-transfer-encoding"),
        TUN("A7", POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400, "duplicate-field"),
        TUN("A7", POST "Content-Length: 5\r\ncontent-length: 5\r\n\r\n", 400, "duplicate-field"),
        TUN("A7", POST "Content-Length: 5, 5\r\n\r\n", 400, "bad-content-length"),
        TUN("A7", POST "Content-Length: 5,6\r\n\r\n", 400, "bad-content-length"),
        TUN("A50", POST "Content_Length: 5\r\n\r\n", 400, "field-look-alike"),
        TUN("A50", POST "Content.Length: 5\r\n\r\n", 400, "field-look-alike"),
        TUN("A50", POST "Content-Length: 0\r\ntransfer~encoding: chunked\r\n\r\n", 400, "field-look-alike"),
        PRX("A42", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nContent-Length: 0\r\n\r\n", 400, "body-on-connect"),
        PRX("A42", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
            "body-on-connect"),
    };
    RUN(rows);
}

static void lengths_that_are_not_numbers(void **state)
{
    static const char *const values[] = {"",
                                         "+5",
                                         "-0",
                                         "-1",
                                         "0x5",
                                         "5_0",
                                         "5 5",
                                         "005",
                                         "010",
                                         "5;",
                                         "5.0",
                                         "5e1",
                                         "00",
                                         "\xef\xbc\x95",
                                         "9223372036854775808",
                                         "18446744073709551621",
                                         "18446744073709551616",
                                         "100000000000000000000000",
                                         "5\x0b"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[200];
        int n = snprintf(text, sizeof text, POST "Content-Length: %s\r\n\r\n", values[i]);
        bool value_itself = values[i][0] < 0 || strchr(values[i], 0x0b);
        struct http_case c = {"A8", HTTP_IN_TUNNEL, span_of(text, (size_t)n), 400,
                              value_itself ? "bad-field-value" : "bad-content-length"};
        http_case_check(&c, parse);
    }
}

static void lines_and_names(void **state)
{
    static const struct http_case rows[] = {
        TUN("A15", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400, "bare-lf"),
        TUN("A15", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400, "bare-lf"),
        TUN("A15", "GET / HTTP/1.1\r\nHost: a\r\n\n", 400, "bare-lf"),
        TUN("A15", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "not-http"),
        TUN("A16", "GET / HTTP/1.1\rHost: a\r\n\r\n", 400, "bad-request-line"),
        TUN("A16", GET "X: a\rb\r\n\r\n", 400, "bad-field-value"),
        TUN("A16", GET "X\r: a\r\n\r\n", 400, "bad-field-name"),
        TUN("A16", GET "\rX: a\r\n\r\n", 400, "bad-field-name"),
        TUN("A16", "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bare-cr"),
        TUN("A16", GET "X: a\r\r\n\r\n", 400, "bad-field-value"),
        TUN("A18", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400, "obs-fold"),
        TUN("A18", GET "X: a\r\n b\r\n\r\n", 400, "obs-fold"),
        TUN("A18", POST "Transfer-Encoding:\r\n\tchunked\r\n\r\n", 400, "obs-fold"),
        TUN("A18", POST "Content-Length: 1\r\n 0\r\n\r\n", 400, "obs-fold"),
        TUN("A18", GET " \r\n\r\n", 400, "obs-fold"),
        TUN("A19", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, "bad-field-name"),
        TUN("A19", GET "X\t: a\r\n\r\n", 400, "bad-field-name"),
        TUN("A19", GET "X\x85: a\r\n\r\n", 400, "bad-field-name"),
        TUN("A19", GET "X\xa0: a\r\n\r\n", 400, "bad-field-name"),
        TUN("A20", GET "X\r\n\r\n", 400, "no-colon"),
        TUN("A20", GET ": a\r\n\r\n", 400, "empty-field-name"),
        TUN("A20", GET ":\r\n\r\n", 400, "empty-field-name"),
        TUN("A17", GET "X: admin\0rest\r\n\r\n", 400, "bad-field-value"),
        TUN("A17", GET "X\0: a\r\n\r\n", 400, "bad-field-name"),
        TUN("A17", "GE\0T / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad-method"),
        TUN("A17", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad-target"),
        TUN("A17", "GET / HTTP/1.1\0\r\nHost: a\r\n\r\n", 400, "bad-request-line"),
        TUN("A17", "GET / HTTP/1.1\r\nHost: a\0.b\r\n\r\n", 400, "bad-field-value"),
        TUN("A29", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "not-http"),
        TUN("A35", POST "Content-Length: 1\r\nExpect: y 100-continue\r\n\r\n", 417, "bad-expect"),
        TUN("A35", POST "Content-Length: 1\r\nExpect:\r\n\r\n", 417, "bad-expect"),
        TUN("A35", POST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n", 400, "duplicate-field"),
        TUN("A37", GET "Connection: a b\r\n\r\n", 400, "bad-connection"),
        TUN("A39", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "http2-preface"),
        PRX("A39", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "http2-preface"),
        TUN("A43", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-refused"),
        TUN("A43", "TRACK / HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-refused"),
        TUN("A43", "Debug / HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-refused"),
        TUN("A43", "OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", 405, "max-forwards"),
        TUN("A49", GET "Authorization: a\r\nauthorization: b\r\n\r\n", 400, "duplicate-field"),
        TUN("A49", GET "Cookie: a\r\nCookie: b\r\n\r\n", 400, "duplicate-field"),
        TUN("A49", GET "Content-Type: a\r\nContent-Type: a\r\n\r\n", 400, "duplicate-field"),
        TUN("A49", GET "Content-Encoding: a\r\nContent-Encoding: b\r\n\r\n", 400, "duplicate-field"),
        TUN("A49", GET "X-Amz-Target: a\r\nX-AMZ-TARGET: b\r\n\r\n", 400, "duplicate-field"),
        TUN("A49", GET "Origin: a\r\nOrigin: b\r\n\r\n", 400, "duplicate-field"),
        TUN("A52", "\x16\x03\x01\x02", 400, "not-http"),
        TUN("A52", "\x05\x01", 400, "not-http"),
        TUN("A52", "\x04\x01", 400, "not-http"),
        PRX("A52", "SSH-2.0-OpenSSH_9.2p1\r\n", 400, "bad-method"),
        PRX("A52", "EHLO x\r\n", 400, "bad-target"),
        PRX("A53", "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n", 400, "bad-request-line"),
        PRX("A53", "\r\n\r\n\0\r\nQUIT\n", 400, "not-http"),
    };
    RUN(rows);
}

static void fields_that_are_ascii(void **state)
{
    static const struct http_case rows[] = {
        TUN("A22", GET "Authorization: Bearer caf\xe9\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", GET "Proxy-Authorization: Basic \xc3\xa9\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", GET "Cookie: a=\xc3\xa9\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", GET "Content-Type: text/plain\xa0\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", GET "Content-Encoding: \xa0gzip\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", GET "Range: bytes=0-\xb2\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", GET "Connection: \xe9\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", GET "Upgrade: \xe9\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", POST "Transfer-Encoding: chunked\xa0\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", POST "Content-Length: 5\x85\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", POST "Expect: \xe9\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", "GET / HTTP/1.1\r\nHost: a\xa0\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", GET "X: a\xe9\0\r\n\r\n", 400, "bad-field-value"),
        TUN("A22", GET "X: a\xe9\x7f\r\n\r\n", 400, "bad-field-value"),
    };
    RUN(rows);
}

static void request_lines(void **state)
{
    static const struct http_case rows[] = {
        LINE("A28", "GET  / HTTP/1.1", 400, "bad-target"),
        LINE("A28", "GET /  HTTP/1.1", 400, "bad-request-line"),
        LINE("A28", "GET\t/ HTTP/1.1", 400, "bad-method"),
        LINE("A28", "GET /\tHTTP/1.1", 400, "bad-target"),
        LINE("A28", " GET / HTTP/1.1", 400, "not-http"),
        LINE("A28", "GET / HTTP/1.1 ", 400, "bad-request-line"),
        LINE("A28", "GET /", 400, "bad-target"),
        LINE("A28", "GET / ", 400, "bad-request-line"),
        LINE("A28", "GET", 400, "bad-method"),
        LINE("A28", "GET / http/1.1", 400, "bad-request-line"),
        LINE("A28", "GET / HTTP/1.2", 505, "bad-version"),
        LINE("A28", "GET / HTTP/1.9", 505, "bad-version"),
        LINE("A28", "GET / HTTP/2.0", 505, "bad-version"),
        LINE("A28", "GET / HTTP/3", 400, "bad-request-line"),
        LINE("A28", "GET / HTTP/1.1.1", 400, "bad-request-line"),
        LINE("A28", "GET / HTTP/4294967295.255", 400, "bad-request-line"),
        LINE("A28", "GET / HTTP/01.1", 400, "bad-request-line"),
        LINE("A28", "GET / HTTP/0.9", 505, "bad-version"),
        LINE("A30", "GE T / HTTP/1.1", 400, "bad-request-line"),
        LINE("A30", "G=\":<>(e),[T]\": / HTTP/1.1", 400, "bad-method"),
        LINE("A30", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1", 501, "method-too-long"),
        LINE("A25", "GET * HTTP/1.1", 400, "target-form"),
        LINE("A25", "OPTIONS * HTTP/1.1", 400, "target-form"),
        LINE("A25", "GET a.example:443 HTTP/1.1", 400, "target-form"),
        LINE("A25", "GET a.example/x HTTP/1.1", 400, "target-form"),
        LINE("A25", "GET //a.example/x HTTP/1.1", 400, "bad-target"),
        LINE("A25", "GET http://a.example/x HTTP/1.1", 400, "target-form"),
        LINE("A24", "GET https://attacker.example/x HTTP/1.1", 400, "target-form"),
        LINE("A25", "CONNECT a.example:443 HTTP/1.1", 400, "connect-in-tunnel"),
        LINE("A27", "GET /a#b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /a\\b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /a\"b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /a<b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /a>b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /?\"b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /?<b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /?>b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /?# HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /?\xc3\xa9 HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /a\\?x HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET {/a HTTP/1.1", 400, "target-form"),
        LINE("A27", "GET /a}b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /a`b HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /\x80 HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /\x7f HTTP/1.1", 400, "bad-target"),
        LINE("A27", "GET /\x01 HTTP/1.1", 400, "bad-target"),
    };
    RUN(rows);
}

static void targets_on_the_proxy_port(void **state)
{
#define ABS(id, target, status, code) PRX(id, "GET " target " HTTP/1.1\r\nHost: a.example\r\n\r\n", status, code)
#define CON(id, target, status, code) PRX(id, "CONNECT " target " HTTP/1.1\r\nHost: a.example\r\n\r\n", status, code)
    static const struct http_case rows[] = {
        ABS("A24", "http://b.example/", 400, "host-mismatch"),
        ABS("A24", "http://a.example:8080/", 400, "host-mismatch"),
        ABS("A25", "/", 400, "target-form"),
        ABS("A25", "*", 400, "target-form"),
        ABS("A25", "a.example:80", 400, "target-form"),
        ABS("A25", "http:/x", 400, "target-form"),
        ABS("A25", "http://", 400, "bad-authority"),
        ABS("A25", "http:///x", 400, "bad-authority"),
        ABS("A25", "HTTP://a.example/", 400, "target-form"),
        ABS("A25", "http://a.example//x", 400, "bad-target"),
        ABS("A27", "http://a.example|/", 400, "bad-authority"),
        ABS("A27", "http://a.example\\?x", 400, "bad-authority"),
        ABS("A27", "http://a.example/{", 400, "bad-target"),
        ABS("A26", "https://a.example/", 400, "https-without-connect"),
        ABS("A26", "http://u@a.example/", 400, "bad-authority"),
        ABS("A26", "http://u:p@a.example/", 400, "bad-authority"),
        ABS("A26", "ftp://a.example/", 400, "target-form"),
        ABS("A26", "file:///etc/passwd", 400, "target-form"),
        ABS("A26", "ws://a.example/", 400, "target-form"),
        ABS("A26", "gopher://a.example/", 400, "target-form"),
        ABS("C18", "http://a.example%2eevil/", 400, "bad-authority"),
        ABS("C18", "http://a.example;evil/", 400, "bad-authority"),
        CON("A25", "a.example:443/x", 400, "bad-authority"),
        CON("A25", "u@a.example:443", 400, "bad-authority"),
        CON("A25", "a.example", 400, "bad-authority"),
        CON("A27", "a.example:443|", 400, "bad-authority"),
        CON("A27", "a^b:443", 400, "bad-authority"),
        CON("A25", "https://a.example:443", 400, "bad-authority"),
        CON("C8", "a.example:", 400, "bad-authority"),
        CON("C8", "a.example:0", 400, "bad-authority"),
        CON("C8", "a.example:080", 400, "bad-authority"),
        CON("C8", "a.example:65536", 400, "bad-authority"),
        CON("C8", "a.example:+443", 400, "bad-authority"),
        CON("C10", "2130706433:443", 400, "bad-authority"),
        CON("C11", "::1:443", 400, "bad-authority"),
        CON("C1", "b.example:443", 400, "host-mismatch"),
        PRX("C7", "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:444\r\n\r\n", 400, "host-mismatch"),
        PRX("A23", "CONNECT a.example:443 HTTP/1.1\r\n\r\n", 400, "missing-host"),
        {"no place", (enum http_place)0, SPAN(GET "\r\n"), 400, "target-form"},
    };
    RUN(rows);
}

static void hosts(void **state)
{
    static const struct http_case rows[] = {
        TUN("A23", "GET / HTTP/1.1\r\n\r\n", 400, "missing-host"),
        TUN("A23", "GET / HTTP/1.0\r\n\r\n", 400, "missing-host"),
        TUN("A23", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "duplicate-field"),
        TUN("A23", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "duplicate-field"),
        HOST("A23", "", 400, "bad-host"),
        HOST("A23", "a,b", 400, "bad-host"),
        HOST("A23", "a b", 400, "bad-host"),
        HOST("A23", "a@b", 400, "bad-host"),
        HOST("A23", "a/b", 400, "bad-host"),
        HOST("A23", "a?b", 400, "bad-host"),
        HOST("A23", "a#b", 400, "bad-host"),
        HOST("A23", "[::1", 400, "bad-host"),
        HOST("A23", "a:", 400, "bad-host"),
        HOST("A23", "a:99999", 400, "bad-host"),
        HOST("A23", "a:0", 400, "bad-host"),
        HOST("A23", "a:+80", 400, "bad-host"),
        HOST("A23", "a:0443", 400, "bad-host"),
        HOST("A23", "a:80:80", 400, "bad-host"),
        HOST("A23", "http://a", 400, "bad-host"),
        HOST("A23", "[::1]x", 400, "bad-host"),
    };
    RUN(rows);
}

/* A17, A21: every byte in every place where it must not be. */
static void every_byte(void **state)
{
    for (int byte = 0; byte < 256; byte++) {
        struct {
            const char *before, *after;
            bool fine;
        } places[] = {
            {"GE", "T / HTTP/1.1\r\nHost: a\r\n\r\n", http_is_token(span_of(&(uint8_t){(uint8_t)byte}, 1))},
            {GET "X", "Y: a\r\n\r\n", byte == ':' || http_is_token(span_of(&(uint8_t){(uint8_t)byte}, 1))},
            {GET "X: a", "b\r\n\r\n", byte == '\t' || (byte >= ' ' && byte != 0x7f)},
            {"GET / HTTP/1.1\r\nHost: a", "b\r\n\r\n",
             (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                 byte == '.' || byte == '-' || byte == '_'},
        };
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            uint8_t text[128];
            size_t n = strlen(places[i].before), m = strlen(places[i].after), seen = 0, used;
            struct http_head h;
            struct http_err e;
            memcpy(text, places[i].before, n);
            text[n] = (uint8_t)byte;
            memcpy(text + n + 1, places[i].after, m);
            enum http_result r = http_parse_request(span_of(text, n + 1 + m), HTTP_IN_TUNNEL, &seen, &h, &used, &e);
            if ((r == HTTP_OK) != places[i].fine)
                fail_msg("place %zu byte %d: %d", i, byte, r);
        }
    }
}

/* A4: Transfer-Encoding disguised by one byte, in front, inside and behind, of name and value. */
static void disguised_coding(void **state)
{
    static const char *const shapes[] = {"$Transfer-Encoding: chunked", "Transfer$-Encoding: chunked",
                                         "Transfer-Encoding$: chunked", "Transfer-Encoding: $chunked",
                                         "Transfer-Encoding: chun$ked", "Transfer-Encoding: chunked$",
                                         "Transfer-Encoding:$chunked",  "X: X$Transfer-Encoding: chunked"};
    for (int byte = 1; byte < 256; byte++) {
        if (byte >= 0x20 && byte < 0x7f)
            continue;
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            char text[256];
            struct http_head h;
            struct http_err e;
            size_t seen = 0, used;
            int n = snprintf(text, sizeof text, POST "Content-Length: 3\r\n%s\r\n\r\n", shapes[i]);
            *strchr(text, '$') = (char)byte;
            enum http_result r = http_parse_request(span_of(text, (size_t)n), HTTP_IN_TUNNEL, &seen, &h, &used, &e);
            bool only_a_value = i == 7 && (byte == '\t' || byte >= 0x80);
            if (r != (only_a_value ? HTTP_OK : HTTP_BAD) || (r == HTTP_OK && h.framing != HTTP_LENGTH))
                fail_msg("shape %zu byte %d: %d", i, byte, r);
        }
    }
}

static struct span filled(struct dynbuf *b, const char *before, char c, size_t n, const char *after)
{
    dynbuf_init(b, 1 << 20);
    (void)dynbuf_add(b, span_str(before));
    for (size_t i = 0; i < n; i++)
        (void)dynbuf_add_byte(b, (uint8_t)c);
    assert_int_equal(dynbuf_add(b, span_str(after)), 0);
    return dynbuf_span(b);
}

static void limits(void **state)
{
    const size_t host = strlen(" HTTP/1.1\r\nHost: a\r\n\r\n"), get = strlen(GET "X: \r\n\r\n");
    struct {
        const char *before, *after;
        size_t n;
        unsigned status;
        const char *code;
    } rows[] = {
        {"GET /", " HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_TARGET_MAX - 1, 0, NULL},
        {"GET /", " HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_TARGET_MAX, 414, "target-too-long"},
        {"GET /", " HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_HEAD_MAX - 5 - host + 1, 414, "target-too-long"},
        {"GET /", "", HTTP_HEAD_MAX, 414, "target-too-long"},
        {GET "X: ", "\r\n\r\n", HTTP_HEAD_MAX - get, 0, NULL},
        {GET "X: ", "\r\n\r\n", HTTP_HEAD_MAX - get + 1, 431, "head-too-long"},
        {GET "X: ", "", 2 * HTTP_HEAD_MAX, 431, "head-too-long"},
        {"", " / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_METHOD_MAX, 0, NULL},
        {"", " / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_METHOD_MAX + 1, 501, "method-too-long"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dynbuf b;
        struct http_case c = {"A40", HTTP_IN_TUNNEL, filled(&b, rows[i].before, 'a', rows[i].n, rows[i].after),
                              rows[i].status, rows[i].code};
        http_case_check(&c, parse);
        dynbuf_free(&b);
    }
    for (int more = 0; more < 2; more++) {
        struct dynbuf b;
        dynbuf_init(&b, 1 << 20);
        (void)dynbuf_add(&b, SPAN(GET));
        for (int i = 1; i < HTTP_FIELDS_MAX + more; i++)
            (void)dynbuf_addf(&b, "X%d: 1\r\n", i);
        assert_int_equal(dynbuf_add(&b, SPAN("\r\n")), 0);
        struct http_case c = {"A40", HTTP_IN_TUNNEL, dynbuf_span(&b), more ? 431 : 0,
                              more ? "too-many-fields" : NULL};
        http_case_check(&c, parse);
        dynbuf_free(&b);
    }
}

static void incomplete_is_not_an_answer(void **state)
{
    struct span whole = SPAN("\r\n" POST "Content-Length: 5\r\n\r\n");
    for (size_t n = 0; n < whole.n; n++) {
        struct http_head h;
        struct http_err e;
        size_t seen = 0, used = 9;
        assert_int_equal(http_parse_request(span_first(whole, n), HTTP_IN_TUNNEL, &seen, &h, &used, &e), HTTP_MORE);
        assert_int_equal(used, 0);
        assert_int_equal(h.nfields, 0);
        assert_int_equal(h.form, HTTP_FORM_NONE);
    }
}

/* A31: two requests in one segment: the first head ends where the second begins. */
static void pipelined(void **state)
{
    struct span in = SPAN(GET "\r\n" POST "Content-Length: 0\r\n\r\n");
    struct http_head h;
    struct http_err e;
    size_t seen = 0, used, first;
    assert_int_equal(http_parse_request(in, HTTP_IN_TUNNEL, &seen, &h, &first, &e), HTTP_OK);
    assert_true(span_eq(h.method, SPAN("GET")));
    seen = 0;
    assert_int_equal(http_parse_request(span_from(in, first), HTTP_IN_TUNNEL, &seen, &h, &used, &e), HTTP_OK);
    assert_true(span_eq(h.method, SPAN("POST")));
    assert_int_equal(first + used, in.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted),
        cmocka_unit_test(framing_in_doubt),
        cmocka_unit_test(lengths_that_are_not_numbers),
        cmocka_unit_test(lines_and_names),
        cmocka_unit_test(fields_that_are_ascii),
        cmocka_unit_test(request_lines),
        cmocka_unit_test(targets_on_the_proxy_port),
        cmocka_unit_test(hosts),
        cmocka_unit_test(every_byte),
        cmocka_unit_test(disguised_coding),
        cmocka_unit_test(limits),
        cmocka_unit_test(incomplete_is_not_an_answer),
        cmocka_unit_test(pipelined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
