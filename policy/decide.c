/* floor -> deny -> hold -> allow -> deny, whatever the order of the files. A
 * request that has several readings, classes or members (a push of many refs)
 * gets the strictest of what each would get. */
#include "policy/match.h"

enum { BODY_MAX_DEFAULT = 64 * 1024 * 1024 };

struct outcome {
    enum verdict verdict;
    bool need_body;
    const char *code;
    int rule;
    uint32_t credential, approver;
    bool reason;
    uint64_t within_ms, inline_wait_ms;
    struct ws_terms messages;
};

static struct outcome refusal(const char *code, int rule)
{
    return (struct outcome){.verdict = VERDICT_DENY,
                            .code = code,
                            .rule = rule,
                            .credential = IMG_NONE,
                            .approver = IMG_NONE,
                            .inline_wait_ms = UINT64_MAX};
}

static struct outcome from_hold(const struct hold_sum *h)
{
    if (h->clash_credential)
        return refusal("ambiguous-credential", h->rule);
    if (h->clash_approver)
        return refusal("ambiguous-approvers", h->rule);
    return (struct outcome){.verdict = VERDICT_HOLD,
                            .code = "rule",
                            .rule = h->rule,
                            .credential = h->credential,
                            .approver = h->approver,
                            .reason = h->reason,
                            .within_ms = h->within_ms,
                            .inline_wait_ms = h->inline_wait_ms,
                            .messages = h->messages};
}

static struct outcome from_allow(const struct policy *p, const struct tally *t)
{
    struct outcome o = refusal("rule", t->allow);
    if (t->loose.rule >= 0)
        return from_hold(&t->loose);
    if (t->clash_allow)
        return refusal("ambiguous-credential", t->allow);
    o.verdict = VERDICT_ALLOW;
    o.credential = t->credential_allow;
    o.messages = ws_terms_of(img_at(p, IMG_RULE, (uint32_t)t->allow));
    return o;
}

static struct outcome from_tally(const struct policy *p, const struct tally *t, bool pending)
{
    if (t->floor >= 0)
        return refusal("floor", t->floor);
    if (t->deny >= 0)
        return refusal("rule", t->deny);
    bool could = t->hold.rule >= 0 || t->allow >= 0 || t->maybe_hold || t->maybe_allow;
    if (could && (pending || t->maybe_deny || t->maybe_hold || t->maybe_allow)) {
        struct outcome o = refusal("unclassified", -1);
        o.need_body = true;
        return o;
    }
    if (t->hold.rule >= 0)
        return from_hold(&t->hold);
    return t->allow >= 0 ? from_allow(p, t) : refusal("no-rule", -1);
}

static uint32_t credential_of(const struct policy *p, int rule)
{
    return rule < 0 ? IMG_NONE : ((const struct img_rule *)img_at(p, IMG_RULE, (uint32_t)rule))->credential;
}

/* The list of refs before a push, and its probe: fine exactly where a push might be. */
static struct outcome judge_could(struct ask k, const struct class *c)
{
    struct tally t;
    tally_rules(&k, &t);
    if (t.floor >= 0 || t.deny >= 0)
        return from_tally(k.p, &t, false);
    k.op = c->could_op;
    k.method = c->could_method.n ? c->could_method : k.method;
    k.path = c->could_path.n ? c->could_path : k.path;
    k.effect = EFFECT_WRITE;
    k.push_unknown = true;
    tally_rules(&k, &t);
    if (t.floor >= 0 || t.deny >= 0)
        return from_tally(k.p, &t, false);
    const int rules[] = {t.hold.rule, t.allow, t.hold_maybe, t.allow_maybe};
    int best = -1;
    for (size_t i = 0; i < 4; i++)
        if (rules[i] >= 0 &&
            (best < 0 || (credential_of(k.p, best) == IMG_NONE && credential_of(k.p, rules[i]) != IMG_NONE)))
            best = rules[i];
    struct outcome o = refusal(best < 0 ? "no-rule" : "rule", best);
    o.verdict = best < 0 ? VERDICT_DENY : VERDICT_ALLOW;
    o.credential = credential_of(k.p, best);
    return o;
}

/* Deny before need-body before hold before allow. */
static int looseness(const struct outcome *o)
{
    return o->need_body ? 1 : o->verdict == VERDICT_DENY ? 0 : o->verdict == VERDICT_HOLD ? 2 : 3;
}

