/* A path that two servers could read differently is judged in every reading
 * (attacks B4 to B9, B60, B61); one that hides something is not judged at all. */
#include "policy/classify/classify.h"

#include "policy/spelling/letters.h"
#include "policy/spelling/spelling.h"

enum { EMPTY_SEGMENT = 1, PARAMS = 2, ESCAPES = 4, SLASHES = 8, LOOSE = 16 };

static bool is_unreserved(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

/* A run of escaped bytes from 0x80 up must be one well-formed UTF-8 character (RFC 3629). Bytes used, or 0. */
static size_t escaped_utf8(struct span s, size_t i)
{
    int c = spelling_escape(s, i);
    size_t more = c >= 0xc2 && c <= 0xdf ? 1 : c >= 0xe0 && c <= 0xef ? 2 : c >= 0xf0 && c <= 0xf4 ? 3 : 0;
    if (more == 0)
        return 0;
    for (size_t k = 1; k <= more; k++) {
        int d = i + 3 * k < s.n ? spelling_escape(s, i + 3 * k) : -1;
        int lo = k > 1 ? 0x80 : c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        int hi = k > 1 ? 0xbf : c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (d < lo || d > hi)
            return 0;
    }
    return 3 * (more + 1);
}

/* An escape that is canonical and hides nothing. Bytes used, or 0. */
static size_t escape_ok(struct span s, size_t i)
{
    int c = spelling_escape(s, i);
    if (c < 0x20 || c == 0x7f || c == '\\' || is_unreserved(c))
        return 0; /* a control byte, a broken escape, or one that http_canonical_path would have decoded */
    if (c == '%')
        return i + 4 < s.n && hex_digit(s.p[i + 3]) >= 0 && hex_digit(s.p[i + 4]) >= 0 ? 0 : 3; /* double encoding */
    return c >= 0x80 ? escaped_utf8(s, i) : 3;
}

static bool is_dots(struct span segment)
{
    struct span s = span_first(segment, span_index(segment, ';'));
    return span_eq(s, SPAN(".")) || span_eq(s, SPAN(".."));
}

static bool is_end(struct span path, size_t at)
{
    return at >= path.n || path.p[at] == '/' || path.p[at] == ';';
}

/* What is odd about the path, as a mask, or -1. */
static int inspect(struct span path)
{
    int odd = 0;
    if (path.n == 0 || path.p[0] != '/' || (path.n > 1 && path.p[1] == '/'))
        return -1;
    for (size_t i = 0; i < path.n;) {
        uint8_t c = path.p[i];
        if (c == '%') {
            size_t used = escape_ok(path, i);
            if (used == 0)
                return -1;
            odd |= ESCAPES;
            if (spelling_escape(path, i) == ';')
                odd |= PARAMS; /* who decodes before he cuts parameters off reads it so */
            if (spelling_escape(path, i) == '/')
                odd |= SLASHES;
            i += used;
            continue;
        }
        if (c <= 0x20 || c >= 0x7f || c == '\\' || c == '#' || c == '?')
            return -1;
        if (c == ';')
            odd |= PARAMS;
        if (c == '+' || (c == '.' && is_end(path, i + 1)))
            odd |= LOOSE;
        if (c == '/' && i + 1 < path.n) {
            uint8_t next = path.p[i + 1];
            if (next == '/')
                odd |= EMPTY_SEGMENT;
            else if (next == '.') {
                struct span rest = span_from(path, i + 1);
                if (is_dots(span_first(rest, span_index(rest, '/'))))
                    return -1;
            }
        }
        i++;
    }
    return odd;
}

static int reread(struct span path, int odd, struct arena *a, struct span *out)
{
    uint8_t *dst = arena_alloc(a, path.n);
    size_t n = 0;
    bool in_params = false;
    if (dst == NULL)
        return -1;
    for (size_t i = 0; i < path.n; i++) {
        uint8_t c = path.p[i];
        if (c == '/')
            in_params = false;
        else if ((odd & PARAMS) && (c == ';' || spelling_escape(path, i) == ';'))
            in_params = true;
        if (in_params || ((odd & EMPTY_SEGMENT) && c == '/' && n > 0 && dst[n - 1] == '/'))
            continue;
        dst[n++] = c;
    }
    *out = span_of(dst, n);
    /* "/a/;x/b" has an empty segment only once its params are gone. */
    return inspect(*out) < 0 ? -1 : 0;
}

/* What a kept %2F would hide from the check for dot segments, were it decoded somewhere behind us. */
static int inspect_slashes(struct span path, struct arena *a)
{
    uint8_t *dst = arena_alloc(a, path.n);
    size_t n = 0;
    if (dst == NULL)
        return -1;
    for (size_t i = 0; i < path.n; n++) {
        bool slash = spelling_escape(path, i) == '/';
        dst[n] = slash ? '/' : path.p[i];
        i += slash ? 3 : 1;
    }
    int odd = inspect(span_of(dst, n));
    return odd < 0 || (odd & EMPTY_SEGMENT) ? -1 : 0;
}

bool path_keeps_slash(struct span path)
{
    for (size_t i = span_index(path, '%'); i < path.n; i++)
        if (spelling_escape(path, i) == '/')
            return true;
    return false;
}

int path_decoded(struct span path, bool slashes, struct arena *a, struct span *out)
{
    uint8_t *dst = arena_alloc(a, path.n ? path.n : 1);
    size_t n = 0;
    if (dst == NULL)
        return -1;
    for (size_t i = 0; i < path.n; n++) {
        int c = spelling_escape(path, i);
        bool escape = c >= 0 && (c != '/' || slashes);
        dst[n] = escape ? (uint8_t)c : path.p[i];
        i += escape ? 3 : 1;
    }
    *out = span_of(dst, n);
    return 0;
}

/* Of a segment that ends at n, without the blanks and dots at its end; one with a '*' is of a pattern and keeps them.
 * SIZE_MAX: it is nothing but one dot or two. */
static size_t segment_end(const uint8_t *dst, size_t n)
{
    size_t from = n, end = n;
    while (from > 0 && dst[from - 1] != '/')
        from--;
    while (end > from && dst[end - 1] == ' ')
        end--;
    if (memchr(dst + from, '*', n - from) != NULL)
        return n;
    if (is_dots(span_of(dst + from, end - from)))
        return SIZE_MAX;
    while (end > from && (dst[end - 1] == ' ' || dst[end - 1] == '.'))
        end--;
    return end;
}

int path_folded(struct span path, struct arena *a, struct span *out)
{
    uint8_t *dst = arena_alloc(a, path.n ? path.n : 1);
    size_t n = 0;
    if (dst == NULL)
        return -1;
    for (size_t i = 0; i < path.n;) {
        bool ascii = path.p[i] < 0x80;
        uint8_t c = path.p[i], letter = letter_next(path, &i);
        c = ascii ? c : letter;
        if (c == '/' || c == '\\') {
            if ((n = segment_end(dst, n)) == SIZE_MAX)
                return -1;
            if (n == 0 || dst[n - 1] != '/')
                dst[n++] = '/';
        } else if (c == ' ' || c == '+') {
            if (n && dst[n - 1] != '/' && dst[n - 1] != ' ')
                dst[n++] = ' ';
        } else if (c) {
            dst[n++] = c;
        }
    }
    n = segment_end(dst, n);
    *out = span_of(dst, n);
    return n == SIZE_MAX ? -1 : 0;
}

static bool has_dots(struct span path)
{
    struct span segment, rest = path;
    for (bool more = true; more;) {
        more = span_cut(rest, '/', &segment, &rest);
        if (is_dots(segment))
            return true;
    }
    return false;
}

/* Up to what is a query or a fragment to a server that decodes first and parses then. */
static struct span before_query(struct span decoded)
{
    return span_first(span_first(decoded, span_index(decoded, '?')), span_index(decoded, '#'));
}

/* Many servers take "/delete/" for "/delete" (B6). */
static void add(struct reading out[READINGS_MAX], size_t *n, struct span path, enum how_read how)
{
    out[(*n)++] = (struct reading){path, how};
    if (path.n > 1 && path.p[path.n - 1] == '/')
        out[(*n)++] = (struct reading){span_first(path, path.n - 1), READ_BARE};
}

static int add_folded(struct span path, struct arena *a, struct reading out[READINGS_MAX], size_t *n)
{
    struct span folded;
    if (path_folded(path, a, &folded) != 0)
        return -1;
    if (!span_eq(folded, path))
        add(out, n, folded, READ_FOLDED);
    return 0;
}

/* The decoded readings of `of`: with a %2F left as it is, with a slash for it, and of both what is before a '?'. */
static int add_decoded(struct span of, int odd, struct arena *a, struct reading out[READINGS_MAX], size_t *n)
{
    struct span kept, slashed;
    if (path_decoded(of, false, a, &kept) != 0 || path_decoded(of, true, a, &slashed) != 0)
        return -1;
    if (has_dots(slashed) || has_dots(before_query(slashed)))
        return -1;
    bool cut = before_query(kept).n < kept.n;
    add(out, n, kept, READ_DECODED);
    if (odd & SLASHES)
        add(out, n, slashed, READ_SLASHES);
    if (cut)
        add(out, n, before_query(kept), READ_DECODED);
    if (cut && (odd & SLASHES))
        add(out, n, before_query(slashed), READ_SLASHES);
    return add_folded(before_query(slashed), a, out, n);
}

/* Of what was added as it is. */
static int add_others(struct span of, int odd, struct arena *a, struct reading out[READINGS_MAX], size_t *n)
{
    return (odd & ESCAPES) ? add_decoded(of, odd, a, out, n) : (odd & LOOSE) ? add_folded(of, a, out, n) : 0;
}

static int add_reread(struct span path, int odd, struct arena *a, struct reading out[READINGS_MAX], size_t *n)
{
    struct span is;
    if (reread(path, odd, a, &is) != 0)
        return -1;
    add(out, n, is, READ_WHOLE);
    return add_others(is, inspect(is), a, out, n);
}

int readings_of(struct span path, struct arena *a, struct reading out[READINGS_MAX], size_t *n)
{
    int odd = inspect(path);
    if (odd < 0 || ((odd & SLASHES) && inspect_slashes(path, a) != 0))
        return -1;
    *n = 0;
    add(out, n, path, READ_WHOLE);
    if (add_others(path, odd, a, out, n) != 0)
        return -1;
    if (odd & PARAMS) {
        if (add_reread(path, PARAMS, a, out, n) != 0 || add_reread(path, PARAMS | EMPTY_SEGMENT, a, out, n) != 0)
            return -1;
    }
    if ((odd & EMPTY_SEGMENT) && add_reread(path, EMPTY_SEGMENT, a, out, n) != 0)
        return -1;
    return 0;
}
