/* Two values that every question of every rule answers alike are one: of a list of ten words a rule tells apart one
 * that is in it, one in another spelling and one that is not. Asked are the very matchers of the judge, each part of
 * a match by itself, of a request that has nothing but the value. */
#include "cli/policy/diff/diff_parts.h"

enum { SIGN_MAX = 1 << 20 };

static void put_fits(struct ask *k, const struct img_match *part, struct dynbuf *b)
{
    (void)dynbuf_addf(b, "%d%d", match_fits(k, part, AS_WRITTEN), match_fits(k, part, ANY_SPELLING));
}

static void put_match(struct ask *k, const struct img_match *m, struct dynbuf *b)
{
    for (uint32_t i = 0; i < m->query.n; i++)
        put_fits(k, &(struct img_match){.query = {m->query.first + i, 1}}, b);
    for (uint32_t i = 0; i < m->header.n; i++)
        put_fits(k, &(struct img_match){.header = {m->header.first + i, 1}}, b);
    for (uint32_t i = 0; i < m->body.n; i++)
        put_fits(k, &(struct img_match){.body = {m->body.first + i, 1}}, b);
    if (m->query_only)
        put_fits(k, &(struct img_match){.query_only = m->query_only, .query_names = m->query_names}, b);
    (void)dynbuf_add_byte(b, '|');
}

/* What it takes of a limit: nothing that can be counted, none, some, too much by itself. */
static void put_limits(struct ask *k, const struct img_rule *rule, struct dynbuf *b)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < rule->limits.n; i++) {
        const struct img_limit *l = img_at(k->p, IMG_LIMIT, rule->limits.first + i);
        if (l->measure == LIMIT_REQUESTS)
            continue;
        uint32_t kind = l->measure == LIMIT_JSON ? COND_JSON : COND_FORM;
        enum amount seen = body_amount(k->body, kind, img_span(k->p, l->key), k->request, k->arena, &n);
        (void)dynbuf_addf(b, "%d%d%d", seen, n > 0, n > l->max);
    }
}

int diff_signs_add(struct space *s, struct signs *l, const struct request *r)
{
    struct body_view body = {.looked = false};
    struct ask k = {.request = r, .path = r->path, .method = r->method, .body = &body};
    ask_written(&k);
    const struct img_match *m;
    struct dynbuf b;
    struct arena a;
    size_t at = 0;
    arena_init(&a, SIGN_MAX);
    dynbuf_init(&b, SIGN_MAX);
    k.arena = &a;
    for (size_t i = 0; i < s->nsites; i++) {
        k.p = s->site[i].p;
        for (uint32_t n = 0; s->site[i].kept && diff_site_match(&s->site[i], n, &m); n++)
            put_match(&k, m, &b);
        if (s->site[i].kept)
            put_limits(&k, s->site[i].rule, &b);
    }
    while (at < l->n && !span_eq(l->v[at], dynbuf_span(&b)))
        at++;
    int rc = !dynbuf_ok(&b) ? -1 : at < l->n ? 0 : 1;
    if (rc == 1 && l->n == l->max) {
        size_t max = l->max ? 2 * l->max : 32;
        struct span *v = arena_alloc(s->a, max * sizeof(*v));
        if (v && l->n)
            memcpy(v, l->v, l->n * sizeof(*v));
        l->v = v ? v : l->v;
        l->max = v ? max : l->max;
        rc = v ? 1 : -1;
    }
    if (rc == 1)
        l->v[l->n++] = b.n ? arena_copy(s->a, dynbuf_span(&b)) : SPAN("");
    dynbuf_free(&b);
    arena_free(&a);
    return rc;
}
