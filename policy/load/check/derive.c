#include "policy/load/check/derive.h"

#include "policy/image/glob.h"
#include "policy/load/read/scalar.h"
#include "policy/load/read/set.h"

const char *derive_host_and_port(struct span s, struct span *host, uint64_t *port)
{
    struct span tail;
    size_t bracket = s.n && s.p[0] == '[' ? span_index(s, ']') : 0;
    (void)span_cut(span_from(s, bracket), ':', host, &tail);
    *host = span_first(s, bracket + host->n);
    *port = 0;
    if (host->n < s.n && (span_u64(tail, 65535, port) != 0 || *port == 0))
        return "has no port number after the colon";
    return scalar_host(*host, true);
}

const struct items *derive_pack_hosts(const struct m_pack *k)
{
    return k->use->hosts.at ? &k->use->hosts : &k->hosts;
}

static size_t count_deep(struct span s)
{
    size_t n = 0;
    for (struct span rest = s; rest.n; n++) {
        size_t at = span_find(rest, SPAN("**"));
        if (at == rest.n)
            break;
        rest = span_from(rest, at + 2);
    }
    return n;
}

static void check_op(struct loader *l, const struct m_op *o)
{
    const char *why = o->path.at ? scalar_path(o->path.text) : NULL;
    if (why)
        load_problem(l, o->path.at, "P016", "the path %s", why);
    if (o->path.at && count_deep(o->path.text) > 1)
        load_problem(l, o->path.at, "P016", "a pack's path has at most one **");
    for (size_t i = 0; i < o->methods.n; i++)
        if (!scalar_is_method(o->methods.v[i].text))
            load_problem(l, o->methods.v[i].at, "P016", "no method: upper-case, such as GET");
    if (o->op.at && (span_index(o->op.text, '.') == o->op.text.n || span_index(o->op.text, '*') < o->op.text.n))
        load_problem(l, o->op.at, "P016", "an operation is two words or more with dots, such as npm.publish");
}

void derive_check_pack(struct loader *l, const struct m_pack *k)
{
    const struct items *hosts = derive_pack_hosts(k);
    const struct m_op *ops = k->ops.v;
    for (size_t i = 0; i < k->ops.n; i++)
        check_op(l, &ops[i]);
    for (size_t i = 0; i < hosts->n; i++) {
        struct span host;
        uint64_t port;
        const char *why = derive_host_and_port(hosts->v[i].text, &host, &port);
        if (why)
            load_problem(l, hosts->v[i].at, "P013", "\"%.*s\" %s", SPAN_FMT(span_first(hosts->v[i].text, 100)), why);
    }
}

struct derived {
    struct loader *l;
    struct m_match *t;
    size_t max_hosts, max_ports;
    struct set hosts, ports;                /* that are there already */
    bool default_port, explicit_port, open; /* open: something may be on any host */
};

static void add_item(struct derived *d, struct items *to, size_t *max, struct span text, const struct node *at)
{
    if (!set_add(d->l, to == &d->t->ports ? &d->ports : &d->hosts, text))
        return;
    if (to->n == *max) {
        struct item *bigger = arena_alloc(&d->l->a, (*max * 2 + 8) * sizeof(*bigger));
        if (bigger == NULL) {
            d->open = true;
            return;
        }
        if (to->n)
            memcpy(bigger, to->v, to->n * sizeof(*bigger));
        to->v = bigger;
        *max = *max * 2 + 8;
    }
    to->at = at;
    to->v[to->n++] = (struct item){text, at};
}

static void add_host(struct derived *d, struct span host, const struct node *at)
{
    add_item(d, &d->t->derived, &d->max_hosts, host, at);
}

static void add_pack_hosts(struct derived *d, const struct m_pack *k, const struct node *at)
{
    const struct items *hosts = derive_pack_hosts(k);
    d->open |= hosts->n == 0;
    for (size_t i = 0; i < hosts->n; i++) {
        struct span host;
        uint64_t port;
        if (derive_host_and_port(hosts->v[i].text, &host, &port) != NULL)
            continue;
        add_host(d, host, at);
        /* The pack itself holds host and port together, so a list of ports is exact enough here. */
        struct span digits = span_from(hosts->v[i].text, host.n + 1);
        if (d->explicit_port)
            continue;
        add_item(d, &d->t->ports, &d->max_ports, port ? digits : SPAN("443"), at);
    }
}

