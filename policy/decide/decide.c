/* floor -> deny -> hold -> allow -> deny, whatever the order of the files. A
 * request that has several readings, classes or members (a push of many refs)
 * gets the strictest of what each would get. */
#include "policy/decide/evaluate.h"
#include "policy/decide/outcome.h"
#include "policy/match/capture.h"

enum { BODY_MAX_DEFAULT = 64 * 1024 * 1024 };

struct outcome outcome_refusal(const char *code, int rule)
{
    return (struct outcome){.verdict = VERDICT_DENY,
                            .code = code,
                            .rule = rule,
                            .credential = IMG_NONE,
                            .approver = IMG_NONE,
                            .approval = approval_usual,
                            .inline_wait_ms = UINT64_MAX};
}

struct outcome outcome_of_hold(const struct hold_sum *h)
{
    if (h->clash_credential)
        return outcome_refusal("ambiguous-credential", h->rule);
    if (h->clash_approver)
        return outcome_refusal("ambiguous-approvers", h->rule);
    return (struct outcome){.verdict = VERDICT_HOLD,
                            .code = "rule",
                            .rule = h->rule,
                            .credential = h->credential,
                            .approver = h->approver,
                            .reason = h->reason,
                            .within_ms = h->within_ms,
                            .inline_wait_ms = h->inline_wait_ms,
                            .messages = h->messages,
                            .approval = h->approval,
                            .grants = h->grants,
                            .limited = h->limited};
}

static struct outcome from_allow(const struct policy *p, const struct rule_votes *t)
{
    struct outcome o = outcome_refusal("rule", t->allow);
    if (t->loose.rule >= 0)
        return outcome_of_hold(&t->loose);
    if (t->clash_allow)
        return outcome_refusal("ambiguous-credential", t->allow);
    o.verdict = VERDICT_ALLOW;
    o.credential = t->credential_allow;
    o.limited = t->limited_allow;
    o.messages = ws_terms_of(img_at(p, IMG_RULE, (uint32_t)t->allow));
    return o;
}

static bool is_learning(const struct ask *k)
{
    return k->now_ms < k->p->head->learning_until_ms;
}

/* Nothing fits, while the policy learns: a read passes, all else is asked about. What a hold means in another
 * spelling stays that hold's. */
static struct outcome from_learning(const struct rule_votes *t, enum effect effect)
{
    struct outcome o = t->loose.rule >= 0 ? outcome_of_hold(&t->loose) : outcome_refusal("learning", -1);
    if (t->loose.rule < 0)
        o.verdict = effect == EFFECT_READ ? VERDICT_ALLOW : VERDICT_HOLD;
    o.learned = true;
    return o;
}

static struct outcome open_refusal(void)
{
    struct outcome o = outcome_refusal("unclassified", -1);
    o.need_body = true;
    return o;
}

static struct outcome from_votes(const struct ask *k, const struct rule_votes *t, bool pending)
{
    if (t->floor >= 0)
        return outcome_refusal("floor", t->floor);
    if (t->deny >= 0)
        return outcome_refusal("rule", t->deny);
    bool could = t->hold.rule >= 0 || t->allow >= 0 || t->maybe_hold || t->maybe_allow || is_learning(k);
    if (could && (pending || t->maybe_deny || t->maybe_hold || t->maybe_allow || (t->allow >= 0 && t->maybe_bound)))
        return open_refusal();
    if (t->hold.rule >= 0)
        return outcome_of_hold(&t->hold);
    if (t->allow >= 0)
        return from_allow(k->p, t);
    return is_learning(k) ? from_learning(t, k->effect) : outcome_refusal("no-rule", -1);
}

static uint32_t credential_of(const struct policy *p, int rule)
{
    return rule < 0 ? IMG_NONE : ((const struct img_rule *)img_at(p, IMG_RULE, (uint32_t)rule))->credential;
}

/* Of a record, whose fields are not known: would it be another answer if there were none? */
static bool fields_matter(const struct ask *k, const struct rule_votes *t)
{
    struct request none = *k->request;
    struct ask known = *k;
    struct rule_votes u = rule_votes_none;
    if (!none.fields_unknown)
        return false;
    none.fields_unknown = false;
    known.request = &none;
    rule_votes_of(&known, &u);
    return t->maybe_deny != u.maybe_deny || t->maybe_hold != u.maybe_hold || t->maybe_allow != u.maybe_allow ||
           t->hold_maybe != u.hold_maybe || t->allow_maybe != u.allow_maybe;
}

