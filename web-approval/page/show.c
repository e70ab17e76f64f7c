#include "web-approval/page/show.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/time/clock.h"
#include "common/id.h"

enum { RUN_LINES = 4, RUN_SPACES = 32 };

static void mark(struct dynbuf *out, const char *escape)
{
    (void)dynbuf_addf(out, "<span class=\"esc\">%s</span>", escape);
}

static void ascii(struct dynbuf *out, uint8_t c)
{
    switch (c) {
    case '&': (void)dynbuf_add(out, SPAN("&amp;")); break;
    case '<': (void)dynbuf_add(out, SPAN("&lt;")); break;
    case '>': (void)dynbuf_add(out, SPAN("&gt;")); break;
    case '"': (void)dynbuf_add(out, SPAN("&quot;")); break;
    case '\'': (void)dynbuf_add(out, SPAN("&#39;")); break;
    default: (void)dynbuf_add_byte(out, c);
    }
}

/* A run of letters outside ASCII, underlined: one of them among ASCII letters is an imitation, most likely. */
static size_t foreign(struct dynbuf *out, struct span s)
{
    char escape[VISIBLE_ESCAPE_MAX];
    size_t end = 0, n;

    while (end < s.n && visible_char(span_from(s, end), &n, escape) == VISIBLE_OTHER)
        end += n;
    (void)dynbuf_add(out, SPAN("<span class=\"other\">"));
    (void)dynbuf_add(out, span_first(s, end));
    (void)dynbuf_add(out, SPAN("</span>"));
    return end;
}

/* Shows one character, or a run of foreign ones; how many bytes it took. */
static size_t one(struct dynbuf *out, struct span s)
{
    char escape[VISIBLE_ESCAPE_MAX];
    size_t n;

    switch (visible_char(s, &n, escape)) {
    case VISIBLE_ASCII: ascii(out, s.p[0]); break;
    case VISIBLE_OTHER: n = foreign(out, s); break;
    default: mark(out, escape);
    }
    return n;
}

void show_text(struct dynbuf *out, struct span s)
{
    for (size_t i = 0; i < s.n;)
        i += one(out, span_from(s, i));
}

void show_cut(struct dynbuf *out, struct span s, size_t max)
{
    size_t n = max < s.n ? max : s.n;

    while (n < s.n && n > 0 && (s.p[n] & 0xc0) == 0x80)
        n--;
    show_text(out, span_first(s, n));
    if (n < s.n)
        (void)dynbuf_addf(out, "<span class=\"esc\">&hellip; %zu more bytes</span>", s.n - n);
}

void show_own(struct dynbuf *out, const char *s)
{
    show_text(out, span_str(s));
}

void show_field(struct dynbuf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        ascii(out, s.p[i]);
}

void show_encoded(struct dynbuf *out, struct span s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (size_t i = 0; i < s.n; i++)
        if (memchr(plain, s.p[i], sizeof plain - 1))
            (void)dynbuf_add_byte(out, s.p[i]);
        else
            (void)dynbuf_addf(out, "%%%02X", s.p[i]);
}

static size_t run_of(struct span s, uint8_t c)
{
    size_t n = 0;
    while (n < s.n && s.p[n] == c)
        n++;
    return n;
}

size_t show_crlf(struct span s, size_t *bare)
{
    size_t ends = 0;

    *bare = 0;
    for (size_t i = 0; i < s.n; i++) {
        bool cr = s.p[i] == '\n' && i > 0 && s.p[i - 1] == '\r';
        ends += cr;
        *bare += s.p[i] == '\n' && !cr;
    }
    return ends;
}

/* Line ends at the beginning, one behind the other, of either kind; *bytes: those of all. */
static size_t line_ends(struct span s, size_t *bytes)
{
    size_t n = 0;

    for (*bytes = 0;; n++) {
        struct span at = span_from(s, *bytes);
        if (span_starts(at, SPAN("\r\n")))
            *bytes += 2;
        else if (span_starts(at, SPAN("\n")))
            *bytes += 1;
        else
            return n;
    }
}

void show_body(struct dynbuf *out, struct span s)
{
    for (size_t i = 0; i < s.n;) {
        struct span rest = span_from(s, i);
        size_t bytes, lines = line_ends(rest, &bytes), spaces = run_of(rest, ' ');
        if (lines > RUN_LINES) {
            (void)dynbuf_addf(out, "\n<span class=\"esc\">%zu empty lines</span>\n", lines - 1);
            i += bytes;
        } else if (lines > 0) {
            for (size_t k = 0; k < lines; k++)
                (void)dynbuf_add_byte(out, '\n');
            i += bytes;
        } else if (spaces > RUN_SPACES) {
            (void)dynbuf_addf(out, "<span class=\"esc\">%zu spaces</span>", spaces);
            i += spaces;
        } else {
            i += one(out, rest);
        }
    }
}

