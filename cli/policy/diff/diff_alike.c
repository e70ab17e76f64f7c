/* Two paths that fit different patterns may still be decided alike: of a pack's rows only the first that fits counts.
 * So each path is shown to the classifier with every method, query and type that matters, and of those that every
 * question of every rule answers alike one is kept. */
#include "cli/policy/diff/diff_parts.h"

#include "policy/classify/classify.h"
#include "policy/image/glob.h"

enum { SHOWN_MAX = 64 };

struct shown { /* what beside the path a pack's rows ask about */
    struct span query[SHOWN_MAX], type[SHOWN_MAX];
    size_t nqueries, ntypes;
};

static int add_once(struct span *v, size_t *n, struct span s)
{
    for (size_t i = 0; i < *n; i++)
        if (span_eq(v[i], s))
            return 0;
    if (*n == SHOWN_MAX)
        return -1;
    v[(*n)++] = s;
    return 0;
}

static int collect(const struct space *s, struct shown *w)
{
    int rc = add_once(w->query, &w->nqueries, SPAN_NONE) | add_once(w->type, &w->ntypes, SPAN_NONE);
    for (size_t i = 0; i < s->nops; i++) {
        const struct img_op *o = s->op[i].op;
        if (o->query_rule == QUERY_EXACT)
            rc |= add_once(w->query, &w->nqueries, img_span(s->op[i].p, o->query));
        rc |= add_once(w->type, &w->ntypes, img_span(s->op[i].p, o->content_type));
        if (o->body == BODY_GIT_RECEIVE_PACK)
            rc |= add_once(w->type, &w->ntypes, SPAN("application/x-git-receive-pack-request"));
    }
    return rc;
}

static void sign_path(const struct space *s, struct span path, struct dynbuf *b)
{
    struct span bare = path.n > 1 && path.p[path.n - 1] == '/' ? span_first(path, path.n - 1) : path;
    for (size_t i = 0; i < s->nparts; i++) {
        const struct policy *p = s->part[i].p;
        struct img_range paths = s->part[i].match->paths;
        if (paths.n)
            (void)dynbuf_addf(b, "%d%d", diff_globs_fit(p, paths, path, '/', false),
                              diff_globs_fit(p, paths, path, '/', true) || diff_globs_fit(p, paths, bare, '/', true));
    }
}

static void sign_class(const struct space *s, const struct class *c, struct dynbuf *b)
{
    (void)dynbuf_addf(b, "|%.*s %.*s %d %s %u %d ", SPAN_FMT(c->op), SPAN_FMT(c->could_op), (int)c->effect,
                      c->bad ? c->bad : "", c->git_service, c->pending);
    for (size_t i = 0; i < s->nparts; i++) {
        const struct policy *p = s->part[i].p;
        struct img_range resources = s->part[i].match->resources;
        if (resources.n)
            (void)dynbuf_addf(b, "%d%d", diff_globs_fit(p, resources, c->resource, '/', false),
                              diff_globs_fit(p, resources, c->resource, '/', true));
    }
    if (c->could_path.n)
        sign_path(s, c->could_path, b);
}

/* Packs that name a port are about some of the places alone. */
static size_t places_that_matter(const struct space *s)
{
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < s->p[v]->n[IMG_PACK]; i++) {
            const struct img_pack *k = img_at(s->p[v], IMG_PACK, i);
            for (uint32_t j = 0; j < k->hosts.n; j++)
                if (((const struct img_host *)img_at(s->p[v], IMG_HOST, k->hosts.first + j))->port)
                    return s->dim[DIM_PLACE].n;
        }
    return 1;
}

static void sign_classes(struct space *s, const struct shown *w, const struct option *place, struct span path,
                         struct dynbuf *b)
{
    struct class c[CLASSES_MAX];
    struct arena a;
    for (unsigned v = OLD; v <= NEW; v++)
        for (size_t m = 0; m < s->dim[DIM_METHOD].n; m++)
            for (size_t k = 0; k < w->nqueries * w->ntypes; k++) {
                struct http_field type = {SPAN("Content-Type"), w->type[k % w->ntypes]};
                struct request r = {.scheme = place->text,
                                    .host = s->host,
                                    .port = place->port,
                                    .method = s->dim[DIM_METHOD].v[m].text,
                                    .path = path,
                                    .query = w->query[k / w->ntypes],
                                    .fields = &type,
                                    .nfields = type.value.n > 0,
                                    .has_body = true};
                struct body_view body = {.looked = false};
                arena_init(&a, DIFF_SIGN_MAX);
                size_t n = classify(s->p[v], &r, path, &body, &a, c);
                for (size_t i = 0; i < n; i++)
                    sign_class(s, &c[i], b);
                arena_free(&a);
            }
}

static void sign_places(const struct space *s, struct span path, struct dynbuf *b)
{
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < s->p[v]->n[IMG_CRED]; i++) {
            const struct img_cred *c = img_at(s->p[v], IMG_CRED, i);
            for (uint32_t k = 0; k < c->only.n; k++) {
                const struct img_place *l = img_at(s->p[v], IMG_PLACE, c->only.first + k);
                if (span_eq(img_span(s->p[v], l->host), s->host))
                    (void)dynbuf_addf(b, "%d", diff_globs_fit(s->p[v], l->path, path, '/', false));
            }
        }
}

/* Of all that some server may take the path for: what restricts is asked about each. */
static void sign_readings(struct space *s, const struct shown *w, size_t places, struct span path, struct dynbuf *b)
{
    struct reading reading[READINGS_MAX] = {{path, READ_WHOLE}};
    struct arena a;
    size_t n = 0;
    arena_init(&a, DIFF_SIGN_MAX);
    if (readings_of(path, &a, reading, &n) != 0)
        n = 1;
    for (size_t i = 0; i < n; i++) {
        (void)dynbuf_addf(b, "/%d", (int)reading[i].how);
        sign_path(s, reading[i].path, b);
        sign_places(s, reading[i].path, b);
        for (size_t p = 0; p < places; p++)
            sign_classes(s, w, &s->dim[DIM_PLACE].v[p], reading[i].path, b);
    }
    arena_free(&a);
}

int diff_paths_merge(struct space *s, struct dim *d)
{
    struct shown *w = arena_alloc(s->a, sizeof(*w));
    struct signs seen = {0};
    size_t n = 0, places = places_that_matter(s);
    int rc = w ? collect(s, w) : -1;
    for (size_t i = 0; i < d->n && rc >= 0; i++) {
        struct dynbuf b;
        dynbuf_init(&b, DIFF_SIGN_MAX);
        sign_readings(s, w, places, d->v[i].text, &b);
        rc = diff_sign_add(s, &seen, &b);
        if (rc == 1)
            d->v[n++] = d->v[i];
    }
    d->n = n;
    return rc < 0 ? -1 : 0;
}
