/* Where, how and what: places, methods, paths and upgrades; diff_who.c has who. */
#include "cli/policy/diff/diff_parts.h"

#include "cli/policy/diff/states.h"
#include "policy/image/glob.h"

struct option *diff_dim_add(struct space *s, struct dim *d, struct option o)
{
    if (d->n == d->max) {
        size_t max = d->max ? 2 * d->max : 16;
        struct option *v = arena_alloc(s->a, max * sizeof(*v));
        if (v == NULL)
            return NULL;
        if (d->n)
            memcpy(v, d->v, d->n * sizeof(*v));
        d->v = v;
        d->max = max;
    }
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
    if (l->n == l->max) {
        size_t max = l->max ? 2 * l->max : 32;
        struct pattern *v = arena_alloc(s->a, max * sizeof(*v));
        if (v == NULL)
            return -1;
        if (l->n)
            memcpy(v, l->v, l->n * sizeof(*v));
        l->v = v;
        l->max = max;
    }
    l->v[l->n++] = (struct pattern){text, fold};
    return 0;
}

int diff_patterns_add_globs(struct space *s, struct patterns *l, const struct policy *p, struct img_range globs)
{
    int rc = 0;
    for (uint32_t i = 0; i < globs.n; i++) {
        struct span text = img_span(p, ((const struct img_glob *)img_at(p, IMG_GLOB, globs.first + i))->text);
        rc |= diff_patterns_add(s, l, text, false) | diff_patterns_add(s, l, text, true);
    }
    return rc;
}

bool diff_site_match(const struct site *r, uint32_t i, const struct img_match **m)
{
    *m = i == 0 ? r->match : i <= r->rule->except.n ? img_at(r->p, IMG_MATCH, r->rule->except.first + i - 1) : NULL;
    return *m != NULL;
}

static bool applies(const struct space *s, const struct policy *p, uint32_t pack, const struct img_pack **k)
{
    *k = img_at(p, IMG_PACK, pack);
    return diff_host_fits(p, (*k)->hosts, s->host);
}

/* ---- which rules a value leaves possible ---- */

static bool method_may_fit(const struct site *r, struct span method)
{
    for (uint32_t i = 0; i < r->match->methods.n; i++)
        if (span_ieq(img_span(r->p, *(const struct img_str *)img_at(r->p, IMG_STR, r->match->methods.first + i)),
                     method))
            return true;
    return r->match->methods.n == 0;
}

static bool path_may_fit(const struct site *r, struct span path)
{
    struct span bare = path.n > 1 && path.p[path.n - 1] == '/' ? span_first(path, path.n - 1) : path;
    for (uint32_t i = 0; i < r->match->paths.n; i++) {
        const struct img_glob *at = img_at(r->p, IMG_GLOB, r->match->paths.first + i);
        struct glob g = glob_of(img_span(r->p, at->text), '/');
        if (glob_match(&g, path, '/', true) || glob_match(&g, bare, '/', true))
            return true;
    }
    return r->match->paths.n == 0;
}

/* Is it about operations that are named after methods? */
static bool names_methods(const struct policy *p, const struct img_match *m)
{
    for (uint32_t i = 0; i < m->ops.n; i++) {
        struct span op = img_span(p, ((const struct img_glob *)img_at(p, IMG_GLOB, m->ops.first + i))->text);
        if (span_starts(op, SPAN("http")) || span_first(op, span_index(op, '.')).n == 0 || op.p[0] == '*')
            return true;
    }
    return false;
}

