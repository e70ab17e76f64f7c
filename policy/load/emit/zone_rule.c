/* The footer of TZif data: a TZ string of POSIX, "CET-1CEST,M3.5.0,M10.5.0/3", with the wider hours of RFC 9636. */
#include "common/time/instant.h"
#include "policy/load/emit/zone.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400, USUAL_TIME = 2 * HOUR };

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool take(struct span *s, uint8_t c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = span_from(*s, 1);
    return true;
}

static bool number(struct span *s, unsigned lo, unsigned hi, unsigned *v)
{
    size_t n = 0;
    *v = 0;
    for (; n < s->n && n < 4 && is_digit(s->p[n]); n++)
        *v = *v * 10 + (unsigned)(s->p[n] - '0');
    *s = span_from(*s, n);
    return n > 0 && *v >= lo && *v <= hi;
}

/* "CET" or "<+0330>": for people, and of no use here. */
static bool name(struct span *s)
{
    size_t n = 0;
    if (take(s, '<')) {
        n = span_index(*s, '>');
        bool ok = n >= 1 && n < s->n;
        *s = span_from(*s, n + 1);
        return ok;
    }
    while (n < s->n && (s->p[n] | 0x20) >= 'a' && (s->p[n] | 0x20) <= 'z')
        n++;
    *s = span_from(*s, n);
    return n >= 3;
}

/* "[+-]hh[:mm[:ss]]" */
static bool clock_time(struct span *s, unsigned hours, int64_t *v)
{
    unsigned h, m = 0, sec = 0;
    bool minus = take(s, '-');
    if (!minus)
        (void)take(s, '+');
    if (!number(s, 0, hours, &h) ||
        (take(s, ':') && (!number(s, 0, 59, &m) || (take(s, ':') && !number(s, 0, 59, &sec)))))
        return false;
    *v = ((int64_t)h * HOUR + m * MINUTE + sec) * (minus ? -1 : 1);
    return true;
}

static bool rule_day(struct span *s, struct zone_day *d)
{
    d->time = USUAL_TIME;
    if (take(s, 'M')) {
        d->kind = DAY_WEEK;
        if (!number(s, 1, 12, &d->month) || !take(s, '.') || !number(s, 1, 5, &d->week) || !take(s, '.') ||
            !number(s, 0, 6, &d->day))
            return false;
    } else {
        bool julian = take(s, 'J');
        d->kind = julian ? DAY_OF_365 : DAY_OF_366;
        if (!number(s, julian ? 1 : 0, 365, &d->day))
            return false;
    }
    return !take(s, '/') || clock_time(s, 167, &d->time);
}

bool zone_rule_read(struct span tz, struct zone_rule *out)
{
    int64_t west;
    *out = (struct zone_rule){.changes = false};
    if (!name(&tz) || !clock_time(&tz, 24, &west))
        return false;
    out->standard = out->summer = -west; /* POSIX counts westward */
    if (tz.n == 0)
        return true;
    out->changes = true;
    out->summer = out->standard + HOUR;
    if (!name(&tz))
        return false;
    if (tz.n && tz.p[0] != ',') {
        if (!clock_time(&tz, 24, &west))
            return false;
        out->summer = -west;
    }
    return take(&tz, ',') && rule_day(&tz, &out->start) && take(&tz, ',') && rule_day(&tz, &out->end) && tz.n == 0;
}

int64_t zone_day_at(const struct zone_day *d, int64_t year, int64_t from_utc)
{
    int64_t day = instant_days_to(year, 1, 1) + d->day;
    if (d->kind == DAY_OF_365) { /* 1 is the first of January, and 29 February is never counted */
        day -= 1;
        day += d->day >= 60 && instant_days_of_month(year, 2) == 29;
    } else if (d->kind ==
               DAY_WEEK) { /* the week'th such day of the month, 5 being the last; 1970 began on a Thursday */
        int64_t first = instant_days_to(year, d->month, 1), last = first + instant_days_of_month(year, d->month) - 1;
        int64_t weekday = ((first + 4) % 7 + 7) % 7;
        day = first + (d->day + 7 - weekday) % 7 + 7 * (int64_t)(d->week - 1);
        while (day > last)
            day -= 7;
    }
    return day * DAY + d->time - from_utc;
}
