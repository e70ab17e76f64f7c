/* when: of a rule: words of days, hours and zones into the records of windows. */
#include "policy/load/emit/emit.h"
#include "policy/load/check/warn.h"
#include "policy/load/emit/zone.h"

enum { DAYS = 7, DAY_MINUTES = 24 * 60, WEEK_MINUTES = DAYS * DAY_MINUTES, WINDOWS_MAX = 64, ZONES_MAX = 1000 };

struct model_zone {
    struct zone zone;
    bool known;
    struct model_zone *next;
};

static int day_of(struct span s)
{
    static const char *const names[DAYS] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
    for (int i = 0; i < DAYS; i++)
        if (span_eq(s, span_str(names[i])))
            return i;
    return -1;
}

/* "mon" or "mon-fri"; "sat-mon" goes over the end of the week. */
static uint32_t days_of(struct span s)
{
    struct span first, last;
    uint32_t mask = 0;
    if (!span_cut(s, '-', &first, &last))
        last = first;
    int from = day_of(first), to = day_of(last);
    if (from < 0 || to < 0)
        return 0;
    for (int d = from;; d = (d + 1) % DAYS) {
        mask |= 1u << d;
        if (d == to)
            return mask;
    }
}

static bool clock_of(struct span s, uint32_t *minutes)
{
    if (s.n != 5 || s.p[2] != ':')
        return false;
    for (size_t i = 0; i < 5; i++)
        if (i != 2 && (s.p[i] < '0' || s.p[i] > '9'))
            return false;
    uint32_t h = (uint32_t)(s.p[0] - '0') * 10 + (uint32_t)(s.p[1] - '0');
    uint32_t m = (uint32_t)(s.p[3] - '0') * 10 + (uint32_t)(s.p[4] - '0');
    *minutes = h * 60 + m;
    return m < 60 && *minutes <= DAY_MINUTES;
}

/* NULL, or why it is no part of a day. */
static const char *hours_of(struct span s, uint32_t *from, uint32_t *to)
{
    struct span first, last;
    if (!span_cut(s, '-', &first, &last) || !clock_of(first, from) || !clock_of(last, to) || *from == DAY_MINUTES)
        return "is no part of a day: \"08:00-18:00\", or \"22:00-06:00\" over midnight, from 00:00 to 24:00";
    return *from == *to ? "begins and ends at once: the whole day is \"00:00-24:00\"" : NULL;
}

static struct model_zone *add_zone(struct loader *l, struct model *m, struct span name)
{
    struct model_zone *z = arena_alloc(&l->a, sizeof(*z));
    if (z == NULL)
        return NULL;
    *z = (struct model_zone){.next = m->zones};
    m->zones = z;
    z->zone.name = name;
    return z;
}

/* Each zone is read once; one that is not there is told once. */
static struct zone *zone_named(struct loader *l, struct model *m, const struct item *v)
{
    struct err why = {""};
    struct span text = SPAN_NONE, name = span_first(v->text, 100);
    struct zone read;
    size_t zones = 0;
    for (struct model_zone *z = m->zones; z; z = z->next, zones++)
        if (span_eq(z->zone.name, v->text))
            return z->known ? &z->zone : NULL;
    if (zones == ZONES_MAX) {
        load_problem(l, v->at, "P017", "more than %d time zones in one policy", ZONES_MAX);
        return NULL;
    }
    struct model_zone *z = add_zone(l, m, v->text);
    if (z == NULL) {
        load_problem(l, v->at, "P003", "no memory for the zone");
        return NULL;
    }
    if (!zone_is_name(v->text)) {
        load_problem(l, v->at, "P013", "\"%.*s\" is no name of a time zone, such as Europe/Berlin or UTC",
                     SPAN_FMT(name));
        return NULL;
    }
    if (span_eq(v->text, SPAN("UTC"))) {
        z->known = zone_utc(&l->a, &read) == 0;
    } else if (l->fetch == NULL || l->fetch(l->fetch_arg, POLICY_REF_ZONE, v->text, &text, &why) != 0) {
        load_problem(l, v->at, "P011", "there is no time zone \"%.*s\" on this system: %.300s", SPAN_FMT(name),
                     why.text);
        return NULL;
    } else {
        z->known = zone_read(text, &l->a, &read, &why) == 0;
        if (!z->known)
            load_problem(l, v->at, "P011", "the system's time zone \"%.*s\" %.300s", SPAN_FMT(name), why.text);
    }
    if (!z->known)
        return NULL;
    read.name = v->text;
    z->zone = read;
    return &z->zone;
}