static bool rules_before(const struct outcome *a, const struct outcome *b)
{
    return a->rule >= 0 && (b->rule < 0 || a->rule < b->rule);
}

/* The stricter of two; true when it is b. What both ask of approval and credential adds up. */
static bool outcome_add(struct outcome *a, const struct outcome *b)
{
    struct outcome old = *a;
    int la = looseness(a), lb = looseness(b);
    bool take = lb < la || (lb == la && rules_before(b, a));
    if (take)
        *a = *b;
    if (looseness(a) < 2)
        return take;
    const struct outcome *other = take ? &old : b;
    if (other->verdict == a->verdict)
        a->messages = ws_terms_meet(a->messages, other->messages);
    if (a->credential == IMG_NONE)
        a->credential = other->credential;
    else if (other->credential != IMG_NONE && other->credential != a->credential)
        *a = refusal("ambiguous-credential", a->rule);
    if (other->verdict != VERDICT_HOLD || a->verdict != VERDICT_HOLD)
        return take;
    if (a->approver == IMG_NONE)
        a->approver = other->approver;
    else if (other->approver != IMG_NONE && other->approver != a->approver)
        *a = refusal("ambiguous-approvers", a->rule);
    a->reason |= other->reason;
    if (other->within_ms && (a->within_ms == 0 || other->within_ms < a->within_ms))
        a->within_ms = other->within_ms;
    if (other->inline_wait_ms < a->inline_wait_ms)
        a->inline_wait_ms = other->inline_wait_ms;
    return take;
}

static bool all_zero(struct span id)
{
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] != '0')
            return false;
    return true;
}

static struct outcome judge_members(struct ask k, const struct class *c)
{
    struct outcome total = refusal("unclassified", -1);
    struct tally t;
    for (size_t i = 0; i < c->push->nrefs; i++) {
        const struct git_ref *r = &c->push->refs[i];
        /* Whether an update is forced cannot be known without walking history: it counts as forced. */
        struct member m = {r->name, !all_zero(r->old_id), all_zero(r->new_id)};
        k.member = &m;
        tally_rules(&k, &t);
        struct outcome o = from_tally(k.p, &t, false);
        if (i == 0)
            total = o;
        else
            (void)outcome_add(&total, &o);
    }
    return total;
}

static struct outcome judge_class(struct ask k, const struct class *c)
{
    struct tally t;
    k.op = c->op;
    k.resource = c->resource;
    k.lifted = k.upgrade && c->effect == EFFECT_READ;
    k.effect = k.lifted ? EFFECT_WRITE : c->effect;
    k.git_service = c->git_service;
    k.push_unknown = c->pending || c->bad != NULL;
    if (c->bad == NULL && c->could_op.n)
        return judge_could(k, c);
    if (c->bad == NULL && c->push)
        return judge_members(k, c);
    tally_rules(&k, &t);
    if (c->bad && t.floor < 0 && t.deny < 0)
        return refusal(c->bad, -1);
    return from_tally(k.p, &t, c->pending);
}

static void take_class(struct decision *d, const struct class *c)
{
    d->op = c->op;
    d->resource = c->resource;
    d->pack = c->pack;
    d->effect = c->effect;
    d->dialect = c->dialect;
    d->body_max = c->body_max ? c->body_max : BODY_MAX_DEFAULT;
    d->push = c->push;
    d->join_body = c->join_body;
    d->summary = c->summary;
    d->facts = c->facts;
    d->nfacts = c->nfacts;
}

static void take_outcome(const struct policy *p, struct decision *d, const struct outcome *o)
{
    d->verdict = o->verdict;
    d->need_body = o->need_body;
    d->code = o->code;
    d->reason_required = o->reason;
    d->within_ms = o->within_ms;
    d->inline_wait_ms = o->inline_wait_ms;
    d->messages = o->messages;
    d->credential = o->credential == IMG_NONE ? -1 : (int)o->credential;
    if (o->approver != IMG_NONE)
        d->approve_by = img_span(p, ((const struct img_approver *)img_at(p, IMG_APPROVER, o->approver))->name);
    if (o->rule < 0)
        return;
    const struct img_rule *r = img_at(p, IMG_RULE, (uint32_t)o->rule);
    d->rule = (struct rule_ref){img_span(p, r->id), img_span(p, r->file), r->line};
    d->say = img_span(p, r->say);
    d->instead = img_span(p, r->instead);
}

