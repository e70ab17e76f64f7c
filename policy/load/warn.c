/* What loads, but is likely not what was meant. */
#include "policy/load/model.h"

#include "policy/glob.h"
#include "policy/load/derive.h"
#include "policy/load/names.h"

static const struct items *rule_hosts(const struct m_rule *r)
{
    return r->match.hosts.at ? &r->match.hosts : &r->match.derived;
}

static bool pattern_covers(struct span pattern, struct span host)
{
    bool deep = span_starts(pattern, SPAN("**.")), one = !deep && span_starts(pattern, SPAN("*."));
    if (!deep && !one)
        return span_eq(pattern, host);
    struct span suffix = span_from(pattern, deep ? 2 : 1);
    return host.n > suffix.n && span_ends(host, suffix) && (deep || span_index(host, '.') == host.n - suffix.n);
}

static bool names_host(const struct m_rule *r, struct span host)
{
    const struct items *v = rule_hosts(r);
    for (size_t i = 0; i < v->n; i++)
        if (pattern_covers(v->v[i].text, host))
            return true;
    return false;
}

/* B45: a host where a credential may go and no rule says when. */
static void warn_credential(struct loader *l, const struct model *m, const struct m_credential *c)
{
    const struct m_place *p = c->only.v;
    bool used = false;
    for (size_t k = 0; k < m->nrules; k++)
        used |= m->rules[k]->use.at && span_eq(m->rules[k]->use.text, c->name.text);
    if (!used) {
        problem(l, c->at, "P105", "no rule uses the credential \"%.*s\"", SPAN_FMT(c->name.text));
        return;
    }
    for (size_t i = 0; i < c->only.n; i++) {
        bool guarded = false;
        for (size_t k = 0; k < m->nrules && !guarded; k++)
            guarded = m->rules[k]->use.at && span_eq(m->rules[k]->use.text, c->name.text) &&
                      names_host(m->rules[k], p[i].host.text);
        if (!guarded)
            problem(l, p[i].at, "P101",
                    "the credential \"%.*s\" may go to %.*s, but no rule about that host uses it: "
                    "take the place out or write the rule",
                    SPAN_FMT(c->name.text), SPAN_FMT(p[i].host.text));
    }
}

static uint64_t schemes_of(const struct m_rule *r)
{
    return r->match.schemes.v ? r->match.schemes.v : SCHEME_HTTPS;
}

/* Is the rule about this port, over this scheme? As match.c does it: none named is the scheme's own. */
static bool names_port(const struct m_rule *r, uint64_t port, uint64_t scheme)
{
    const struct items *v = &r->match.ports;
    uint64_t n;
    for (size_t i = 0; i < v->n; i++)
        if (span_u64(v->v[i].text, 65535, &n) == 0 && n == port)
            return true;
    return v->n == 0 && port == (scheme == SCHEME_HTTP ? 80 : 443);
}

/* May it go to this host, over one of these schemes, to this port (0: any that the rule is about)? */
static bool may_go(const struct m_rule *r, const struct m_credential *c, struct span host, uint64_t schemes,
                   uint64_t port)
{
    static const uint64_t bits[] = {SCHEME_HTTPS, SCHEME_HTTP};
    const struct m_place *p = c->only.v;
    for (size_t i = 0; i < c->only.n; i++)
        for (size_t b = 0; b < 2; b++)
            if (pattern_covers(host, p[i].host.text) && (schemes & p[i].scheme.v & bits[b]) &&
                (port ? p[i].port.v == port : names_port(r, p[i].port.v, bits[b])))
                return true;
    return false;
}

