/* Hosts, and what in one is apt to be taken for another. */
#include "web-approval/reading/parts.h"

#include "common/text/idna.h"
#include "common/text/visible.h"

enum { LOOK_KEPT = 256, SPELLED_MAX = 4096 };

/* A name as a hurried person reads it: one letter for all that look like it. */
static struct span look_of(struct span host, uint8_t look[LOOK_KEPT])
{
    static const char like[] = "ollls.";
    size_t n = 0;

    for (size_t i = 0; i < host.n && n < LOOK_KEPT; i++) {
        uint8_t c = host.p[i] >= 'A' && host.p[i] <= 'Z' ? (uint8_t)(host.p[i] + 'a' - 'A') : host.p[i];
        uint8_t next = i + 1 < host.n ? host.p[i + 1] : 0;
        size_t at = span_index(SPAN("01i|5-"), c);
        bool pair = (c == 'r' && next == 'n') || (c == 'v' && next == 'v');
        look[n++] = pair ? (c == 'r' ? 'm' : 'w') : at < sizeof like - 1 ? (uint8_t)like[at] : c;
        i += pair;
    }
    return span_of(look, n);
}

static bool looks_alike(struct span a, struct span b)
{
    uint8_t x[LOOK_KEPT], y[LOOK_KEPT];
    return a.n < LOOK_KEPT && b.n < LOOK_KEPT && span_eq(look_of(a, x), look_of(b, y));
}

static bool is_other_script(struct span host)
{
    struct visible_count n = visible_count(host);
    return n.escaped || n.other || span_starts(host, SPAN("xn--")) || span_find(host, SPAN(".xn--")) < host.n;
}

/* The name as it stands there, and how it is spelled: what takes an A-label for a word cannot see whose it imitates.
 */
static struct span spelled(struct reading *r, struct span host)
{
    struct dynbuf b;
    struct span s = host;

    dynbuf_init(&b, SPELLED_MAX);
    idna_spell(&b, host);
    if (dynbuf_ok(&b) && !span_eq(dynbuf_span(&b), host))
        s = arena_printf(r->arena, "%.*s, spelled %.*s", SPAN_FMT(host), SPAN_FMT(dynbuf_span(&b)));
    dynbuf_free(&b);
    return s.p ? s : host;
}

/* 0: like none, 1: it looks like this one, 2: it begins with it. */
static int like(struct span host, struct span known)
{
    bool begins = host.n > known.n && host.p[known.n] == '.' && span_ieq(span_first(host, known.n), known);
    return known.n == 0 ? 0 : begins ? 2 : looks_alike(host, known) ? 1 : 0;
}

static bool is_known(const struct asked *q, struct span host)
{
    for (size_t i = 0; i < q->nknown; i++)
        if (span_ieq(host, q->known[i]))
            return true;
    return false;
}

void host_look(struct reading *r)
{
    const struct asked *q = r->asked;

    if (is_other_script(q->host))
        flag_add(r, "The host is not an ASCII name: its letters may imitate another's", SPAN_NONE,
                 spelled(r, q->host));
    for (size_t i = 0; i < q->nknown && !is_known(q, q->host); i++) {
        int how = like(q->host, q->known[i]);
        if (how)
            flag_add(r,
                     how == 1 ? "The host looks like one that the policy names, and is another"
                              : "The host begins like one that the policy names, and is another",
                     q->known[i], q->host);
    }
}

static void url_host(struct reading *r, struct span name, struct span host)
{
    const struct asked *q = r->asked;
    int how = span_ieq(host, q->host) ? 0 : like(host, q->host);

    if (is_other_script(host))
        flag_add(r, "A URL to a host that is not an ASCII name: its letters may imitate another's", name,
                 spelled(r, host));
    if (is_known(q, host))
        return;
    for (size_t i = 0; i < q->nknown && how == 0; i++)
        how = like(host, q->known[i]);
    if (how)
        flag_add(r, "A URL to a host that reads like a known one, and is another", name, host);
}

void url_look(struct reading *r, struct span name, struct span s)
{
    for (size_t at; (at = span_find(s, SPAN("://"))) < s.n;) {
        s = span_from(s, at + 3);
        size_t end = 0, before = 0;
        while (end < s.n && s.p[end] > ' ' && span_index(SPAN("/?#\"'<>`"), s.p[end]) == 8) {
            end++;
            before = s.p[end - 1] == '@' ? end : before;
        }
        struct span host = span_from(span_first(s, end), before);
        host = span_first(host, span_index(host, ':'));
        if (before)
            flag_add(r, "A URL with a name before its host. It leads to what stands behind the @", name, host);
        url_host(r, name, host);
        s = span_from(s, end);
    }
}
