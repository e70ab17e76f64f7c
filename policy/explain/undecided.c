#include "policy/undecided.h"

#include "policy/match/about.h"
#include "policy/image/glob.h"

static enum undecided asks(const struct img_match *m, bool push)
{
    if (push && (m->git_refs.n || m->git_force != TRI_UNSET || m->git_delete != TRI_UNSET))
        return UNDECIDED_REFS;
    if (m->ws_protocols.n)
        return UNDECIDED_SUBPROTOCOL;
    return m->header.n ? UNDECIDED_HEADER : UNDECIDED_BODY;
}

static bool may_fit(const struct ask *k, const struct img_rule *r, bool push, enum undecided *what)
{
    static const enum strictness how[] = {
        [VERDICT_DENY] = ANY_PLACE, [VERDICT_HOLD] = ANY_SPELLING, [VERDICT_ALLOW] = AS_WRITTEN};
    const struct img_match *m = img_at(k->p, IMG_MATCH, r->match.first);
    enum fit fit = match_fits(k, m, how[r->verdict]);
    if (fit == FIT_MAYBE)
        *what = asks(m, push);
    for (uint32_t i = 0; fit == FIT_YES && i < r->except.n; i++) {
        const struct img_match *x = img_at(k->p, IMG_MATCH, r->except.first + i);
        if (match_fits(k, x, AS_WRITTEN) == FIT_MAYBE || match_fits(k, x, ANY_SPELLING) == FIT_MAYBE) {
            *what = asks(x, push);
            return true;
        }
    }
    return fit == FIT_MAYBE;
}

struct rule_ref policy_undecided(const struct policy *p, const struct subject *s, const struct request *r,
                                 const struct decision *d, struct arena *a, enum undecided *what)
{
    struct body_view body = {.looked = false};
    bool push = span_starts(d->op, SPAN("git.push"));
    struct ask k = ask_again(p, s, r, d, &body, a);
    k.push_unknown = push;
    k.git_service = push ? GIT_RECEIVE_PACK : GIT_UPLOAD_PACK;
    k.upgrade = match_is_upgrade(r);
    *what = push ? UNDECIDED_REFS : UNDECIDED_BODY;
    for (uint32_t i = 0; i < p->n[IMG_RULE]; i++) {
        const struct img_rule *rule = img_at(p, IMG_RULE, i);
        if (scope_fits(p, s, rule) && may_fit(&k, rule, push, what))
            return (struct rule_ref){img_span(p, rule->id), img_span(p, rule->file), rule->line};
    }
    return (struct rule_ref){0};
}

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
        *bits |= (uint64_t)one_scope_fits(p, s, img_at(p, IMG_SCOPE, i)) << i;
    return true;
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
    return one_scope_fits(p, s, c) ? COVERS_IT : COVERS_NOT;
}

bool policy_asks_hours(const struct policy *p)
{
    return p->n[IMG_WINDOW] > 0;
}

bool policy_asks_moment(const struct policy *p)
{
    return p->head->learning_until_ms != 0;
}
