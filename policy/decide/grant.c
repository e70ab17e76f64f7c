#include "policy/grant.h"

#include "policy/image/image.h"

/* Of a pointer, its first step. Names that need an escape in one are never left open. */
static bool begins_with(struct span pointer, struct span name)
{
    struct span rest = span_from(pointer, pointer.n > 0);
    return pointer.n == 0 || span_eq(span_first(rest, span_index(rest, '/')), name);
}

static bool match_fixes(const struct policy *p, const struct img_match *m, enum grant_at at, struct span name)
{
    for (uint32_t i = 0; at == GRANT_QUERY && i < m->query.n; i++)
        if (span_eq(img_span(p, ((const struct img_pair *)img_at(p, IMG_PAIR, m->query.first + i))->key), name))
            return true;
    for (uint32_t i = 0; i < m->body.n; i++) {
        const struct img_cond *c = img_at(p, IMG_COND, m->body.first + i);
        struct span key = img_span(p, c->key);
        if ((at == GRANT_FORM && c->kind == COND_FORM && span_eq(key, name)) ||
            (at == GRANT_JSON && c->kind == COND_JSON && begins_with(key, name)))
            return true;
    }
    return false;
}

static bool match_is_closed(const struct policy *p, const struct img_match *m)
{
    for (uint32_t i = 0; i < m->body.n; i++) {
        const struct img_cond *c = img_at(p, IMG_COND, m->body.first + i);
        if (c->kind != COND_FORM && c->kind != COND_JSON)
            return true;
    }
    return false;
}

/* Its match and each of its exceptions. */
static bool any_match(const struct policy *p, const struct img_rule *r, enum grant_at at, const struct span *name)
{
    const struct img_range both[] = {r->match, r->except};
    for (size_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k].n; i++) {
            const struct img_match *m = img_at(p, IMG_MATCH, both[k].first + i);
            if (name ? match_fixes(p, m, at, *name) : match_is_closed(p, m))
                return true;
        }
    return false;
}

int policy_grant_rule(const struct policy *p, struct span id)
{
    for (uint32_t i = 0; i < p->n[IMG_RULE] && id.n; i++) {
        const struct img_rule *r = img_at(p, IMG_RULE, i);
        if (span_eq(img_span(p, r->id), id))
            return any_match(p, r, GRANT_QUERY, NULL) ? -1 : (int)i;
    }
    return -1;
}

bool policy_grant_fixes(const struct policy *p, int rule, enum grant_at at, struct span name)
{
    return rule < 0 || (uint32_t)rule >= p->n[IMG_RULE] ||
           any_match(p, img_at(p, IMG_RULE, (uint32_t)rule), at, &name);
}
