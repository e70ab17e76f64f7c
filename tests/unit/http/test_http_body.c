/* Bodies: what is taken, what is refused, the same for every cut (A41). */
#include "tests/unit/http/http_cases.h"

struct body_case {
    const char *id;
    enum http_framing framing;
    uint64_t length;
    struct span bytes;
    const char *outcome;  /* "done REST: DATA", "more: DATA", or a code (in requests) */
    const char *response; /* the same in responses; NULL if no different */
};

/* Read all of c in steps over pieces that end at first and then at every `step` bytes. Caller frees. */
static char *deliver(const struct body_case *c, bool response, size_t first, size_t step)
{
    struct http_head h = {.framing = c->framing, .length = c->length, .status = response ? 200 : 0};
    struct http_body b;
    struct dynbuf data;
    size_t at = 0, end = first;
    enum http_result r = HTTP_MORE;
    char *text = NULL;
    dynbuf_init(&data, 1 << 20);
    http_body_begin(&b, &h);
    while (r == HTTP_MORE) {
        struct span piece = span_of(c->bytes.p + at, end - at), got;
        uint8_t *p = http_case_copy(piece);
        size_t used;
        r = http_body_step(&b, span_of(p, piece.n), &used, &got);
        assert_true(used <= piece.n);
        if (r != HTTP_BAD)
            assert_int_equal(dynbuf_add(&data, got), 0);
        assert_true(got.n == 0 || (got.p >= p && got.p + got.n <= p + piece.n));
        free(p);
        at += used;
        if (r == HTTP_MORE && used == 0) {
            assert_int_equal(at, end);
            if (end == c->bytes.n)
                break;
            end = end + step < c->bytes.n ? end + step : c->bytes.n;
        }
    }
    if (r == HTTP_BAD)
        assert_true(asprintf(&text, "%s", b.err.code) > 0 && b.err.status == (response ? 502 : 400));
    else if (r == HTTP_OK)
        assert_true(asprintf(&text, "done %zu: %.*s", c->bytes.n - at, SPAN_FMT(dynbuf_span(&data))) > 0);
    else
        assert_true(asprintf(&text, "more: %.*s", SPAN_FMT(dynbuf_span(&data))) > 0);
    dynbuf_free(&data);
    return text;
}

static void check(const struct body_case *c, bool response)
{
    const char *want = response && c->response ? c->response : c->outcome;
    for (size_t cut = 0; cut <= c->bytes.n + 1; cut += c->bytes.n > 2000 ? 997 : 1) {
        char *got = cut > c->bytes.n ? deliver(c, response, 0, 1) : deliver(c, response, cut, c->bytes.n);
        if (strcmp(got, want) != 0)
            fail_msg("%s: %.*s cut at %zu\nwanted %s\ngot    %s", c->id, SPAN_FMT(span_first(c->bytes, 200)), cut,
                     want, got);
        free(got);
    }
}

#define CHUNKS(id, bytes, outcome)                                                                                   \
    {                                                                                                                \
        id, HTTP_CHUNKED, 0, SPAN(bytes), outcome, NULL                                                              \
    }
#define PADDED(id, bytes, outcome, response)                                                                         \
    {                                                                                                                \
        id, HTTP_CHUNKED, 0, SPAN(bytes), outcome, response                                                          \
    }
#define ZEROS "00000000000000000000000000000000"