/* The host is one where it may go; but on this rule's ports, and over its schemes? */
static void warn_place(struct loader *l, const struct m_rule *r, const struct m_credential *c, struct span host)
{
    static const char rest[] = "such requests will be denied (a place without port: is port 443, or 80 with scheme: "
                               "http; without scheme: it is https)";
    const struct items *ports = &r->match.ports;
    uint64_t schemes = schemes_of(r), n;
    if (!may_go(r, c, host, schemes, 0)) {
        problem(l, r->use.at, "P106",
                "only: of \"%.*s\" names %.*s, but with another port or scheme than this rule: %s",
                SPAN_FMT(c->name.text), SPAN_FMT(host), rest);
        return;
    }
    if ((schemes & SCHEME_HTTP) && (schemes & SCHEME_HTTPS))
        for (unsigned b = 0; b < 2; b++)
            if (!may_go(r, c, host, b ? SCHEME_HTTP : SCHEME_HTTPS, 0))
                problem(l, r->use.at, "P106",
                        "only: of \"%.*s\" names %.*s, but not over %s on this rule's ports: %s",
                        SPAN_FMT(c->name.text), SPAN_FMT(host), b ? "http" : "https", rest);
    /* Ports that come from a pack stand for several hosts at once; they are not this host's. */
    for (size_t i = 0; i < ports->n && r->match.hosts.at; i++)
        if (span_u64(ports->v[i].text, 65535, &n) == 0 && n && !may_go(r, c, host, schemes, n))
            problem(l, r->use.at, "P106", "only: of \"%.*s\" names %.*s, but not its port %u: %s",
                    SPAN_FMT(c->name.text), SPAN_FMT(host), (unsigned)n, rest);
}

/* Over http a credential goes only where an upstream says so. */
static void warn_cleartext(struct loader *l, const struct model *m, const struct m_rule *r,
                           const struct m_credential *c, struct span host)
{
    const struct m_place *p = c->only.v;
    for (size_t i = 0; i < c->only.n; i++) {
        bool open = false;
        if (!(p[i].scheme.v & schemes_of(r) & SCHEME_HTTP) || !pattern_covers(host, p[i].host.text) ||
            !names_port(r, p[i].port.v, SCHEME_HTTP))
            continue;
        for (size_t k = 0; k < m->nupstreams && !open; k++)
            open = m->upstreams[k]->cleartext.v && m->upstreams[k]->port.v == p[i].port.v &&
                   span_eq(m->upstreams[k]->host.text, p[i].host.text);
        if (!open)
            problem(l, r->use.at, "P111",
                    "\"%.*s\" would travel to http://%.*s:%u in clear text: such requests will be denied, unless "
                    "upstreams: has this host and port with cleartext_credentials: true",
                    SPAN_FMT(c->name.text), SPAN_FMT(p[i].host.text), (unsigned)p[i].port.v);
    }
}

static void warn_use(struct loader *l, const struct model *m, const struct m_rule *r)
{
    int at = find_credential(m, r->use.text);
    const struct items *hosts = rule_hosts(r);
    if (at < 0)
        return;
    const struct m_credential *c = m->credentials[at];
    const struct m_place *p = c->only.v;
    for (size_t i = 0; i < hosts->n; i++) {
        bool covered = false;
        for (size_t k = 0; k < c->only.n && !covered; k++)
            covered = pattern_covers(hosts->v[i].text, p[k].host.text);
        if (!covered) {
            problem(l, r->use.at, "P106",
                    "the rule is about %.*s, where only: of \"%.*s\" does not let it go: such "
                    "requests will be denied",
                    SPAN_FMT(hosts->v[i].text), SPAN_FMT(c->name.text));
            continue;
        }
        warn_place(l, r, c, hosts->v[i].text);
        warn_cleartext(l, m, r, c, hosts->v[i].text);
    }
}

static bool covers_list(const struct items *a, const struct items *b, uint8_t sep)
{
    if (a->n == 0)
        return true;
    for (size_t i = 0; i < b->n; i++) {
        bool covered = false;
        for (size_t k = 0; k < a->n && !covered; k++) {
            struct glob g = glob_of(a->v[k].text, sep);
            covered = span_eq(a->v[k].text, b->v[i].text) || glob_match(&g, b->v[i].text, sep, false);
        }
        if (!covered)
            return false;
    }
    return b->n > 0;
}

static bool covers_hosts(const struct items *a, const struct items *b)
{
    bool all = b->n > 0;
    for (size_t i = 0; i < b->n && all; i++) {
        all = false;
        for (size_t k = 0; k < a->n && !all; k++)
            all = span_eq(a->v[k].text, b->v[i].text) || pattern_covers(a->v[k].text, b->v[i].text);
    }
    return a->n == 0 || all;
}

static bool covers_mask(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && (b & ~a) == 0);
}

