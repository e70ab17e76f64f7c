/* Where, how and what: places, methods, paths and upgrades; diff_who.c has who. */
#include "cli/policy/diff/diff_parts.h"

#include "policy/image/glob.h"

struct option *diff_dim_add(struct space *s, struct dim *d, struct option o)
{
    struct option *v = arena_more(s->a, d->v, d->n, &d->max, sizeof(*v));
    if (v == NULL)
        return NULL;
    d->v = v;
    d->v[d->n] = o;
    return &d->v[d->n++];
}

struct dim *diff_space_dim(struct space *s, enum dim_kind kind, struct span name)
{
    if (s->ndims == DIMS_MAX)
        return NULL;
    s->dim[s->ndims] = (struct dim){.kind = kind, .name = name};
    return &s->dim[s->ndims++];
}

int diff_patterns_add(struct space *s, struct patterns *l, struct span text, bool fold)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].fold == fold && span_eq(l->v[i].text, text))
            return 0;
    struct pattern *v = arena_more(s->a, l->v, l->n, &l->max, sizeof(*v));
    if (v == NULL)
        return -1;
    l->v = v;
    l->v[l->n++] = (struct pattern){text, fold};
    return 0;
}

int diff_patterns_add_both(struct space *s, struct patterns *l, struct span text)
{
    return diff_patterns_add(s, l, text, false) | diff_patterns_add(s, l, text, true);
}

int diff_patterns_add_globs(struct space *s, struct patterns *l, const struct policy *p, struct img_range globs)
{
    int rc = 0;
    for (uint32_t i = 0; i < globs.n; i++)
        rc |= diff_patterns_add_both(s, l, img_glob(p, globs, i));
    return rc;
}

bool diff_globs_fit(const struct policy *p, struct img_range globs, struct span text, uint8_t sep, bool fold)
{
    for (uint32_t i = 0; i < globs.n; i++) {
        struct glob g = glob_of(img_glob(p, globs, i), sep);
        if (glob_match(&g, text, sep, fold))
            return true;
    }
    return false;
}

/* ---- which rules a value leaves possible ---- */

static bool method_may_fit(const struct site *r, struct span method)
{
    for (uint32_t i = 0; i < r->match->methods.n; i++)
        if (span_ieq(img_text(r->p, r->match->methods, i), method))
            return true;
    return r->match->methods.n == 0;
}

static bool path_may_fit(const struct site *r, struct span path)
{
    struct span bare = path.n > 1 && path.p[path.n - 1] == '/' ? span_first(path, path.n - 1) : path;
    struct img_range paths = r->match->paths;
    return paths.n == 0 || diff_globs_fit(r->p, paths, path, '/', true) ||
           diff_globs_fit(r->p, paths, bare, '/', true);
}

/* Is it about operations that are named after methods? */
static bool names_methods(const struct policy *p, const struct img_match *m)
{
    for (uint32_t i = 0; i < m->ops.n; i++) {
        struct span op = img_glob(p, m->ops, i);
        if (span_starts(op, SPAN("http")) || span_first(op, span_index(op, '.')).n == 0 || op.p[0] == '*')
            return true;
    }
    return false;
}

/* What restricts is asked whatever method such a request has. */
static bool may_be_overridden(const struct site *r, bool over)
{
    return over && r->rule->verdict != VERDICT_ALLOW;
}

/* Can a request of this path be one of the operations that the rule is about? */
static bool ops_may_fit(const struct space *s, const struct site *r, struct span path, bool over)
{
    struct img_range ops = r->match->ops;
    if (ops.n == 0 || names_methods(r->p, r->match) || may_be_overridden(r, over))
        return true;
    for (size_t i = 0; i < s->nops; i++) {
        const struct img_op *o = s->op[i].op;
        if (s->op[i].p != r->p || !diff_globs_fit(r->p, o->path, path, '/', true))
            continue;
        if (diff_globs_fit(r->p, ops, img_span(r->p, o->op), '.', false) ||
            (o->could_op.n && diff_globs_fit(r->p, ops, img_span(r->p, o->could_op), '.', false)))
            return true;
    }
    return false;
}

bool diff_option_overrides(const struct dim *d, const struct option *o, bool over)
{
    return d->kind == DIM_METHOD ? o->override : over;
}

