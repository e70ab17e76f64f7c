#include "policy/load/emit/zone.h"

#include "common/time/instant.h"

/* Both blocks of a file begin with such a head; the counts are of what follows it. */
enum { HEAD = 44, TYPE = 6, OFFSET_MOST = 26 * 3600, DAY = 86400 };

struct block {
    uint32_t isut, isstd, leap, time, type, chars;
    struct span times, indices, types; /* of the block whose times have `width` bytes */
    size_t width, size;
};

static uint64_t big_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static int read_block(struct span s, size_t width, struct block *b, struct err *e)
{
    uint32_t *const counts[] = {&b->isut, &b->isstd, &b->leap, &b->time, &b->type, &b->chars};
    if (s.n < HEAD || !span_starts(s, SPAN("TZif")))
        return err_set(e, "is no TZif data");
    for (size_t i = 0; i < 6; i++) {
        *counts[i] = (uint32_t)big_endian(s.p + 20 + 4 * i, 4);
        if (*counts[i] > ZONE_FILE_MAX)
            return err_set(e, "is damaged: it counts more than it holds");
    }
    struct span rest = span_from(s, HEAD);
    b->width = width;
    b->times = span_first(rest, b->time * width);
    rest = span_from(rest, b->times.n);
    b->indices = span_first(rest, b->time);
    rest = span_from(rest, b->indices.n);
    b->types = span_first(rest, (size_t)b->type * TYPE);
    b->size =
        HEAD + b->time * (width + 1) + (size_t)b->type * TYPE + b->chars + b->leap * (width + 4) + b->isstd + b->isut;
    return b->size <= s.n ? 0 : err_set(e, "is cut short");
}

static int64_t time_of(const struct block *b, uint32_t i)
{
    return (int64_t)big_endian(b->times.p + i * b->width, b->width);
}

static int64_t offset_of(const struct block *b, uint32_t type)
{
    return (int32_t)(uint32_t)big_endian(b->types.p + (size_t)type * TYPE, 4);
}

static int check_block(const struct block *b, struct err *e)
{
    if (b->leap)
        return err_set(e, "counts leap seconds, which this system's clock does not");
    if (b->type == 0)
        return err_set(e, "is damaged: it has no kind of local time");
    for (uint32_t i = 0; i < b->type; i++)
        if (offset_of(b, i) < -OFFSET_MOST || offset_of(b, i) > OFFSET_MOST)
            return err_set(e, "is damaged: it is more than a day from UTC");
    for (uint32_t i = 0; i < b->time; i++)
        if (b->indices.p[i] >= b->type || (i && time_of(b, i) <= time_of(b, i - 1)))
            return err_set(e, "is damaged: its changes are in no order");
    return 0;
}

static int64_t begin_of(int64_t year)
{
    return instant_days_to(year, 1, 1) * DAY;
}

/* A change at a time; what is before the run of years only says how it begins. */
static int add_shift(struct zone *z, int64_t at, int64_t offset, struct err *e)
{
    if (at >= z->until_s)
        return 0;
    if (at <= z->shift[0].from_s) {
        z->shift[0].offset_s = offset;
        return 0;
    }
    if (at < z->shift[z->n - 1].from_s)
        return err_set(e, "is damaged: its changes are in no order");
    if (at == z->shift[z->n - 1].from_s)
        z->n--;
    if (z->shift[z->n - 1].offset_s == offset)
        return 0;
    if (z->n == ZONE_SHIFTS_MAX)
        return err_set(e, "changes more than %d times", ZONE_SHIFTS_MAX);
    z->shift[z->n++] = (struct img_shift){at, offset};
    return 0;
}

/* What the footer says of the years after the last change that is written out. */
static int add_rule(struct zone *z, const struct zone_rule *r, int64_t after, struct err *e)
{
    if (!r->changes)
        return after == INT64_MIN ? add_shift(z, z->shift[0].from_s, r->standard, e) : 0;
    for (int64_t y = ZONE_FIRST_YEAR - 2; y <= ZONE_LAST_YEAR + 1; y++) {
        int64_t on = zone_day_at(&r->start, y, r->standard), off = zone_day_at(&r->end, y, r->summer);
        bool on_first = on <= off; /* else summer is the turn of the year, as in the south */
        for (int k = 0; k < 2; k++) {
            bool summer = (k == 0) == on_first;
            int64_t at = summer ? on : off;
            if (at > after && add_shift(z, at, summer ? r->summer : r->standard, e) != 0)
                return -1;
        }
    }
    return 0;
}

static int begin_zone(struct arena *a, struct zone *out)
{
    *out = (struct zone){.shift = arena_alloc(a, ZONE_SHIFTS_MAX * sizeof(*out->shift)),
                         .n = 1,
                         .until_s = begin_of(ZONE_LAST_YEAR + 1)};
    if (out->shift == NULL)
        return -1;
    out->shift[0] = (struct img_shift){begin_of(ZONE_FIRST_YEAR), 0};
    return 0;
}

int zone_utc(struct arena *a, struct zone *out)
{
    return begin_zone(a, out);
}

bool zone_is_name(struct span name)
{
    if (name.n == 0 || name.n > 64 || name.p[0] == '/' || name.p[name.n - 1] == '/')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!letter && !(c >= '0' && c <= '9') && memchr("_+-/", c, 4) == NULL)
            return false;
    }
    return span_find(name, SPAN("//")) == name.n;
}

int zone_read(struct span tzif, struct arena *a, struct zone *out, struct err *e)
{
    struct block old = {0}, b = {0};
    struct zone_rule rule;
    if (tzif.n > ZONE_FILE_MAX)
        return err_set(e, "has more than %d bytes", ZONE_FILE_MAX);
    if (read_block(tzif, 4, &old, e) != 0)
        return -1;
    if (tzif.p[4] < '2')
        return err_set(e, "is of the first version of its format, which knows no years after 2037");
    if (read_block(span_from(tzif, old.size), 8, &b, e) != 0 || check_block(&b, e) != 0)
        return -1;
    struct span footer = span_from(tzif, old.size + b.size);
    if (footer.n < 2 || footer.p[0] != '\n' || span_index(span_from(footer, 1), '\n') != footer.n - 2)
        return err_set(e, "is cut short");
    footer = span_of(footer.p + 1, footer.n - 2);
    if (begin_zone(a, out) != 0)
        return err_set(e, "no memory for it");
    out->shift[0].offset_s = offset_of(&b, 0);
    for (uint32_t i = 0; i < b.time; i++)
        if (add_shift(out, time_of(&b, i), offset_of(&b, b.indices.p[i]), e) != 0)
            return -1;
    int64_t last = b.time ? time_of(&b, b.time - 1) : INT64_MIN;
    if (footer.n == 0) { /* nobody has said what comes after */
        if (b.time && last < out->until_s)
            out->until_s = last;
        while (out->n > 1 && out->shift[out->n - 1].from_s >= out->until_s)
            out->n--;
        return out->until_s > out->shift[0].from_s ? 0 : err_set(e, "ends before %d", ZONE_FIRST_YEAR);
    }
    if (!zone_rule_read(footer, &rule))
        return err_set(e, "ends in a rule that is none");
    return add_rule(out, &rule, last, e);
}
