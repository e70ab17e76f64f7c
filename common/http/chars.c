#include "common/http/chars.h"
#include "common/http/uri.h"

#define WORD  (CH_TOKEN | CH_VALUE | CH_TARGET | CH_UNRESERVED)
#define MARK  (CH_TOKEN | CH_VALUE | CH_TARGET)
#define DELIM (CH_VALUE | CH_TARGET)

const uint8_t http_chars[256] = {
    ['a' ... 'z'] = WORD,
    ['A' ... 'Z'] = WORD,
    ['0' ... '9'] = WORD,
    ['-'] = WORD,
    ['.'] = WORD,
    ['_'] = WORD,
    ['~'] = WORD,
    ['!'] = MARK,
    ['$'] = MARK,
    ['%'] = MARK,
    ['&'] = MARK,
    ['\''] = MARK,
    ['*'] = MARK,
    ['+'] = MARK,
    ['#'] = CH_TOKEN | CH_VALUE,
    ['^'] = CH_TOKEN | CH_VALUE | CH_RAW_PATH | CH_RAW_QUERY,
    ['|'] = CH_TOKEN | CH_VALUE | CH_RAW_PATH | CH_RAW_QUERY,
    ['`'] = CH_TOKEN | CH_VALUE | CH_RAW_QUERY,
    ['('] = DELIM,
    [')'] = DELIM,
    [','] = DELIM,
    [';'] = DELIM,
    ['='] = DELIM,
    [':'] = DELIM,
    ['@'] = DELIM,
    ['/'] = DELIM,
    ['?'] = DELIM,
    ['['] = DELIM,
    [']'] = DELIM,
    ['\t'] = CH_VALUE,
    [' '] = CH_VALUE,
    ['"'] = CH_VALUE,
    ['<'] = CH_VALUE,
    ['>'] = CH_VALUE,
    ['\\'] = CH_VALUE | CH_RAW_QUERY,
    ['{'] = CH_VALUE | CH_RAW_QUERY,
    ['}'] = CH_VALUE | CH_RAW_QUERY,
    [0x80 ... 0xff] = CH_OBS,
};

size_t http_run(struct span s, unsigned mask)
{
    size_t i = 0;
    while (i < s.n && http_char_is(s.p[i], mask))
        i++;
    return i;
}

/* True when each of eight bytes is in 0x20..0x7e. May say false for such bytes' sake
 * of carries, never true wrongly: the table then decides. */
static bool eight_printable(const uint8_t *p)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t x;
    memcpy(&x, p, sizeof x);
    uint64_t low = (x - 0x20 * ones) & ~x; /* a byte below 0x20 */
    uint64_t del_or_high = (x + ones) | x; /* 0x7f, or 0x80 and above */
    return ((low | del_or_high) & high) == 0;
}

size_t http_value_run(struct span s, unsigned more)
{
    size_t i = 0;
    while (s.n - i >= 8) {
        if (eight_printable(s.p + i)) {
            i += 8;
            continue;
        }
        size_t n = http_run(span_of(s.p + i, 8), CH_VALUE | more);
        i += n;
        if (n < 8)
            return i;
    }
    return i + http_run(span_from(s, i), CH_VALUE | more);
}

static uint8_t folded(uint8_t c)
{
    uint8_t letter = c | 0x20;
    return letter >= 'a' && letter <= 'z' ? letter : c >= '0' && c <= '9' ? c : '-';
}

bool http_name_same(struct span a, struct span b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (folded(a.p[i]) != folded(b.p[i]))
            return false;
    return true;
}

bool http_name_is(struct span name, struct span lower)
{
    if (name.n != lower.n)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (folded(name.p[i]) != lower.p[i])
            return false;
    return true;
}
