#include "common/schema/decimal.h"

/* What follows the e: its number; false when it is past the limit. */
static bool exponent_of(struct span s, int64_t *e)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    *e = 0;
    if (s.n > 0 && (s.p[0] == '-' || s.p[0] == '+'))
        s = span_from(s, 1);
    for (size_t i = 0; i < s.n; i++) {
        *e = *e * 10 + (s.p[i] - '0');
        if (*e > DECIMAL_EXPONENT_MAX)
            return false;
    }
    if (negative)
        *e = -*e;
    return true;
}

static bool is_significant(uint8_t c)
{
    return c >= '1' && c <= '9';
}

bool decimal_of(struct span text, struct decimal *d)
{
    size_t end = 0, first = 0;
    int64_t e = 0;
    bool negative = text.n > 0 && text.p[0] == '-';
    *d = (struct decimal){.count = 0};
    if (text.n > DECIMAL_TEXT_MAX)
        return false;
    text = span_from(text, negative ? 1 : 0);
    while (end < text.n && text.p[end] != 'e' && text.p[end] != 'E')
        end++;
    if (end < text.n && !exponent_of(span_from(text, end + 1), &e))
        return false;
    text = span_first(text, end);
    size_t point = span_index(text, '.');
    while (first < end && !is_significant(text.p[first]))
        first++;
    if (first == end)
        return true; /* zero */
    while (!is_significant(text.p[end - 1]))
        end--;
    d->negative = negative;
    d->digits = span_of(text.p + first, end - first);
    d->count = end - first - (first < point && point < end ? 1 : 0);
    d->top = e + (first < point ? (int64_t)(point - first) - 1 : -(int64_t)(first - point));
    d->low = d->top - (int64_t)d->count + 1;
    return true;
}

unsigned decimal_next(const struct decimal *d, size_t *at)
{
    if (*at < d->digits.n && d->digits.p[*at] == '.')
        (*at)++;
    return *at < d->digits.n ? (unsigned)d->digits.p[(*at)++] - '0' : 0;
}

/* Of two that are not zero, without their signs. */
static int cmp_size(const struct decimal *a, const struct decimal *b)
{
    size_t i = 0, j = 0;
    if (a->top != b->top)
        return a->top < b->top ? -1 : 1;
    for (size_t n = a->count > b->count ? a->count : b->count; n > 0; n--) {
        unsigned x = decimal_next(a, &i), y = decimal_next(b, &j);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static int sign(const struct decimal *d)
{
    return d->count == 0 ? 0 : d->negative ? -1 : 1;
}

int decimal_cmp(const struct decimal *a, const struct decimal *b)
{
    if (sign(a) != sign(b) || sign(a) == 0)
        return sign(a) - sign(b);
    return sign(a) * cmp_size(a, b);
}

bool decimal_is_integer(const struct decimal *d)
{
    return d->count == 0 || d->low >= 0;
}

bool decimal_divisor(const struct decimal *d, struct divisor *out)
{
    size_t at = 0;
    *out = (struct divisor){.low = d->low};
    if (sign(d) <= 0 || d->count > DECIMAL_DIVISOR_DIGITS)
        return false;
    for (size_t n = d->count; n > 0; n--)
        out->digits = out->digits * 10 + decimal_next(d, &at);
    return true;
}

/* 10^e modulo m, which is below 10^9: no product is past 64 bits. */
static uint64_t power_of_ten(uint64_t e, uint64_t m)
{
    uint64_t power = 1 % m;
    for (uint64_t square = 10 % m; e > 0; e /= 2, square = square * square % m)
        if (e % 2)
            power = power * square % m;
    return power;
}

/* Digits * 10^low of both: the last digit of d is no 0, so it can have no lower place than the divisor's last one. */
bool decimal_is_multiple(const struct decimal *d, struct divisor of)
{
    size_t at = 0;
    uint64_t rest = 0;
    if (d->count == 0)
        return true;
    if (d->low < of.low)
        return false;
    for (size_t n = d->count; n > 0; n--)
        rest = (rest * 10 + decimal_next(d, &at)) % of.digits;
    return rest * power_of_ten((uint64_t)(d->low - of.low), of.digits) % of.digits == 0;
}
