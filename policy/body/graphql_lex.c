/* The tokens of GraphQL, and what its strings say. */
#include "common/id.h"
#include "common/text/utf8.h"
#include "policy/body/graphql.h"

/* ODD: a comment, or one half of a byte order mark. PLAIN: in a string it is what it is. The zero behind the end is
 * nothing, so that no loop asks where the end is. */
enum { BLANK = 1, WORD = 2, DIGIT = 4, MARK = 8, ODD = 16, PLAIN = 32 };
static const uint8_t classes[256] = {
    ['\t'] = BLANK | PLAIN,
    ['\n'] = BLANK,
    ['\r'] = BLANK,
    [' '] = BLANK | PLAIN,
    ['!'] = MARK | PLAIN,
    ['#'] = ODD | PLAIN,
    ['$'] = MARK | PLAIN,
    ['%'] = PLAIN,
    ['&'] = MARK | PLAIN,
    ['\''] = PLAIN,
    ['(' ... ')'] = MARK | PLAIN,
    ['*' ... '+'] = PLAIN,
    [','] = BLANK | PLAIN,
    ['-' ... '/'] = PLAIN,
    ['0' ... '9'] = DIGIT | PLAIN,
    [':'] = MARK | PLAIN,
    [';' ... '<'] = PLAIN,
    ['='] = MARK | PLAIN,
    ['>' ... '?'] = PLAIN,
    ['@'] = MARK | PLAIN,
    ['A' ... 'Z'] = WORD | PLAIN,
    ['['] = MARK | PLAIN,
    [']'] = MARK | PLAIN,
    ['^'] = PLAIN,
    ['_'] = WORD | PLAIN,
    ['`'] = PLAIN,
    ['a' ... 'z'] = WORD | PLAIN,
    ['{' ... '}'] = MARK | PLAIN,
    ['~' ... 0xee] = PLAIN,
    [0xef] = ODD | PLAIN,
    [0xf0 ... 0xff] = PLAIN,
};

void graphql_lex(struct graphql_lexer *x, struct span text)
{
    *x = (struct graphql_lexer){.at = text.p, .end = text.p + text.n};
}

static bool starts(const struct graphql_lexer *x, struct span s)
{
    return span_starts(span_of(x->at, (size_t)(x->end - x->at)), s);
}

/* A comment ends with its line. To some a carriage return alone ends that too, to others (graphql-ruby) it does not,
 * and the first drafts had U+2028 and U+2029 end it: what stands behind one of these is code to some. */
static bool skip_comment(struct graphql_lexer *x)
{
    for (; *x->at >= ' ' || *x->at == '\t'; x->at++)
        if (*x->at == 0xe2 && (starts(x, SPAN("\xe2\x80\xa8")) || starts(x, SPAN("\xe2\x80\xa9"))))
            return false;
    return *x->at == '\n' || x->at == x->end || starts(x, SPAN("\r\n"));
}

static bool skip_odd(struct graphql_lexer *x)
{
    if (*x->at == '#')
        return skip_comment(x);
    bool mark = starts(x, SPAN("\xef\xbb\xbf"));
    x->at += mark ? 3 : 0;
    return mark;
}

static size_t digits(struct graphql_lexer *x)
{
    const uint8_t *from = x->at;
    while (classes[*x->at] & DIGIT)
        x->at++;
    return (size_t)(x->at - from);
}

/* Behind it stands nothing that might be part of it. */
static uint8_t lex_number(struct graphql_lexer *x)
{
    bool is_float = false;
    x->at += *x->at == '-';
    bool zero = *x->at == '0';
    size_t n = digits(x);
    bool good = n == 1 || (n > 1 && !zero);
    if (*x->at == '.') {
        x->at++;
        is_float = true;
        good &= digits(x) > 0;
    }
    if (*x->at == 'e' || *x->at == 'E') {
        x->at++;
        x->at += *x->at == '+' || *x->at == '-';
        is_float = true;
        good &= digits(x) > 0;
    }
    if (*x->at == '.' || (classes[*x->at] & WORD))
        good = false;
    return !good ? GRAPHQL_BAD : is_float ? GRAPHQL_FLOAT : GRAPHQL_INT;
}

/* Behind three quotes, up to the next three. A carriage return is part of a line to some, and ends one to others. */
static uint8_t lex_block(struct graphql_lexer *x)
{
    const uint8_t *from = x->at;
    for (;; x->at++) {
        while (classes[*x->at] & PLAIN)
            x->at++;
        if (*x->at == '"' && starts(x, SPAN("\"\"\""))) {
            x->text = span_of(from, (size_t)(x->at - from));
            x->at += 3;
            return GRAPHQL_BLOCK;
        }
        if (*x->at == '\\' && starts(x, SPAN("\\\"\"\"")))
            x->at += 3;
        else if (*x->at < ' ' && *x->at != '\n')
            return GRAPHQL_BAD;
    }
}

