#include "policy/image/glob.h"

static uint8_t folded(uint8_t c, bool fold)
{
    return fold && c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* From the end: names that differ mostly differ there. */
static bool bytes_eq(struct span a, struct span b, bool fold)
{
    if (a.n != b.n)
        return false;
    for (size_t i = a.n; i > 0; i--)
        if (a.p[i - 1] != b.p[i - 1] && folded(a.p[i - 1], fold) != folded(b.p[i - 1], fold))
            return false;
    return true;
}

bool glob_segment(struct span pattern, struct span s, bool fold)
{
    size_t p = 0, t = 0, star = SIZE_MAX, star_t = 0;
    while (t < s.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            star_t = t;
        } else if (p < pattern.n && folded(pattern.p[p], fold) == folded(s.p[t], fold)) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++star_t;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

/* A row of segments: at is the start of the next one, n + 1 past the last. */
static struct span segment_at(struct span s, size_t at, uint8_t sep)
{
    struct span rest = span_from(s, at);
    return span_first(rest, span_index(rest, sep));
}

static bool is_deep(struct span segment)
{
    return span_eq(segment, SPAN("**"));
}

/* Both have the same number of segments, or it is a no; no "**". */
static bool match_flat(struct span pattern, struct span s, uint8_t sep, bool fold)
{
    for (;;) {
        struct span ps = segment_at(pattern, 0, sep), ts = segment_at(s, 0, sep);
        if (!glob_segment(ps, ts, fold))
            return false;
        if (ps.n == pattern.n || ts.n == s.n)
            return ps.n == pattern.n && ts.n == s.n;
        pattern = span_from(pattern, ps.n + 1);
        s = span_from(s, ts.n + 1);
    }
}

/* Where the last n segments of s begin; SIZE_MAX when there are fewer. */
static size_t last_segments(struct span s, size_t n, uint8_t sep)
{
    for (size_t at = s.n; at > 0; at--)
        if (s.p[at - 1] == sep && --n == 0)
            return at;
    return n == 1 ? 0 : SIZE_MAX;
}

/* A quick no for a pattern with one "**": what follows it fits the end of s or nothing does. */
static bool tail_fits(const struct glob *g, struct span s, uint8_t sep, bool fold)
{
    if (g->after == 0)
        return true;
    size_t at = last_segments(s, g->after, sep);
    return at != SIZE_MAX && match_flat(span_from(g->text, g->deep + 3), span_from(s, at), sep, fold);
}

/* is_pattern: s is one itself, and a "**" of it any number of segments, for which nothing but a "**" stands. */
static bool match_segments(struct span pattern, struct span s, uint8_t sep, bool fold, bool is_pattern)
{
    size_t p = 0, t = 0, star = SIZE_MAX, star_t = 0;
    for (;;) {
        bool p_end = p > pattern.n, t_end = t > s.n;
        if (p_end && t_end)
            return true;
        struct span ps = segment_at(pattern, p, sep), ts = segment_at(s, t, sep);
        if (!p_end && is_deep(ps)) {
            p += ps.n + 1;
            star = p;
            star_t = t;
        } else if (!p_end && !t_end && glob_segment(ps, ts, fold) && !(is_pattern && is_deep(ts))) {
            p += ps.n + 1;
            t += ts.n + 1;
        } else if (star != SIZE_MAX && star_t <= s.n) {
            star_t += segment_at(s, star_t, sep).n + 1;
            p = star;
            t = star_t;
        } else {
            return false;
        }
    }
}

static size_t count_segments(struct span s, uint8_t sep)
{
    size_t n = 1;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == sep;
    return n;
}

struct glob glob_of(struct span text, uint8_t sep)
{
    struct glob g = {.text = text};
    size_t first = span_index(text, '*');
    g.literal = first == text.n;
    if (g.literal)
        return g;
    size_t last = first;
    for (size_t i = first; i < text.n; i++)
        last = text.p[i] == '*' ? i : last;
    /* Beside a "**" that is a whole segment, the separator may be absent from what matches. */
    bool deep_first = first + 1 < text.n && text.p[first + 1] == '*';
    bool deep_last = last > 0 && text.p[last - 1] == '*';
    size_t tail = text.n - last - 1;
    g.head = (uint32_t)(deep_first && first > 0 && text.p[first - 1] == sep ? first - 1 : first);
    g.tail = (uint32_t)(deep_last && tail > 0 && text.p[last + 1] == sep ? tail - 1 : tail);
    size_t deep = span_find(text, SPAN("**"));
    struct span after = span_from(text, deep + 3);
    if (sep && after.n && span_find(after, SPAN("**")) == after.n) {
        g.deep = (uint32_t)deep;
        g.after = (uint32_t)count_segments(after, sep);
    }
    return g;
}

bool glob_match(const struct glob *g, struct span s, uint8_t sep, bool fold)
{
    struct span t = g->text;
    if (s.n == 0)
        s = SPAN(""); /* an address to count from */
    if (g->literal)
        return bytes_eq(t, s, fold);
    if (s.n < g->head || s.n < g->tail)
        return false;
    if (!bytes_eq(span_of(t.p + t.n - g->tail, g->tail), span_of(s.p + s.n - g->tail, g->tail), fold) ||
        !bytes_eq(span_first(t, g->head), span_first(s, g->head), fold))
        return false;
    return tail_fits(g, s, sep, fold) && match_segments(t, s, sep, fold, false);
}

bool glob_covers(struct span a, struct span b, uint8_t sep)
{
    struct glob g = glob_of(a, sep);
    return span_eq(a, b) || (glob_match(&g, b, sep, false) && (g.literal || match_segments(a, b, sep, false, true)));
}

size_t glob_capture(struct span pattern, struct span s, uint8_t sep, struct span out[GLOB_CAPTURES])
{
    size_t np = count_segments(pattern, sep), nt = count_segments(s, sep);
    size_t n = 0, t = 0;
    for (size_t p = 0; p <= pattern.n && t <= s.n && n < GLOB_CAPTURES;) {
        struct span ps = segment_at(pattern, p, sep), ts = segment_at(s, t, sep);
        if (is_deep(ps)) {
            /* It stands for as many segments as the others leave. */
            size_t start = t, take = nt + 1 - np;
            for (size_t i = 0; nt + 1 >= np && i < take && t <= s.n; i++)
                t += segment_at(s, t, sep).n + 1;
            out[n++] = t > start ? span_of(s.p + start, t - 1 - start) : SPAN_NONE;
        } else {
            if (span_index(ps, '*') < ps.n)
                out[n++] = ts;
            t += ts.n + 1;
        }
        p += ps.n + 1;
    }
    return n;
}