static void check_window(struct loader *l, struct model *m, struct m_window *w)
{
    uint32_t from, to;
    w->mask = w->days.at ? 0 : WINDOW_DAYS_ALL;
    for (size_t i = 0; i < w->days.n; i++) {
        uint32_t days = days_of(w->days.v[i].text);
        if (days == 0)
            load_problem(l, w->days.v[i].at, "P013",
                         "\"%.*s\" is no day: mon, tue, wed, thu, fri, sat, sun, or mon-fri",
                         SPAN_FMT(span_first(w->days.v[i].text, 60)));
        w->mask |= days;
    }
    for (size_t i = 0; i < w->hours.n; i++) {
        const char *why = hours_of(w->hours.v[i].text, &from, &to);
        if (why)
            load_problem(l, w->hours.v[i].at, "P013", "\"%.*s\" %s", SPAN_FMT(span_first(w->hours.v[i].text, 60)),
                         why);
    }
    if (w->zone.at)
        w->in = zone_named(l, m, &w->zone);
}

void check_when(struct loader *l, struct model *m, struct m_rule *r)
{
    struct m_window *v = r->when.v;
    size_t windows = 0;
    for (size_t i = 0; i < r->when.n; i++) {
        check_window(l, m, &v[i]);
        windows += v[i].hours.n ? v[i].hours.n : 1;
    }
    if (windows > WINDOWS_MAX)
        load_problem(l, r->when.at, "P017", "more than %d hours: of one rule", WINDOWS_MAX);
}

/* The minutes of a week, by the clock of one zone. */
struct week {
    uint8_t marked[WEEK_MINUTES];
    bool asks; /* are any marked? Else: mark them */
};

static bool minutes(struct week *w, uint32_t from, uint32_t n)
{
    if (w->asks)
        return n && memchr(w->marked + from, 1, n) != NULL;
    memset(w->marked + from, 1, n);
    return false;
}

static bool minutes_of_window(struct week *w, uint32_t days, uint32_t from, uint32_t to)
{
    bool found = false, over_midnight = from >= to;
    for (uint32_t d = 0; d < DAYS; d++) {
        if ((days & 1u << d) == 0)
            continue;
        uint32_t today = d * DAY_MINUTES, next = (d + 1) % DAYS * DAY_MINUTES;
        found |= minutes(w, today + from, (over_midnight ? DAY_MINUTES : to) - from);
        found |= over_midnight && minutes(w, next, to);
    }
    return found;
}

static bool minutes_of(struct week *w, const struct m_rule *r)
{
    const struct m_window *v = r->when.v;
    bool found = false;
    for (size_t i = 0; i < r->when.n; i++) {
        uint32_t from = 0, to = DAY_MINUTES;
        if (v[i].hours.n == 0)
            found |= minutes_of_window(w, v[i].mask, from, to);
        for (size_t k = 0; k < v[i].hours.n; k++)
            if (hours_of(v[i].hours.v[k].text, &from, &to) == NULL)
                found |= minutes_of_window(w, v[i].mask, from, to);
    }
    return found;
}

static bool in_zone(const struct m_rule *r, const struct zone *z)
{
    const struct m_window *v = r->when.v;
    for (size_t i = 0; i < r->when.n; i++)
        if (v[i].in != z)
            return false;
    return r->when.n > 0;
}

bool emit_when_apart(const struct m_rule *a, const struct m_rule *b)
{
    struct week w = {.asks = false};
    const struct m_window *v = a->when.v;
    if (a->when.n == 0 || !in_zone(a, v->in) || !in_zone(b, v->in))
        return false;
    (void)minutes_of(&w, a);
    w.asks = true;
    return !minutes_of(&w, b);
}

static uint32_t put_zone(struct emit *w, struct zone *z)
{
    if (z->written == 0) {
        struct img_zone out = {.name = emit_str(w, z->name), .until_s = z->until_s};
        out.shifts.first = emit_count(w, IMG_SHIFT);
        for (size_t i = 0; i < z->n; i++)
            (void)emit_record(w, IMG_SHIFT, &z->shift[i]);
        out.shifts = emit_range(w, IMG_SHIFT, out.shifts.first);
        z->written = emit_record(w, IMG_ZONE, &out) + 1;
    }
    return z->written - 1;
}

struct img_range emit_windows(struct emit *w, const struct m_rule *r)
{
    const struct m_window *v = r->when.v;
    uint32_t first = emit_count(w, IMG_WINDOW);
    for (size_t i = 0; i < r->when.n; i++) {
        struct img_window out = {.days = v[i].mask, .to_min = DAY_MINUTES, .zone = put_zone(w, v[i].in)};
        for (size_t k = 0; k < v[i].hours.n; k++) {
            (void)hours_of(v[i].hours.v[k].text, &out.from_min, &out.to_min);
            (void)emit_record(w, IMG_WINDOW, &out);
        }
        if (v[i].hours.n == 0)
            (void)emit_record(w, IMG_WINDOW, &out);
    }
    return emit_range(w, IMG_WINDOW, first);
}