bool diff_option_may_fit(const struct space *s, const struct site *r, const struct dim *d, const struct option *o,
                         bool over)
{
    struct subject who = {o->text, o->labels, o->nlabels};
    switch (d->kind) {
    case DIM_PLACE: return match_names_place(r->p, r->match, o->text, s->host, o->port, ANY_PLACE);
    case DIM_METHOD: return s->could || may_be_overridden(r, over) || method_may_fit(r, o->text);
    case DIM_PATH: return ops_may_fit(s, r, o->text, over) && (s->could || path_may_fit(r, o->text));
    case DIM_WHO: return match_scope(r->p, &who, r->rule);
    case DIM_UPGRADE: return o->upgrade ? r->match->ws || r->rule->verdict == VERDICT_DENY : !r->match->ws;
    default: return true;
    }
}

/* ---- places ---- */

static void sign_place(const struct space *s, struct span scheme, uint16_t port, struct dynbuf *b)
{
    for (size_t i = 0; i < s->nparts; i++)
        for (unsigned how = AS_WRITTEN; how <= ANY_PLACE; how++)
            (void)dynbuf_addf(
                b, "%d",
                match_names_place(s->part[i].p, s->part[i].match, scheme, s->host, port, (enum strictness)how));
    for (unsigned v = OLD; v <= NEW; v++) {
        const struct policy *p = s->p[v];
        for (uint32_t i = 0; i < p->n[IMG_PACK]; i++)
            (void)dynbuf_addf(b, "%d", classify_pack_fits(p, img_at(p, IMG_PACK, i), scheme, s->host, port));
        for (uint32_t i = 0; i < p->n[IMG_CRED]; i++)
            (void)dynbuf_addf(b, "%d", policy_credential_bound(p, i, scheme, s->host, port));
        for (uint32_t i = 0; i < p->n[IMG_UPSTREAM]; i++) {
            const struct img_upstream *u = img_at(p, IMG_UPSTREAM, i);
            (void)dynbuf_addf(b, "%d", u->port == port && span_eq(img_span(p, u->host), s->host));
        }
    }
    (void)dynbuf_addf(b, "%d", span_eq(scheme, SPAN("https")));
}

static int add_place(struct space *s, struct dim *d, struct signs *seen, struct span scheme, uint32_t port)
{
    struct dynbuf b;
    if (port == 0 || port > 65535)
        return 0;
    dynbuf_init(&b, DIFF_SIGN_MAX);
    sign_place(s, scheme, (uint16_t)port, &b);
    int rc = diff_sign_add(s, seen, &b);
    if (rc == 1 && diff_dim_add(s, d, (struct option){.text = scheme, .port = (uint16_t)port}) == NULL)
        return -1;
    return rc < 0 ? -1 : 0;
}

static int add_ports(struct space *s, struct dim *d, struct signs *seen, struct span scheme)
{
    int rc = add_place(s, d, seen, scheme, span_eq(scheme, SPAN("https")) ? 443 : 80);
    for (size_t i = 0; i < s->nparts; i++)
        for (uint32_t j = 0; j < s->part[i].match->ports.n; j++)
            rc |= add_place(s, d, seen, scheme,
                            *(const uint32_t *)img_at(s->part[i].p, IMG_PORT, s->part[i].match->ports.first + j));
    for (unsigned v = OLD; v <= NEW; v++) {
        const struct policy *p = s->p[v];
        for (uint32_t i = 0; i < p->n[IMG_PACK]; i++) {
            const struct img_pack *k = img_at(p, IMG_PACK, i);
            for (uint32_t j = 0; classify_hosts_fit(p, k->hosts, s->host) && j < k->hosts.n; j++)
                rc |= add_place(s, d, seen, scheme,
                                ((const struct img_host *)img_at(p, IMG_HOST, k->hosts.first + j))->port);
        }
        for (uint32_t i = 0; i < p->n[IMG_PLACE]; i++) {
            const struct img_place *l = img_at(p, IMG_PLACE, i);
            rc |= span_eq(img_span(p, l->host), s->host) ? add_place(s, d, seen, scheme, l->port) : 0;
        }
        for (uint32_t i = 0; i < p->n[IMG_UPSTREAM]; i++) {
            const struct img_upstream *u = img_at(p, IMG_UPSTREAM, i);
            rc |= span_eq(img_span(p, u->host), s->host) ? add_place(s, d, seen, scheme, u->port) : 0;
        }
    }
    /* One that nobody names; of these three one at least, as far as a few dozen names go. */
    static const uint16_t other[] = {8444, 80, 10443, 443};
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        rc |= add_place(s, d, seen, scheme, other[i]);
    return rc;
}

