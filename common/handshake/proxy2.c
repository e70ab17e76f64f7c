/* The PROXY protocol's binary header: fixed part, addresses, TLVs. */
#include "common/handshake/proxy2.h"
#include "common/handshake/take.h"

enum {
    FIXED = 16, /* signature, version and command, family, length */
    COMMAND_LOCAL = 0x20,
    COMMAND_PROXY = 0x21,
    FAMILY_UNSPEC = 0x00,
    FAMILY_TCP4 = 0x11,
    FAMILY_TCP6 = 0x21,
    TLV_CRC32C = 0x03,
    TLV_OWN = 0xe0, /* PP2_TYPE_MIN_CUSTOM */
    CRC_BYTES = 4,
};

static const uint8_t signature[PROXY2_SIGNATURE] = {0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d,
                                                    0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a};

/* As much of the fixed part as is there. */
static bool fixed_bad(struct span in)
{
    if (in.n && memcmp(in.p, signature, in.n < PROXY2_SIGNATURE ? in.n : PROXY2_SIGNATURE) != 0)
        return true;
    if (in.n > 12 && in.p[12] != COMMAND_LOCAL && in.p[12] != COMMAND_PROXY)
        return true;
    if (in.n > 13 && in.p[13] != FAMILY_TCP4 && in.p[13] != FAMILY_TCP6 &&
        !(in.p[12] == COMMAND_LOCAL && in.p[13] == FAMILY_UNSPEC))
        return true;
    return in.n >= FIXED && FIXED + ((size_t)in.p[14] << 8 | in.p[15]) > PROXY2_MAX;
}

static bool take_addresses(struct span *s, size_t bytes, struct proxy2 *p)
{
    struct span src, dst;
    uint32_t src_port, dst_port;
    if (!take_bytes(s, bytes, &src) || !take_bytes(s, bytes, &dst) || !take_number(s, 2, &src_port) ||
        !take_number(s, 2, &dst_port))
        return false;
    memcpy(p->src, src.p, bytes);
    memcpy(p->dst, dst.p, bytes);
    p->src_port = (uint16_t)src_port;
    p->dst_port = (uint16_t)dst_port;
    p->family = bytes == 4 ? 4 : 6;
    return true;
}

static uint32_t crc32c_byte(uint32_t crc, uint8_t c)
{
    crc ^= c;
    for (int i = 0; i < 8; i++)
        crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0); /* Castagnoli, reflected */
    return crc;
}

/* RFC 4960 appendix B, over the header with the sum itself as zeros. */
static bool sum_right(struct span header, struct span sum)
{
    struct span said = sum;
    uint32_t crc = 0xffffffffu, want;
    size_t from = (size_t)(sum.p - header.p);
    for (size_t i = 0; i < header.n; i++)
        crc = crc32c_byte(crc, i >= from && i < from + CRC_BYTES ? 0 : header.p[i]);
    return take_number(&said, CRC_BYTES, &want) && want == ~crc;
}

static bool tlvs_good(struct span header, struct span in, struct span *own)
{
    struct span value, sum = SPAN_NONE;
    uint32_t type;
    while (in.n) {
        if (!take_number(&in, 1, &type) || !take_vector(&in, 2, &value))
            return false;
        if (type == TLV_OWN && own->n == 0)
            *own = value;
        if (type != TLV_CRC32C)
            continue;
        if (sum.n || value.n != CRC_BYTES)
            return false;
        sum = value;
    }
    return sum.n == 0 || sum_right(header, sum);
}

enum proxy2_result proxy2_parse(struct span in, struct proxy2 *p, size_t *used)
{
    struct proxy2 got = {.local = false};
    struct span header, rest;
    *p = got;
    *used = 0;
    if (fixed_bad(in))
        return PROXY2_BAD;
    if (in.n < FIXED || in.n < FIXED + ((size_t)in.p[14] << 8 | in.p[15]))
        return PROXY2_MORE;
    header = span_first(in, FIXED + ((size_t)in.p[14] << 8 | in.p[15]));
    rest = span_from(header, FIXED);
    if (in.p[13] != FAMILY_UNSPEC && !take_addresses(&rest, in.p[13] == FAMILY_TCP4 ? 4 : 16, &got))
        return PROXY2_BAD;
    if (!tlvs_good(header, rest, &got.own))
        return PROXY2_BAD;
    if (in.p[12] == COMMAND_LOCAL)
        got = (struct proxy2){.local = true, .own = got.own};
    *p = got;
    *used = header.n;
    return PROXY2_OK;
}
