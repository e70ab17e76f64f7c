/* The request head that leaves: A37, A51, D5, D7, D10, D14, INV1, C35. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "proxy/carrier/credential/inject.h"

static struct wire_request request(void)
{
    return (struct wire_request){.scheme = SPAN("https"),
                                 .host = SPAN("api.example.com"),
                                 .port = 443,
                                 .method = SPAN("GET"),
                                 .path = SPAN("/a"),
                                 .query = SPAN("x=1"),
                                 .has_query = true};
}

static void add(struct wire_request *r, const char *name, const char *value)
{
    r->field[r->nfields++] = (struct http_field){span_str(name), span_str(value)};
}

static void expect(const struct inject *in, const char *want)
{
    struct dynbuf out;
    dynbuf_init(&out, INJECT_HEAD_MAX);
    assert_int_equal(inject_head(&out, in), 0);
    assert_true(dynbuf_ok(&out));
    if (!span_eq(dynbuf_span(&out), span_str(want)))
        fail_msg("got\n%.*s", SPAN_FMT(dynbuf_span(&out)));
    dynbuf_wipe(&out);
}

static void refused(const struct inject *in)
{
    struct dynbuf out;
    dynbuf_init(&out, INJECT_HEAD_MAX);
    assert_int_equal(inject_head(&out, in), -1);
    dynbuf_wipe(&out);
}

static void plain(void **state)
{
    struct wire_request r = request();
    struct inject in = {.request = &r, .framing = HTTP_NO_BODY};
    add(&r, "Accept-Encoding", "gzip");
    add(&r, "Cookie", "a=b");
    add(&r, "Range", "bytes=0-1");
    expect(&in, "GET /a?x=1 HTTP/1.1\r\nHost: api.example.com\r\nAccept-Encoding: gzip\r\nCookie: a=b\r\n"
                "Range: bytes=0-1\r\nConnection: keep-alive\r\n\r\n");
    r.scheme = SPAN("http");
    r.nfields = 0;
    r.has_query = false;
    in.framing = HTTP_CHUNKED;
    expect(&in, "GET /a HTTP/1.1\r\nHost: api.example.com:443\r\nConnection: keep-alive\r\n"
                "Transfer-Encoding: chunked\r\n\r\n");
}

/* D14, D10, D7, D5 */
static void credential(void **state)
{
    struct wire_request r = request();
    struct inject in = {.request = &r,
                        .header = SPAN("Authorization"),
                        .value = SPAN("Bearer real"),
                        .identity = true,
                        .framing = HTTP_LENGTH,
                        .length = 5};
    add(&r, "authorization", "Bearer lease");
    add(&r, "AUTHORIZATION", "Basic Zm9v");
    add(&r, "Accept", "*/*");
    add(&r, "cookie", "session=old");
    add(&r, "RANGE", "bytes=0-0");
    add(&r, "If-Range", "\"x\"");
    add(&r, "Accept-Encoding", "br");
    add(&r, "accept_encoding", "br");
    expect(&in, "GET /a?x=1 HTTP/1.1\r\nHost: api.example.com\r\nAccept: */*\r\nRANGE: bytes=0-0\r\n"
                "If-Range: \"x\"\r\nAuthorization: Bearer real\r\n"
                "Accept-Encoding: identity\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n");
    /* In the client's place another range may stand; of a method that knows none, none leaves. */
    r.nfields = 0;
    add(&r, "Range", "bytes=5-9");
    in.range = SPAN("bytes=0-99");
    expect(&in, "GET /a?x=1 HTTP/1.1\r\nHost: api.example.com\r\nRange: bytes=0-99\r\nAuthorization: Bearer real\r\n"
                "Accept-Encoding: identity\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n");
    in.range = SPAN_NONE;
    r.method = SPAN("PUT");
    expect(&in, "PUT /a?x=1 HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer real\r\n"
                "Accept-Encoding: identity\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n");
    r.method = SPAN("GET");
    r.nfields = 0;
    add(&r, "X_Api_Key", "mine");
    add(&r, "x.api.key", "mine");
    add(&r, "X~Api!Key", "mine");
    in.header = SPAN("X-Api-Key");
    in.value = SPAN("k");
    in.identity = false;
    expect(&in, "GET /a?x=1 HTTP/1.1\r\nHost: api.example.com\r\nX-Api-Key: k\r\nConnection: keep-alive\r\n"
                "Content-Length: 5\r\n\r\n");
}

