#include "common/time/instant.h"

enum { NUMBER_MAX = 32 /* characters; 17 digits are all that a double has */ };
static const uint64_t latest_ms = (UINT64_C(1) << 32) * 1000 - 1, first_in_ms = UINT64_C(1000000000000);

/* Years begin in March here, so that the day that some years lack is the last. */
int64_t instant_days_to(int64_t year, unsigned month, unsigned day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    int64_t of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

unsigned instant_days_of_month(int64_t year, unsigned month)
{
    static const unsigned days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* n digits at a place that is there: no more and no less than hi, no less than lo. */
static bool digits(struct span s, size_t at, size_t n, unsigned lo, unsigned hi, unsigned *v)
{
    *v = 0;
    for (size_t i = at; i < at + n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        *v = *v * 10 + (unsigned)(s.p[i] - '0');
    }
    return *v >= lo && *v <= hi;
}

/* "Z" or "+hh:mm"; a fraction of a second is not taken: nobody means one here. */
static bool offset_of(struct span s, int64_t *minutes)
{
    unsigned h, m;
    *minutes = 0;
    if (span_eq(s, SPAN("Z")))
        return true;
    if (s.n != 6 || (s.p[0] != '+' && s.p[0] != '-') || s.p[3] != ':' || !digits(s, 1, 2, 0, 23, &h) ||
        !digits(s, 4, 2, 0, 59, &m))
        return false;
    *minutes = (int64_t)(h * 60 + m) * (s.p[0] == '-' ? -1 : 1);
    return true;
}

const char *instant_of(struct span s, uint64_t *ms)
{
    static const char why[] = "is a time with its zone, such as 2026-11-23T09:00:00Z or 2026-11-23T10:00:00+01:00";
    unsigned y, mon, d, h, min, sec;
    int64_t offset;
    *ms = 0;
    if (s.n < 20 || s.p[4] != '-' || s.p[7] != '-' || s.p[10] != 'T' || s.p[13] != ':' || s.p[16] != ':' ||
        !digits(s, 0, 4, 2000, 2099, &y) || !digits(s, 5, 2, 1, 12, &mon) ||
        !digits(s, 8, 2, 1, instant_days_of_month(y, mon), &d) || !digits(s, 11, 2, 0, 23, &h) ||
        !digits(s, 14, 2, 0, 59, &min) || !digits(s, 17, 2, 0, 59, &sec) || !offset_of(span_from(s, 19), &offset))
        return why;
    *ms = (uint64_t)(((instant_days_to(y, mon, d) * 24 + h) * 60 + min - offset) * 60 + sec) * 1000;
    return NULL;
}

/* The digits from a place on, appended to digit; where they end. */
static size_t digits_from(struct span s, size_t at, uint8_t digit[NUMBER_MAX], size_t *n)
{
    for (; at < s.n && s.p[at] >= '0' && s.p[at] <= '9'; at++)
        digit[(*n)++] = s.p[at] - '0';
    return at;
}

/* "e9", "E+09" or "e-3", or nothing. */
static int exponent_of(struct span s, int *exponent)
{
    bool sign = s.n > 1 && (s.p[1] == '+' || s.p[1] == '-');
    size_t at = sign ? 2 : 1;
    unsigned v;
    *exponent = 0;
    if (s.n == 0)
        return 0;
    if ((s.p[0] | 0x20) != 'e' || s.n <= at || s.n > at + 2 || !digits(s, at, s.n - at, 0, 99, &v))
        return -1;
    *exponent = sign && s.p[1] == '-' ? -(int)v : (int)v;
    return 0;
}

int instant_seconds(struct span s, uint64_t *ms)
{
    uint8_t digit[NUMBER_MAX];
    size_t n = 0;
    int exponent;
    uint64_t v = 0;
    if (s.n > NUMBER_MAX)
        return -1;
    size_t at = digits_from(s, 0, digit, &n), whole = n;
    if (whole == 0 || (whole > 1 && digit[0] == 0))
        return -1;
    if (at < s.n && s.p[at] == '.') {
        at = digits_from(s, at + 1, digit, &n);
        if (n == whole)
            return -1;
    }
    if (exponent_of(span_from(s, at), &exponent) != 0)
        return -1;
    for (int i = 0; i < (int)whole + exponent + 3 && v <= latest_ms; i++)
        v = v * 10 + ((size_t)i < n ? digit[i] : 0);
    if (v > latest_ms)
        return -1;
    *ms = v;
    return 0;
}

/* RFC 3339, but for a fraction of a second. */
static int moment_of(struct span s, uint64_t *at)
{
    uint8_t whole[64];
    size_t dot = span_index(s, '.'), end = dot;
    while (end < s.n && (end == dot || (s.p[end] >= '0' && s.p[end] <= '9')))
        end++;
    struct span zone = span_from(s, end);
    if (end == dot + 1 || dot + zone.n > sizeof(whole))
        return -1;
    if (dot)
        memcpy(whole, s.p, dot);
    if (zone.n)
        memcpy(whole + dot, zone.p, zone.n);
    return instant_of(span_of(whole, dot + zone.n), at) == NULL ? 0 : -1;
}

int instant_left(struct span s, uint64_t now_ms, uint64_t *left_ms)
{
    uint64_t at = 0;
    *left_ms = 0;
    if (instant_seconds(s, &at) != 0 && (span_u64(s, latest_ms, &at) != 0 || at < first_in_ms) &&
        moment_of(s, &at) != 0)
        return -1;
    *left_ms = at > now_ms ? at - now_ms : 1;
    return 0;
}
