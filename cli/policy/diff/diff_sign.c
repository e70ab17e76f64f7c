/* Two values that every question of every rule answers alike are one: of a list of ten words a rule tells apart one
 * that is in it, one in another spelling and one that is not. Asked are the very matchers of the judge, each part of
 * a match by itself, of a request that has nothing but the value. */
#include "cli/policy/diff/diff_parts.h"

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

int diff_sign_add(struct space *s, struct signs *l, struct dynbuf *sign)
{
    for (size_t i = 0; i < l->n; i++)
        if (dynbuf_ok(sign) && span_eq(l->v[i], dynbuf_span(sign))) {
            dynbuf_free(sign);
            return 0;
        }
    struct span *v = arena_more(s->a, l->v, l->n, &l->max, sizeof(*v));
    struct span copy = arena_keep(s->a, sign);
    if (v == NULL || copy.p == NULL)
        return -1;
    l->v = v;
    l->v[l->n++] = copy;
    return 1;
}

int diff_signs_add(struct space *s, struct signs *l, const struct request *r)
{
    struct body_view body = {.looked = false};
    struct ask k = {.request = r, .path = r->path, .method = r->method, .body = &body};
    struct dynbuf b;
    struct arena a;
    ask_written(&k);
    arena_init(&a, DIFF_SIGN_MAX);
    dynbuf_init(&b, DIFF_SIGN_MAX);
    k.arena = &a;
    for (size_t i = 0; i < s->nparts; i++) {
        k.p = s->part[i].p;
        put_match(&k, s->part[i].match, &b);
    }
    for (size_t i = 0; i < s->nsites; i++) {
        k.p = s->site[i].p;
        put_limits(&k, s->site[i].rule, &b);
    }
    arena_free(&a);
    return diff_sign_add(s, l, &b);
}

struct request diff_bare_request(const struct space *s, struct span method)
{
    return (struct request){
        .scheme = SPAN("https"), .host = s->host, .port = 443, .method = method, .path = SPAN("/")};
}
