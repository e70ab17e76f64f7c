/* What loads, but is likely not what was meant. */
#include <stdlib.h>

#include "policy/load/model.h"

#include "policy/glob.h"
#include "policy/load/derive.h"
#include "policy/load/names.h"
#include "policy/load/warn.h"

const struct items *rule_hosts(const struct m_rule *r)
{
    return r->match.hosts.at ? &r->match.hosts : &r->match.derived;
}

bool pattern_covers(struct span pattern, struct span host)
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

static int order(struct span a, struct span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int by_use(const void *a, const void *b)
{
    return order((*(struct m_rule *const *)a)->use.text, (*(struct m_rule *const *)b)->use.text);
}

/* The rules that use something, by its name: thousands of credentials must not each look at thousands of rules. */
struct users {
    struct m_rule **v;
    size_t n;
};

static struct users users_of(struct users all, struct span name)
{
    size_t lo = 0, hi = all.n, end;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (order(all.v[mid]->use.text, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (end = lo; end < all.n && span_eq(all.v[end]->use.text, name);)
        end++;
    return (struct users){all.v + lo, end - lo};
}

/* B45: a host where a credential may go and no rule says when. */
static void warn_credential(struct loader *l, struct users all, const struct m_credential *c)
{
    const struct m_place *p = c->only.v;
    struct users of = users_of(all, c->name.text);
    if (of.n == 0) {
        problem(l, c->at, "P105", "no rule uses the credential \"%.*s\"", SPAN_FMT(c->name.text));
        return;
    }
    for (size_t i = 0; i < c->only.n; i++) {
        bool guarded = false;
        for (size_t k = 0; k < of.n && !guarded; k++)
            guarded = names_host(of.v[k], p[i].host.text);
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

/* Does one of the match's conditions keep what is added up from being 0? */
static bool takes_some(const struct m_match *t, const struct m_sum *s)
{
    const struct list *conds = s->pointer.at ? &t->json : &t->form;
    struct span key = s->pointer.at ? s->pointer.text : s->field.text;
    const struct m_cond *c = conds->v;
    uint64_t n;
    for (size_t i = 0; i < conds->n; i++) {
        const struct items *texts = c[i].in.at ? &c[i].in : &c[i].equals;
        bool some = texts->n > 0 || (c[i].at_least.at && c[i].at_least.v > 0);
        for (size_t k = 0; k < texts->n; k++)
            some &= span_u64(texts->v[k].text, UINT64_MAX, &n) == 0 && n > 0;
        if (some && span_eq(c[i].pointer.at ? c[i].pointer.text : c[i].field.text, key))
            return true;
    }
    return false;
}

/* One sum that every request takes some of bounds their number too. */
static void warn_sums(struct loader *l, const struct m_rule *r)
{
    const struct m_sum *v = r->limits.sum.v;
    if (r->limits.sum.n == 0 || r->limits.requests.n)
        return;
    for (size_t i = 0; i < r->limits.sum.n; i++)
        if (takes_some(&r->match, &v[i]))
            return;
    struct span what = v->pointer.at ? v->pointer.text : v->field.text;
    problem(
        l, v->at, "P116",
        "a request with %.*s of 0 takes nothing of the sum, and so there may be any number of them: add requests:, "
        "or int_gte: 1 to the match",
        SPAN_FMT(span_first(what, 100)));
}

static void warn_rule(struct loader *l, const struct model *m, const struct m_rule *r)
{
    const struct m_match *t = &r->match;
    if (r->use.at)
        warn_use(l, m, r);
    warn_never(l, m, r);
    warn_sums(l, r);
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

static void warn_credentials(struct loader *l, const struct model *m)
{
    struct users all = {arena_alloc(&l->a, (m->nrules + 1) * sizeof(*all.v)), 0};
    if (all.v == NULL) {
        problem(l, NULL, "P003", "no memory for the rules");
        return;
    }
    for (size_t i = 0; i < m->nrules; i++)
        if (m->rules[i]->use.at)
            all.v[all.n++] = m->rules[i];
    if (all.n)
        qsort(all.v, all.n, sizeof(*all.v), by_use);
    for (size_t i = 0; i < m->ncredentials; i++)
        warn_credential(l, all, m->credentials[i]);
}

/* Operators are the users of this machine who may open the gateway's socket or its sign-in link. */
static bool is_operator(struct span name)
{
    uint64_t uid;
    return span_starts(name, SPAN("uid ")) && span_u64(span_from(name, 4), UINT32_MAX, &uid) == 0;
}

static void warn_approver(struct loader *l, const struct m_approver *a)
{
    for (size_t i = 0; i < a->operators.n; i++)
        if (!is_operator(a->operators.v[i].text))
            problem(l, a->operators.v[i].at, "P117",
                    "no operator is called \"%.*s\", so nobody approves by that name: operators are called \"uid N\" "
                    "after the user who signs in or calls countersign approvals",
                    SPAN_FMT(span_first(a->operators.v[i].text, 100)));
}

void warn_model(struct loader *l, const struct model *m)
{
    warn_credentials(l, m);
    for (size_t i = 0; i < m->nrules; i++)
        warn_rule(l, m, m->rules[i]);
    for (size_t i = 0; i < m->napprovers; i++)
        warn_approver(l, m->approvers[i]);
    warn_covered(l, m);
    if (m->nrules == 0)
        problem(l, NULL, "P107", "no rules: everything is denied");
}