/* Could this template have made the resource? Then add where it would have been made. */
static bool add_by_template(struct derived *d, const struct m_pack *k, struct span host, struct span text,
                            const struct item *resource)
{
    struct span fixed = span_first(text, span_index(text, '{')), after = span_from(text, fixed.n);
    struct span rest = span_from(resource->text, fixed.n);
    if (fixed.n == 0 || !span_starts(resource->text, fixed))
        return false;
    d->default_port |= host.n || span_starts(after, SPAN("{host}"));
    if (host.n) {
        add_host(d, host, resource->at);
    } else if (span_starts(after, SPAN("{host}"))) {
        struct span name = span_first(rest, span_index(rest, '/'));
        if (scalar_host(name, false) == NULL)
            add_host(d, name, resource->at);
        else
            d->open = true;
    } else {
        add_pack_hosts(d, k, resource->at);
    }
    return true;
}

static void add_by_resource(struct derived *d, const struct model *m, const struct item *resource)
{
    bool found = false;
    for (size_t i = 0; i < m->npacks; i++) {
        const struct m_pack *k = m->packs[i];
        const struct m_resource *r = k->resources.v;
        const struct m_op *ops = k->ops.v;
        for (size_t j = 0; j < k->resources.n; j++)
            found |= add_by_template(d, k, r[j].host.text, r[j].resource.text, resource);
        for (size_t j = 0; j < k->ops.n; j++)
            found |= add_by_template(d, k, SPAN_NONE, ops[j].resource.text, resource);
    }
    if (!found)
        load_problem(d->l, resource->at, "P011", "no pack in packs: has resources like \"%.*s\"",
                     SPAN_FMT(span_first(resource->text, 100)));
    d->open |= !found;
}

static void add_by_op(struct derived *d, const struct model *m, const struct item *op)
{
    struct glob g = glob_of(op->text, '.');
    bool found = false;
    for (size_t i = 0; i < m->npacks; i++) {
        const struct m_op *ops = m->packs[i]->ops.v;
        bool fits = false;
        for (size_t j = 0; j < m->packs[i]->ops.n; j++)
            fits |= glob_match(&g, ops[j].op.text, '.', false);
        if (fits)
            add_pack_hosts(d, m->packs[i], op->at);
        found |= fits;
    }
    d->open |= !found;
}

void derive_hosts(struct loader *l, const struct model *m, struct m_match *t)
{
    struct derived d = {.l = l, .t = t, .explicit_port = t->ports.at != NULL};
    for (size_t i = 0; i < t->resources.n; i++)
        add_by_resource(&d, m, &t->resources.v[i]);
    if (t->resources.n == 0)
        for (size_t i = 0; i < t->ops.n; i++)
            add_by_op(&d, m, &t->ops.v[i]);
    if (d.default_port && t->ports.n && !d.explicit_port)
        add_item(&d, &t->ports, &d.max_ports, SPAN("443"), t->at);
    if (d.open)
        t->derived.n = 0;
    set_free(&d.hosts);
    set_free(&d.ports);
}

const char *derive_token_url(struct span url, struct token_url *out)
{
    struct span rest = span_from(url, sizeof("https://") - 1);
    size_t slash = span_index(rest, '/');
    const char *why = derive_host_and_port(span_first(rest, slash), &out->host, &out->port);
    out->path = span_from(rest, slash);
    if (out->port == 0)
        out->port = 443;
    if (why != NULL)
        return why;
    if (out->path.n < 2 || span_ends(out->path, SPAN("/")) || span_index(out->path, '*') < out->path.n)
        return "is no address of one place: it has a path, without wildcards and without a slash at its end";
    return scalar_path(out->path);
}
