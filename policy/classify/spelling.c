#include "policy/classify/spelling.h"

#include "policy/image/glob.h"

enum { DIGITS_MAX = 40, NUMBER_MAX = 2 * DIGITS_MAX, DECODED_AGAIN = 2 };

/* ---- names ---- */

static uint8_t name_byte(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c | 0x20;
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
}

bool spelling_of_name(struct span name, struct span want)
{
    if (name.n != want.n)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (name_byte(name.p[i]) != name_byte(want.p[i]))
            return false;
    return true;
}

uint8_t spelling_letter(struct span s, size_t *at)
{
    static const struct {
        struct span is;
        uint8_t letter;
    } others[] = {
        {SPAN("\xc5\xbf"), 's'}, {SPAN("\xe2\x84\xaa"), 'k'}, {SPAN("\xc4\xb1"), 'i'}, {SPAN("\xc4\xb0"), 'i'}};
    uint8_t c = s.p[*at];
    if (c == 0xc4 || c == 0xc5 || c == 0xe2)
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
            if (span_starts(span_from(s, *at), others[i].is)) {
                *at += others[i].is.n;
                return others[i].letter;
            }
    ++*at;
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* ---- escapes ---- */

static int nibble(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

int spelling_decode(struct span s, bool plus, struct arena *a, struct span *out)
{
    *out = s;
    if (span_index(s, '%') == s.n && (!plus || span_index(s, '+') == s.n))
        return 0;
    uint8_t *dst = arena_alloc(a, s.n);
    size_t n = 0;
    if (dst == NULL)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        int hi = s.p[i] == '%' && s.n - i > 2 ? nibble(s.p[i + 1]) : -1;
        int lo = hi >= 0 ? nibble(s.p[i + 2]) : -1;
        dst[n++] = lo >= 0 ? (uint8_t)(hi * 16 + lo) : plus && s.p[i] == '+' ? ' ' : s.p[i];
        i += lo >= 0 ? 2 : 0;
    }
    *out = span_of(dst, n);
    return 0;
}

/* ---- blanks and letters ---- */

static bool is_blank(uint8_t c)
{
    return c <= ' ' || c == 0x7f;
}

/* Nothing in front or behind, and between words one space; nothing above ASCII that may be a letter of it. */
static bool is_tidy(struct span s)
{
    bool before = true;
    for (size_t i = 0; i < s.n; i++) {
        if ((is_blank(s.p[i]) && (before || s.p[i] != ' ')) || s.p[i] == 0xc4 || s.p[i] == 0xc5 || s.p[i] == 0xe2)
            return false;
        before = is_blank(s.p[i]);
    }
    return !before || s.n == 0;
}

static int tidy(struct span s, struct arena *a, struct span *out)
{
    *out = s;
    if (is_tidy(s))
        return 0;
    uint8_t *dst = arena_alloc(a, s.n);
    size_t n = 0;
    if (dst == NULL)
        return -1;
    for (size_t i = 0; i < s.n;) {
        uint8_t c = s.p[i], letter = spelling_letter(s, &i);
        if (!is_blank(c))
            dst[n++] = c < 0x80 ? c : letter;
        else if (n && dst[n - 1] != ' ')
            dst[n++] = ' ';
    }
    n -= n && dst[n - 1] == ' ';
    *out = span_of(dst, n);
    return 0;
}

/* ---- whole numbers ---- */

static struct span digits_of(struct span *s)
{
    size_t n = 0;
    while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
        n++;
    struct span out = span_first(*s, n);
    *s = span_from(*s, n);
    return out;
}

static struct span without_zeros(struct span s, bool front)
{
    while (s.n && s.p[front ? 0 : s.n - 1] == '0')
        s = front ? span_from(s, 1) : span_first(s, s.n - 1);
    return s;
}

/* An exponent of at most two digits, or none. False: there is something else. */
static bool exponent_of(struct span s, int *out)
{
    *out = 0;
    if (s.n == 0)
        return true;
    bool minus = s.n > 1 && s.p[1] == '-';
    if ((s.p[0] | 0x20) != 'e')
        return false;
    s = span_from(s, s.n > 1 && (s.p[1] == '-' || s.p[1] == '+') ? 2 : 1);
    struct span digits = digits_of(&s);
    bool some = digits.n > 0 && s.n == 0;
    digits = without_zeros(digits, true);
    for (size_t i = 0; i < digits.n && i < 2; i++)
        *out = *out * 10 + (digits.p[i] - '0');
    *out = minus ? -*out : *out;
    return some && digits.n <= 2;
}

/* The one spelling of a whole number in `text`, whatever its sign, zeros, point and exponent: 5 of "+05.00" and
 * "50e-1". 0: it is none, or has more than DIGITS_MAX digits. */
static size_t whole_number(struct span s, char text[NUMBER_MAX])
{
    int exponent;
    size_t n = 0;
    bool minus = s.n && s.p[0] == '-', sign = minus || (s.n && s.p[0] == '+');
    s = span_from(s, sign);
    struct span whole = digits_of(&s), fraction = SPAN_NONE;
    if (s.n && s.p[0] == '.') {
        s = span_from(s, 1);
        fraction = digits_of(&s);
    }
    if (whole.n + fraction.n == 0 || !exponent_of(s, &exponent))
        return 0;
    whole = without_zeros(whole, true);
    fraction = without_zeros(fraction, false);
    if (whole.n + fraction.n > DIGITS_MAX || exponent > DIGITS_MAX)
        return 0;
    if (minus)
        text[n++] = '-';
    size_t first = n;
    for (size_t i = 0; i < whole.n + fraction.n; i++) {
        char c = (char)(i < whole.n ? whole.p[i] : fraction.p[i - whole.n]);
        if (n > first || c != '0')
            text[n++] = c;
    }
    for (exponent -= (int)fraction.n; exponent > 0 && n > first && n < NUMBER_MAX; exponent--)
        text[n++] = '0';
    for (; exponent < 0 && n > first && text[n - 1] == '0'; exponent++)
        n--;
    if (n == first) {
        text[0] = '0';
        return 1;
    }
    return exponent == 0 ? n : 0;
}

/* ---- all of a value ---- */

static void add(struct spellings *out, struct span value, struct span one)
{
    bool known = span_eq(one, value);
    for (size_t i = 0; i < out->n && !known; i++)
        known = span_eq(out->v[i], one);
    out->failed |= !known && out->n == SPELLINGS_MAX;
    if (!known && out->n < SPELLINGS_MAX)
        out->v[out->n++] = one;
}

static void add_tidy(struct spellings *out, struct span value, struct span one, struct arena *a)
{
    char text[NUMBER_MAX];
    struct span is;
    add(out, value, one);
    out->failed |= tidy(one, a, &is) != 0;
    add(out, value, is);
    size_t n = whole_number(is, text);
    if (n && !span_eq(span_of(text, n), is)) {
        is = arena_copy(a, span_of(text, n));
        out->failed |= is.n == 0;
        add(out, value, is);
    }
}

void spellings_of(struct span value, struct span raw, struct arena *a, struct spellings *out)
{
    struct span again = value, plain;
    *out = (struct spellings){.n = 0};
    add_tidy(out, value, value, a);
    if (raw.n && span_index(raw, '+') < raw.n) {
        out->failed |= spelling_decode(raw, false, a, &plain) != 0;
        add(out, value, plain);
    }
    for (unsigned i = 0; i < DECODED_AGAIN; i++) {
        struct span was = i ? again : value;
        out->failed |= spelling_decode(was, true, a, &again) != 0;
        if (span_eq(again, was))
            break;
        add_tidy(out, value, again, a);
    }
}

/* A literal in the spelling that values are brought to. -1: no memory. */
static int plain_literal(struct span want, char text[NUMBER_MAX], struct arena *a, struct span *is)
{
    if (tidy(want, a, is) != 0)
        return -1;
    size_t n = whole_number(*is, text);
    *is = n ? span_of(text, n) : *is;
    return 0;
}

bool spelling_same(struct span value, struct span want, struct arena *a)
{
    char text[NUMBER_MAX];
    if (span_ieq(value, want))
        return true;
    struct span plain;
    return plain_literal(want, text, a, &plain) != 0 || (!span_eq(plain, want) && span_ieq(value, plain));
}

bool spelling_fits(const struct policy *p, struct img_range globs, struct span value, struct arena *a)
{
    for (uint32_t i = 0; i < globs.n; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, globs.first + i);
        struct glob glob = {img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
        if (glob_match(&glob, value, 0, true) || (g->literal && spelling_same(value, glob.text, a)))
            return true;
    }
    return false;
}
