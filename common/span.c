#include "common/span.h"

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

int span_cmp(struct span a, struct span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

bool span_ieq_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

bool span_starts(struct span s, struct span prefix)
{
    return s.n >= prefix.n && span_eq(span_of(s.p, prefix.n), prefix);
}

bool span_ends(struct span s, struct span suffix)
{
    return s.n >= suffix.n && span_eq(span_of(s.p + (s.n - suffix.n), suffix.n), suffix);
}

size_t span_index(struct span s, uint8_t c)
{
    const uint8_t *hit = s.n ? memchr(s.p, c, s.n) : NULL;
    return hit ? (size_t)(hit - s.p) : s.n;
}

size_t span_find(struct span s, struct span needle)
{
    const uint8_t *hit = needle.n && s.n >= needle.n ? memmem(s.p, s.n, needle.p, needle.n) : NULL;
    return hit ? (size_t)(hit - s.p) : s.n;
}

bool span_cut(struct span s, uint8_t c, struct span *head, struct span *rest)
{
    size_t at = span_index(s, c);
    *head = span_first(s, at);
    *rest = at < s.n ? span_from(s, at + 1) : SPAN_NONE;
    return at < s.n;
}

struct span span_trim(struct span s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = span_from(s, 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

bool span_is_of(struct span s, struct span others)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i], letter = c | 0x20;
        if (!(c >= '0' && c <= '9') && !(letter >= 'a' && letter <= 'z') && span_index(others, c) == others.n)
            return false;
    }
    return true;
}

int span_u64(struct span s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    if (s.n == 0 || s.n > 20 || (s.n > 1 && s.p[0] == '0'))
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -1;
        uint64_t d = s.p[i] - '0';
        if (v > (max - d) / 10 || d > max)
            return -1;
        v = v * 10 + d;
    }
    *out = v;
    return 0;
}

bool span_eq_consttime(struct span a, struct span b)
{
    volatile uint8_t diff = 0;
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        diff |= (uint8_t)(a.p[i] ^ b.p[i]);
    return diff == 0;
}
