#include "policy/scope.h"

#include "policy/image/glob.h"
#include "policy/match/match.h"

static bool sandboxes_fit(const struct policy *p, const struct img_scope *c, struct span sandbox)
{
    for (uint32_t i = 0; i < c->sandboxes.n; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, c->sandboxes.first + i);
        struct glob glob = {img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
        if (glob_match(&glob, sandbox, 0, false))
            return true;
    }
    return c->sandboxes.n == 0;
}

bool policy_asks_labels(const struct policy *p, struct span sandbox)
{
    for (uint32_t i = 0; i < p->n[IMG_SCOPE]; i++) {
        const struct img_scope *c = img_at(p, IMG_SCOPE, i);
        if (c->labels.n && sandboxes_fit(p, c, sandbox))
            return true;
    }
    return false;
}

bool policy_scopes_of(const struct policy *p, const struct subject *s, uint64_t *bits)
{
    *bits = 0;
    if (p->n[IMG_SCOPE] > 64)
        return false;
    for (uint32_t i = 0; i < p->n[IMG_SCOPE]; i++)
        *bits |= (uint64_t)match_one_scope(p, s, img_at(p, IMG_SCOPE, i)) << i;
    return true;
}

bool policy_scope_asks(const struct policy *p, struct span key, struct span value)
{
    const struct label one = {.key = key, .value = value};
    const struct subject s = {.labels = &one, .nlabels = 1};

    for (uint32_t i = 0; i < p->n[IMG_SCOPE]; i++) {
        const struct img_scope *c = img_at(p, IMG_SCOPE, i);
        for (uint32_t k = 0; k < c->labels.n; k++)
            if (match_label(p, &s, img_at(p, IMG_PAIR, c->labels.first + k)))
                return true;
    }
    return false;
}

struct span policy_scope_name(const struct policy *p, int scope)
{
    bool is = scope >= 0 && (uint32_t)scope < p->n[IMG_SCOPE];
    return is ? img_span(p, ((const struct img_scope *)img_at(p, IMG_SCOPE, (uint32_t)scope))->name) : SPAN_NONE;
}

int policy_scope(const struct policy *p, struct span name)
{
    for (int i = 0; (uint32_t)i < p->n[IMG_SCOPE]; i++)
        if (span_eq(policy_scope_name(p, i), name))
            return i;
    return -1;
}

enum covers policy_scope_covers(const struct policy *p, int scope, const struct subject *s, bool known)
{
    const struct img_scope *c =
        scope >= 0 && (uint32_t)scope < p->n[IMG_SCOPE] ? img_at(p, IMG_SCOPE, (uint32_t)scope) : NULL;
    if (c == NULL || !sandboxes_fit(p, c, s->sandbox))
        return COVERS_NOT;
    if (c->labels.n && !known)
        return COVERS_MAYBE;
    return match_one_scope(p, s, c) ? COVERS_IT : COVERS_NOT;
}

bool policy_asks_hours(const struct policy *p)
{
    return p->n[IMG_WINDOW] > 0;
}

bool policy_asks_moment(const struct policy *p)
{
    return p->head->learning_until_ms != 0;
}
