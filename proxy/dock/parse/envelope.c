#include "proxy/dock/parse/envelope.h"

enum envelope_got envelope_take(struct span in, size_t most, struct envelope *e, size_t *used)
{
    *used = 0;
    if (in.n > 0 && in.p[0] & ~(ENVELOPE_COMPRESSED | ENVELOPE_END))
        return ENVELOPE_BAD;
    if (in.n < ENVELOPE_HEAD)
        return ENVELOPE_MORE;
    size_t n = (size_t)in.p[1] << 24 | (size_t)in.p[2] << 16 | (size_t)in.p[3] << 8 | in.p[4];
    if (n > most)
        return ENVELOPE_BAD;
    if (in.n - ENVELOPE_HEAD < n)
        return ENVELOPE_MORE;
    *e = (struct envelope){in.p[0], span_first(span_from(in, ENVELOPE_HEAD), n)};
    *used = ENVELOPE_HEAD + n;
    return ENVELOPE_FRAME;
}

int envelope_put(struct dynbuf *out, uint8_t flags, struct span payload)
{
    uint8_t head[ENVELOPE_HEAD] = {flags, (uint8_t)(payload.n >> 24), (uint8_t)(payload.n >> 16),
                                   (uint8_t)(payload.n >> 8), (uint8_t)payload.n};

    if (payload.n > UINT32_MAX)
        return -1;
    return dynbuf_add(out, span_of(head, sizeof(head))) != 0 || dynbuf_add(out, payload) != 0 ? -1 : 0;
}
