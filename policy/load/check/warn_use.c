/* Credentials and the rules that use them: a place where no rule lets one go, a rule about places where it may not. A
 * policy has thousands of both, so each side is looked up in the other, not walked. */
#include <stdlib.h>

#include "policy/load/check/check_gate.h"
#include "policy/load/read/set.h"
#include "policy/load/check/warn.h"

enum { PORTS = 65536, HOST_MAX = 253 };

/* The places of one credential by their hosts, read from the end: those below one name stand together. */
struct places {
    const struct m_place **v;
    size_t n;
};

struct ports {
    uint64_t bit[PORTS / 64];
};

struct uses {
    const struct model *m;
    struct places *of;    /* of each credential */
    struct ports in_rule; /* that is being looked at */
    uint16_t port[PORTS]; /* the same, each once */
    size_t nports;
    struct ports reached; /* with its credential, on one of its hosts */
};

static bool has_port(const struct ports *p, uint64_t port)
{
    return port < PORTS && (p->bit[port / 64] >> port % 64 & 1);
}

static void flip_port(struct ports *p, uint64_t port)
{
    p->bit[port / 64] ^= UINT64_C(1) << port % 64;
}

static int from_end(struct span a, struct span b)
{
    for (size_t i = 1; i <= a.n && i <= b.n; i++)
        if (a.p[a.n - i] != b.p[b.n - i])
            return a.p[a.n - i] - b.p[b.n - i];
    return (a.n > b.n) - (a.n < b.n);
}

/* --- rules of a credential ------------------------------------------------- */

struct users {
    struct m_rule **v;
    size_t n;
};

static int by_use(const void *a, const void *b)
{
    return span_cmp((*(struct m_rule *const *)a)->use.text, (*(struct m_rule *const *)b)->use.text);
}

