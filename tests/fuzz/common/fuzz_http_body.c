/* First byte: framing and direction. Second: bytes that arrive at once (and the length). The rest: a body. */
#include "tests/fuzz/common/fuzz_http.h"

struct verdict {
    enum http_result result, eof;
    struct dynbuf data;
    size_t used;
    const char *code;
};

static void deliver(struct verdict *v, struct span in, const struct http_head *h, size_t step)
{
    struct http_body b;
    size_t end = 0;
    *v = (struct verdict){.result = HTTP_MORE};
    dynbuf_init(&v->data, 1 << 24);
    http_body_begin(&b, h);
    for (;;) {
        struct span piece = span_of(in.p + v->used, end - v->used), got;
        size_t used;
        uint8_t *p = fuzz_copy(piece);
        v->result = http_body_step(&b, span_of(p, piece.n), &used, &got);
        MUST_HOLD(used <= piece.n && got.n <= used);
        MUST_HOLD(got.n == 0 || (got.p >= p && got.p + got.n <= p + piece.n));
        if (v->result != HTTP_BAD)
            MUST_HOLD(dynbuf_add(&v->data, got) == 0);
        free(p);
        v->used += used;
        if (v->result != HTTP_MORE || (used == 0 && end == in.n))
            break;
        if (used == 0) {
            MUST_HOLD(v->used == end);
            end = end + step < in.n ? end + step : in.n;
        }
    }
    v->eof = http_body_eof(&b);
    v->code = b.err.code;
}

static void check_round_trip(const struct dynbuf *data)
{
    struct dynbuf out;
    struct verdict v;
    struct http_head h = {.framing = HTTP_CHUNKED};
    dynbuf_init(&out, 1 << 25);
    MUST_HOLD(http_write_chunk(&out, dynbuf_span(data)) == 0 && dynbuf_add(&out, SPAN("0\r\n\r\n")) == 0);
    deliver(&v, dynbuf_span(&out), &h, 7);
    MUST_HOLD(v.result == HTTP_OK && v.used == out.n);
    MUST_HOLD(span_eq(dynbuf_span(&v.data), dynbuf_span(data)));
    dynbuf_free(&v.data);
    dynbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct verdict whole, cut;
    if (n < 2)
        return 0;
    struct http_head h = {.framing = (enum http_framing)(data[0] % 4), .status = data[0] & 4 ? 200 : 0};
    h.length = h.framing == HTTP_LENGTH ? data[1] : 0;
    struct span in = span_of(data + 2, n - 2);
    deliver(&whole, in, &h, in.n ? in.n : 1);
    deliver(&cut, in, &h, data[1] ? data[1] : 1);
    MUST_HOLD(whole.result == cut.result && whole.eof == cut.eof && whole.code == cut.code);
    MUST_HOLD(whole.result == HTTP_BAD || whole.used == cut.used);
    if (whole.result != HTTP_BAD) /* of a body that is refused, a caller may have seen more or less */
        MUST_HOLD(span_eq(dynbuf_span(&whole.data), dynbuf_span(&cut.data)));
    MUST_HOLD(whole.result != HTTP_OK || whole.eof == HTTP_OK);
    if (whole.result == HTTP_OK)
        check_round_trip(&whole.data);
    dynbuf_free(&whole.data);
    dynbuf_free(&cut.data);
    return 0;
}