static inline void observe(const struct observer *o, const struct ask *k, const struct class *c)
{
    if (o)
        o->asked(o->arg, k, c);
}

/* The question about the push that this one stands before. */
static struct ask ask_could(struct ask k, const struct class *c, const struct class *as)
{
    k.could = true;
    k.op = c->could_op;
    k.method = c->could_method.n ? c->could_method : k.method;
    k.path = c->could_path.n ? c->could_path : k.path;
    k.effect = EFFECT_WRITE;
    k.written.op = as->could_op.n ? as->could_op : k.op;
    k.written.path = as->could_path.n ? as->could_path : k.written.path;
    k.written.effect = EFFECT_WRITE;
    k.push_unknown = true;
    return k;
}

/* The list of refs before a push, and its probe: fine exactly where a push might be. */
static struct outcome judge_could(const struct ask *self, const struct class *c, const struct class *as,
                                  const struct observer *look)
{
    const struct ask k = ask_could(*self, c, as), *const both[] = {self, &k};
    struct rule_votes t;
    observe(look, self, c);
    observe(look, &k, c);
    for (size_t i = 0; i < 2; i++) {
        t = rule_votes_none;
        rule_votes_of(both[i], &t);
        if (t.floor >= 0 || t.deny >= 0)
            return from_votes(both[i], &t, false);
        if (fields_matter(both[i], &t))
            return open_refusal();
    }
    const int rules[] = {t.hold.rule, t.allow, t.hold_maybe, t.allow_maybe};
    int best = -1;
    for (size_t i = 0; i < 4; i++)
        if (rules[i] >= 0 &&
            (best < 0 || (credential_of(k.p, best) == IMG_NONE && credential_of(k.p, rules[i]) != IMG_NONE)))
            best = rules[i];
    if (best < 0 && is_learning(&k))
        return from_learning(&t, c->effect);
    struct outcome o = outcome_refusal(best < 0 ? "no-rule" : "rule", best);
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
static bool outcome_merge(struct outcome *a, const struct outcome *b)
{
    struct outcome old = *a;
    int la = looseness(a), lb = looseness(b);
    bool take = lb < la || (lb == la && rules_before(b, a));
    if (take)
        *a = *b;
    if (looseness(a) < 2)
        return take;
    const struct outcome *other = take ? &old : b;
    if (other->verdict == a->verdict) {
        a->messages = ws_terms_meet(a->messages, other->messages);
        if (other->limited.n)
            limited_join(&a->limited, &other->limited);
    }
    if (a->credential == IMG_NONE)
        a->credential = other->credential;
    else if (other->credential != IMG_NONE && other->credential != a->credential)
        *a = outcome_refusal("ambiguous-credential", a->rule);
    if (other->verdict != VERDICT_HOLD || a->verdict != VERDICT_HOLD)
        return take;
    if (a->approver == IMG_NONE)
        a->approver = other->approver;
    else if (other->approver != IMG_NONE && other->approver != a->approver)
        *a = outcome_refusal("ambiguous-approvers", a->rule);
    a->approval = approval_terms_meet(a->approval, other->approval);
    a->grants = grant_terms_meet(a->grants, other->grants);
    a->reason |= other->reason;
    if (other->within_ms && (a->within_ms == 0 || other->within_ms < a->within_ms))
        a->within_ms = other->within_ms;
    if (other->inline_wait_ms < a->inline_wait_ms)
        a->inline_wait_ms = other->inline_wait_ms;
    return take;
}

static bool outcome_add(struct outcome *a, const struct outcome *b)
{
    bool learned = a->learned || b->learned, take = outcome_merge(a, b);
    a->learned = learned;
    return take;
}

static struct outcome judge_members(struct ask k, const struct class *c, const struct observer *look)
{
    struct outcome total = outcome_refusal("unclassified", -1);
    struct rule_votes t;
    for (size_t i = 0; i < k.nmembers; i++) {
        k.member = &k.members[i];
        observe(look, &k, c);
        t = rule_votes_none;
        rule_votes_of(&k, &t);
        struct outcome o = from_votes(&k, &t, false);
        if (i == 0)
            total = o;
        else
            (void)outcome_add(&total, &o);
    }
    return total;
}

/* The question is about this class of a reading of the request, which is written as `as` and there the path is
 * `path`: both its own, but where the reading is another spelling. */
static void ask_class(struct ask *k, const struct class *c, const struct class *as, struct span path)
{
    bool lifted = k->upgrade && as->effect == EFFECT_READ;
    k->written = (struct written){path, as->op, as->resource, lifted ? EFFECT_WRITE : as->effect, lifted};
    k->op = c->op;
    k->resource = c->resource;
    k->lifted = k->upgrade && c->effect == EFFECT_READ;
    k->effect = k->lifted ? EFFECT_WRITE : c->effect;
    k->overridden = c->overridden;
    k->beside = c->beside;
    k->git_service = c->git_service;
    k->push_unknown = c->pending || c->bad != NULL;
    k->members = c->found.members;
    k->nmembers = c->found.nmembers;
}

static struct outcome judge_class(const struct ask *k, const struct class *c, const struct class *as,
                                  const struct observer *look)
{
    if (c->bad == NULL && c->could_op.n)
        return judge_could(k, c, as, look);
    if (c->bad == NULL && k->nmembers)
        return judge_members(*k, c, look);
    struct rule_votes t = rule_votes_none;
    observe(look, k, c);
    if (c->bad == NULL && c->found.untold)
        return open_refusal();
    rule_votes_of(k, &t);
    if (c->bad && t.floor < 0 && t.deny < 0)
        return outcome_refusal(c->bad, -1);
    return from_votes(k, &t, c->pending);
}

static void take_class(struct decision *d, const struct class *c)
{
    d->op = c->op;
    d->resource = c->resource;
    d->pack = c->pack;
    d->effect = c->effect;
    d->dialect = c->dialect;
    d->body_max = c->body_max ? c->body_max : BODY_MAX_DEFAULT;
    d->push = c->found.push;
    d->join_body = c->found.join;
    d->open_path = c->open_path;
    d->summary = c->summary;
    d->facts = c->found.facts;
    d->nfacts = c->found.nfacts;
}

/* What takes more away than others, or what nobody named, only where the rule says so. */
static struct grant_terms take_grants(const struct decision *d, const struct grant_terms *g)
{
    bool may = d->verdict == VERDICT_HOLD && (g->effects & 1u << d->effect) != 0 && (d->open_path.n || !g->named);
    return may && g->within_ms ? *g : (struct grant_terms){0};
}

static void take_outcome(const struct ask *k, struct decision *d, const struct outcome *o)
{
    const struct policy *p = k->p;
    d->verdict = o->verdict;
    d->need_body = o->need_body;
    d->code = o->code;
    d->reason_required = o->reason;
    d->within_ms = o->within_ms;
    d->inline_wait_ms = o->inline_wait_ms;
    d->messages = o->messages;
    d->approval = o->approval;
    d->grants = take_grants(d, &o->grants);
    d->credential = o->credential == IMG_NONE ? -1 : (int)o->credential;
    d->approve_by = d->say = d->instead = SPAN_NONE;
    d->rule = (struct rule_ref){0};
    if (o->approver != IMG_NONE)
        d->approve_by = img_span(p, ((const struct img_approver *)img_at(p, IMG_APPROVER, o->approver))->name);
    if (o->rule < 0)
        return;
    const struct img_rule *r = img_at(p, IMG_RULE, (uint32_t)o->rule);
    d->rule = (struct rule_ref){img_span(p, r->id), img_span(p, r->file), r->line};
    d->say = capture_fill(p, r, k->request->path, img_span(p, r->say), k->arena);
    d->instead = capture_fill(p, r, k->request->path, img_span(p, r->instead), k->arena);
}

/* What is asked for is a connection both may write to: no read, unless the rule that decides says it is one. */
static void take_upgrade(const struct ask *k, struct decision *d, int rule)
{
    const struct img_rule *r = rule < 0 ? NULL : img_at(k->p, IMG_RULE, (uint32_t)rule);
    const struct img_match *m = r ? img_at(k->p, IMG_MATCH, r->match.first) : NULL;
    static const struct img_match any = {.ws = 1};
    uint32_t says = m && m->ws ? m->effects & (1u << EFFECT_READ | 1u << EFFECT_WRITE) : 0;
    d->upgrade = true;
    if (d->effect == EFFECT_READ && says != 1u << EFFECT_READ)
        d->effect = EFFECT_WRITE;
    /* Beside a credential only a subprotocol that is named may leave: a token can stand in one (D34). */
    if (d->verdict != VERDICT_DENY && match_subprotocols(k, m ? m : &any, d->credential < 0, &d->subprotocols) != 0) {
        d->verdict = VERDICT_DENY;
        d->code = "no-memory";
    }
}

/* http:// carries no credential unless the policy says so of this place. */
static bool wire_may_show(const struct policy *p, const struct request *r, struct arena *a)
{
    struct upstream u = {.cleartext_credentials = false};
    return span_eq(r->scheme, SPAN("https")) ||
           (policy_upstream(p, r->host, r->port, a, &u) && u.cleartext_credentials);
}

void outcome_settle(const struct ask *k, struct outcome *o, struct decision *d)
{
    const struct request *r = k->request;
    if (o->verdict != VERDICT_DENY && o->credential != IMG_NONE &&
        !policy_credential_may_go(k->p, o->credential, r->scheme, r->host, r->port, r->path))
        *o = outcome_refusal("credential-not-for-here", o->rule);
    if (o->verdict != VERDICT_DENY && o->credential != IMG_NONE && !wire_may_show(k->p, r, k->arena))
        *o = outcome_refusal("credential-cleartext", o->rule);
    const char *why = limits_of(k, &o->limited, d);
    if (why) {
        bool open = strcmp(why, "unclassified") == 0;
        *o = outcome_refusal(why, open ? -1 : o->rule);
        o->need_body = open;
    }
    take_outcome(k, d, o);
    if (k->upgrade)
        take_upgrade(k, d, o->rule);
}

/* On the way through the readings of a path. */
struct evaluation {
    struct outcome total;
    bool any, write; /* write: to one reading at least it is no read */
    bool overridden; /* another method may be meant */
    struct class written[CLASSES_MAX];
    size_t nwritten;
    struct span path; /* of those */
};

/* Which of the classes of what is written another reading's class is another spelling of: the same operation; where
 * no pack knows that reading, what it is as it is written; else none, and that operation must be let through too,
 * unless its pack told the two apart: by a %2F that is a part of a name, or by a slash at the end. */
static const struct class *class_as_written(const struct evaluation *t, const struct class *c,
                                            const struct reading *r)
{
    bool alike = r->how == READ_DECODED || r->how == READ_FOLDED;
    const struct class *apart = NULL;
    for (size_t i = 0; i < t->nwritten; i++) {
        if (!span_eq(c->pack, t->written[i].pack))
            continue;
        if (span_eq(c->op, t->written[i].op))
            return &t->written[i];
        apart = alike || apart ? apart : &t->written[i];
    }
    return apart ? apart : c->pack.n == 0 && !c->overridden ? &t->written[0] : c;
}

/* c: CLASSES_MAX of room, for what this reading of the request is. */
static void judge_reading(struct ask *k, const struct reading *r, struct class *c, struct evaluation *t,
                          const struct observer *look, struct decision *d)
{
    size_t n = classify(k->p, k->request, r->path, k->body, k->arena, c);
    if (r->how == READ_WHOLE) {
        t->nwritten = n;
        t->path = r->path;
    }
    k->path = r->path;
    for (size_t i = 0; i < n; i++) {
        const struct class *as = r->how == READ_WHOLE ? &c[i] : class_as_written(t, &c[i], r);
        if (r->how == READ_BARE && c[i].rest)
            c[i] = *as; /* a pack that names paths with a slash at their end has no word on those without it */
        ask_class(k, &c[i], as, t->path);
        struct outcome o = judge_class(k, &c[i], as, look);
        if (!t->any)
            t->total = o;
        if (!t->any || outcome_add(&t->total, &o)) {
            take_class(d, &c[i]);
            if (look && look->taken)
                look->taken(look->arg);
        }
        t->overridden |= c[i].overridden;
        t->write |= c[i].overridden || c[i].effect != EFFECT_READ;
        t->any = true;
    }
}

/* Upper-case letters, '-' and '_': what servers know as methods, in the one spelling of each. */
static bool is_method(struct span m)
{
    for (size_t i = 0; i < m.n; i++)
        if (!((m.p[i] >= 'A' && m.p[i] <= 'Z') || (i && (m.p[i] == '-' || m.p[i] == '_'))))
            return false;
    return m.n > 0 && m.n <= 32;
}

/* No key of ours goes with what no rule speaks of, and nothing is sent on a connection. */
static void take_learning(struct outcome *o)
{
    o->code = "learning";
    o->credential = IMG_NONE;
    o->messages = (struct ws_terms){0};
}

/* It goes on, or may yet: floors and denies have their own words. */
static bool is_open(const struct outcome *o)
{
    return o->verdict != VERDICT_DENY || o->need_body;
}

void evaluate(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
              struct body_view *body, struct arena *a, const struct observer *o, struct decision *d)
{
    struct ask k = {.p = p,
                    .subject = s,
                    .request = r,
                    .method = r->method,
                    .body = body,
                    .arena = a,
                    .upgrade = match_is_upgrade(r),
                    .now_ms = now_ms};
    struct reading reading[READINGS_MAX];
    struct evaluation t;
    size_t n;
    *d = (struct decision){.code = "internal", .credential = -1, .inline_wait_ms = UINT64_MAX};
    d->body_max = BODY_MAX_DEFAULT;
    if (span_eq(r->method, SPAN("TRACE")) || span_eq(r->method, SPAN("CONNECT")) || !is_method(r->method)) {
        d->code = "bad-method";
        return;
    }
    if (readings_of(r->path, a, reading, &n) != 0 ||
        (path_keeps_slash(r->path) && !policy_keeps_slash(p, r->scheme, r->host, r->port))) {
        d->code = "bad-path";
        return;
    }
    t.any = t.write = t.overridden = false;
    judge_reading(&k, &reading[0], t.written, &t, o, d); /* the path as it is */
    for (size_t i = 1; i < n; i++) {
        struct class other[CLASSES_MAX];
        judge_reading(&k, &reading[i], reading[i].how == READ_WHOLE ? t.written : other, &t, o, d);
    }
    if (!t.any)
        return;
    if (t.write && d->effect == EFFECT_READ)
        d->effect = EFFECT_WRITE;
    struct outcome *out = &t.total;
    if (out->learned && out->verdict != VERDICT_DENY)
        take_learning(out);
    if (out->rule < 0 && !out->need_body && strcmp(out->code, "no-rule") == 0 &&
        !policy_names_host(p, s, r->scheme, r->host, r->port, now_ms))
        out->code = "host-not-named";
    const struct img_scope *scope = is_open(out) ? region_keeps_out(p, s, r->host, r->port) : NULL;
    if (scope)
        *out = outcome_refusal("residency", -1);
    d->requests = body_requests(body, &d->requests_more);
    outcome_settle(&k, out, d);
    if (t.overridden)
        d->grants = (struct grant_terms){0};
    if (scope)
        d->say = region_words(p, scope, r->host, a);
}

void policy_judge(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                  struct arena *a, struct decision *d)
{
    struct body_view body = {.looked = false};
    evaluate(p, s, r, now_ms, &body, a, NULL, d);
}

enum { TOLD_MAX = 16 };

struct each {
    bool (*fn)(const struct judged *j, void *arg);
    void *arg;
    struct judged told[TOLD_MAX];
    size_t n;
    bool all;
};

static bool was_told(const struct each *e, const struct judged *j)
{
    for (size_t i = 0; i < e->n && i < TOLD_MAX; i++) {
        const struct judged *t = &e->told[i];
        if (span_eq(t->method, j->method) && span_eq(t->path, j->path) && span_eq(t->op, j->op) &&
            t->effect == j->effect && t->overridden == j->overridden)
            return true;
    }
    return false;
}

/* As a rule that allows is asked: a reading that is another spelling of what is written is that, but for the
 * operation, which is its own where what is written is none like it. */
static void each_asked(void *arg, const struct ask *k, const struct class *c)
{
    struct each *e = arg;
    struct judged j = {k->method, k->written.path, k->written.op, k->written.effect, k->overridden};
    e->all = e->all && (c->bad == NULL || strcmp(c->bad, "no-memory") != 0);
    if (k->could || was_told(e, &j))
        return;
    if (e->n < TOLD_MAX)
        e->told[e->n] = j;
    e->n++;
    e->all = e->all && e->fn(&j, e->arg);
}

bool policy_each_judged(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                        struct arena *a, bool (*fn)(const struct judged *j, void *arg), void *arg)
{
    struct body_view body = {.looked = false};
    struct each e = {.fn = fn, .arg = arg, .all = true};
    struct observer o = {.asked = each_asked, .arg = &e};
    struct decision d;
    evaluate(p, s, r, now_ms, &body, a, &o, &d);
    return e.n > 0 && e.all && strcmp(d.code, "internal") != 0 && strcmp(d.code, "no-memory") != 0;
}
