#include "policy/explain.h"

#include "policy/match.h"

static bool all_zero(struct span id)
{
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] != '0')
            return false;
    return true;
}

static bool excepted(const struct ask *k, const struct img_rule *r)
{
    for (uint32_t i = 0; i < r->except.n; i++)
        if (match_fits(k, img_at(k->p, IMG_MATCH, r->except.first + i), AS_WRITTEN) == FIT_YES)
            return true;
    return false;
}

static unsigned rule_misses(const struct ask *k, const struct img_rule *r, const char *out[MISSES_MAX])
{
    unsigned n = match_misses(k, img_at(k->p, IMG_MATCH, r->match.first), out);
    if (!scope_fits(k->p, k->subject, r))
        out[n++] = "scope";
    if (n == 0 && excepted(k, r))
        out[n++] = "except";
    return n;
}

size_t policy_near_misses(const struct policy *p, const struct subject *s, const struct request *r,
                          const struct decision *d, struct arena *a, struct near_miss out[NEAR_MAX])
{
    struct member m = {0};
    struct body_view body = {.looked = false};
    struct ask k = {.p = p,
                    .subject = s,
                    .request = r,
                    .path = r->path,
                    .method = r->method,
                    .op = d->op,
                    .resource = d->resource,
                    .effect = d->effect,
                    .body = &body,
                    .arena = a,
                    .push_unknown = d->need_body,
                    .upgrade = d->upgrade,
                    .lifted = d->upgrade && (d->effect == EFFECT_READ || d->effect == EFFECT_WRITE)};
    const char *missing[MISSES_MAX] = {NULL};
    size_t n = 0;
    if (d->op.n == 0)
        return 0;
    if (span_starts(d->op, SPAN("git.")))
        k.git_service = span_starts(d->op, SPAN("git.fetch")) ? GIT_UPLOAD_PACK : GIT_RECEIVE_PACK;
    if (d->push && d->push->nrefs) {
        const struct git_ref *ref = &d->push->refs[0];
        m = (struct member){ref->name, !all_zero(ref->old_id), all_zero(ref->new_id)};
        k.member = &m;
    }
    for (uint32_t i = 0; i < p->n[IMG_RULE] && n < NEAR_MAX; i++) {
        const struct img_rule *rule = img_at(p, IMG_RULE, i);
        unsigned misses = rule_misses(&k, rule, missing);
        if (misses > 1 || span_eq(img_span(p, rule->id), d->rule.id))
            continue;
        out[n++] = (struct near_miss){img_span(p, rule->id), img_span(p, rule->file), rule->line,
                                      (enum verdict)rule->verdict, misses ? missing[0] : "outranked"};
    }
    return n;
}

const char *policy_why_unclear(const struct request *r, const struct decision *d, struct arena *a)
{
    const char *why = NULL;
    if (!span_eq(span_str(d->code), SPAN("unclassified")))
        return NULL;
    if (span_starts(d->op, SPAN("git.push")))
        return "a push is understood by its list of refs alone: whole, of git's own type, in no content coding";
    if (r->has_body)
        why = body_why_open(r, a);
    return why ? why
               : "its path, query, a field or the body may mean one thing to this policy and another to the server";
}

size_t policy_rules(const struct policy *p)
{
    return p->n[IMG_RULE];
}

struct rule_ref policy_rule(const struct policy *p, size_t i)
{
    if (i >= p->n[IMG_RULE])
        return (struct rule_ref){0};
    const struct img_rule *r = img_at(p, IMG_RULE, (uint32_t)i);
    return (struct rule_ref){img_span(p, r->id), img_span(p, r->file), r->line};
}
