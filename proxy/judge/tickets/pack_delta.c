#include "proxy/judge/tickets/pack_delta.h"

static int size(struct span *s, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; s->n > 0 && shift <= 42; shift += 7) {
        uint8_t c = s->p[0];
        *v |= (uint64_t)(c & 0x7f) << shift;
        *s = span_from(*s, 1);
        if (!(c & 0x80))
            return 0;
    }
    return -1;
}

int delta_sizes(struct span *ops, uint64_t *base, uint64_t *result)
{
    return size(ops, base) == 0 ? size(ops, result) : -1;
}

/* Bits 0-3 of the op say which bytes of the offset follow, bits 4-6 which of the length. */
static int copy_op(uint8_t op, struct span *ops, uint64_t *from, uint64_t *n)
{
    uint64_t v[2] = {0, 0};
    for (unsigned i = 0; i < 7; i++) {
        if (!(op & 1u << i))
            continue;
        if (ops->n == 0)
            return -1;
        v[i >= 4] |= (uint64_t)ops->p[0] << 8 * (i % 4);
        *ops = span_from(*ops, 1);
    }
    *from = v[0];
    *n = v[1] ? v[1] : 0x10000;
    return 0;
}

int delta_apply(struct span base, struct span ops, uint8_t *out, size_t n)
{
    size_t at = 0;
    while (ops.n) {
        uint8_t op = ops.p[0];
        uint64_t from = 0, len = op & 0x7f;
        struct span source;
        ops = span_from(ops, 1);
        if (op & 0x80) {
            if (copy_op(op, &ops, &from, &len) != 0 || from > base.n)
                return -1;
            source = span_from(base, (size_t)from);
        } else {
            source = ops;
            ops = span_from(ops, (size_t)len);
        }
        if (len == 0 || len > source.n || len > n - at)
            return -1;
        memcpy(out + at, source.p, (size_t)len);
        at += (size_t)len;
    }
    return at == n ? 0 : -1;
}
