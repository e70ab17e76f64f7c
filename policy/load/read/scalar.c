#include "policy/load/read/scalar.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "common/id.h"
#include "policy/classify/classify.h"
#include "policy/load/read/grammar_limits.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool all_in(struct span s, const char *set)
{
    struct span of = span_str(set);
    for (size_t i = 0; i < s.n; i++)
        if (span_index(of, s.p[i]) == of.n)
            return false;
    return true;
}

static bool one_of(struct span s, const char *const *words)
{
    for (; *words; words++)
        if (span_ieq(s, span_str(*words)))
            return true;
    return false;
}

/* Numbers in every spelling that some YAML 1.1 reader takes: 012, 0x1f, 1_000, 1e3, 1:30, 190:20:30. */
static const char *number_surprise(struct span s)
{
    size_t i = s.p[0] == '-' || s.p[0] == '+';
    struct span d = span_from(s, i);
    if (d.n == 0 || (!is_digit(d.p[0]) && d.p[0] != '.'))
        return NULL;
    if (d.n > 1 && d.p[0] == '0' && (d.p[1] | 0x20) == 'x' && all_in(span_from(d, 2), "0123456789abcdefABCDEF_"))
        return "a hexadecimal number";
    if (d.n > 1 && d.p[0] == '0' && all_in(span_from(d, 1), "01234567_o"))
        return "an octal number";
    if (all_in(d, "0123456789_"))
        return "a number";
    if (span_index(d, ':') < d.n && all_in(d, "0123456789_:."))
        return "a number of base 60";
    size_t dots = 0;
    for (size_t k = 0; k < d.n; k++)
        dots += d.p[k] == '.';
    if (dots <= 1 && all_in(d, "0123456789_.eE+-") && (dots || span_index(d, 'e') < d.n || span_index(d, 'E') < d.n))
        return "a number";
    if (d.n >= 8 && all_in(span_first(d, 8), "0123456789-") && d.p[4] == '-' && all_in(d, "0123456789-:. TtZz+"))
        return "a date";
    return NULL;
}

const char *scalar_surprise(struct span s)
{
    static const char *const booleans[] = {"true", "false", "yes", "no", "on", "off", "y", "n", NULL};
    static const char *const nulls[] = {"null", "~", NULL};
    static const char *const floats[] = {".inf", "-.inf", "+.inf", ".nan", NULL};
    if (s.n == 0)
        return NULL;
    if (one_of(s, booleans))
        return "a boolean";
    if (one_of(s, nulls))
        return "nothing";
    if (one_of(s, floats))
        return "a number";
    if (span_eq(s, SPAN("=")) || span_eq(s, SPAN("<<")))
        return "a special word";
    return number_surprise(s);
}

const char *scalar_bool(struct span s, bool plain, uint64_t *v)
{
    *v = span_eq(s, SPAN("true"));
    if (plain && (*v || span_eq(s, SPAN("false"))))
        return NULL;
    return "is true or false, in exactly these words";
}

static bool scaled(struct span s, struct span unit, uint64_t by, uint64_t *v)
{
    uint64_t n;
    if (!span_ends(s, unit) || span_u64(span_first(s, s.n - unit.n), UINT64_MAX / by, &n) != 0)
        return false;
    *v = n * by;
    return true;
}

const char *scalar_time(struct span s, uint64_t *ms)
{
    enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
    if ((scaled(s, SPAN("ms"), 1, ms) || scaled(s, SPAN("s"), SECOND, ms) || scaled(s, SPAN("m"), MINUTE, ms) ||
         scaled(s, SPAN("h"), HOUR, ms) || scaled(s, SPAN("d"), DAY, ms)) &&
        *ms <= (uint64_t)366 * DAY)
        return NULL;
    return "is a time such as 500ms, 30s, 15m, 2h or 7d, at most 366d";
}

const char *scalar_size(struct span s, uint64_t *bytes)
{
    if (scaled(s, SPAN("KiB"), 1024, bytes) || scaled(s, SPAN("MiB"), 1024 * 1024, bytes) ||
        scaled(s, SPAN("GiB"), 1024 * 1024 * 1024, bytes))
        return NULL;
    return "is a size such as 512KiB or 64MiB";
}

const char *scalar_money(struct span s, uint64_t most, uint64_t *millionths)
{
    static const char why[] = "is a number with at most six decimals, such as 12.50 or 0.075";
    struct span whole, part;
    uint64_t v = 0;
    bool point = span_cut(s, '.', &whole, &part);
    if (span_u64(whole, most / 1000000, &v) != 0 || (point && (part.n == 0 || part.n > 6)))
        return why;
    for (size_t i = 0; i < 6; i++) {
        uint8_t c = point && i < part.n ? part.p[i] : '0';
        if (!is_digit(c))
            return why;
        v = v * 10 + (uint64_t)(c - '0');
    }
    *millionths = v;
    return v <= most ? NULL : why;
}

