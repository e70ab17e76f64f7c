/* A rule that names no port or scheme is about https on 443: such a rule about a host that is named with others, or
 * with a port where https is seldom spoken. And a host that is nearly one of upstreams:. */
#include "common/net/addr.h"
#include "common/text/nearest.h"
#include "policy/load/check/warn.h"

/* So many rows and ports are compared: a very large policy is not worth minutes of warnings. */
enum { LOOKS_MAX = 1000 * 1000, NAMES_MAX = 200 };

struct places {
    struct loader *l;
    const struct model *m;
    size_t looks, nunnamed;
    const char *unnamed[NAMES_MAX + 1]; /* ends with NULL */
};

size_t warn_upstream(const struct model *m, struct span host, uint64_t port)
{
    size_t lo = 0, hi = m->nupstreams;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = span_cmp(m->upstreams[mid]->host.text, host);
        if (c < 0 || (c == 0 && m->upstreams[mid]->port.v < port))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The nth row about this host, by their ports; NULL: there are no more. */
static struct m_upstream *row_of(struct places *k, struct span host, size_t nth)
{
    size_t at = warn_upstream(k->m, host, 0) + nth;
    bool is = at < k->m->nupstreams && span_eq(k->m->upstreams[at]->host.text, host);
    return is && k->looks++ < LOOKS_MAX ? k->m->upstreams[at] : NULL;
}

static bool about_port(struct places *k, const struct m_match *t, uint64_t port)
{
    uint64_t schemes = t->schemes.v ? t->schemes.v : SCHEME_HTTPS, n;
    bool found =
        t->ports.n == 0 && ((port == 443 && (schemes & SCHEME_HTTPS)) || (port == 80 && (schemes & SCHEME_HTTP)));
    for (size_t i = 0; i < t->ports.n && !found && k->looks++ < LOOKS_MAX; i++)
        found = span_u64(t->ports.v[i].text, UINT16_MAX, &n) == 0 && n == port;
    return found;
}

/* What speaks http: a rule is about it over http alone, or credentials go there in clear text. */
static void mark_http(struct places *k, const struct m_match *t)
{
    struct m_upstream *row;
    for (size_t i = 0; t->schemes.v == SCHEME_HTTP && i < t->hosts.n; i++)
        for (size_t nth = 0; (row = row_of(k, t->hosts.v[i].text, nth)) != NULL; nth++)
            row->http |= about_port(k, t, row->port.v);
}

static void say_port(struct places *k, const struct m_match *t, const struct item *host, const struct m_upstream *row)
{
    bool http = t->schemes.v == SCHEME_HTTP, both = t->schemes.v == (SCHEME_HTTP | SCHEME_HTTPS);
    unsigned port = (unsigned)row->port.v;
    const char *and = t->schemes.v ? ""
                      : row->http  ? " and scheme: http"
                                   : " (and scheme: http, unless it speaks TLS)";
    load_problem(k->l, host->at, "P124",
                 "a rule without port: is about port %s, and upstreams: has %.*s with %u, not with that: add port: "
                 "%u%s, or write port: %s if that is meant",
                 both   ? "443, or 80 over http"
                 : http ? "80 over http"
                        : "443",
                 SPAN_FMT(host->text), port, port, and, http ? "80" : "443");
}

static bool is_tls_port(uint64_t port)
{
    static const uint16_t usual[] = {563, 636, 853, 989, 990, 992, 993, 995, 2376, 5671, 5986, 8200, 8883};
    bool is = port % 1000 == 443;
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        is |= usual[i] == port;
    return is;
}

/* Ports of a rule without scheme: where https is seldom spoken, and nothing in upstreams: says that it is. */
static void warn_ports(struct places *k, const struct m_match *t, const struct item *host)
{
    uint64_t port;
    for (size_t i = 0; i < t->ports.n && k->looks < LOOKS_MAX; i++) {
        if (span_u64(t->ports.v[i].text, UINT16_MAX, &port) != 0 || is_tls_port(port))
            continue;
        size_t at = warn_upstream(k->m, host->text, port);
        const struct m_upstream *row = at < k->m->nupstreams ? k->m->upstreams[at] : NULL;
        bool here = row && span_eq(row->host.text, host->text) && row->port.v == port;
        k->looks++;
        if (here && (row->http || row->ca.at || row->tls.at)) /* http: that was told */
            continue;
        load_problem(k->l, t->ports.v[i].at, "P124",
                     "a rule without scheme: is about https, which is seldom spoken on port %u: add scheme: http, or "
                     "write scheme: https if %.*s speaks it there",
                     (unsigned)port, SPAN_FMT(span_first(host->text, 100)));
    }
}

/* Is some rule about this host? */
static bool is_named(struct places *k, struct span host)
{
    for (size_t i = 0; i < k->m->nrules; i++) {
        const struct items *hosts = warn_rule_hosts(k->m->rules[i]);
        for (size_t h = 0; h < hosts->n; h++)
            if (k->looks++ >= LOOKS_MAX || warn_pattern_covers(hosts->v[h].text, host))
                return true;
    }
    return false;
}

/* Upstreams that no rule is about: a host that upstreams: does not have, and that is like one of these, is likely
 * that. */
static void gather_unnamed(struct places *k)
{
    for (size_t i = 0; i < k->m->nupstreams && k->nunnamed < NAMES_MAX; i++) {
        struct span host = k->m->upstreams[i]->host.text;
        struct addr a;
        bool again = i > 0 && span_eq(k->m->upstreams[i - 1]->host.text, host);
        char *copy =
            again || addr_parse(host, &a) == 0 || is_named(k, host) ? NULL : arena_alloc(&k->l->a, host.n + 1);
        if (copy == NULL || host.n == 0)
            continue;
        memcpy(copy, host.p, host.n);
        copy[host.n] = '\0';
        k->unnamed[k->nunnamed++] = copy;
    }
}

static void warn_name(struct places *k, const struct item *host)
{
    const char *near =
        k->nunnamed && span_index(host->text, '*') == host->text.n ? nearest_name(host->text, k->unnamed) : NULL;
    if (near)
        load_problem(k->l, host->at, "P125",
                     "upstreams: has no %.*s, but %.100s, which no rule is about; did you mean that?",
                     SPAN_FMT(span_first(host->text, 100)), near);
}

static void warn_host(struct places *k, const struct m_match *t, const struct item *host)
{
    struct m_upstream *row, *first = NULL;
    bool reached = false;
    for (size_t nth = 0; (row = row_of(k, host->text, nth)) != NULL; nth++) {
        bool about = about_port(k, t, row->port.v);
        first = first ? first : row;
        reached |= about;
        if (about && row->http && t->schemes.v == 0)
            load_problem(k->l, host->at, "P124",
                         "a rule without scheme: is about https, and %.*s port %u speaks http for another rule or "
                         "for credentials: add scheme: http, or write scheme: https if that is meant",
                         SPAN_FMT(host->text), (unsigned)row->port.v);
    }
    if (first && !reached && t->ports.n == 0 && k->looks < LOOKS_MAX)
        say_port(k, t, host, first);
    if (t->schemes.v == 0)
        warn_ports(k, t, host);
    if (first == NULL)
        warn_name(k, host);
}

void warn_places(struct loader *l, const struct model *m)
{
    struct places k = {.l = l, .m = m};
    for (size_t i = 0; i < m->nupstreams; i++)
        m->upstreams[i]->http = m->upstreams[i]->cleartext.v != 0;
    for (size_t i = 0; i < m->nrules; i++)
        mark_http(&k, &m->rules[i]->match);
    gather_unnamed(&k);
    for (size_t i = 0; i < m->nrules; i++)
        for (size_t h = 0; m->rules[i]->decide.v != VERDICT_DENY && h < m->rules[i]->match.hosts.n; h++)
            warn_host(&k, &m->rules[i]->match, &m->rules[i]->match.hosts.v[h]);
}