static int find_places(struct space *s, struct dim *d)
{
    struct signs seen = {0};
    return add_ports(s, d, &seen, SPAN("https")) | add_ports(s, d, &seen, SPAN("http"));
}

/* ---- methods ---- */

static bool same_methods(const struct policy *p, struct img_range list, struct span a, struct span b)
{
    for (uint32_t i = 0; i < list.n; i++) {
        struct span m = img_text(p, list, i);
        if (span_eq(m, a) != span_eq(m, b))
            return false;
    }
    return true;
}

/* Can any question tell these two methods apart? */
static bool methods_alike(const struct space *s, struct span a, struct span b)
{
    if (classify_rest_effect(a, false) != classify_rest_effect(b, false))
        return false;
    for (size_t i = 0; i < s->nparts; i++)
        if (names_methods(s->part[i].p, s->part[i].match) ||
            !same_methods(s->part[i].p, s->part[i].match->methods, a, b))
            return false;
    for (size_t i = 0; i < s->nops; i++)
        if (!same_methods(s->op[i].p, s->op[i].op->methods, a, b))
            return false;
    return true;
}

static int add_method(struct space *s, struct dim *d, struct span method)
{
    for (size_t i = 0; i < d->n; i++)
        if (span_eq(d->v[i].text, method) || methods_alike(s, d->v[i].text, method))
            return 0;
    return diff_dim_add(s, d, (struct option){.text = method}) ? 0 : -1;
}

static int add_methods_of(struct space *s, struct dim *d, const struct policy *p, struct img_range list)
{
    int rc = 0;
    for (uint32_t i = 0; i < list.n; i++)
        rc |= add_method(s, d, img_text(p, list, i));
    return rc;
}

static int find_methods(struct space *s, struct dim *d)
{
    static const char *const usual[] = {"GET",  "POST",    "DELETE", "PUT",  "PATCH",
                                        "HEAD", "OPTIONS", "PURGE",  "LINK", "MKCOL"};
    int rc = 0;
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        rc |= add_method(s, d, span_str(usual[i]));
    for (size_t i = 0; i < s->nparts; i++)
        rc |= add_methods_of(s, d, s->part[i].p, s->part[i].match->methods);
    for (size_t i = 0; i < s->nops; i++)
        rc |= add_methods_of(s, d, s->op[i].p, s->op[i].op->methods);
    /* Each again in a request that asks the server for another one: it is judged as both. */
    for (size_t i = 0, n = d->n; i < n && rc == 0; i++)
        rc = diff_dim_add(s, d, (struct option){.text = d->v[i].text, .override = true}) ? 0 : -1;
    return rc;
}

/* ---- all of them ---- */

static int find_upgrades(struct space *s, struct dim *d)
{
    bool asked = false;
    for (size_t i = 0; i < s->nsites; i++)
        asked |= s->site[i].match->ws != 0;
    if (diff_dim_add(s, d, (struct option){.upgrade = false}) == NULL)
        return -1;
    return asked && diff_dim_add(s, d, (struct option){.upgrade = true}) == NULL ? -1 : 0;
}

static void set_masks(struct space *s)
{
    for (size_t i = 0; i < s->ndims; i++)
        for (size_t k = 0; k < s->dim[i].n; k++) {
            struct option *o = &s->dim[i].v[k];
            for (unsigned over = 0; over < 2; over++) {
                o->mask[over] = s->all ? UINT64_MAX : 0;
                for (size_t j = 0; j < s->nsites && !s->all; j++)
                    if (s->site[j].mask && diff_option_may_fit(s, &s->site[j], &s->dim[i], o, over))
                        o->mask[over] |= s->site[j].mask;
            }
        }
}

int diff_space_masked(struct space *s)
{
    static int (*const find[DIM_MASKED])(struct space *, struct dim *) = {[DIM_PLACE] = find_places,
                                                                          [DIM_METHOD] = find_methods,
                                                                          [DIM_PATH] = diff_space_paths,
                                                                          [DIM_WHO] = diff_space_who,
                                                                          [DIM_UPGRADE] = find_upgrades};
    static const char *const names[DIM_MASKED] = {"places", "methods", "paths", "sandboxes", "upgrades"};
    s->ndims = 0;
    for (unsigned i = 0; i < DIM_MASKED; i++) {
        struct dim *d = diff_space_dim(s, (enum dim_kind)i, SPAN_NONE);
        if (d == NULL || find[i](s, d) != 0) {
            s->why = names[i];
            return -1;
        }
    }
    set_masks(s);
    return 0;
}
