#include "policy/limit.h"

#include "policy/decide/outcome.h"

/* ---- which rules bound a request ---- */

void limited_add(struct limited *set, uint32_t rule)
{
    for (uint32_t i = 0; i < set->n && i < LIMITS_MAX; i++)
        if (set->rule[i] == rule)
            return;
    if (set->n < LIMITS_MAX)
        set->rule[set->n] = rule;
    set->n += set->n <= LIMITS_MAX; /* one past what fits says that there were more */
}

void limited_join(struct limited *set, const struct limited *more)
{
    for (uint32_t i = 0; i < more->n && i < LIMITS_MAX; i++)
        limited_add(set, more->rule[i]);
    if (more->n > LIMITS_MAX)
        set->n = LIMITS_MAX + 1;
}

static enum amount amount_of(const struct ask *k, const struct img_limit *l, uint64_t *out)
{
    uint32_t kind = l->measure == LIMIT_FORM ? COND_FORM : COND_JSON;
    return body_amount(k->body, kind, img_span(k->p, l->key), k->request, k->arena, out);
}

bool limits_seen(const struct ask *k, const struct img_rule *r)
{
    uint64_t amount;
    /* Past the limit it may wait for a person, who approves a body: the head alone does not decide. */
    if (r->over != IMG_NONE && k->request->has_body && !k->request->body_complete)
        return false;
    for (uint32_t i = 0; i < r->limits.n; i++) {
        const struct img_limit *l = img_at(k->p, IMG_LIMIT, r->limits.first + i);
        if (l->measure != LIMIT_REQUESTS && amount_of(k, l, &amount) == AMOUNT_OPEN)
            return false;
    }
    return true;
}

/* ---- what it takes of them ---- */

static bool measure_name(const struct ask *k, const struct img_limit *l, struct span *out)
{
    static const struct span kind[LIMIT_MEASURES] = {
        [LIMIT_REQUESTS] = SPAN("requests"), [LIMIT_FORM] = SPAN("form:"), [LIMIT_JSON] = SPAN("json:")};
    struct span key = img_span(k->p, l->key);
    *out = kind[l->measure];
    if (l->measure == LIMIT_REQUESTS)
        return true;
    uint8_t *text = arena_alloc(k->arena, out->n + key.n);
    if (text == NULL)
        return false;
    memcpy(text, out->p, out->n);
    if (key.n)
        memcpy(text + out->n, key.p, key.n);
    *out = span_of(text, out->n + key.n);
    return true;
}

/* Who names documents that the server has knows what they do. */
static bool names_stored(const struct ask *k, const struct img_rule *r)
{
    const struct img_match *m = img_at(k->p, IMG_MATCH, r->match.first);
    bool named = false;
    for (uint32_t i = 0; i < m->body.n; i++) {
        const struct img_cond *c = img_at(k->p, IMG_COND, m->body.first + i);
        named |= c->kind == COND_GRAPHQL && span_eq(img_span(k->p, c->key), SPAN("persisted"));
    }
    return named;
}

static const char *limit_of(const struct ask *k, const struct img_rule *r, uint32_t i, const struct decision *d,
                            struct limit *out)
{
    const struct img_limit *l = img_at(k->p, IMG_LIMIT, r->limits.first + i);
    *out = (struct limit){.rule = img_span(k->p, r->id), .per = l->per, .max = l->max, .window_ms = l->window_ms};
    if (l->measure == LIMIT_REQUESTS) {
        out->amount = d->requests ? d->requests : 1;
        out->uncountable = d->requests == 0 || (d->requests_more && !names_stored(k, r));
    } else {
        enum amount seen = amount_of(k, l, &out->amount);
        if (seen == AMOUNT_OPEN)
            return "unclassified";
        out->uncountable = seen != AMOUNT_SEEN;
    }
    return measure_name(k, l, &out->measure) ? NULL : "no-memory";
}

/* In order of the rules, whatever the order in which they were found. */
static void sort_rules(struct limited *set)
{
    for (uint32_t i = 1; i < set->n; i++)
        for (uint32_t k = i; k > 0 && set->rule[k - 1] > set->rule[k]; k--) {
            uint32_t swap = set->rule[k];
            set->rule[k] = set->rule[k - 1];
            set->rule[k - 1] = swap;
        }
}

const char *limits_of(const struct ask *k, const struct limited *set, struct decision *d)
{
    size_t want = 0, n = 0;
    d->limits = NULL;
    d->nlimits = 0;
    if (set->n == 0)
        return NULL;
    if (set->n > LIMITS_MAX)
        return "too-many-limits";
    struct limited sorted = *set;
    sort_rules(&sorted);
    for (uint32_t i = 0; i < sorted.n; i++)
        want += ((const struct img_rule *)img_at(k->p, IMG_RULE, sorted.rule[i]))->limits.n;
    if (want > LIMITS_MAX)
        return "too-many-limits";
    struct limit *v = arena_alloc(k->arena, want * sizeof(*v));
    if (v == NULL)
        return "no-memory";
    for (uint32_t i = 0; i < sorted.n; i++) {
        const struct img_rule *r = img_at(k->p, IMG_RULE, sorted.rule[i]);
        for (uint32_t l = 0; l < r->limits.n; l++) {
            const char *code = limit_of(k, r, l, d, &v[n++]);
            if (code)
                return code;
        }
    }
    d->limits = v;
    d->nlimits = n;
    return NULL;
}

/* ---- and what follows when they are used up ---- */

bool limit_is_past(const struct limit *l, uint64_t used)
{
    return l->uncountable || used > l->max || l->amount > l->max - used;
}

/* The hold that takes what is past this rule's limits, or IMG_NONE: one outside its hours asks nobody. */
static uint32_t hold_over(const struct policy *p, int rule, uint64_t now_ms)
{
    const struct img_rule *r = rule < 0 ? NULL : img_at(p, IMG_RULE, (uint32_t)rule);
    if (r == NULL || r->verdict != VERDICT_ALLOW || r->over == IMG_NONE)
        return IMG_NONE;
    const struct img_rule *hold = img_at(p, IMG_RULE, r->over);
    return hold->verdict == VERDICT_HOLD && when_in_force(p, hold, now_ms) ? r->over : IMG_NONE;
}

void policy_past_limits(const struct policy *p, const struct request *r, const bool *past, uint64_t now_ms,
                        struct arena *a, struct decision *d)
{
    struct body_view body = {.looked = false};
    struct ask k = {
        .p = p, .request = r, .method = r->method, .arena = a, .body = &body, .upgrade = match_is_upgrade(r)};
    k.now_ms = now_ms;
    struct hold_sum held = hold_sum_none;
    bool any = false, denied = false;
    bool learned = strcmp(d->code, "learning") == 0; /* then no rule's credential goes with it, nor with a hold */
    int by = -1;
    if (d->verdict == VERDICT_DENY)
        return;
    for (size_t i = 0; i < d->nlimits; i++) {
        if (!past[i] && !d->limits[i].uncountable)
            continue;
        int rule = img_rule_named(p, d->limits[i].rule);
        uint32_t hold = d->verdict == VERDICT_ALLOW && !learned ? hold_over(p, rule, now_ms) : IMG_NONE;
        any = true;
        if (hold != IMG_NONE) {
            hold_sum_add(p, hold, &held);
        } else {
            by = !denied || rule < by ? rule : by;
            denied = true;
        }
    }
    if (!any)
        return;
    struct outcome o = denied ? outcome_refusal("over-limit", by) : outcome_of_hold(&held);
    if (o.verdict == VERDICT_HOLD)
        o.code = "over-limit";
    outcome_settle(&k, &o, d);
}
