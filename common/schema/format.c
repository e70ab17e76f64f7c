#include "common/schema/format.h"

#include <arpa/inet.h>

#include "common/id.h"
#include "common/time/instant.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_any_of(uint8_t c, const char *list)
{
    return c != 0 && c < 0x80 && strchr(list, c) != NULL;
}

/* Two digits at a place, from lo to hi. */
static bool two(struct span s, size_t at, unsigned lo, unsigned hi, unsigned *v)
{
    if (s.n < at + 2 || !is_digit(s.p[at]) || !is_digit(s.p[at + 1]))
        return false;
    *v = (unsigned)(s.p[at] - '0') * 10 + (unsigned)(s.p[at + 1] - '0');
    return *v >= lo && *v <= hi;
}

static bool is_date(struct span s)
{
    unsigned century, year, month, day;
    return s.n == 10 && s.p[4] == '-' && s.p[7] == '-' && two(s, 0, 0, 99, &century) && two(s, 2, 0, 99, &year) &&
           two(s, 5, 1, 12, &month) && two(s, 8, 1, instant_days_of_month(century * 100 + year, month), &day);
}

/* hh:mm:ss, a fraction, and Z or an offset. A leap second is the last one of a day in UTC. */
static bool is_time(struct span s)
{
    unsigned h, m, sec, oh = 0, om = 0;
    if (s.n < 9 || s.p[2] != ':' || s.p[5] != ':' || !two(s, 0, 0, 23, &h) || !two(s, 3, 0, 59, &m) ||
        !two(s, 6, 0, 60, &sec))
        return false;
    s = span_from(s, 8);
    if (s.p[0] == '.') {
        size_t n = 1;
        while (n < s.n && is_digit(s.p[n]))
            n++;
        s = n > 1 ? span_from(s, n) : SPAN_NONE;
    }
    bool zulu = s.n == 1 && (s.p[0] == 'Z' || s.p[0] == 'z'), east = s.n > 0 && s.p[0] == '+';
    if (!zulu &&
        (s.n != 6 || (!east && s.p[0] != '-') || s.p[3] != ':' || !two(s, 1, 0, 23, &oh) || !two(s, 4, 0, 59, &om)))
        return false;
    unsigned minute = h * 60 + m, offset = oh * 60 + om, day = 24 * 60;
    unsigned utc = (east ? minute + day - offset : minute + offset) % day;
    return sec < 60 || utc == day - 1;
}

static bool is_date_time(struct span s)
{
    return s.n > 11 && (s.p[10] == 'T' || s.p[10] == 't') && is_date(span_first(s, 10)) && is_time(span_from(s, 11));
}

static bool is_uuid(struct span s)
{
    for (size_t i = 0; i < s.n && i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s.p[i] != '-' : hex_digit(s.p[i]) < 0)
            return false;
    }
    return s.n == 36;
}

static bool is_address(int family, struct span s)
{
    char text[INET6_ADDRSTRLEN];
    uint8_t out[16];
    if (s.n == 0 || s.n >= sizeof text || span_index(s, 0) < s.n)
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    return inet_pton(family, text, out) == 1;
}

/* Labels of letters, digits and dashes. */
static bool is_host(struct span s)
{
    struct span label;
    if (s.n == 0 || s.n > 253)
        return false;
    for (bool more = true; more;) {
        more = span_cut(s, '.', &label, &s);
        if (label.n == 0 || label.n > 63 || label.p[0] == '-' || label.p[label.n - 1] == '-')
            return false;
        for (size_t i = 0; i < label.n; i++)
            if (!is_letter(label.p[i]) && !is_digit(label.p[i]) && label.p[i] != '-')
                return false;
    }
    return true;
}

/* What stands in [ ] of a mail's domain. */
static bool is_literal(struct span s)
{
    if (s.n < 2 || s.p[s.n - 1] != ']')
        return false;
    s = span_first(span_from(s, 1), s.n - 2);
    return s.n > 5 && span_ieq(span_first(s, 5), SPAN("IPv6:")) ? is_address(AF_INET6, span_from(s, 5))
                                                                : is_address(AF_INET, s);
}

static bool is_quoted(struct span s)
{
    if (s.n < 2 || s.p[0] != '"' || s.p[s.n - 1] != '"')
        return false;
    s = span_first(span_from(s, 1), s.n - 2);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\')
            i++;
        else if (s.p[i] == '"')
            return false;
        if (i >= s.n || s.p[i] < 0x20 || s.p[i] > 0x7e)
            return false;
    }
    return true;
}

