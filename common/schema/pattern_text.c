/* Single characters of a pattern: escapes and classes. */
#include "common/schema/pattern_in.h"

#include "common/id.h"
#include "common/text/utf8.h"

bool pattern_refuse(struct pattern_text *t, const char *why)
{
    if (t->why == NULL)
        t->why = why;
    return false;
}

uint32_t pattern_peek(const struct pattern_text *t)
{
    struct span rest = span_from(t->in, t->at);
    size_t n = rest.n ? utf8_char(rest) : 0;
    return n ? utf8_code(rest, n) : PATTERN_ENDS;
}

uint32_t pattern_next(struct pattern_text *t)
{
    uint32_t c = pattern_peek(t);
    struct span rest = span_from(t->in, t->at);
    t->at += rest.n ? utf8_char(rest) : 0;
    return c;
}

bool pattern_take(struct pattern_text *t, uint8_t c)
{
    bool is = pattern_peek(t) == c;
    t->at += is;
    return is;
}

bool pattern_is_name(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

static bool add_range(struct pattern_text *t, uint32_t lo, uint32_t hi)
{
    if (t->nranges == PATTERN_RANGES_MAX)
        return pattern_refuse(t, "its classes have too many ranges");
    t->range[t->nranges++] = (struct range){lo, hi};
    return true;
}

/* Of \d, \s, \w: sorted. */
static const struct range digits[] = {{'0', '9'}, {0, 0}};
static const struct range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, {0, 0}};
static const struct range blanks[] = {{'\t', '\r'},
                                      {' ', ' '},
                                      {0xa0, 0xa0},
                                      {0x1680, 0x1680},
                                      {0x2000, 0x200a},
                                      {0x2028, 0x2029},
                                      {0x202f, 0x202f},
                                      {0x205f, 0x205f},
                                      {0x3000, 0x3000},
                                      {0xfeff, 0xfeff},
                                      {0, 0}};

/* The ranges of such a letter; of a capital one, those between them. *is: it is one. */
static bool shorthand(struct pattern_text *t, uint32_t c, bool *is)
{
    const struct range *r = c == 'd' || c == 'D' ? digits : c == 's' || c == 'S' ? blanks : words;
    bool others = c == 'D' || c == 'S' || c == 'W';
    uint32_t from = 0;
    *is = others || c == 'd' || c == 's' || c == 'w';
    for (; *is && r->hi > 0; r++) {
        if (!(others ? add_range(t, from, r->lo - 1) : add_range(t, r->lo, r->hi)))
            return false;
        from = r->hi + 1;
    }
    return !*is || !others || add_range(t, from, CODE_POINT_MAX);
}

/* n hexadecimal digits; -1: they are not there. */
static int hex(struct pattern_text *t, size_t n)
{
    struct span rest = span_from(t->in, t->at);
    int v = rest.n >= n ? hex_number(rest, n) : -1;
    if (v >= 0)
        t->at += n;
    return v;
}

/* Behind \u: {...}, four digits, or two times four that are one character. */
static int unicode(struct pattern_text *t)
{
    int c = -1, low;
    if (pattern_take(t, '{')) {
        size_t n = span_index(span_from(t->in, t->at), '}');
        if (n > 0 && n <= 6)
            c = hex(t, n);
        return c <= CODE_POINT_MAX && pattern_take(t, '}') ? c : -1;
    }
    c = hex(t, 4);
    if (c < 0xd800 || c > 0xdbff)
        return c;
    if (!pattern_take(t, '\\') || !pattern_take(t, 'u'))
        return -1;
    low = hex(t, 4);
    return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : -1;
}

/* Behind \, what is one character. */
static bool character(struct pattern_text *t, bool in_class, uint32_t *c)
{
    static const char plain[] = "^$\\.*+?()[]{}|/", letters[] = "tnvfr", mean[] = "\t\n\v\f\r";
    int v = -1;
    *c = pattern_next(t);
    if (*c >= PATTERN_ENDS || *c == 0)
        return pattern_refuse(t, "a \\ has nothing behind it");
    const char *at = *c < 0x80 ? strchr(letters, (int)*c) : NULL;
    if (at)
        v = mean[at - letters];
    else if ((*c < 0x80 && strchr(plain, (int)*c)) || (in_class && *c == '-'))
        v = (int)*c;
    else if (in_class && *c == 'b')
        v = '\b';
    else if (*c == '0' && !(pattern_peek(t) >= '0' && pattern_peek(t) <= '9'))
        v = 0;
    else if (*c == 'x')
        v = hex(t, 2);
    else if (*c == 'u')
        v = unicode(t);
    else if (*c >= '1' && *c <= '9')
        return pattern_refuse(t, "it refers to a group, which takes more than linear time");
    else if (*c == 'k')
        return pattern_refuse(t, "it refers to a group, which takes more than linear time");
    else if (*c == 'p' || *c == 'P')
        return pattern_refuse(t, "\\p{...} is not known here; a class of ranges says the same");
    if (v < 0 || (v >= 0xd800 && v <= 0xdfff))
        return pattern_refuse(t, "what stands behind a \\ is no escape");
    *c = (uint32_t)v;
    return true;
}

bool pattern_escape(struct pattern_text *t, struct instruction *i)
{
    bool is = false;
    uint32_t c = pattern_peek(t);
    if (c == 'b' || c == 'B') {
        *i = (struct instruction){.op = OP_WORD, .negated = c == 'B'};
        (void)pattern_next(t);
        return true;
    }
    *i = (struct instruction){.op = OP_CLASS, .x = (int32_t)t->nranges};
    if (!shorthand(t, c, &is))
        return false;
    if (is) {
        (void)pattern_next(t);
        i->y = (int32_t)t->nranges - i->x;
        return true;
    }
    if (!character(t, false, &c))
        return false;
    *i = (struct instruction){.op = OP_CHAR, .x = (int32_t)c};
    return true;
}

/* One member of a class: a character, or (*many) a shorthand whose ranges are there then. */
static bool member(struct pattern_text *t, uint32_t *c, bool *many)
{
    *many = false;
    *c = pattern_next(t);
    if (*c == PATTERN_ENDS)
        return pattern_refuse(t, "a class is not closed");
    if (*c != '\\')
        return true;
    if (!shorthand(t, pattern_peek(t), many))
        return false;
    if (*many)
        (void)pattern_next(t);
    return *many || character(t, true, c);
}

bool pattern_class(struct pattern_text *t, struct instruction *i)
{
    *i = (struct instruction){.op = OP_CLASS, .x = (int32_t)t->nranges, .negated = pattern_take(t, '^')};
    while (!pattern_take(t, ']')) {
        uint32_t lo, hi;
        bool many;
        if (!member(t, &lo, &many))
            return false;
        hi = lo;
        if (pattern_peek(t) == '-' && t->at + 1 < t->in.n && t->in.p[t->at + 1] != ']') {
            bool many_too;
            (void)pattern_next(t);
            if (!member(t, &hi, &many_too))
                return false;
            if (many || many_too)
                return pattern_refuse(t, "a range of a class goes from a character to a character");
            if (hi < lo)
                return pattern_refuse(t, "a range of a class goes backwards");
        }
        if (!many && !add_range(t, lo, hi))
            return false;
    }
    i->y = (int32_t)t->nranges - i->x;
    return true;
}
