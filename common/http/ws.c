/* WebSocket frames to messages and back. Headers are judged byte by byte in the order in which they come, a text once
 * its message is whole: so what comes out never depends on how the bytes were cut. */
#include "common/http/ws.h"
#include "common/text/utf8.h"

enum { FIN = 0x80, RESERVED = 0x70, OPCODE = 0x0f, MASKED = 0x80, LENGTH = 0x7f, LENGTH_16 = 126, LENGTH_64 = 127 };
enum { CONTINUATION = 0, CONTROL = 8, KEEP = 4096, MASK_BYTES = 4 };

struct frame {
    uint64_t length;
    size_t header; /* bytes */
};

void ws_reader_init(struct ws_reader *r, enum ws_side side, size_t max)
{
    *r = (struct ws_reader){.side = side, .broken = side != WS_FROM_CLIENT && side != WS_FROM_SERVER};
    dynbuf_init(&r->whole, max);
}

void ws_reader_free(struct ws_reader *r)
{
    dynbuf_free(&r->whole);
}

static enum ws_result broke(struct ws_reader *r, uint16_t with, uint16_t *code)
{
    r->broken = true;
    *code = with;
    return WS_BAD;
}

/* RFC 6455 section 5.2: no extension was agreed on, so no reserved bit and no opcode but these six. */
static bool first_byte_good(const struct ws_reader *r, uint8_t c)
{
    unsigned op = c & OPCODE;
    if (c & RESERVED)
        return false;
    if (op >= CONTROL)
        return op <= WS_PONG && c & FIN;
    return op == CONTINUATION ? r->op != WS_NONE : op <= WS_BINARY && r->op == WS_NONE;
}

static enum ws_result read_length(struct span in, struct frame *f)
{
    unsigned n = in.p[1] & LENGTH, more = n == LENGTH_16 ? 2 : n == LENGTH_64 ? 8 : 0;
    f->header = 2 + more;
    f->length = more ? 0 : n;
    if (in.n < f->header)
        return WS_MORE;
    for (size_t i = 2; i < f->header; i++)
        f->length = f->length << 8 | in.p[i];
    bool longer_than_needed = (more == 2 && f->length < LENGTH_16) || (more == 8 && f->length <= UINT16_MAX);
    return longer_than_needed || f->length > INT64_MAX ? WS_BAD : WS_OK;
}

/* The header of the next frame. MORE: it is not all there, and nothing is taken. */
static enum ws_result begin_frame(struct ws_reader *r, struct span in, size_t *used, uint16_t *code)
{
    struct frame f;
    bool masked = r->side == WS_FROM_CLIENT;
    if (in.n >= 1 && !first_byte_good(r, in.p[0]))
        return broke(r, WS_PROTOCOL, code);
    if (in.n < 2)
        return WS_MORE;
    uint8_t op = in.p[0] & OPCODE;
    if (masked != ((in.p[1] & MASKED) != 0) || (op >= CONTROL && (in.p[1] & LENGTH) > WS_CONTROL_MAX))
        return broke(r, WS_PROTOCOL, code);
    enum ws_result got = read_length(in, &f);
    if (got != WS_OK)
        return got == WS_MORE ? WS_MORE : broke(r, WS_PROTOCOL, code);
    if (op < CONTROL && f.length > r->whole.max - r->whole.n)
        return broke(r, WS_TOO_BIG, code);
    if (masked) {
        f.header += sizeof r->mask;
        if (in.n < f.header)
            return WS_MORE;
        memcpy(r->mask, in.p + f.header - sizeof r->mask, sizeof r->mask);
    } else {
        memset(r->mask, 0, sizeof r->mask);
    }
    r->in_frame = true;
    r->frame = op;
    r->fin = (in.p[0] & FIN) != 0;
    r->left = f.length;
    r->at = r->ncontrol = 0;
    if (op == WS_TEXT || op == WS_BINARY)
        r->op = (enum ws_op)op;
    *used = f.header;
    return WS_OK;
}

static void unmask(struct ws_reader *r, struct span in, uint8_t *out)
{
    for (size_t i = 0; i < in.n; i++)
        out[i] = in.p[i] ^ r->mask[(r->at + i) % sizeof r->mask];
    r->at = (r->at + in.n) % sizeof r->mask;
}

static int take_payload(struct ws_reader *r, struct span in)
{
    uint8_t *to = r->control + r->ncontrol;
    if (in.n == 0)
        return 0;
    if (r->frame < CONTROL) {
        to = dynbuf_room(&r->whole, in.n);
        if (to == NULL)
            return -1;
    }
    unmask(r, in, to);
    if (r->frame < CONTROL)
        dynbuf_grew(&r->whole, in.n);
    else
        r->ncontrol += in.n;
    r->left -= in.n;
    return 0;
}

