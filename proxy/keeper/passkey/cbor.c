#include "proxy/keeper/passkey/cbor.h"

enum { DEEP = 4 };

/* The argument of a head, in its shortest form. */
static int argument(struct span *rest, unsigned how, uint64_t *out)
{
    static const uint64_t least[] = {24, 256, 65536, (uint64_t)1 << 32};
    if (how < 24) {
        *out = how;
        return 0;
    }
    size_t n = how < 28 ? (size_t)1 << (how - 24) : 0;
    if (n == 0 || rest->n < n)
        return -1;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | rest->p[i];
    *rest = span_from(*rest, n);
    *out = v;
    return v >= least[how - 24] ? 0 : -1;
}

int cbor_next(struct span *rest, struct cbor *out)
{
    static const enum cbor_kind kinds[] = {CBOR_UINT,  CBOR_NINT, CBOR_BYTES, CBOR_TEXT,
                                           CBOR_ARRAY, CBOR_MAP,  CBOR_NONE,  CBOR_SIMPLE};
    *out = (struct cbor){.kind = CBOR_NONE};
    if (rest->n == 0)
        return -1;
    uint8_t head = rest->p[0];
    *rest = span_from(*rest, 1);
    enum cbor_kind kind = kinds[head >> 5];
    unsigned how = head & 31u;
    if (kind == CBOR_NONE || (kind == CBOR_SIMPLE && (how < 20 || how > 22)) || argument(rest, how, &out->n) != 0)
        return -1;
    if (kind == CBOR_BYTES || kind == CBOR_TEXT) {
        if (out->n > rest->n)
            return -1;
        out->bytes = span_first(*rest, (size_t)out->n);
        *rest = span_from(*rest, (size_t)out->n);
    } else if ((kind == CBOR_ARRAY || kind == CBOR_MAP) && out->n > rest->n) {
        return -1; /* each has a byte at least */
    }
    out->kind = kind;
    return 0;
}

int cbor_skip(struct span *rest)
{
    uint64_t left[DEEP];
    size_t deep = 0;
    struct cbor c;
    for (;;) {
        if (cbor_next(rest, &c) != 0)
            return -1;
        if ((c.kind == CBOR_ARRAY || c.kind == CBOR_MAP) && c.n > 0) {
            if (deep == DEEP)
                return -1;
            left[deep++] = c.kind == CBOR_MAP ? 2 * c.n : c.n;
            continue;
        }
        while (deep > 0 && --left[deep - 1] == 0)
            deep--;
        if (deep == 0)
            return 0;
    }
}