/* A37, A51: nothing that frames, forwards or belongs to a hop comes from the model's fields. */
static void never_from_a_client(void **state)
{
    const char *names[] = {"Host",
                           "Content-Length",
                           "Transfer-Encoding",
                           "Connection",
                           "Upgrade",
                           "X-Forwarded-For",
                           "Via",
                           "Proxy-Authorization",
                           "Expect",
                           "TE",
                           "Forwarded",
                           "Countersign-Reason",
                           "X-Original-URL",
                           "Proxy_X",
                           "Proxy.X",
                           "countersign!x",
                           "X.Original.URL",
                           "X_Rewrite.Url",
                           "X!Forwarded!For",
                           "Client~IP",
                           "Proxy.Connection",
                           "Content.Length",
                           "Trailer"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct wire_request r = request();
        struct inject in = {.request = &r, .framing = HTTP_NO_BODY};
        add(&r, names[i], "1");
        expect(&in, "GET /a?x=1 HTTP/1.1\r\nHost: api.example.com\r\nConnection: keep-alive\r\n\r\n");
    }
}

/* A38: an upgrade leaves with a key made for it; one without, or a key without one, does not leave. */
static void upgrade(void **state)
{
    struct wire_request r = request();
    struct inject in = {.request = &r, .framing = HTTP_NO_BODY, .ws_key = SPAN("dGhlIHNhbXBsZSBub25jZQ==")};
    refused(&in);
    add(&r, "Sec-WebSocket-Protocol", "a");
    add(&r, "Upgrade", "websocket");
    expect(&in,
           "GET /a?x=1 HTTP/1.1\r\nHost: api.example.com\r\nSec-WebSocket-Protocol: a\r\nUpgrade: websocket\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nConnection: Upgrade\r\n\r\n");
    in.ws_key = SPAN_NONE;
    refused(&in);
}

/* D14: in the path or the query, where the mark stands; the sandbox's own credentials do not leave beside it. */
static void in_the_target(void **state)
{
    struct wire_request r = request();
    struct inject in = {.request = &r,
                        .name = SPAN("c"),
                        .value = SPAN("k%2F"),
                        .slot = SLOT_QUERY,
                        .slot_at = 6,
                        .framing = HTTP_NO_BODY};
    add(&r, "Authorization", "mine");
    add(&r, "Cookie", "mine");
    r.query = SPAN("a=1&k=~c~");
    expect(&in, "GET /a?a=1&k=k%2F HTTP/1.1\r\nHost: api.example.com\r\nConnection: keep-alive\r\n\r\n");
    in.slot_at = 5;
    refused(&in);
    in.slot_at = 6;
    r.has_query = false;
    refused(&in);
    in.slot = SLOT_PATH;
    in.slot_at = 1;
    r.path = SPAN("/~c~/b");
    expect(&in, "GET /k%2F/b HTTP/1.1\r\nHost: api.example.com\r\nConnection: keep-alive\r\n\r\n");
    in.value = SPAN("a b");
    refused(&in);
    in.value = SPAN_NONE;
    refused(&in);
    in.value = SPAN("k");
    in.header = SPAN("X-Key");
    refused(&in);
}

/* D15, INV7: what cannot be written right is not written. */
static void cannot_be_written(void **state)
{
    struct wire_request r = request();
    struct inject in = {.request = &r, .header = SPAN("Authorization"), .framing = HTTP_NO_BODY};
    refused(&in);
    in.value = SPAN("a\r\nX: b");
    refused(&in);
    in.value = SPAN("a");
    const struct span slots[] = {SPAN("Host"),
                                 SPAN("Content-Length"),
                                 SPAN("Connection"),
                                 SPAN("a b"),
                                 SPAN("transfer-encoding"),
                                 SPAN("Proxy-Authorization"),
                                 SPAN("Accept-Encoding")};
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
        in.header = slots[i];
        refused(&in);
    }
    in = (struct inject){.request = &r, .framing = HTTP_NO_BODY, .value = SPAN("x")};
    refused(&in);
    in = (struct inject){.request = &r, .framing = HTTP_UNTIL_CLOSE};
    refused(&in);
    in.framing = HTTP_NO_BODY;
    r.path = SPAN("/a b");
    refused(&in);
    r.path = SPAN("/a");
    add(&r, "X", "a\nb");
    refused(&in);
}