/* What may stand in a close frame: RFC 6455 section 7.4 with IANA's registry, not what is only reported locally. */
static bool code_good(uint16_t code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static enum ws_result end_close(struct ws_reader *r, struct ws_message *m, uint16_t *code)
{
    struct span body = span_of(r->control, r->ncontrol);
    if (body.n == 1)
        return broke(r, WS_PROTOCOL, code);
    if (body.n) {
        m->code = (uint16_t)(body.p[0] << 8 | body.p[1]);
        m->data = span_from(body, 2);
        if (!code_good(m->code))
            return broke(r, WS_PROTOCOL, code);
        if (utf8_run(m->data) != m->data.n)
            return broke(r, WS_NOT_UTF8, code);
    }
    r->broken = true; /* nothing may follow (section 5.5.1) */
    return WS_OK;
}

static enum ws_result end_frame(struct ws_reader *r, struct ws_message *m, uint16_t *code)
{
    struct ws_message got = {.op = (enum ws_op)r->frame};
    enum ws_result result = WS_OK;
    r->in_frame = false;
    if (r->frame == WS_CLOSE) {
        result = end_close(r, &got, code);
    } else if (r->frame >= CONTROL) {
        got.data = span_of(r->control, r->ncontrol);
    } else if (!r->fin) {
        return WS_MORE;
    } else {
        got.op = r->op;
        got.data = dynbuf_span(&r->whole);
        r->op = WS_NONE;
        if (got.op == WS_TEXT && utf8_run(got.data) != got.data.n)
            return broke(r, WS_NOT_UTF8, code);
    }
    if (result == WS_OK)
        *m = got;
    return result;
}

/* A message that was given is done with when the next call comes. What held a long one is not kept for the rest of
 * the connection. */
static void forget_last(struct ws_reader *r)
{
    if (r->op != WS_NONE)
        return;
    if (r->whole.cap > KEEP)
        dynbuf_free(&r->whole);
    else
        dynbuf_reset(&r->whole);
}

enum ws_result ws_read(struct ws_reader *r, struct span in, size_t *used, struct ws_message *m, uint16_t *code)
{
    enum ws_result result = WS_MORE;
    *used = 0;
    *m = (struct ws_message){.op = WS_NONE};
    *code = 0;
    if (r->broken)
        return broke(r, WS_PROTOCOL, code);
    if (!r->in_frame)
        forget_last(r);
    while (result == WS_MORE) {
        size_t header = 0;
        if (!r->in_frame) {
            result = begin_frame(r, span_from(in, *used), &header, code);
            *used += header;
            if (result != WS_OK)
                break;
        }
        struct span part = span_from(in, *used);
        part = span_first(part, r->left < part.n ? (size_t)r->left : part.n);
        if (take_payload(r, part))
            return broke(r, WS_INTERNAL, code);
        *used += part.n;
        result = WS_MORE;
        if (r->left)
            break;
        result = end_frame(r, m, code);
    }
    return result;
}

size_t ws_frame_header(uint8_t out[WS_HEADER_MAX], enum ws_op op, bool last, uint64_t n, const uint8_t *mask)
{
    size_t more = n < LENGTH_16 ? 0 : n <= UINT16_MAX ? 2 : 8, used = 2;
    out[0] = (uint8_t)((last ? FIN : 0) | op);
    out[1] = (uint8_t)((mask ? MASKED : 0) | (more == 0 ? n : more == 2 ? LENGTH_16 : LENGTH_64));
    for (; used < 2 + more; used++)
        out[used] = (uint8_t)(n >> 8 * (1 + more - used));
    if (mask) {
        memcpy(out + used, mask, MASK_BYTES);
        used += MASK_BYTES;
    }
    return used;
}

static int write_frame(struct dynbuf *out, enum ws_op op, struct span data, const uint8_t *mask)
{
    uint8_t head[WS_HEADER_MAX];
    (void)dynbuf_add(out, span_of(head, ws_frame_header(head, op, true, data.n, mask))); /* failed, it stays failed */
    size_t from = out->n;
    if (dynbuf_add(out, data))
        return -1;
    for (size_t i = 0; mask && i < data.n; i++)
        out->p[from + i] ^= mask[i % MASK_BYTES];
    return 0;
}

int ws_write(struct dynbuf *out, enum ws_op op, struct span data, const uint8_t *mask)
{
    bool control = op == WS_PING || op == WS_PONG;
    if ((!control && op != WS_TEXT && op != WS_BINARY) || (control && data.n > WS_CONTROL_MAX))
        return -1;
    return write_frame(out, op, data, mask);
}

int ws_write_close(struct dynbuf *out, uint16_t code, struct span reason, const uint8_t *mask)
{
    uint8_t body[WS_CONTROL_MAX] = {(uint8_t)(code >> 8), (uint8_t)code};
    if (code == 0)
        return write_frame(out, WS_CLOSE, SPAN_NONE, mask);
    if (!code_good(code))
        return -1;
    reason = span_first(reason, sizeof body - 2);
    reason.n = utf8_run(reason);
    if (reason.n)
        memcpy(body + 2, reason.p, reason.n);
    return write_frame(out, WS_CLOSE, span_of(body, 2 + reason.n), mask);
}