static const struct body_case chunk_rows[] = {
    CHUNKS("one", "5\r\nhello\r\n0\r\n\r\n", "done 0: hello"),
    CHUNKS("two", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nGET", "done 3: hello world"),
    CHUNKS("hex", "A\r\n0123456789\r\n1b\r\nabcdefghijklmnopqrstuvwxyz!\r\n0\r\n\r\n",
           "done 0: 0123456789abcdefghijklmnopqrstuvwxyz!"),
    CHUNKS("none", "0\r\n\r\n", "done 0: "),
    CHUNKS("cut", "5\r\nhel", "more: hel"),
    CHUNKS("A9", "0x5\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A9", "+5\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A9", "-0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A9", " 5\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A9", "5 \r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A9", "5_\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A9", "5g\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A9", "\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A9", "5 junk\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A10 limit", "7fffffff\r\n", "more: "),
    CHUNKS("A10", "80000000\r\n", "chunk-too-long"),
    CHUNKS("A10", "ffffffff\r\n", "chunk-too-long"),
    CHUNKS("A10", "8000000000000000\r\n", "chunk-too-long"),
    CHUNKS("A10", "10000000000000005\r\nhello", "chunk-too-long"),
    CHUNKS("A10", "fffffffffffffffff\r\n", "chunk-too-long"),
    CHUNKS("A10", ZEROS "5\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    PADDED("padded", "0005\r\nhello\r\n000\r\n\r\n", "bad-chunk-size", "done 0: hello"),
    PADDED("A13", "5\r\nhello\r\n00\r\n\r\n", "bad-chunk-size", "done 0: hello"),
    PADDED("16 digits", "0000000000000005\r\nhello\r\n0\r\n\r\n", "bad-chunk-size", "done 0: hello"),
    CHUNKS("17 digits", "00000000000000005\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A11 dropped", "5;a=b\r\nhello\r\n0;x;y=\"z, \t;\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11 dropped", "5;a=b\r\nhello\r\n0;x;y=\"z, \t;='\";w=1\r\n\r\nnext", "done 4: hello"),
    CHUNKS("A11 dropped", "5;a\r\nhello\r\n0;a=\"\"\r\nX: y\r\n\r\n", "done 0: hello"),
    CHUNKS("A11", "5;\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a;\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a=\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;=a\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a=b=c\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a=\"b\"c\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a b\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5; a\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5 ;a\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A11", "5;a=\"x\r\n\"\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a=\"\\\"\"\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a=\"\\x\"\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a\rX\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A11", "5;a=\"\nb\"\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", "5;a=\"\xe9\"\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A17", "5;a\0b\r\nhello\r\n0\r\n\r\n", "bad-chunk-extension"),
    CHUNKS("A11", ";a\r\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A11", "2\r\r;a\r\n", "bad-chunk-size"),
    CHUNKS("A12", "5\r\nhello\n0\r\n\r\n", "bad-chunk-end"),
    CHUNKS("A12", "5\r\nhelloXX0\r\n\r\n", "bad-chunk-end"),
    CHUNKS("A12", "5\r\nhello0\r\n\r\n", "bad-chunk-end"),
    CHUNKS("A12", "4\r\nhello\r\n0\r\n\r\n", "bad-chunk-end"),
    CHUNKS("A12", "6\r\nhello\r\n0\r\n\r\n", "bad-chunk-end"),
    CHUNKS("A12", "5\r\nhello\r0\r\n\r\n", "bad-chunk-end"),
    CHUNKS("A12", "5\nhello\r\n0\r\n\r\n", "bad-chunk-size"),
    CHUNKS("A13", "0\r\n\n", "bad-trailer"),
    CHUNKS("A13", "0\n\n", "bad-chunk-size"),
    CHUNKS("A13", "0;x\r\n\r\n", "done 0: "),
    CHUNKS("A13", "0\r\n", "more: "),
    CHUNKS("A13", "0\r\n\rX", "bad-trailer"),
    CHUNKS("A14", "1\r\na\r\n0\r\nContent-Length: 5\r\nHost: x\r\nCookie:\r\n\r\nrest", "done 4: a"),
    CHUNKS("A14", "0\r\nX\r\n\r\n", "bad-trailer"),
    CHUNKS("A14", "0\r\n: x\r\n\r\n", "bad-trailer"),
    CHUNKS("A14", "0\r\nX : x\r\n\r\n", "bad-trailer"),
    CHUNKS("A14", "0\r\nX: x\n\r\n", "bad-trailer"),
    CHUNKS("A14", "0\r\nX: x\r\n y\r\n\r\n", "bad-trailer"),
    CHUNKS("A14", "0\r\nX: \0\r\n\r\n", "bad-trailer"),
    CHUNKS("A14", "0\r\nX: a\rb\r\n\r\n", "bad-trailer"),
    CHUNKS("A32", "GET / HTTP/1.1\r\n", "bad-chunk-size"),
    PADDED("A14 obs-text", "0\r\nX: \xe9\r\n\r\n", "bad-trailer", "done 0: "),
};

static void chunked(void **state)
{
    for (size_t i = 0; i < sizeof chunk_rows / sizeof chunk_rows[0]; i++) {
        check(&chunk_rows[i], false);
        check(&chunk_rows[i], true);
    }
}

static void others(void **state)
{
    static const struct body_case rows[] = {
        {"no body", HTTP_NO_BODY, 0, SPAN("GET"), "done 3: ", NULL},
        {"no body, HEAD", HTTP_NO_BODY, 5, SPAN("hello"), "done 5: ", NULL},
        {"length 0", HTTP_LENGTH, 0, SPAN("GET"), "done 3: ", NULL},
        {"A32 length", HTTP_LENGTH, 5, SPAN("helloGET"), "done 3: hello", NULL},
        {"short", HTTP_LENGTH, 6, SPAN("hello"), "more: hello", NULL},
        {"until close", HTTP_UNTIL_CLOSE, 0, SPAN("hello"), "bad-state", "more: hello"},
        {"no framing at all", (enum http_framing)9, 0, SPAN("hello"), "bad-state", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i], false);
        check(&rows[i], true);
    }
}

static void trailers_at_their_limit(void **state)
{
    for (size_t over = 0; over < 2; over++) {
        struct dynbuf b;
        dynbuf_init(&b, 1 << 20);
        (void)dynbuf_add(&b, SPAN("0\r\nX:"));
        while (b.n < 3 + HTTP_TRAILERS_MAX - 4 + over)
            (void)dynbuf_add_byte(&b, 'a');
        assert_int_equal(dynbuf_add(&b, SPAN("\r\n\r\n")), 0);
        struct body_case c = {"A14", HTTP_CHUNKED, 0, dynbuf_span(&b), over ? "trailers-too-long" : "done 0: ", NULL};
        check(&c, false);
        dynbuf_free(&b);
    }
}

/* A11: of all chunks together. */
static void extensions_at_their_limit(void **state)
{
    for (size_t over = 0; over < 2; over++) {
        struct dynbuf b;
        dynbuf_init(&b, 1 << 20);
        for (size_t n = 0; n < HTTP_EXTENSIONS_MAX - 16; n += 16)
            (void)dynbuf_add(&b, SPAN("1;name=\"a value\"\r\nx\r\n")); /* sixteen with their ends */
        (void)dynbuf_addf(&b, "0;name=\"a value%s\r\n\r\n", over ? "s\"" : "\"");
        char *text = deliver(&(struct body_case){"A11", HTTP_CHUNKED, 0, dynbuf_span(&b), NULL, NULL}, false, 0, 7);
        const char *want = over ? "chunk-extensions-too-long" : "done 0: xxx";
        assert_int_equal(strncmp(text, want, strlen(want)), 0);
        free(text);
        dynbuf_free(&b);
    }
}

/* A13: the end of the connection never completes a body that declared its end. */
static void eof(void **state)
{
    struct {
        enum http_framing framing;
        uint64_t length;
        struct span bytes;
        enum http_result result;
    } rows[] = {
        {HTTP_LENGTH, 5, SPAN("hell"), HTTP_BAD},
        {HTTP_LENGTH, 5, SPAN(""), HTTP_BAD},
        {HTTP_LENGTH, 5, SPAN("hello"), HTTP_OK},
        {HTTP_NO_BODY, 0, SPAN(""), HTTP_OK},
        {HTTP_CHUNKED, 0, SPAN(""), HTTP_BAD},
        {HTTP_CHUNKED, 0, SPAN("5\r\n"), HTTP_BAD},
        {HTTP_CHUNKED, 0, SPAN("5\r\nhello\r\n"), HTTP_BAD},
        {HTTP_CHUNKED, 0, SPAN("0\r\n"), HTTP_BAD},
        {HTTP_CHUNKED, 0, SPAN("0\r\n\r"), HTTP_BAD},
        {HTTP_CHUNKED, 0, SPAN("0\r\n\r\n"), HTTP_OK},
        {HTTP_CHUNKED, 0, SPAN("x"), HTTP_BAD},
        {HTTP_UNTIL_CLOSE, 0, SPAN("hello"), HTTP_OK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct http_head h = {.framing = rows[i].framing, .length = rows[i].length, .status = 200};
        struct http_body b;
        size_t used;
        struct span data;
        http_body_begin(&b, &h);
        enum http_result r = http_body_step(&b, rows[i].bytes, &used, &data);
        assert_true(r != HTTP_BAD || rows[i].bytes.p[0] == 'x');
        assert_int_equal(http_body_eof(&b), rows[i].result);
        assert_int_equal(http_body_eof(&b), rows[i].result);
        if (rows[i].result == HTTP_BAD) {
            assert_non_null(b.err.why);
            assert_int_equal(http_body_step(&b, SPAN("5"), &used, &data), HTTP_BAD);
        }
    }
}

static void a_zeroed_reader_refuses(void **state)
{
    struct http_body b = {0};
    size_t used;
    struct span data;
    assert_int_equal(http_body_step(&b, SPAN("x"), &used, &data), HTTP_BAD);
    b = (struct http_body){0};
    assert_int_equal(http_body_eof(&b), HTTP_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunked),
        cmocka_unit_test(others),
        cmocka_unit_test(trailers_at_their_limit),
        cmocka_unit_test(extensions_at_their_limit),
        cmocka_unit_test(eof),
        cmocka_unit_test(a_zeroed_reader_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