const char *scalar_rate(struct span s, uint64_t *count, uint64_t *ms)
{
    struct span n, every;
    if (span_cut(s, '/', &n, &every) && span_u64(n, UINT64_MAX, count) == 0 && scalar_time(every, ms) == NULL &&
        *ms >= LIMIT_WINDOW_LEAST && *ms <= LIMIT_WINDOW_MOST)
        return NULL;
    return "is a number in a time, such as 20/1d or 100/1h, of 1s to 31d";
}

bool scalar_is_name(struct span s)
{
    if (s.n == 0 || s.n > 64 || (!is_letter(s.p[0]) && !is_digit(s.p[0])))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_letter(s.p[i]) && !is_digit(s.p[i]) && s.p[i] != '.' && s.p[i] != '_' && s.p[i] != '-')
            return false;
    return true;
}

bool scalar_is_word(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_letter(s.p[i]) && !is_digit(s.p[i]) && memchr("!#$%&'*+-.^_`|~", s.p[i], 15) == NULL)
            return false;
    return s.n > 0 && s.n <= 256;
}

bool scalar_is_method(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= 'A' && s.p[i] <= 'Z') && !(i && (s.p[i] == '-' || s.p[i] == '_')))
            return false;
    return s.n > 0 && s.n <= 32;
}

static bool is_label(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        bool inside = i > 0 && i < s.n - 1, mark = s.p[i] == '-' || s.p[i] == '_';
        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !is_digit(s.p[i]) && !(inside && mark))
            return false;
    }
    return s.n > 0 && s.n <= 63;
}

/* The one spelling that http_canonical_host gives an address (RFC 5952). */
static bool is_ip6(struct span s)
{
    char text[INET6_ADDRSTRLEN], back[INET6_ADDRSTRLEN];
    uint8_t to[16];
    if (s.n == 0 || s.n >= sizeof(text))
        return false;
    snprintf(text, sizeof(text), "%.*s", SPAN_FMT(s));
    return strlen(text) == s.n && inet_pton(AF_INET6, text, to) == 1 &&
           inet_ntop(AF_INET6, to, back, sizeof(back)) != NULL && strcmp(text, back) == 0;
}

static bool is_ip4(struct span s)
{
    size_t parts = 0;
    for (size_t at = 0; at <= s.n; parts++) {
        struct span rest = span_from(s, at), part = span_first(rest, span_index(rest, '.'));
        uint64_t v;
        if (span_u64(part, 255, &v) != 0)
            return false;
        at += part.n + 1;
    }
    return parts == 4;
}

const char *scalar_ip(struct span s)
{
    return is_ip4(s) || is_ip6(s) ? NULL : "is no IP address (IPv6 in its shortest form, in lower case)";
}

const char *scalar_cidr(struct span s)
{
    struct span ip, bits;
    uint64_t n;
    if (!span_cut(s, '/', &ip, &bits) || scalar_ip(ip) != NULL ||
        span_u64(bits, span_index(ip, ':') < ip.n ? 128 : 32, &n) != 0)
        return "is no address range such as 10.1.0.0/16 or fd00::/8";
    return NULL;
}

const char *scalar_pin(struct span s, uint8_t raw[SCALAR_PIN_BYTES])
{
    uint8_t bytes[SCALAR_PIN_BYTES + 1];
    struct span code = span_from(s, 7);
    size_t n = 0;
    if (!span_starts(s, SPAN("sha256/")) || code.n != 44 || base64_decode(code, bytes, &n) != 0 ||
        n != SCALAR_PIN_BYTES)
        return "is no pin: sha256/ and then the SHA-256 of a public key in base64, 44 characters";
    memcpy(raw, bytes, SCALAR_PIN_BYTES);
    return NULL;
}

static const char *bracketed(struct span s)
{
    if (is_ip4(s) || (is_ip6(s) && span_starts(s, SPAN("::ffff:")) && span_index(s, '.') < s.n))
        return "is an IPv4 address: requests name it without brackets, as in 192.0.2.7";
    return is_ip6(s) ? NULL : "is no IPv6 address in brackets (in its shortest form, in lower case)";
}