/* What is asked for is a connection both may write to: no read, unless the rule that decides says it is one. */
static void take_upgrade(const struct ask *k, struct decision *d, int rule)
{
    const struct img_rule *r = rule < 0 ? NULL : img_at(k->p, IMG_RULE, (uint32_t)rule);
    const struct img_match *m = r ? img_at(k->p, IMG_MATCH, r->match.first) : NULL;
    uint32_t says = m && m->ws ? m->effects & (1u << EFFECT_READ | 1u << EFFECT_WRITE) : 0;
    d->upgrade = true;
    if (d->effect == EFFECT_READ && says != 1u << EFFECT_READ)
        d->effect = EFFECT_WRITE;
    /* Beside a credential only a subprotocol that is named may leave: a token can stand in one (D34). */
    if (d->verdict != VERDICT_DENY &&
        (m == NULL || match_subprotocols(k, m, d->credential < 0, &d->subprotocols) != 0)) {
        d->verdict = VERDICT_DENY;
        d->code = "no-memory";
    }
}

static bool judge_readings(const struct ask *base, const struct span *path, size_t n, struct outcome *total,
                           struct decision *d)
{
    struct class c[CLASSES_MAX];
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        struct ask k = *base;
        k.path = path[i];
        size_t classes = classify(k.p, k.request, k.path, k.arena, c);
        for (size_t j = 0; j < classes; j++) {
            struct outcome o = judge_class(k, &c[j]);
            if (first)
                *total = o;
            if (first || outcome_add(total, &o))
                take_class(d, &c[j]);
            first = false;
        }
    }
    return !first;
}

/* Upper-case letters, '-' and '_': what servers know as methods, in the one spelling of each. */
static bool is_method(struct span m)
{
    for (size_t i = 0; i < m.n; i++)
        if (!((m.p[i] >= 'A' && m.p[i] <= 'Z') || (i && (m.p[i] == '-' || m.p[i] == '_'))))
            return false;
    return m.n > 0 && m.n <= 32;
}

/* http:// carries no credential unless the policy says so of this place. */
static bool wire_may_show(const struct policy *p, const struct request *r, struct arena *a)
{
    struct upstream u = {.cleartext_credentials = false};
    return span_eq(r->scheme, SPAN("https")) ||
           (policy_upstream(p, r->host, r->port, a, &u) && u.cleartext_credentials);
}

void policy_judge(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                  struct arena *a, struct decision *d)
{
    struct ask k = {
        .p = p, .subject = s, .request = r, .method = r->method, .arena = a, .upgrade = match_is_upgrade(r)};
    struct span path[READINGS_MAX];
    struct body_view body = {.looked = false};
    struct outcome o = refusal("internal", -1);
    size_t n;
    k.body = &body;
    (void)now_ms; /* no rule asks for the time yet */
    *d = (struct decision){.code = "internal", .credential = -1, .inline_wait_ms = UINT64_MAX};
    d->body_max = BODY_MAX_DEFAULT;
    if (span_eq(r->method, SPAN("TRACE")) || span_eq(r->method, SPAN("CONNECT")) || !is_method(r->method)) {
        d->code = "bad-method";
        return;
    }
    if (readings_of(r->path, a, path, &n) != 0 ||
        (path_keeps_slash(r->path) && !policy_keeps_slash(p, r->scheme, r->host, r->port))) {
        d->code = "bad-path";
        return;
    }
    if (!judge_readings(&k, path, n, &o, d))
        return;
    if (o.verdict != VERDICT_DENY && o.credential != IMG_NONE &&
        !policy_credential_may_go(p, o.credential, r->scheme, r->host, r->port, r->path))
        o = refusal("credential-not-for-here", o.rule);
    if (o.verdict != VERDICT_DENY && o.credential != IMG_NONE && !wire_may_show(p, r, a))
        o = refusal("credential-cleartext", o.rule);
    if (o.rule < 0 && !o.need_body && strcmp(o.code, "no-rule") == 0 &&
        !policy_names_host(p, s, r->scheme, r->host, r->port))
        o.code = "host-not-named";
    take_outcome(p, d, &o);
    if (k.upgrade)
        take_upgrade(&k, d, o.rule);
}
