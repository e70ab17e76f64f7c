/* Authorities, hosts, paths and queries in one spelling each. */
#include <arpa/inet.h>

#include "common/http/chars.h"
#include "common/http/http.h"
#include "common/text/idna.h"
#include "common/id.h"
#include "common/text/utf8.h"

int http_split_authority(struct span authority, struct span *host, uint16_t *port)
{
    struct span rest;
    uint64_t n = 0;
    *port = 0;
    *host = SPAN_NONE;
    if (authority.n && authority.p[0] == '[') {
        size_t end = span_index(authority, ']');
        if (end == authority.n)
            return -1;
        *host = span_first(authority, end + 1);
    } else {
        *host = span_first(authority, span_index(authority, ':'));
    }
    rest = span_from(authority, host->n);
    if (host->n == 0 || span_index(*host, '@') < host->n)
        return -1;
    if (rest.n == 0)
        return 0;
    if (rest.p[0] != ':' || span_u64(span_from(rest, 1), UINT16_MAX, &n) || n == 0)
        return -1;
    *port = (uint16_t)n;
    return 0;
}

static int canonical_v6(struct span host, char *dst, size_t *n)
{
    char text[INET6_ADDRSTRLEN] = {0};
    struct in6_addr a;
    if (host.n < 4 || host.n - 2 >= sizeof text || host.p[host.n - 1] != ']')
        return -1;
    for (size_t i = 1; i < host.n - 1; i++) {
        if (hex_digit(host.p[i]) < 0 && host.p[i] != ':' && host.p[i] != '.')
            return -1; /* a zone, a NUL, a second bracket */
        text[i - 1] = (char)host.p[i];
    }
    /* ::ffff:192.0.2.7 is dialled as 192.0.2.7, which is how that place is called */
    if (inet_pton(AF_INET6, text, &a) != 1 || IN6_IS_ADDR_V4MAPPED(&a) ||
        inet_ntop(AF_INET6, &a, text, sizeof text) == NULL)
        return -1;
    size_t len = strlen(text); /* our own bytes */
    dst[0] = '[';
    memcpy(dst + 1, text, len);
    dst[len + 1] = ']';
    dst[len + 2] = 0;
    *n = len + 2;
    return 0;
}

static bool dotted_quad(struct span s)
{
    struct span part;
    uint64_t v;
    for (int i = 0; i < 4; i++) {
        bool more = span_cut(s, '.', &part, &s);
        if (span_u64(part, 255, &v) || more != (i < 3))
            return false;
    }
    return true;
}

/* Whether something that reads addresses leniently would take a name with this last label for one. */
static bool numeric(struct span label)
{
    bool hex = label.n >= 2 && label.p[0] == '0' && (label.p[1] == 'x' || label.p[1] == 'X');
    for (size_t i = hex ? 2 : 0; i < label.n; i++)
        if (hex ? hex_digit(label.p[i]) < 0 : label.p[i] < '0' || label.p[i] > '9')
            return false;
    return true;
}

static bool letter_or_digit(uint8_t c)
{
    return http_char_is(c, CH_UNRESERVED) && c != '-' && c != '.' && c != '_' && c != '~';
}

/* Letters, digits and '-', and inside also '_', which names of services and buckets have. */
static bool host_label(struct span label)
{
    bool underscore = false;
    if (label.n == 0 || label.n > 63 || !letter_or_digit(label.p[0]) || !letter_or_digit(label.p[label.n - 1]))
        return false;
    for (size_t i = 0; i < label.n; i++) {
        uint8_t c = label.p[i];
        if (!letter_or_digit(c) && c != '-' && c != '_')
            return false;
        underscore |= c == '_';
    }
    return !idna_is_alabel(label) || (!underscore && idna_alabel_ok(label));
}

