#include "common/text/utf8.h"

static bool tail(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

size_t utf8_char(struct span s)
{
    const uint8_t *p = s.p;
    if (s.n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        return s.n >= 2 && tail(p[1]) ? 2 : 0;
    if (p[0] >= 0xe0 && p[0] <= 0xef) {
        if (s.n < 3 || !tail(p[1]) || !tail(p[2]))
            return 0;
        bool overlong = p[0] == 0xe0 && p[1] < 0xa0, surrogate = p[0] == 0xed && p[1] > 0x9f;
        return overlong || surrogate ? 0 : 3;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        if (s.n < 4 || !tail(p[1]) || !tail(p[2]) || !tail(p[3]))
            return 0;
        bool overlong = p[0] == 0xf0 && p[1] < 0x90, beyond = p[0] == 0xf4 && p[1] > 0x8f;
        return overlong || beyond ? 0 : 4;
    }
    return 0;
}

size_t utf8_run(struct span s)
{
    size_t i = 0;
    while (i < s.n) {
        uint64_t x = 0x80;
        if (s.n - i >= sizeof x)
            memcpy(&x, s.p + i, sizeof x);
        if ((x & 0x8080808080808080u) == 0) { /* eight ASCII bytes */
            i += sizeof x;
            continue;
        }
        size_t n = utf8_char(span_from(s, i));
        if (n == 0)
            break;
        i += n;
    }
    return i;
}

uint32_t utf8_code(struct span s, size_t n)
{
    if (n == 1)
        return s.p[0];
    uint32_t c = s.p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s.p[i] & 0x3f);
    return c;
}

size_t utf8_put(uint32_t c, uint8_t to[4])
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (uint8_t)(0x80 | (c & 0x3f));
    to[0] = (uint8_t)(lead[n] | c);
    return n;
}