void show_hex(struct dynbuf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i += 16) {
        (void)dynbuf_addf(out, "%08zx  ", i);
        for (size_t j = i; j < i + 16; j++) {
            if (j < s.n)
                (void)dynbuf_addf(out, "%02x ", s.p[j]);
            else
                (void)dynbuf_add(out, SPAN("   "));
        }
        (void)dynbuf_add_byte(out, ' ');
        for (size_t j = i; j < i + 16 && j < s.n; j++)
            ascii(out, s.p[j] >= 0x20 && s.p[j] < 0x7f ? s.p[j] : '.');
        (void)dynbuf_add_byte(out, '\n');
    }
}

bool show_decode(struct dynbuf *out, struct span s)
{
    bool changed = false;

    for (size_t i = 0; i < s.n; i++) {
        int escaped = s.p[i] == '%' ? hex_number(span_from(s, i + 1), 2) : -1;
        if (escaped >= 0) {
            (void)dynbuf_add_byte(out, (uint8_t)escaped);
            changed = true;
            i += 2;
        } else {
            (void)dynbuf_add_byte(out, s.p[i]);
        }
    }
    return changed;
}

static size_t string_end(struct span s, size_t i)
{
    for (i++; i < s.n && s.p[i] != '"'; i++)
        if (s.p[i] == '\\')
            i++;
    return i < s.n ? i + 1 : s.n;
}

static void indent(struct dynbuf *out, unsigned depth)
{
    (void)dynbuf_add_byte(out, '\n');
    for (unsigned i = 0; i < depth && i < 32; i++)
        (void)dynbuf_add(out, SPAN("  "));
}

static size_t skip_space(struct span s, size_t i)
{
    while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t' || s.p[i] == '\r' || s.p[i] == '\n'))
        i++;
    return i;
}

void show_spread_json(struct dynbuf *out, struct span s)
{
    unsigned depth = 0;

    for (size_t i = skip_space(s, 0); i < s.n; i = skip_space(s, i)) {
        uint8_t c = s.p[i];
        size_t next = skip_space(s, i + 1), end = c == '"' ? string_end(s, i) : i + 1;
        bool empty = (c == '{' || c == '[') && next < s.n && (s.p[next] == '}' || s.p[next] == ']');
        if ((c == '}' || c == ']') && depth > 0)
            indent(out, --depth);
        (void)dynbuf_add(out, span_of(s.p + i, end - i));
        if (empty) {
            (void)dynbuf_add_byte(out, s.p[next]);
            end = next + 1;
        } else if (c == '{' || c == '[') {
            indent(out, ++depth);
        } else if (c == ',') {
            indent(out, depth);
        } else if (c == ':') {
            (void)dynbuf_add_byte(out, ' ');
        }
        i = end;
    }
}

void show_count(struct dynbuf *out, uint64_t n, const char *noun)
{
    (void)dynbuf_addf(out, "%llu %s%s", (unsigned long long)n, noun, n == 1 ? "" : "s");
}

void show_size(struct dynbuf *out, uint64_t n)
{
    if (n < 1024) {
        show_count(out, n, "byte");
        return;
    }
    bool mega = n >= 1024 * 1024;
    uint64_t tenths = n * 10 / (mega ? 1024 * 1024 : 1024);
    (void)dynbuf_addf(out, "%llu.%llu %s (%llu bytes)", (unsigned long long)tenths / 10,
                      (unsigned long long)tenths % 10, mega ? "MiB" : "KiB", (unsigned long long)n);
}

void show_time(struct dynbuf *out, uint64_t unix_ms)
{
    char iso[UTC_TEXT];

    if (!utc_text(unix_ms, false, iso))
        (void)dynbuf_add(out, SPAN("an impossible time"));
    else
        (void)dynbuf_addf(out, "<time datetime=\"%s\">%.10s %.8s UTC</time>", iso, iso, iso + 11);
}

void show_span_of_time(struct dynbuf *out, uint64_t ms)
{
    uint64_t s = ms / 1000;

    if (s < 120)
        (void)dynbuf_addf(out, "%llu s", (unsigned long long)s);
    else if (s < 7200)
        (void)dynbuf_addf(out, "%llu min", (unsigned long long)s / 60);
    else if (s < 172800)
        (void)dynbuf_addf(out, "%llu h", (unsigned long long)s / 3600);
    else
        (void)dynbuf_addf(out, "%llu days", (unsigned long long)s / 86400);
}

void show_time_left(struct dynbuf *out, uint64_t ms)
{
    uint64_t minutes = ms / 60000;

    show_span_of_time(out, ms);
    if (minutes >= 120 && minutes < 2880 && minutes % 60)
        (void)dynbuf_addf(out, " %llu min", (unsigned long long)minutes % 60);
}

void show_host(struct dynbuf *out, struct span host)
{
    struct visible_count n = visible_count(host);

    show_text(out, host);
    if (n.escaped || n.other || span_starts(host, SPAN("xn--")) || span_find(host, SPAN(".xn--")) < host.n)
        (void)dynbuf_add(out,
                         SPAN(" <strong class=\"warn\">not an ASCII name: its letters may imitate others</strong>"));
}
