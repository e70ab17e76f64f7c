/* Is a rule in force at this time? when: is a list of windows of the week, each in a zone whose offsets the image
 * has for some years. Outside those years nothing is known: what denies is in force then, what lets through is not.
 */
#include "policy/match.h"

enum { DAY = 86400, DAY_MINUTES = 24 * 60 };

/* Local time at an instant, in seconds from 1970-01-01 00:00; false: not known. */
static bool local_time(const struct policy *p, const struct img_zone *z, int64_t now, int64_t *local)
{
    uint32_t lo = 0, hi = z->shifts.n; /* the first shift after now */
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const struct img_shift *s = img_at(p, IMG_SHIFT, z->shifts.first + mid);
        if (s->from_s <= now)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == 0 || now >= z->until_s)
        return false;
    const struct img_shift *s = img_at(p, IMG_SHIFT, z->shifts.first + lo - 1);
    return !__builtin_add_overflow(now, s->offset_s, local) && *local >= 0;
}

static bool has_day(const struct img_window *w, int64_t weekday)
{
    return (w->days & 1u << weekday) != 0;
}

static enum fit window_fits(const struct policy *p, const struct img_window *w, int64_t now)
{
    int64_t local;
    if (!local_time(p, img_at(p, IMG_ZONE, w->zone), now, &local))
        return FIT_MAYBE;
    int64_t today = (local / DAY + 3) % 7; /* 1970 began on a Thursday; 0 is Monday */
    int64_t yesterday = (today + 6) % 7, minute = local / 60 % DAY_MINUTES;
    bool over_midnight = w->from_min >= w->to_min;
    if (has_day(w, today) && minute >= w->from_min && (over_midnight || minute < w->to_min))
        return FIT_YES;
    return over_midnight && has_day(w, yesterday) && minute < w->to_min ? FIT_YES : FIT_NO;
}

bool when_in_force(const struct policy *p, const struct img_rule *r, uint64_t now_ms)
{
    enum fit best = r->windows.n ? FIT_NO : FIT_YES;
    for (uint32_t i = 0; i < r->windows.n && best != FIT_YES; i++) {
        enum fit one = window_fits(p, img_at(p, IMG_WINDOW, r->windows.first + i), (int64_t)(now_ms / 1000));
        best = one > best ? one : best;
    }
    return best == FIT_YES || (best == FIT_MAYBE && r->verdict == VERDICT_DENY);
}