static bool is_atoms(struct span s)
{
    uint8_t before = '.';
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (c == '.' ? before == '.' : !is_letter(c) && !is_digit(c) && !is_any_of(c, "!#$%&'*+-/=?^_`{|}~"))
            return false;
        before = c;
    }
    return before != '.';
}

static bool is_email(struct span s)
{
    size_t at = s.n;
    while (at > 0 && s.p[at - 1] != '@')
        at--;
    if (at < 2 || at - 1 > 64)
        return false;
    struct span local = span_first(s, at - 1), domain = span_from(s, at);
    bool literal = domain.n > 0 && domain.p[0] == '[';
    return (is_atoms(local) || is_quoted(local)) && (literal ? is_literal(domain) : is_host(domain));
}

/* Characters of a part of a URI, and %XX. */
static bool is_part(struct span s, const char *more)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (c == '%' ? s.n - i < 3 || hex_number(span_from(s, i + 1), 2) < 0
                     : !is_letter(c) && !is_digit(c) && !is_any_of(c, "-._~!$&'()*+,;=") && !is_any_of(c, more))
            return false;
    }
    return true;
}

/* [user@]host[:port] */
static bool is_authority(struct span s)
{
    struct span user, host = s, port = SPAN_NONE;
    if (span_cut(s, '@', &user, &host)) {
        if (!is_part(user, ":"))
            return false;
    } else {
        host = s;
    }
    if (host.n > 0 && host.p[0] == '[') {
        size_t end = span_index(host, ']');
        if (end == host.n || !is_address(AF_INET6, span_first(span_from(host, 1), end - 1)))
            return false;
        port = span_from(host, end + 1);
        if (port.n > 0 && port.p[0] != ':')
            return false;
        port = span_from(port, 1);
    } else {
        struct span whole = host;
        (void)span_cut(whole, ':', &host, &port);
        if (!is_part(host, ""))
            return false;
    }
    for (size_t i = 0; i < port.n; i++)
        if (!is_digit(port.p[i]))
            return false;
    return true;
}

static bool is_uri(struct span s)
{
    struct span scheme, rest, fragment, query, authority;
    if (!span_cut(s, ':', &scheme, &rest) || scheme.n == 0 || !is_letter(scheme.p[0]))
        return false;
    for (size_t i = 0; i < scheme.n; i++)
        if (!is_letter(scheme.p[i]) && !is_digit(scheme.p[i]) && !is_any_of(scheme.p[i], "+-."))
            return false;
    struct span whole = rest;
    (void)span_cut(whole, '#', &rest, &fragment);
    whole = rest;
    (void)span_cut(whole, '?', &rest, &query);
    if (span_starts(rest, SPAN("//"))) {
        rest = span_from(rest, 2);
        size_t end = span_index(rest, '/');
        authority = span_first(rest, end);
        rest = span_from(rest, end);
        if (!is_authority(authority))
            return false;
    }
    return is_part(rest, "/:@") && is_part(query, "/?:@") && is_part(fragment, "/?:@");
}

enum format format_of(struct span name)
{
    static const char *const names[] = {
        [FORMAT_DATE_TIME] = "date-time", [FORMAT_DATE] = "date", [FORMAT_TIME] = "time",
        [FORMAT_EMAIL] = "email",         [FORMAT_URI] = "uri",   [FORMAT_UUID] = "uuid",
        [FORMAT_IPV4] = "ipv4",           [FORMAT_IPV6] = "ipv6"};
    for (size_t i = FORMAT_DATE_TIME; i < sizeof names / sizeof names[0]; i++)
        if (span_eq(name, span_str(names[i])))
            return (enum format)i;
    return FORMAT_NONE;
}

bool format_fits(enum format f, struct span text)
{
    switch (f) {
    case FORMAT_DATE_TIME: return is_date_time(text);
    case FORMAT_DATE: return is_date(text);
    case FORMAT_TIME: return is_time(text);
    case FORMAT_EMAIL: return is_email(text);
    case FORMAT_URI: return is_uri(text);
    case FORMAT_UUID: return is_uuid(text);
    case FORMAT_IPV4: return is_address(AF_INET, text);
    case FORMAT_IPV6: return is_address(AF_INET6, text);
    case FORMAT_NONE: break;
    }
    return false;
}
