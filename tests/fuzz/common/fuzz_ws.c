/* First byte: the side (bit 0) and, of a client, whether to mask (bit 1) the frames in the rest ourselves. Second:
 * bytes that arrive at once. Third: the limit. The rest: frames. However they are cut the same messages come out, and
 * each of them, written again, reads the same. */
#include "common/http/ws.h"
#include "common/text/utf8.h"
#include "tests/fuzz/fuzz.h"

static const uint8_t mask[4] = {0x5a, 0, 0xff, 7};

static void check_again(const struct ws_message *m, enum ws_side side)
{
    const uint8_t *with = side == WS_FROM_CLIENT ? mask : NULL;
    struct dynbuf b;
    struct ws_reader r;
    struct ws_message again;
    size_t used;
    uint16_t code;
    dynbuf_init(&b, m->data.n + WS_HEADER_MAX);
    if (m->op == WS_CLOSE)
        MUST_HOLD(ws_write_close(&b, m->code, m->data, with) == 0);
    else
        MUST_HOLD(ws_write(&b, m->op, m->data, with) == 0);
    ws_reader_init(&r, side, m->data.n);
    MUST_HOLD(ws_read(&r, dynbuf_span(&b), &used, &again, &code) == WS_OK && used == b.n);
    MUST_HOLD(again.op == m->op && again.code == m->code && span_eq(again.data, m->data));
    ws_reader_free(&r);
    dynbuf_free(&b);
}

static void check_message(const struct ws_message *m, size_t max)
{
    MUST_HOLD(m->op == WS_TEXT || m->op == WS_BINARY || (m->op >= WS_CLOSE && m->op <= WS_PONG));
    MUST_HOLD(m->data.n <= (m->op >= WS_CLOSE ? WS_CONTROL_MAX : max));
    MUST_HOLD((m->op != WS_TEXT && m->op != WS_CLOSE) || utf8_run(m->data) == m->data.n);
}

/* All that comes out, as bytes. */
static void deliver(struct span in, enum ws_side side, size_t max, size_t step, struct dynbuf *out)
{
    struct ws_reader r;
    struct ws_message m;
    size_t at = 0, end = 0, used;
    uint16_t code;
    enum ws_result got;
    ws_reader_init(&r, side, max);
    for (;;) {
        uint8_t *p = fuzz_copy(span_of(in.p + at, end - at));
        got = ws_read(&r, span_of(p, end - at), &used, &m, &code);
        free(p);
        MUST_HOLD(used <= end - at && (got == WS_BAD) == (code != 0) && (got == WS_OK) == (m.op != WS_NONE));
        MUST_HOLD(r.whole.n <= max);
        at += used;
        if (got == WS_OK) {
            check_message(&m, max);
            check_again(&m, side);
            MUST_HOLD(dynbuf_addf(out, "%d %u %zu ", m.op, m.code, m.data.n) == 0 && dynbuf_add(out, m.data) == 0);
        } else if (got == WS_BAD) {
            MUST_HOLD(r.broken && dynbuf_addf(out, "bad %u", code) == 0);
            break;
        } else {
            MUST_HOLD(end - at < WS_HEADER_MAX);
            if (end == in.n)
                break;
            end = end + step < in.n ? end + step : in.n;
        }
    }
    ws_reader_free(&r);
}

/* The frames of in (as a server would send them), with the mask bit and a mask put in. */
static void mask_all(struct span in, struct dynbuf *out)
{
    while (in.n >= 2) {
        size_t n = in.p[1] & 0x7f, more = n == 126 ? 2 : n == 127 ? 8 : 0;
        if (in.n < 2 + more)
            break;
        for (size_t i = 0; i < more; i++)
            n = (i ? n << 8 : 0) | in.p[2 + i];
        struct span data = span_first(span_from(in, 2 + more), n);
        (void)dynbuf_add_byte(out, in.p[0]);
        (void)dynbuf_add_byte(out, in.p[1] | 0x80);
        (void)dynbuf_add(out, span_of(in.p + 2, more));
        (void)dynbuf_add(out, span_of(mask, 4));
        for (size_t i = 0; i < data.n; i++)
            (void)dynbuf_add_byte(out, data.p[i] ^ mask[i % 4]);
        in = span_from(in, 2 + more + data.n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dynbuf whole, cut, masked;
    if (n < 3 || n > 1 << 17)
        return 0;
    enum ws_side side = data[0] & 1 ? WS_FROM_CLIENT : WS_FROM_SERVER;
    size_t step = data[1] ? data[1] : 1, max = (size_t)data[2] * data[2] * 2;
    struct span in = span_of(data + 3, n - 3);
    dynbuf_init(&whole, 1 << 20);
    dynbuf_init(&cut, 1 << 20);
    dynbuf_init(&masked, 1 << 20);
    if ((data[0] & 3) == 3) {
        mask_all(in, &masked);
        in = dynbuf_span(&masked);
    }
    if (in.n) {
        deliver(in, side, max, in.n, &whole);
        deliver(in, side, max, step + in.n / 1024, &cut);
        MUST_HOLD(span_eq(dynbuf_span(&whole), dynbuf_span(&cut)));
    }
    dynbuf_free(&whole);
    dynbuf_free(&cut);
    dynbuf_free(&masked);
    return 0;
}