int http_canonical_host(struct span host, char *dst, size_t *n)
{
    struct span label = SPAN_NONE, rest;
    *n = 0;
    dst[0] = 0;
    if (host.n && host.p[0] == '[')
        return canonical_v6(host, dst, n);
    bool quad = dotted_quad(host);
    if (host.n && host.p[host.n - 1] == '.')
        host.n--;
    if (host.n == 0 || host.n > HTTP_HOST_MAX)
        return -1;
    rest = host;
    for (bool more = true; more;) {
        more = span_cut(rest, '.', &label, &rest);
        if (!host_label(label))
            return -1;
    }
    if (!quad && numeric(label))
        return -1;
    for (size_t i = 0; i < host.n; i++) {
        uint8_t c = host.p[i];
        dst[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    dst[host.n] = 0;
    *n = host.n;
    return 0;
}

/* The byte that the escape at the start of s stands for, or -1. */
static int escaped(struct span s)
{
    return s.n >= 3 && s.p[0] == '%' ? hex_number(span_from(s, 1), 2) : -1;
}

/* How many escapes at the start of s make one UTF-8 character; 0 if they make none. */
static size_t escaped_char(struct span s)
{
    uint8_t c[4];
    size_t n = 0;
    for (int v = escaped(s); n < sizeof c && v >= 0; v = escaped(s)) {
        c[n++] = (uint8_t)v;
        s = span_from(s, 3);
    }
    return utf8_char(span_of(c, n));
}

static bool in_path(int v, bool keep_slash)
{
    return v >= 0x20 && v != 0x7f && v != '\\' && (v != '/' || keep_slash);
}

static uint8_t *room_for(struct dynbuf *out, struct span s, unsigned raw)
{
    size_t n = s.n;
    for (size_t i = 0; i < s.n; i++)
        n += http_char_is(s.p[i], raw) ? 2 : 0;
    return dynbuf_room(out, n);
}

static size_t put_escape(uint8_t *to, int v)
{
    static const char digits[] = "0123456789ABCDEF";
    if (http_char_is((uint8_t)v, CH_UNRESERVED)) {
        to[0] = (uint8_t)v;
        return 1;
    }
    to[0] = '%';
    to[1] = (uint8_t)digits[v >> 4];
    to[2] = (uint8_t)digits[v & 15];
    return 3;
}

/* What should have been escaped becomes it, so that all who look see what they would of a stricter client. */
static size_t put_plain(uint8_t *to, uint8_t c)
{
    if (!http_char_is(c, CH_TARGET))
        return put_escape(to, c);
    to[0] = c;
    return 1;
}

/* "." and "..", also with parameters: some servers drop from ';' on before they resolve dots. */
static bool dot_segment(struct span s)
{
    size_t n = span_find(s, SPAN("%3B"));
    s = span_first(s, n);
    s = span_first(s, span_index(s, ';'));
    return span_eq(s, SPAN(".")) || span_eq(s, SPAN(".."));
}

static bool has_dot_segment(struct span canonical)
{
    size_t from = 0;
    if (span_index(canonical, '.') == canonical.n)
        return false; /* canonical: no dot is encoded any more */
    for (size_t i = 0; i < canonical.n; i++) {
        struct span here = span_from(canonical, i);
        bool encoded = span_starts(here, SPAN("%2F"));
        if (here.p[0] != '/' && !encoded)
            continue;
        if (dot_segment(span_of(canonical.p + from, i - from)))
            return true;
        from = i + (encoded ? 3 : 1);
    }
    return dot_segment(span_from(canonical, from));
}

int http_canonical_path(struct span path, bool keep_slash, struct dynbuf *out)
{
    size_t start = out->n, n = 0;
    if (path.n == 0 || path.p[0] != '/')
        return -1;
    uint8_t *to = room_for(out, path, CH_RAW_PATH);
    if (to == NULL)
        return -1;
    for (size_t i = 0; i < path.n;) {
        if (path.p[i] != '%') {
            if (!http_char_is(path.p[i], CH_TARGET | CH_RAW_PATH) || path.p[i] == '?')
                return -1;
            n += put_plain(to + n, path.p[i++]);
            continue;
        }
        int v = escaped(span_from(path, i));
        size_t escapes = v < 0 ? 0 : escaped_char(span_from(path, i));
        if (v < 0 || escapes == 0 || !in_path(v, keep_slash))
            return -1;
        for (; escapes; escapes--, i += 3)
            n += put_escape(to + n, escaped(span_from(path, i)));
    }
    dynbuf_grew(out, n);
    struct span done = span_from(dynbuf_span(out), start);
    if (span_starts(done, SPAN("//")) || span_starts(done, SPAN("/%2F")) || has_dot_segment(done))
        return -1;
    return 0;
}

int http_canonical_query(struct span query, struct dynbuf *out)
{
    size_t n = 0;
    if (query.n == 0)
        return 0;
    uint8_t *to = room_for(out, query, CH_RAW_QUERY);
    if (to == NULL)
        return -1;
    for (size_t i = 0; i < query.n;) {
        int v = query.p[i] == '%' ? escaped(span_from(query, i)) : query.p[i];
        if (v <= 0 || !http_char_is(query.p[i], CH_TARGET | CH_RAW_QUERY))
            return -1;
        if (query.p[i] == '%') {
            n += put_escape(to + n, v);
            i += 3;
        } else {
            n += put_plain(to + n, query.p[i++]);
        }
    }
    dynbuf_grew(out, n);
    return 0;
}
