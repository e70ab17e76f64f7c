#include "common/text/visible.h"

#include <stdio.h>

#include "common/text/utf8.h"

struct range {
    uint32_t from, to;
};

/* Everything that is not a glyph of its own, sorted. Unassigned planes are in the last rows. */
static const struct range hidden[] = {
    {0x7f, 0xa0},   /* DEL, C1, no-break space */
    {0xad, 0xad},   /* soft hyphen */
    {0x300, 0x36f}, /* combining marks */
    {0x483, 0x489}, /* combining Cyrillic */
    {0x591, 0x5bd}, /* Hebrew points */
    {0x600, 0x605}, /* Arabic number signs */
    {0x610, 0x61c}, /* Arabic marks, ALM */
    {0x64b, 0x65f},      {0x6d6, 0x6dd},     {0x70f, 0x70f},
    {0x890, 0x891},      {0x8e2, 0x8e2},     {0x115f, 0x1160}, /* Hangul fillers */
    {0x1680, 0x1680},    {0x17b4, 0x17b5},   {0x180b, 0x180f},
    {0x1ab0, 0x1aff},    {0x1dc0, 0x1dff},   {0x2000, 0x200f}, /* spaces, zero width, LRM, RLM */
    {0x2028, 0x202f},                      /* line and paragraph separators, embeddings, overrides */
    {0x205f, 0x206f},                      /* word joiner, isolates, invisible operators */
    {0x20d0, 0x20ff},    {0x2800, 0x2800}, /* blank Braille */
    {0x3000, 0x3000},    {0x302a, 0x302f},   {0x3099, 0x309a},
    {0x3164, 0x3164},    {0xd800, 0xf8ff}, /* surrogates, private use */
    {0xfe00, 0xfe0f},                      /* variation selectors */
    {0xfe20, 0xfe2f},    {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xffff},    {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x1345f},  {0x1bca0, 0x1bca3}, {0x1d165, 0x1d182}, /* combining and invisible musical marks */
    {0x323b0, 0x10ffff}, /* no letters there: tags, variation selectors, private planes */
};

static bool is_hidden(uint32_t c)
{
    size_t lo = 0, hi = sizeof hidden / sizeof hidden[0];
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (c > hidden[mid].to)
            lo = mid + 1;
        else if (c < hidden[mid].from)
            hi = mid;
        else
            return true;
    }
    /* The last two code points of every plane are no characters. */
    return (c & 0xfffe) == 0xfffe;
}

enum visible_kind visible_char(struct span s, size_t *n, char escape[VISIBLE_ESCAPE_MAX])
{
    escape[0] = '\0';
    *n = utf8_char(s);
    if (*n == 0) {
        *n = 1;
        (void)snprintf(escape, VISIBLE_ESCAPE_MAX, "\\x{%02x}", s.p[0]);
        return VISIBLE_ESCAPED;
    }
    uint32_t c = utf8_code(s, *n);
    if (c >= 0x20 && c < 0x7f)
        return VISIBLE_ASCII;
    if (c == '\n' || c == '\t' || c == '\r') {
        (void)snprintf(escape, VISIBLE_ESCAPE_MAX, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        return c == '\n' ? VISIBLE_NEWLINE : VISIBLE_ESCAPED;
    }
    if (c >= 0x80 && !is_hidden(c))
        return VISIBLE_OTHER;
    (void)snprintf(escape, VISIBLE_ESCAPE_MAX, "\\u{%x}", c);
    return VISIBLE_ESCAPED;
}

void visible_text(struct dynbuf *out, struct span s, bool lines)
{
    while (s.n > 0) {
        char escape[VISIBLE_ESCAPE_MAX];
        size_t n;
        enum visible_kind k = visible_char(s, &n, escape);
        bool as_is = k == VISIBLE_ASCII || k == VISIBLE_OTHER || (k == VISIBLE_NEWLINE && lines);
        (void)dynbuf_add(out, as_is ? span_of(s.p, n) : span_str(escape));
        s = span_from(s, n);
    }
}

struct visible_count visible_count(struct span s)
{
    struct visible_count c = {0, 0, s.n > 0};
    while (s.n > 0) {
        char escape[VISIBLE_ESCAPE_MAX];
        size_t n;
        enum visible_kind k = visible_char(s, &n, escape);
        c.escaped += k == VISIBLE_ESCAPED;
        c.other += k == VISIBLE_OTHER;
        c.lines += k == VISIBLE_NEWLINE && s.n > n;
        s = span_from(s, n);
    }
    return c;
}

bool visible_is_text(struct span s)
{
    size_t controls = 0, run = utf8_run(s);

    if (s.n - run > 3)
        return false;
    for (size_t i = 0; i < run; i++)
        controls += s.p[i] < 0x20 && s.p[i] != '\n' && s.p[i] != '\r' && s.p[i] != '\t';
    return controls <= s.n / 50;
}