/* In place of a value: its fields, and the client's own signature with its date and token out. */
static void signature(void **state)
{
    struct wire_request r = request();
    struct inject in = {.request = &r, .framing = HTTP_NO_BODY, .nsignature = 2};
    in.signature[0] = (struct http_field){SPAN("X-Amz-Date"), SPAN("20260102T030405Z")};
    in.signature[1] = (struct http_field){SPAN("Authorization"), SPAN("AWS4-HMAC-SHA256 ...")};
    add(&r, "authorization", "AWS4-HMAC-SHA256 of the client");
    add(&r, "x-amz-date", "20200101T000000Z");
    add(&r, "X_Amz_Date", "20200101T000000Z");
    add(&r, "X-Amz-Security-Token", "of the client");
    add(&r, "X-TC-Token", "of the client");
    add(&r, "X-TC-Timestamp", "1");
    add(&r, "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD");
    expect(&in,
           "GET /a?x=1 HTTP/1.1\r\nHost: api.example.com\r\nX-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n"
           "X-Amz-Date: 20260102T030405Z\r\nAuthorization: AWS4-HMAC-SHA256 ...\r\nConnection: keep-alive\r\n\r\n");
    in.header = SPAN("X-Key");
    in.value = SPAN("both");
    refused(&in);
    in = (struct inject){.request = &r, .framing = HTTP_NO_BODY, .nsignature = 1};
    in.signature[0] = (struct http_field){SPAN("X-Amz-Date"), SPAN("a\r\nb")};
    refused(&in);
}

/* A policy's own names: the client's of each of them stay here, too. */
static void signature_in_fields_of_any_name(void **state)
{
    struct wire_request r = request();
    struct inject in = {.request = &r, .framing = HTTP_NO_BODY, .nsignature = 2};
    in.signature[0] = (struct http_field){SPAN("X-Signature"), SPAN("sha256=01")};
    in.signature[1] = (struct http_field){SPAN("Date"), SPAN("Mon, 23 Nov 2026 09:00:00 GMT")};
    add(&r, "x_signature", "of the client");
    add(&r, "DATE", "of the client");
    add(&r, "Authorization", "of the client");
    add(&r, "X-Other", "1");
    expect(&in, "GET /a?x=1 HTTP/1.1\r\nHost: api.example.com\r\nX-Other: 1\r\nX-Signature: sha256=01\r\n"
                "Date: Mon, 23 Nov 2026 09:00:00 GMT\r\nConnection: keep-alive\r\n\r\n");
}

/* However the body is cut, each signature lands where it belongs, and nothing else changes. */
static void signatures_of_chunks(void **state)
{
    enum { BODY = 400, CHUNKS = 3 };
    static const size_t place[CHUNKS] = {0, 100, BODY - WIRE_CHUNK_TEXT - 1};
    uint8_t chunks[CHUNKS * WIRE_CHUNK_SIGNED] = {0}, want[BODY], got[BODY];
    struct cred c = {.chunks = chunks, .nchunks = CHUNKS};
    memset(want, '.', sizeof(want));
    for (size_t i = 0; i < CHUNKS; i++) {
        uint8_t *one = chunks + i * WIRE_CHUNK_SIGNED;
        size_t at = place[i];
        one[6] = (uint8_t)(at >> 8);
        one[7] = (uint8_t)at;
        memset(one + 8, 'a' + (int)i, WIRE_CHUNK_TEXT);
        memset(want + at, 'a' + (int)i, WIRE_CHUNK_TEXT);
    }
    for (size_t cut = 1; cut <= BODY; cut++) {
        memset(got, '.', sizeof(got));
        for (size_t at = 0; at < BODY; at += cut) {
            size_t n = BODY - at < cut ? BODY - at : cut;
            uint8_t piece[BODY + WIRE_CHUNK_TEXT];
            memset(piece, '.', sizeof(piece));
            cred_sign_piece(&c, at, piece, n);
            for (size_t i = n; i < sizeof(piece); i++) /* nothing behind the piece */
                assert_int_equal(piece[i], '.');
            memcpy(got + at, piece, n);
        }
        assert_memory_equal(got, want, BODY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(credential),
        cmocka_unit_test(never_from_a_client),
        cmocka_unit_test(upgrade),
        cmocka_unit_test(cannot_be_written),
        cmocka_unit_test(in_the_target),
        cmocka_unit_test(signature),
        cmocka_unit_test(signature_in_fields_of_any_name),
        cmocka_unit_test(signatures_of_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
