/* Is a rule in force at this time? when: is a list of windows of the week, each in a zone whose offsets the image
 * has for some years. Outside those years nothing is known: what denies is in force then, what lets through is not.
 */
#include "policy/match/match.h"

enum { DAY = 86400, DAY_MINUTES = 24 * 60, AHEAD_DAYS = 8 };

/* The first shift after an instant. */
static uint32_t shift_after(const struct policy *p, const struct img_zone *z, int64_t now)
{
    uint32_t lo = 0, hi = z->shifts.n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const struct img_shift *s = img_at(p, IMG_SHIFT, z->shifts.first + mid);
        if (s->from_s <= now)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Local time at an instant, in seconds from 1970-01-01 00:00; false: not known. */
static bool local_time(const struct policy *p, const struct img_zone *z, int64_t now, int64_t *local)
{
    uint32_t lo = shift_after(p, z, now);
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

/* Where a window next begins or ends, by a clock that is set at `end`: it may jump into the window, or out of it. */
static int64_t edge_before(const struct img_window *w, int64_t offset, int64_t now, int64_t end)
{
    int64_t best = end, today = (now + offset) / DAY;
    bool over_midnight = w->from_min >= w->to_min;
    for (int64_t day = today - 1; day <= today + AHEAD_DAYS; day++) {
        int64_t from = day * DAY + (int64_t)w->from_min * 60 - offset;
        int64_t to = (day + over_midnight) * DAY + (int64_t)w->to_min * 60 - offset;
        if (!has_day(w, (day + 3) % 7))
            continue;
        if (from > now && from < best)
            best = from;
        if (to > now && to < best)
            best = to;
    }
    return best;
}

int64_t when_next(const struct policy *p, const struct img_rule *r, int64_t now)
{
    int64_t best = INT64_MAX, last = now + (int64_t)AHEAD_DAYS * DAY, local;
    for (uint32_t i = 0; i < r->windows.n; i++) {
        const struct img_window *w = img_at(p, IMG_WINDOW, r->windows.first + i);
        const struct img_zone *z = img_at(p, IMG_ZONE, w->zone);
        uint32_t next = shift_after(p, z, now);
        if (!local_time(p, z, now, &local))
            continue;
        const struct img_shift *is = img_at(p, IMG_SHIFT, z->shifts.first + next - 1);
        int64_t end = next < z->shifts.n ? is[1].from_s : z->until_s;
        int64_t edge = edge_before(w, is->offset_s, now, end);
        if (edge < best && edge <= last)
            best = edge;
    }
    return best;
}