static const char *host_name(struct span s)
{
    struct span rest = s, label = SPAN_NONE;
    for (size_t at = 0; at <= s.n;) {
        rest = span_from(s, at);
        label = span_first(rest, span_index(rest, '.'));
        if (!is_label(label))
            return "is no host name: lower-case letters, digits, dots, and '-' or '_' inside (xn-- for other "
                   "scripts)";
        at += label.n + 1;
    }
    if (all_in(label, "0123456789"))
        return scalar_ip(s) == NULL ? NULL : "ends in a number, which only an address does";
    return NULL;
}

const char *scalar_host(struct span s, bool wildcards)
{
    struct span name = s;
    if (s.n > 253)
        return "is longer than 253 characters";
    if (span_index(s, '/') < s.n)
        return "is no host name: leave the scheme and the path out (match: has scheme, port and path)";
    if (s.n > 1 && s.p[0] == '[')
        return s.p[s.n - 1] == ']' ? bracketed(span_of(s.p + 1, s.n - 2)) : "has no bracket at its end";
    if (span_index(s, ':') < s.n)
        return "has a port: write it as port: on its own";
    if (s.n && s.p[s.n - 1] == '.')
        return "ends in a dot: leave it out";
    if (span_index(s, '*') < s.n) {
        if (!wildcards)
            return "has a wildcard: a place is named exactly";
        name = span_starts(s, SPAN("**."))  ? span_from(s, 3)
               : span_starts(s, SPAN("*.")) ? span_from(s, 2)
                                            : SPAN_NONE;
        if (name.n == 0 || span_index(name, '*') < name.n)
            return "has a wildcard that is not \"*.\" (one label) or \"**.\" (one or more) in front of a name";
    }
    return host_name(name);
}

const char *scalar_glob(struct span s, uint8_t sep)
{
    for (size_t at = 0; at <= s.n;) {
        struct span rest = span_from(s, at), segment = span_first(rest, sep ? span_index(rest, sep) : rest.n);
        if (span_find(segment, SPAN("**")) < segment.n && segment.n != 2)
            return "has \"**\" beside other characters: it stands for whole segments only";
        at += segment.n + 1;
    }
    return s.n > 2048 ? "is longer than 2048 characters" : NULL;
}

const char *scalar_path(struct span s)
{
    struct reading reading[READINGS_MAX];
    struct arena a;
    size_t n = 0, whole = 0;
    if (s.n > 0 && s.p[0] == '^')
        return "is a regular expression, and a path is a glob: it begins with '/', * fits one segment and ** any "
               "number "
               "of them, as in /v1/**";
    if (s.n == 0 || s.p[0] != '/')
        return "must begin with '/'";
    if (span_index(s, '?') < s.n)
        return "has a query: write it as query: on its own";
    if (span_index(s, '{') < s.n || span_index(s, '}') < s.n)
        return "has a brace: only {name}, of a-z, 0-9 and _, for a whole segment of a rule's path, means something; "
               "use "
               "* elsewhere";
    arena_init(&a, READINGS_MAX * (s.n + 64));
    int rc = readings_of(s, &a, reading, &n);
    arena_free(&a);
    for (size_t i = 0; rc == 0 && i < n; i++)
        whole += reading[i].how == READ_WHOLE;
    if (span_index(s, '(') < s.n && span_index(s, '|') < s.n)
        return "has a group of a regular expression: write a path for each alternative";
    if (span_find(s, SPAN("/<")) < s.n)
        return "has <, as a template has: {name} stands for one segment";
    for (size_t i = 0; rc == 0 && i < s.n; i++)
        if (memchr("|^`\"<>", s.p[i], 6) != NULL)
            return "has a character that requests are compared with as an escape: %7C for |, %5E for ^, %60 for `, "
                   "%22 for \", %3C for < and %3E for >";
    for (size_t i = 0; rc == 0 && i < s.n; i++)
        if (s.p[i] == '%' && s.n - i > 2 && !(all_in(span_of(s.p + i + 1, 2), "0123456789ABCDEF")))
            rc = -1;
    if (rc != 0 || whole != 1)
        return "is not in the one spelling that requests are compared in: no dot segments, empty segments, ';', "
               "spaces, or escapes of what needs none; escapes in upper case";
    return scalar_glob(s, '/');
}

/* RFC 6901, with the two escapes it has; "" would be the whole body, which has no value to compare. */
const char *scalar_pointer(struct span s)
{
    if (s.n == 0 || s.p[0] != '/')
        return "is no JSON pointer: it begins with a slash, such as /amount";
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '~' && (i + 1 == s.n || (s.p[i + 1] != '0' && s.p[i + 1] != '1')))
            return "is no JSON pointer: a ~ in a name is written ~0, a slash in it ~1";
    return NULL;
}
