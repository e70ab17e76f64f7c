#include "policy/grant.h"

#include "policy/image/image.h"

/* The next letter or digit; 0: there is none. What is above ASCII is what it is. */
static uint8_t next_letter(struct span s, size_t *i)
{
    while (*i < s.n) {
        uint8_t c = s.p[(*i)++], letter = c | 0x20;
        if ((letter >= 'a' && letter <= 'z') || c >= 0x80)
            return c >= 0x80 ? c : letter;
        if (c >= '0' && c <= '9')
            return c;
    }
    return 0;
}

static bool letters_same(struct span a, struct span b)
{
    uint8_t c;
    for (size_t i = 0, k = 0;;) {
        if ((c = next_letter(a, &i)) != next_letter(b, &k))
            return false;
        if (c == 0)
            return true;
    }
}

bool policy_grant_alike(struct span name, struct span want)
{
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == '[' && letters_same(span_first(name, i), want))
            return true;
    return letters_same(name, want);
}

static enum grant_fix of_name(struct span want, struct span name)
{
    return span_eq(name, want) ? GRANT_FIXES : policy_grant_alike(name, want) ? GRANT_UNSURE : GRANT_OPEN;
}

/* Of a pointer, its first step. Names that need an escape in one are never left open. */
static enum grant_fix of_pointer(struct span pointer, struct span name)
{
    struct span rest = span_from(pointer, pointer.n > 0);
    return pointer.n == 0 ? GRANT_FIXES : of_name(span_first(rest, span_index(rest, '/')), name);
}

static enum grant_fix most(enum grant_fix a, enum grant_fix b)
{
    return a > b ? a : b;
}

/* Servers that put query and body together find in one what the condition is looked for in the other. */
static enum grant_fix here(enum grant_fix fix, bool at_its_place)
{
    return at_its_place || fix == GRANT_OPEN ? fix : GRANT_UNSURE;
}

static enum grant_fix match_fixes(const struct policy *p, const struct img_match *m, enum grant_at at,
                                  struct span name)
{
    enum grant_fix is = GRANT_OPEN;
    for (uint32_t i = 0; i < m->query.n; i++) {
        const struct img_pair *q = img_at(p, IMG_PAIR, m->query.first + i);
        is = most(is, here(of_name(img_span(p, q->key), name), at == GRANT_QUERY));
    }
    for (uint32_t i = 0; i < m->body.n; i++) {
        const struct img_cond *c = img_at(p, IMG_COND, m->body.first + i);
        struct span key = img_span(p, c->key);
        if (c->kind == COND_FORM)
            is = most(is, here(of_name(key, name), at == GRANT_FORM));
        else if (c->kind == COND_JSON)
            is = most(is, here(of_pointer(key, name), at == GRANT_JSON));
    }
    return is;
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

/* Its match and each of its exceptions. Without a name: is one closed? */
static enum grant_fix all_matches(const struct policy *p, const struct img_rule *r, enum grant_at at,
                                  const struct span *name)
{
    const struct img_range both[] = {r->match, r->except};
    enum grant_fix is = GRANT_OPEN;
    for (size_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k].n; i++) {
            const struct img_match *m = img_at(p, IMG_MATCH, both[k].first + i);
            is = most(is, name ? match_fixes(p, m, at, *name) : match_is_closed(p, m) ? GRANT_FIXES : GRANT_OPEN);
        }
    return is;
}

int policy_grant_rule(const struct policy *p, struct span id)
{
    for (uint32_t i = 0; i < p->n[IMG_RULE] && id.n; i++) {
        const struct img_rule *r = img_at(p, IMG_RULE, i);
        if (span_eq(img_span(p, r->id), id))
            return all_matches(p, r, GRANT_QUERY, NULL) != GRANT_OPEN ? -1 : (int)i;
    }
    return -1;
}

enum grant_fix policy_grant_fixes(const struct policy *p, int rule, enum grant_at at, struct span name)
{
    if (rule < 0 || (uint32_t)rule >= p->n[IMG_RULE])
        return GRANT_UNSURE;
    return all_matches(p, img_at(p, IMG_RULE, (uint32_t)rule), at, &name);
}