/* Is everything that b is about certainly something that deny rule a is about? */
static bool covers(const struct m_rule *a, const struct m_rule *b)
{
    const struct m_match *x = &a->match, *y = &b->match;
    if (a->except.n || x->query.n || x->header.n || x->git.at || x->json.n || x->form.n || x->ws.at)
        return false;
    if (a->scope.at && (!b->scope.at || !covers_list(&a->scope, &b->scope, 0)))
        return false;
    return covers_hosts(rule_hosts(a), rule_hosts(b)) && covers_list(&x->ports, &y->ports, 0) &&
           covers_list(&x->methods, &y->methods, 0) && covers_list(&x->paths, &y->paths, '/') &&
           covers_list(&x->ops, &y->ops, '.') && covers_list(&x->resources, &y->resources, '/') &&
           covers_mask(x->schemes.v, y->schemes.v) && covers_mask(x->effects.v, y->effects.v);
}

static void warn_shadowed(struct loader *l, const struct model *m)
{
    size_t budget = 200 * 1000; /* pairs looked at; a very large policy is not worth minutes of warnings */
    for (size_t i = 0; i < m->nrules; i++) {
        const struct m_rule *a = m->rules[i];
        if (a->decide.v != VERDICT_DENY)
            continue;
        for (size_t k = 0; k < m->nrules && budget; k++, budget--) {
            const struct m_rule *b = m->rules[k];
            if (b->decide.v != VERDICT_DENY && covers(a, b))
                problem(l, b->at, "P103",
                        "the rule \"%.*s\" never decides: the %s \"%.*s\" at %s:%u denies all it is about",
                        SPAN_FMT(b->id.text), a->floor ? "floor" : "rule", SPAN_FMT(a->id.text), a->at->file,
                        a->at->line);
        }
    }
}

/* An operation has one effect: asking for another one never fits. */
static void warn_never(struct loader *l, const struct model *m, const struct m_rule *r)
{
    const struct m_match *t = &r->match;
    bool fits = t->ops.n == 0 || t->effects.v == 0 || t->ws.at; /* an upgrade of a read is a write */
    for (size_t o = 0; o < t->ops.n && !fits; o++) {
        struct glob g = glob_of(t->ops.v[o].text, '.');
        fits = span_starts(t->ops.v[o].text, SPAN("http."));
        for (size_t i = 0; i < m->npacks && !fits; i++) {
            const struct m_op *ops = m->packs[i]->ops.v;
            for (size_t k = 0; k < m->packs[i]->ops.n && !fits; k++)
                fits = glob_match(&g, ops[k].op.text, '.', false) && (t->effects.v & 1u << ops[k].effect.v);
        }
    }
    if (!fits)
        problem(l, t->effects.at, "P102", "the rule can never fit: none of its operations has this effect");
}

static void warn_rule(struct loader *l, const struct model *m, const struct m_rule *r)
{
    const struct m_match *t = &r->match;
    if (r->use.at)
        warn_use(l, m, r);
    warn_never(l, m, r);
    bool narrowed = t->effects.at || t->methods.at || t->ops.at || t->ws.at;
    if (r->decide.v == VERDICT_ALLOW && !narrowed)
        problem(l, r->at, "P104",
                "the rule allows writes too: add effect: read, or effect: [read, write] if that is meant");
    if (r->messages.at && t->effects.v == 1u << EFFECT_READ)
        problem(
            l, r->messages.at, "P110",
            "the rule counts the WebSocket as a read and lets messages be sent: a freeze does not stop them; take "
            "effect: read out if they change something");
    const struct items *hosts = rule_hosts(r);
    for (size_t i = 0; i < hosts->n && r->decide.v != VERDICT_DENY; i++)
        if (names_shared(hosts->v[i].text))
            problem(l, hosts->v[i].at, "P109",
                    "under \"%.*s\" every customer of that service has a name, an attacker too: name your own",
                    SPAN_FMT(hosts->v[i].text));
}

void warn_model(struct loader *l, const struct model *m)
{
    for (size_t i = 0; i < m->ncredentials; i++)
        warn_credential(l, m, m->credentials[i]);
    for (size_t i = 0; i < m->nrules; i++)
        warn_rule(l, m, m->rules[i]);
    warn_shadowed(l, m);
    if (m->nrules == 0)
        problem(l, NULL, "P107", "no rules: everything is denied");
}