static bool op_fits(const struct site *r, struct span op)
{
    for (uint32_t i = 0; i < r->match->ops.n && op.n; i++) {
        struct glob g = glob_of(
            img_span(r->p, ((const struct img_glob *)img_at(r->p, IMG_GLOB, r->match->ops.first + i))->text), '.');
        if (glob_match(&g, op, '.', false))
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
    const struct img_pack *k;
    if (r->match->ops.n == 0 || names_methods(r->p, r->match) || may_be_overridden(r, over))
        return true;
    for (uint32_t i = 0; i < r->p->n[IMG_PACK]; i++)
        for (uint32_t j = 0; applies(s, r->p, i, &k) && j < k->ops.n; j++) {
            const struct img_op *o = img_at(r->p, IMG_OP, k->ops.first + j);
            struct glob g =
                glob_of(img_span(r->p, ((const struct img_glob *)img_at(r->p, IMG_GLOB, o->path.first))->text), '/');
            if (glob_match(&g, path, '/', true) &&
                (op_fits(r, img_span(r->p, o->op)) || op_fits(r, img_span(r->p, o->could_op))))
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

struct bits {
    uint64_t *v;
    size_t n, words;
};

static void push_bit(struct bits *b, bool is)
{
    if (b->n / 64 < b->words && is)
        b->v[b->n / 64] |= UINT64_C(1) << b->n % 64;
    b->n++;
}

static void place_bits(const struct space *s, struct span scheme, uint16_t port, struct bits *b)
{
    const struct img_match *m;
    for (size_t i = 0; i < s->nsites; i++)
        for (uint32_t k = 0; diff_site_match(&s->site[i], k, &m); k++)
            for (unsigned how = AS_WRITTEN; how <= ANY_PLACE; how++)
                push_bit(b, match_names_place(s->site[i].p, m, scheme, s->host, port, (enum strictness)how));
    for (unsigned v = OLD; v <= NEW; v++) {
        const struct policy *p = s->p[v];
        for (uint32_t i = 0; i < p->n[IMG_PACK]; i++)
            push_bit(b, classify_pack_fits(p, img_at(p, IMG_PACK, i), scheme, s->host, port));
        for (uint32_t i = 0; i < p->n[IMG_CRED]; i++)
            push_bit(b, policy_credential_bound(p, i, scheme, s->host, port));
        for (uint32_t i = 0; i < p->n[IMG_UPSTREAM]; i++) {
            const struct img_upstream *u = img_at(p, IMG_UPSTREAM, i);
            push_bit(b, u->port == port && span_eq(img_span(p, u->host), s->host));
        }
    }
    push_bit(b, span_eq(scheme, SPAN("https")));
}

static int add_place(struct space *s, struct dim *d, struct states *seen, struct span scheme, uint32_t port)
{
    struct bits b = {.words = seen->words};
    size_t at;
    if (port == 0 || port > 65535)
        return 0;
    b.v = arena_alloc(s->a, b.words * sizeof(*b.v));
    if (b.v == NULL)
        return -1;
    place_bits(s, scheme, (uint16_t)port, &b);
    int rc = b.n > 64 * b.words ? -1 : states_add(seen, b.v, (struct state_from){0}, &at);
    if (rc == 1 && diff_dim_add(s, d, (struct option){.text = scheme, .port = (uint16_t)port}) == NULL)
        return -1;
    return rc < 0 ? -1 : 0;
}

static int add_ports(struct space *s, struct dim *d, struct states *seen, struct span scheme)
{
    const struct img_match *m;
    const struct img_pack *k;
    int rc = add_place(s, d, seen, scheme, span_eq(scheme, SPAN("https")) ? 443 : 80);
    for (size_t i = 0; i < s->nsites; i++)
        for (uint32_t n = 0; diff_site_match(&s->site[i], n, &m); n++)
            for (uint32_t j = 0; j < m->ports.n; j++)
                rc |= add_place(s, d, seen, scheme,
                                *(const uint32_t *)img_at(s->site[i].p, IMG_PORT, m->ports.first + j));
    for (unsigned v = OLD; v <= NEW; v++) {
        const struct policy *p = s->p[v];
        for (uint32_t i = 0; i < p->n[IMG_PACK]; i++)
            for (uint32_t j = 0; applies(s, p, i, &k) && j < k->hosts.n; j++)
                rc |= add_place(s, d, seen, scheme,
                                ((const struct img_host *)img_at(p, IMG_HOST, k->hosts.first + j))->port);
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
    struct states seen;
    struct bits b = {0};
    place_bits(s, SPAN("https"), 443, &b);
    if (states_init(&seen, b.n / 64 + 1, 4096) != 0)
        return -1;
    int rc = add_ports(s, d, &seen, SPAN("https")) | add_ports(s, d, &seen, SPAN("http"));
    states_free(&seen);
    return rc;
}

/* ---- methods ---- */

static bool same_methods(const struct policy *p, struct img_range list, struct span a, struct span b)
{
    for (uint32_t i = 0; i < list.n; i++) {
        struct span m = img_span(p, *(const struct img_str *)img_at(p, IMG_STR, list.first + i));
        if (span_eq(m, a) != span_eq(m, b))
            return false;
    }
    return true;
}

/* Can any question tell these two methods apart? */
static bool methods_alike(const struct space *s, struct span a, struct span b)
{
    const struct img_match *m;
    const struct img_pack *k;
    if (classify_rest_effect(a, false) != classify_rest_effect(b, false))
        return false;
    for (size_t i = 0; i < s->nsites; i++)
        for (uint32_t n = 0; diff_site_match(&s->site[i], n, &m); n++)
            if (names_methods(s->site[i].p, m) || !same_methods(s->site[i].p, m->methods, a, b))
                return false;
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < s->p[v]->n[IMG_PACK]; i++)
            for (uint32_t j = 0; applies(s, s->p[v], i, &k) && j < k->ops.n; j++)
                if (!same_methods(s->p[v],
                                  ((const struct img_op *)img_at(s->p[v], IMG_OP, k->ops.first + j))->methods, a, b))
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
        rc |= add_method(s, d, img_span(p, *(const struct img_str *)img_at(p, IMG_STR, list.first + i)));
    return rc;
}

static int find_methods(struct space *s, struct dim *d)
{
    static const char *const usual[] = {"GET",  "POST",    "DELETE", "PUT",  "PATCH",
                                        "HEAD", "OPTIONS", "PURGE",  "LINK", "MKCOL"};
    const struct img_match *m;
    const struct img_pack *k;
    int rc = 0;
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        rc |= add_method(s, d, span_str(usual[i]));
    for (size_t i = 0; i < s->nsites; i++)
        for (uint32_t n = 0; diff_site_match(&s->site[i], n, &m); n++)
            rc |= add_methods_of(s, d, s->site[i].p, m->methods);
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < s->p[v]->n[IMG_PACK]; i++)
            for (uint32_t j = 0; applies(s, s->p[v], i, &k) && j < k->ops.n; j++)
                rc |= add_methods_of(s, d, s->p[v],
                                     ((const struct img_op *)img_at(s->p[v], IMG_OP, k->ops.first + j))->methods);
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
