#include "policy/spelling/spelling.h"

#include <inttypes.h>
#include <stdio.h>

#include "policy/spelling/letters.h"
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

struct span spelling_field(const struct request *r, struct span name, size_t *count)
{
    struct span value = SPAN_NONE;
    *count = 0;
    for (size_t i = 0; i < r->nfields; i++)
        if (spelling_of_name(r->fields[i].name, name)) {
            value = r->fields[i].value;
            *count += span_ieq(r->fields[i].name, name) ? 1 : 2;
        }
    return value;
}

/* ---- escapes ---- */

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
        int c = spelling_escape(s, i);
        dst[n++] = c >= 0 ? (uint8_t)c : plus && s.p[i] == '+' ? ' ' : s.p[i];
        i += c >= 0 ? 2 : 0;
    }
    *out = span_of(dst, n);
    return 0;
}

/* ---- blanks and letters ---- */

static bool is_blank(uint8_t c)
{
    return c <= ' ' || c == 0x7f;
}

/* Nothing in front or behind, and between words one space; nothing above ASCII. */
static bool is_tidy(struct span s)
{
    bool before = true;
    for (size_t i = 0; i < s.n; i++) {
        if ((is_blank(s.p[i]) && (before || s.p[i] != ' ')) || s.p[i] >= 0x80)
            return false;
        before = is_blank(s.p[i]);
    }
    return !before || s.n == 0;
}

int spelling_tidy(struct span s, struct arena *a, struct span *out)
{
    *out = s;
    if (is_tidy(s))
        return 0;
    uint8_t *dst = arena_alloc(a, s.n);
    size_t n = 0;
    if (dst == NULL)
        return -1;
    for (size_t i = 0; i < s.n;) {
        bool ascii = s.p[i] < 0x80;
        uint8_t c = s.p[i], letter = letter_next(s, &i);
        c = ascii ? c : letter;
        if (!is_blank(c))
            dst[n++] = c;
        else if (n && dst[n - 1] != ' ' && (ascii || c))
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

/* "0x1f", "0o17", "0b1" and "017", as JavaScript, Go and strtol read them. 0: it is none of them. */
static size_t other_base(struct span s, char text[NUMBER_MAX])
{
    unsigned letter = s.n > 1 && s.p[0] == '0' ? s.p[1] | 0x20u : 0, at = letter > '9' ? 2 : 1;
    unsigned base = letter == 'x'                                       ? 16
                    : letter == 'b'                                     ? 2
                    : letter == 'o' || (letter >= '0' && letter <= '7') ? 8
                                                                        : 0;
    uint64_t v = 0;
    if (base == 0 || s.n == at || s.n - at > 16)
        return 0;
    for (size_t i = at; i < s.n; i++) {
        int d = hex_digit(s.p[i]);
        if (d < 0 || (unsigned)d >= base)
            return 0;
        v = v * base + (unsigned)d;
    }
    int n = snprintf(text, NUMBER_MAX, "%" PRIu64, v);
    return n > 0 ? (size_t)n : 0;
}

/* ---- yes and no ---- */

enum truth spelling_truth(struct span s)
{
    static const struct span words[] = {SPAN("true"),  SPAN("1"), SPAN("yes"), SPAN("on"),  SPAN("y"), SPAN("t"),
                                        SPAN("false"), SPAN("0"), SPAN("no"),  SPAN("off"), SPAN("n"), SPAN("f")};
    s = span_trim(s);
    for (size_t i = 0; i < 12 && s.n && s.n <= 5; i++)
        if (span_ieq(s, words[i]))
            return i < 6 ? TRUTH_YES : TRUTH_NO;
    return TRUTH_NONE;
}

enum truth spelling_boolean(struct span want)
{
    return want.n < 4                      ? TRUTH_NONE
           : span_ieq(want, SPAN("true"))  ? TRUTH_YES
           : span_ieq(want, SPAN("false")) ? TRUTH_NO
                                           : TRUTH_NONE;
}

/* One letter is rather a code of somebody's than a word. */
static bool same_truth(struct span value, struct span want)
{
    bool word = want.n > 1 || (want.n && want.p[0] <= '9');
    enum truth asked = word ? spelling_truth(want) : TRUTH_NONE;
    return asked != TRUTH_NONE && asked == spelling_truth(value);
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

static void add_number(struct spellings *out, struct span value, const char *text, size_t n, struct arena *a)
{
    if (n == 0 || span_eq(span_of(text, n), value))
        return;
    struct span is = arena_copy(a, span_of(text, n));
    out->failed |= is.n == 0;
    add(out, value, is);
}

/* The numbers that programs find in a text: in all of it, in what it begins with, in another base, without '_'. */
static void add_numbers(struct spellings *out, struct span value, struct span is, struct arena *a)
{
    char text[NUMBER_MAX], digits[NUMBER_MAX];
    size_t n = 0, sign = is.n && (is.p[0] == '-' || is.p[0] == '+');
    struct span front = span_from(is, sign);
    if (front.n == 0 || front.p[0] < '.' || front.p[0] > '9')
        return;
    add_number(out, value, text, whole_number(is, text), a);
    add_number(out, value, text, other_base(is, text), a);
    (void)digits_of(&front);
    add_number(out, value, text, whole_number(span_first(is, is.n - front.n), text), a);
    for (size_t i = 0; front.n && i < is.n && n < sizeof(digits); i++)
        if (is.p[i] != '_')
            digits[n++] = (char)is.p[i];
    if (n < sizeof(digits))
        add_number(out, value, text, whole_number(span_of(digits, n), text), a);
}

static void add_tidy(struct spellings *out, struct span value, struct span one, struct arena *a)
{
    struct span is;
    add(out, value, one);
    out->failed |= spelling_tidy(one, a, &is) != 0;
    add(out, value, is);
    add_numbers(out, value, is, a);
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
    if (spelling_tidy(want, a, is) != 0)
        return -1;
    size_t n = whole_number(*is, text);
    *is = n ? span_of(text, n) : *is;
    return 0;
}

bool spelling_same(struct span value, struct span want, struct arena *a)
{
    char text[NUMBER_MAX];
    if (span_ieq(value, want) || same_truth(value, want))
        return true;
    struct span plain;
    return plain_literal(want, text, a, &plain) != 0 || (!span_eq(plain, want) && span_ieq(value, plain));
}

bool spelling_fits(const struct policy *p, struct img_range globs, struct span value, struct arena *a)
{
    bool boolean = globs.n > 0;
    for (uint32_t i = 0; i < globs.n; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, globs.first + i);
        struct glob glob = {img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
        if (glob_match(&glob, value, 0, true) || (g->literal && spelling_same(value, glob.text, a)))
            return true;
        boolean &= g->literal && spelling_boolean(glob.text) != TRUTH_NONE;
    }
    return boolean && spelling_truth(value) == TRUTH_NONE;
}