/* Behind a backslash: how many bytes the escape has, 0: there is none. *code: the character. */
static size_t escape(const uint8_t *at, const uint8_t *end, uint32_t *code)
{
    static const char plain[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
    size_t n = (size_t)(end - at), used = 1;
    const char *one = n > 0 && *at != 0 ? strchr(plain, *at) : NULL;
    if (one != NULL) {
        *code = (uint8_t)is[one - plain];
        return 1;
    }
    if (n < 2 || *at != 'u')
        return 0;
    bool braces = at[1] == '{';
    *code = 0;
    for (used += braces; used < n && *code <= 0x10ffff && (braces ? at[used] != '}' : used < 5); used++) {
        int digit = hex_digit(at[used]);
        if (digit < 0)
            return 0;
        *code = *code * 16 + (uint32_t)digit;
    }
    if (*code > 0x10ffff || (braces ? used == n || used == 2 : used < 5))
        return 0;
    return used + braces;
}

static uint8_t lex_string(struct graphql_lexer *x)
{
    const uint8_t *from = ++x->at;
    uint32_t code;
    size_t used;
    if (starts(x, SPAN("\"\""))) {
        x->at += 2;
        return lex_block(x);
    }
    for (;; x->at += used) {
        while (classes[*x->at] & PLAIN)
            x->at++;
        used = *x->at == '\\' ? escape(x->at + 1, x->end, &code) + 1 : 0;
        if (used < 2)
            break;
    }
    if (*x->at != '"')
        return GRAPHQL_BAD;
    x->text = span_of(from, (size_t)(x->at++ - from));
    return GRAPHQL_STRING;
}

/* What is neither a name nor a mark, and so is met less often: apart, or graphql_next would pay for it with each
 * token.
 */
__attribute__((noinline)) static void lex_other(struct graphql_lexer *x)
{
    bool skipped = false;
    for (; classes[*x->at] & (ODD | (skipped ? BLANK : 0)); skipped = true)
        if (!(classes[*x->at] & ODD))
            x->at++;
        else if (!skip_odd(x))
            return;
    const uint8_t *from = x->at;
    if (skipped) {
        graphql_next(x);
        return;
    }
    if (*from == '"') {
        x->kind = lex_string(x); /* it says what its text is */
        return;
    }
    if (from == x->end) {
        x->kind = GRAPHQL_END;
    } else if ((classes[*from] & DIGIT) || *from == '-') {
        x->kind = lex_number(x);
    } else if (from[0] == '.' && from[1] == '.' && from[2] == '.') {
        x->at += 3;
        x->kind = GRAPHQL_SPREAD;
    }
    x->text = span_of(from, (size_t)(x->at - from));
}

void graphql_next(struct graphql_lexer *x)
{
    const uint8_t *at = x->at;
    uint8_t class;
    while ((class = classes[*at]) & BLANK)
        at++;
    if (class & WORD) {
        const uint8_t *from = at;
        do
            at++;
        while (classes[*at] & (WORD | DIGIT));
        x->kind = GRAPHQL_NAME;
        x->text = span_of(from, (size_t)(at - from));
        x->at = at;
    } else if (class & MARK) {
        x->kind = *at;
        x->at = at + 1;
    } else {
        x->kind = GRAPHQL_BAD;
        x->at = at;
        lex_other(x);
    }
}

/* ---- what a string says ---- */

/* Two escapes may be one character. 0: half a pair. */
static size_t put_escape(const uint8_t **at, const uint8_t *end, uint8_t to[4])
{
    uint32_t code = 0, low = 0;
    *at += escape(*at, end, &code);
    if (code >= 0xd800 && code < 0xdc00 && end - *at > 1 && **at == '\\') {
        size_t used = escape(*at + 1, end, &low);
        if (used == 0 || low < 0xdc00 || low > 0xdfff)
            return 0;
        *at += 1 + used;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return code >= 0xd800 && code <= 0xdfff ? 0 : utf8_put(code, to);
}

static int unescape(struct span s, struct arena *a, struct span *out)
{
    const uint8_t *at = s.p, *end = s.p + s.n;
    uint8_t *to = arena_alloc(a, s.n + 4); /* no escape is shorter than what it says */
    size_t n = 0;
    while (to != NULL && at < end) {
        size_t used = 1;
        if (*at != '\\')
            to[n] = *at++;
        else {
            at++;
            used = put_escape(&at, end, to + n);
        }
        if (used == 0)
            return -1;
        n += used;
    }
    *out = span_of(to, n);
    return to ? 0 : -1;
}

static size_t indent_of(struct span line)
{
    size_t n = 0;
    while (n < line.n && (line.p[n] == ' ' || line.p[n] == '\t'))
        n++;
    return n;
}

static size_t put_line(uint8_t *to, struct span line)
{
    size_t n = 0;
    for (size_t i = 0; i < line.n; i++) {
        i += line.p[i] == '\\' && span_starts(span_from(line, i), SPAN("\\\"\"\""));
        to[n++] = line.p[i];
    }
    return n;
}

/* BlockStringValue: without the indent that all lines but the first have, and blank lines at both ends. */
static int unindent(struct span s, struct arena *a, struct span *out)
{
    size_t common = SIZE_MAX, first = SIZE_MAX, last = 0, n = 0, i = 0;
    struct span rest = s, line;
    uint8_t *to = arena_alloc(a, s.n + 1);
    for (bool more = true; more; i++) {
        more = span_cut(rest, '\n', &line, &rest);
        size_t indent = indent_of(line);
        if (indent == line.n)
            continue;
        first = first == SIZE_MAX ? i : first;
        last = i;
        common = i > 0 && indent < common ? indent : common;
    }
    rest = s;
    for (i = 0; to != NULL && first != SIZE_MAX && i <= last; i++) {
        (void)span_cut(rest, '\n', &line, &rest);
        if (i < first)
            continue;
        if (i > first)
            to[n++] = '\n';
        size_t cut = i == 0 || common == SIZE_MAX ? 0 : common;
        n += put_line(to + n, span_from(line, cut < line.n ? cut : line.n));
    }
    *out = span_of(to, n);
    return to ? 0 : -1;
}

int graphql_string(const struct graphql_lexer *x, struct arena *a, struct span *out)
{
    if (x->kind == GRAPHQL_BLOCK)
        return unindent(x->text, a, out);
    *out = x->text;
    return span_index(x->text, '\\') == x->text.n ? 0 : unescape(x->text, a, out);
}