static struct users users_of(struct users all, struct span name)
{
    size_t lo = 0, hi = all.n, end;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (span_cmp(all.v[mid]->use.text, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (end = lo; end < all.n && span_eq(all.v[end]->use.text, name);)
        end++;
    return (struct users){all.v + lo, end - lo};
}

/* Does one of these patterns cover the host? As pattern_covers says: all that could are written down and looked up.
 */
static bool any_names(const struct set *patterns, struct span host)
{
    char wide[3 + HOST_MAX] = "**.";
    size_t dot = span_index(host, '.');
    struct span above = span_from(host, dot + 1);
    if (set_has(patterns, host))
        return true;
    for (bool first = true; dot < host.n && above.n <= HOST_MAX; first = false) {
        memcpy(wide + 3, above.p, above.n);
        if (set_has(patterns, span_of(wide, 3 + above.n)) ||
            (first && set_has(patterns, span_of(wide + 1, 2 + above.n))))
            return true;
        dot = span_index(above, '.');
        if (dot == above.n)
            return false;
        above = span_from(above, dot + 1);
    }
    return false;
}

static bool is_beside_another(const struct model *m, const struct m_credential *c)
{
    bool is = false;
    for (size_t i = 0; i < m->ncredentials && !is; i++)
        is = m->credentials[i]->beside.at && span_eq(m->credentials[i]->beside.text, c->name.text);
    return is;
}

/* B45: a host where a credential may go and no rule says when. */
static void warn_credential(struct loader *l, const struct model *m, struct users all, const struct m_credential *c)
{
    const struct m_place *p = c->only.v;
    struct users of = users_of(all, c->name.text);
    struct set patterns = {0};
    size_t gates = 0;
    for (size_t i = 0; i < m->ngates; i++)
        if (check_gate_uses(m, m->gates[i], c)) {
            (void)set_add(l, &patterns, check_gate_place(m->gates[i]).host);
            gates++;
        }
    if (of.n == 0 && gates == 0 && is_beside_another(m, c))
        return;
    if (of.n == 0 && gates == 0) {
        load_problem(l, c->at, "P105", "no rule uses the credential \"%.*s\"", SPAN_FMT(c->name.text));
        return;
    }
    for (size_t i = 0; i < of.n; i++)
        set_add_all(l, &patterns, warn_rule_hosts(of.v[i]));
    for (size_t i = 0; i < c->only.n; i++)
        if (!any_names(&patterns, p[i].host.text))
            load_problem(l, p[i].at, "P101",
                         "the credential \"%.*s\" may go to %.*s, but no rule about that host uses it: "
                         "take the place out or write the rule",
                         SPAN_FMT(c->name.text), SPAN_FMT(p[i].host.text));
    set_free(&patterns);
}

/* --- places of a credential ------------------------------------------------ */

static int by_host(const void *a, const void *b)
{
    const struct m_place *x = *(const struct m_place *const *)a, *y = *(const struct m_place *const *)b;
    int c = from_end(x->host.text, y->host.text);
    return c ? c : (x > y) - (x < y); /* of one list */
}

static int sort_places(struct loader *l, const struct m_credential *c, struct places *out)
{
    const struct m_place *p = c->only.v;
    out->v = arena_alloc(&l->a, (c->only.n + 1) * sizeof(const struct m_place *));
    if (out->v == NULL)
        return -1;
    for (out->n = 0; out->n < c->only.n; out->n++)
        out->v[out->n] = &p[out->n];
    if (out->n)
        qsort(out->v, out->n, sizeof(const struct m_place *), by_host);
    return 0;
}

/* The first whose host, as far as the end of names goes, is not before the name; or, past, is behind it. */
static size_t first_place(const struct places *all, struct span name, bool wild, bool past)
{
    size_t lo = 0, hi = all->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        struct span host = all->v[mid]->host.text;
        int c = wild && span_ends(host, name) ? 0 : from_end(host, name);
        if (c < 0 || (past && c == 0))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The places of a pattern of hosts; of "*.x" also those deeper below x, which pattern_covers tells apart. */
static struct places places_of(const struct places *all, struct span pattern)
{
    bool deep = span_starts(pattern, SPAN("**.")), wild = deep || span_starts(pattern, SPAN("*."));
    struct span name = wild ? span_from(pattern, deep ? 2 : 1) : pattern;
    size_t from = first_place(all, name, wild, false), to = first_place(all, name, wild, true);
    return (struct places){all->v + from, to - from};
}

static uint64_t schemes_of(const struct m_rule *r)
{
    return r->match.schemes.v ? r->match.schemes.v : SCHEME_HTTPS;
}

/* Is the rule about this port, over this scheme? As match.c does it: none named is the scheme's own. */
static bool names_port(const struct uses *u, uint64_t port, uint64_t scheme)
{
    return u->nports ? has_port(&u->in_rule, port) : port == (scheme == SCHEME_HTTP ? 80 : 443);
}

/* May it go to this host, over one of these schemes, to a port that the rule is about? */
static bool may_go(const struct uses *u, struct places at, struct span host, uint64_t schemes)
{
    static const uint64_t bits[] = {SCHEME_HTTPS, SCHEME_HTTP};
    for (size_t i = 0; i < at.n; i++)
        for (size_t b = 0; b < 2; b++)
            if ((schemes & at.v[i]->scheme.v & bits[b]) && names_port(u, at.v[i]->port.v, bits[b]) &&
                warn_pattern_covers(host, at.v[i]->host.text))
                return true;
    return false;
}

/* Each of the ports that the rule names, over its schemes. */
static void warn_ports(struct loader *l, struct uses *u, const struct m_rule *r, struct places at, struct span host,
                       const char *rest)
{
    struct span name = r->use.text;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < at.n; i++)
            if ((schemes_of(r) & at.v[i]->scheme.v) && has_port(&u->reached, at.v[i]->port.v) == (pass == 1) &&
                warn_pattern_covers(host, at.v[i]->host.text))
                flip_port(&u->reached, at.v[i]->port.v);
        for (size_t i = 0; pass == 0 && i < u->nports && load_problem_kept(l, false); i++)
            if (!has_port(&u->reached, u->port[i]))
                load_problem(l, r->use.at, "P106", "only: of \"%.*s\" names %.*s, but not its port %u: %s",
                             SPAN_FMT(name), SPAN_FMT(host), u->port[i], rest);
    }
}

/* The host is one where it may go; but on this rule's ports, and over its schemes? */
static void warn_place(struct loader *l, struct uses *u, const struct m_rule *r, struct places at, struct span host)
{
    static const char rest[] = "such requests will be denied (a place without port: is port 443, or 80 with scheme: "
                               "http; without scheme: it is https)";
    uint64_t schemes = schemes_of(r);
    struct span name = r->use.text;
    if (!may_go(u, at, host, schemes)) {
        load_problem(l, r->use.at, "P106",
                     "only: of \"%.*s\" names %.*s, but with another port or scheme than this rule: %s",
                     SPAN_FMT(name), SPAN_FMT(host), rest);
        return;
    }
    if ((schemes & SCHEME_HTTP) && (schemes & SCHEME_HTTPS))
        for (unsigned b = 0; b < 2; b++)
            if (!may_go(u, at, host, b ? SCHEME_HTTP : SCHEME_HTTPS))
                load_problem(l, r->use.at, "P106",
                             "only: of \"%.*s\" names %.*s, but not over %s on this rule's ports: %s", SPAN_FMT(name),
                             SPAN_FMT(host), b ? "http" : "https", rest);
    /* Ports that come from a pack stand for several hosts at once; they are not this host's. */
    if (u->nports && r->match.hosts.at)
        warn_ports(l, u, r, at, host, rest);
}

static bool cleartext_at(const struct model *m, struct span host, uint64_t port)
{
    size_t at = warn_upstream(m, host, port);
    const struct m_upstream *u = at < m->nupstreams ? m->upstreams[at] : NULL;
    return u && span_eq(u->host.text, host) && u->port.v == port && u->cleartext.v != 0;
}

/* Over http a credential goes only where an upstream says so. */
static void warn_cleartext(struct loader *l, const struct uses *u, const struct m_rule *r, struct places at,
                           struct span host)
{
    for (size_t i = 0; i < at.n; i++) {
        const struct m_place *p = at.v[i];
        if (!(p->scheme.v & schemes_of(r) & SCHEME_HTTP) || !names_port(u, p->port.v, SCHEME_HTTP) ||
            !warn_pattern_covers(host, p->host.text) || cleartext_at(u->m, p->host.text, p->port.v))
            continue;
        load_problem(l, r->use.at, "P111",
                     "\"%.*s\" would travel to http://%.*s:%u in clear text: such requests will be denied, unless "
                     "upstreams: has this host and port with cleartext_credentials: true",
                     SPAN_FMT(r->use.text), SPAN_FMT(p->host.text), (unsigned)p->port.v);
    }
}

static void warn_host(struct loader *l, struct uses *u, const struct m_rule *r, const struct places *all,
                      struct span host)
{
    struct places at = places_of(all, host);
    bool covered = false;
    for (size_t i = 0; i < at.n && !covered; i++)
        covered = warn_pattern_covers(host, at.v[i]->host.text);
    if (!covered) {
        load_problem(l, r->use.at, "P106",
                     "the rule is about %.*s, where only: of \"%.*s\" does not let it go: such "
                     "requests will be denied",
                     SPAN_FMT(host), SPAN_FMT(r->use.text));
        return;
    }
    warn_place(l, u, r, at, host);
    warn_cleartext(l, u, r, at, host);
}

/* What is decided is the request as it leaves: with the parameter that the credential is. */
static void warn_names(struct loader *l, const struct m_credential *c, const struct m_rule *r)
{
    const struct item *is = &c->inject.slot[SLOT_QUERY];
    const struct items *names = &r->match.query_names;
    bool has = is->at == NULL || names->at == NULL;
    for (size_t i = 0; i < names->n && !has; i++)
        has = span_eq(names->v[i].text, is->text);
    if (!has)
        load_problem(l, r->use.at, "P123",
                     "query_names: does not have \"%.*s\", the parameter that \"%.*s\" is: such requests will be "
                     "denied",
                     SPAN_FMT(is->text), SPAN_FMT(c->name.text));
}

void warn_use(struct loader *l, struct uses *u, const struct m_rule *r)
{
    int at = model_credential(u->m, r->use.text);
    const struct items *hosts = warn_rule_hosts(r), *ports = &r->match.ports;
    struct set seen = {0};
    uint64_t n;
    if (at < 0)
        return;
    for (size_t i = 0; i < ports->n; i++)
        if (span_u64(ports->v[i].text, PORTS - 1, &n) == 0 && n && !has_port(&u->in_rule, n)) {
            flip_port(&u->in_rule, n);
            u->port[u->nports++] = (uint16_t)n;
        }
    for (size_t i = 0; i < hosts->n && load_problem_kept(l, false); i++)
        if (hosts->n == 1 || set_add(l, &seen, hosts->v[i].text))
            warn_host(l, u, r, &u->of[at], hosts->v[i].text);
    warn_names(l, u->m->credentials[at], r);
    while (u->nports)
        flip_port(&u->in_rule, u->port[--u->nports]);
    set_free(&seen);
}

static void warn_credentials(struct loader *l, const struct model *m, struct users all)
{
    for (size_t i = 0; i < m->nrules; i++)
        if (m->rules[i]->use.at)
            all.v[all.n++] = m->rules[i];
    if (all.n)
        qsort(all.v, all.n, sizeof(*all.v), by_use);
    for (size_t i = 0; i < m->ncredentials; i++)
        warn_credential(l, m, all, m->credentials[i]);
}

struct uses *warn_uses(struct loader *l, const struct model *m)
{
    struct users all = {arena_alloc(&l->a, (m->nrules + 1) * sizeof(*all.v)), 0};
    struct uses *u = m->ncredentials ? arena_alloc(&l->a, sizeof(*u)) : NULL;
    bool bad = all.v == NULL;
    if (u) {
        u->m = m;
        u->of = arena_alloc(&l->a, m->ncredentials * sizeof(*u->of));
    }
    for (size_t i = 0; u && u->of && i < m->ncredentials && !bad; i++)
        bad = sort_places(l, m->credentials[i], &u->of[i]) != 0;
    if (bad || (m->ncredentials && (u == NULL || u->of == NULL))) {
        load_problem(l, NULL, "P003", "no memory for the rules");
        return NULL;
    }
    warn_credentials(l, m, all);
    return u;
}
