/* Ask every rule that could be about the request; the index of the image
 * (hash of host and path, of a resource, of an operation's family) keeps those
 * few however many rules there are. */
#include "policy/decide/rule_votes.h"

#include "policy/match/prefilter.h"

/* What takes away from a deny or a hold must fit what is written, and be no less true of another reading of it. */
static enum fit gone_fits(const struct ask *k, const struct img_match *m, enum strictness how)
{
    enum fit fit = match_fits(k, m, how);
    if (fit == FIT_NO || how != AS_WRITTEN || span_eq(k->path, k->written.path))
        return fit;
    enum fit read = match_fits(k, m, ANY_SPELLING);
    return read < fit ? read : fit;
}

/* An except takes away what it fits: from an allow in any spelling, from a deny or a
 * hold only what is written, so that it never takes away too little or too much. */
static enum fit less_excepts(const struct ask *k, const struct img_rule *r, enum fit fit, enum strictness how)
{
    for (uint32_t i = 0; i < r->except.n && fit != FIT_NO; i++) {
        enum fit gone = gone_fits(k, img_at(k->p, IMG_MATCH, r->except.first + i), how);
        if (gone == FIT_YES)
            return FIT_NO;
        if (gone == FIT_MAYBE)
            fit = FIT_MAYBE;
    }
    return fit;
}

enum strictness rule_except_strictness(const struct img_rule *r)
{
    return r->verdict == VERDICT_ALLOW ? ANY_SPELLING : AS_WRITTEN;
}

enum fit rule_except_fits(const struct ask *k, const struct img_rule *r, uint32_t i)
{
    return gone_fits(k, img_at(k->p, IMG_MATCH, r->except.first + i), rule_except_strictness(r));
}

enum strictness rule_strictness(const struct ask *k, const struct img_rule *r)
{
    if (r->verdict == VERDICT_HOLD)
        return k->overridden ? ANY_SPELLING : AS_WRITTEN;
    return r->verdict == VERDICT_ALLOW ? AS_WRITTEN : ANY_PLACE;
}

static enum fit rule_fits(const struct ask *k, const struct img_rule *r, enum strictness how)
{
    enum fit fit = match_fits(k, img_at(k->p, IMG_MATCH, r->match.first), how);
    return less_excepts(k, r, fit, rule_except_strictness(r));
}

static int lower(int best, uint32_t i)
{
    return best < 0 || (int)i < best ? (int)i : best;
}

static void merge_credential(uint32_t *have, uint32_t add, bool *clash)
{
    if (add == IMG_NONE)
        return;
    *clash |= *have != IMG_NONE && *have != add;
    *have = add;
}

/* Of several rules of one kind the lowest id is named; one that brings a credential goes before. */
static int prefer(const struct policy *p, int best, uint32_t i)
{
    if (best < 0)
        return (int)i;
    const struct img_rule *a = img_at(p, IMG_RULE, (uint32_t)best), *b = img_at(p, IMG_RULE, i);
    bool a_uses = a->credential != IMG_NONE, b_uses = b->credential != IMG_NONE;
    return a_uses != b_uses ? (a_uses ? best : (int)i) : lower(best, i);
}

struct ws_terms ws_terms_of(const struct img_rule *r)
{
    return (struct ws_terms){r->ws_send, r->ws_max, r->ws_total, r->ws_within_ms};
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct ws_terms ws_terms_meet(struct ws_terms a, struct ws_terms b)
{
    return (struct ws_terms){a.send & b.send, least(a.max, b.max), least(a.total, b.total),
                             least(a.within_ms, b.within_ms)};
}

static struct grant_terms grant_terms_of(const struct img_rule *r)
{
    return (struct grant_terms){r->grant_uses, r->grant_effects, r->grant_named != 0, r->grant_within_ms};
}

struct grant_terms grant_terms_meet(struct grant_terms a, struct grant_terms b)
{
    return (struct grant_terms){(uint32_t)least(a.uses, b.uses), a.effects & b.effects, a.named || b.named,
                                least(a.within_ms, b.within_ms)};
}

const struct approval_terms approval_usual = {1, SELF_OF_MACHINE, false, 0, DIFF_NO, UINT32_MAX};

static struct approval_terms approval_terms_of(const struct img_rule *r)
{
    uint32_t escalate = r->approver == IMG_NONE ? UINT32_MAX : r->escalate; /* any operator may, at any time */
    return r->quorum == 0 ? approval_usual
                          : (struct approval_terms){r->quorum, r->self, r->step_up != 0, r->gates, r->diff, escalate};
}

struct approval_terms approval_terms_meet(struct approval_terms a, struct approval_terms b)
{
    return (struct approval_terms){a.quorum > b.quorum ? a.quorum : b.quorum,
                                   a.self < b.self ? a.self : b.self,
                                   a.step_up || b.step_up,
                                   a.gates | b.gates,
                                   a.diff > b.diff ? a.diff : b.diff,
                                   a.escalate & b.escalate};
}

const struct hold_sum hold_sum_none = HOLD_SUM_NONE;

/* What fits in another spelling lends no credential and no name; who must agree to it, and its bounds, stay. */
static void hold_sum_also(struct hold_sum *h, const struct hold_sum *loose)
{
    h->clash_approver |= loose->clash_approver;
    merge_credential(&h->approver, loose->approver, &h->clash_approver);
    h->messages = ws_terms_meet(h->messages, loose->messages);
    h->approval = approval_terms_meet(h->approval, loose->approval);
    h->grants = grant_terms_meet(h->grants, loose->grants);
    h->reason |= loose->reason;
    if (loose->within_ms && (h->within_ms == 0 || loose->within_ms < h->within_ms))
        h->within_ms = loose->within_ms;
    h->inline_wait_ms = least(h->inline_wait_ms, loose->inline_wait_ms);
    limited_join(&h->limited, &loose->limited);
}

void hold_sum_add(const struct policy *p, uint32_t i, struct hold_sum *h)
{
    const struct img_rule *r = img_at(p, IMG_RULE, i);
    h->messages = h->rule < 0 ? ws_terms_of(r) : ws_terms_meet(h->messages, ws_terms_of(r));
    h->approval = h->rule < 0 ? approval_terms_of(r) : approval_terms_meet(h->approval, approval_terms_of(r));
    h->grants = h->rule < 0 ? grant_terms_of(r) : grant_terms_meet(h->grants, grant_terms_of(r));
    h->rule = prefer(p, h->rule, i);
    merge_credential(&h->credential, r->credential, &h->clash_credential);
    merge_credential(&h->approver, r->approver, &h->clash_approver);
    h->reason |= r->reason_required != 0;
    if (r->within_ms && (h->within_ms == 0 || r->within_ms < h->within_ms))
        h->within_ms = r->within_ms;
    if (r->inline_wait_ms < h->inline_wait_ms)
        h->inline_wait_ms = r->inline_wait_ms;
    if (r->limits.n)
        limited_add(&h->limited, i);
}

/* A rule whose limits count what cannot be seen yet may or may not let this through. */
static enum fit less_unseen(const struct ask *k, const struct img_rule *r, enum fit fit)
{
    return fit == FIT_YES && r->limits.n && !limits_seen(k, r) ? FIT_MAYBE : fit;
}

static void weigh_hold(const struct ask *k, const struct img_rule *r, uint32_t i, struct rule_votes *t)
{
    enum fit fit = less_unseen(k, r, rule_fits(k, r, rule_strictness(k, r)));
    if (fit == FIT_YES) {
        hold_sum_add(k->p, i, &t->hold);
    } else if (fit == FIT_MAYBE) {
        t->maybe_hold = true;
        t->hold_maybe = prefer(k->p, t->hold_maybe, i);
    } else {
        fit = less_unseen(k, r, rule_fits(k, r, ANY_SPELLING));
        if (fit == FIT_YES)
            hold_sum_add(k->p, i, &t->loose);
        t->maybe_hold |= fit == FIT_MAYBE;
    }
}

/* What a rule is bounded by holds in any spelling that a server may take for the same, as a hold does: or the bound
 * would be evaded where a wider rule lets the other spelling through. */
static void weigh_bound(const struct ask *k, const struct img_rule *r, uint32_t i, struct rule_votes *t)
{
    enum fit fit = match_fits(k, img_at(k->p, IMG_MATCH, r->match.first), ANY_SPELLING);
    fit = less_unseen(k, r, less_excepts(k, r, fit, AS_WRITTEN));
    if (fit == FIT_YES)
        limited_add(&t->limited_allow, i);
    t->maybe_bound |= fit == FIT_MAYBE;
}

static void weigh_allow(const struct ask *k, const struct img_rule *r, uint32_t i, struct rule_votes *t)
{
    enum fit fit = less_unseen(k, r, rule_fits(k, r, AS_WRITTEN));
    if (fit == FIT_YES) {
        t->allow = prefer(k->p, t->allow, i);
        if (r->limits.n)
            limited_add(&t->limited_allow, i);
        merge_credential(&t->credential_allow, r->credential, &t->clash_allow);
    } else if (fit == FIT_MAYBE) {
        t->maybe_allow = true;
        t->allow_maybe = prefer(k->p, t->allow_maybe, i);
    } else if (r->limits.n) {
        weigh_bound(k, r, i, t);
    }
}

/* While the rules are gone through. */
struct weighing {
    struct rule_votes *t;
    uint64_t is;                          /* the classes of the question */
    uint64_t scopes_asked, scopes_fitted; /* of the first 64: many rules have one scope */
};

static bool in_scope(const struct ask *k, const struct img_rule *r, struct weighing *w)
{
    const uint32_t *at = img_at(k->p, IMG_SCOPE_REF, r->scopes.first);
    for (uint32_t i = 0; i < r->scopes.n; i++) {
        uint64_t bit = at[i] < 64 ? UINT64_C(1) << at[i] : 0;
        if (bit == 0 || !(w->scopes_asked & bit)) {
            bool fits = match_one_scope(k->p, k->subject, img_at(k->p, IMG_SCOPE, at[i]));
            w->scopes_asked |= bit;
            w->scopes_fitted |= fits ? bit : 0;
            if (fits)
                return true;
        } else if (w->scopes_fitted & bit) {
            return true;
        }
    }
    return !r->scoped;
}

static void weigh(const struct ask *k, uint32_t i, struct weighing *w)
{
    const struct img_rule *r = img_at(k->p, IMG_RULE, i);
    struct rule_votes *t = w->t;
    if (!in_scope(k, r, w) || (r->windows.n && !when_in_force(k->p, r, k->now_ms)))
        return;
    if (r->verdict == VERDICT_HOLD) {
        weigh_hold(k, r, i, t);
    } else if (r->verdict == VERDICT_ALLOW) {
        weigh_allow(k, r, i, t);
    } else {
        enum fit fit = rule_fits(k, r, ANY_PLACE);
        int *best = r->floor ? &t->floor : &t->deny;
        *best = fit == FIT_YES ? lower(*best, i) : *best;
        t->maybe_deny |= fit == FIT_MAYBE;
    }
}

static void weigh_key(const struct ask *k, uint32_t hash, void *arg)
{
    struct weighing *w = arg;
    struct img_range r = img_find(k->p, img_hash_end(hash));
    if (r.n == 0)
        return;
    const uint32_t *rule = img_at(k->p, IMG_RULE_REF, r.first);
    for (uint32_t i = 0; i < r.n; i++)
        if ((k->p->never[rule[i]] & w->is) == 0)
            weigh(k, rule[i], w);
}

/* What is done with each key; known where it is called, so that the decision pays for no pointer. */
typedef void key_fn(const struct ask *k, uint32_t hash, void *arg);
#define INLINE static inline __attribute__((always_inline))

INLINE void keys_of_path(const struct ask *k, uint32_t h, struct span path, key_fn *fn, void *arg)
{
    path = span_from(path, 1);
    for (unsigned depth = 0; depth < 3 && path.n; depth++) {
        struct span segment = span_first(path, span_index(path, '/'));
        h = img_hash_add(img_hash_add(h, SPAN("/")), segment);
        fn(k, h, arg);
        path = span_from(path, segment.n + 1);
    }
}

INLINE void keys_of_resource(const struct ask *k, struct span resource, key_fn *fn, void *arg)
{
    if (resource.n == 0)
        return;
    fn(k, img_hash_add(img_hash_begin('F'), resource), arg);
    struct span owner = span_first(resource, span_index(resource, '/'));
    fn(k, img_hash_add(img_hash_begin('R'), owner), arg);
}

INLINE void keys_of_op(const struct ask *k, struct span op, key_fn *fn, void *arg)
{
    fn(k, img_hash_add(img_hash_begin('O'), span_first(op, span_index(op, '.'))), arg);
}

/* Keys H (host, then up to three segments of the path) and W (what follows a dot of the host). */
INLINE void keys_of_host(const struct ask *k, key_fn *fn, void *arg)
{
    struct span host = k->request->host;
    uint32_t h = img_hash_add(img_hash_begin('H'), host);
    fn(k, h, arg);
    keys_of_path(k, h, k->path, fn, arg);
    if (k->path.p != k->written.path.p)
        keys_of_path(k, h, k->written.path, fn, arg);
    for (struct span rest = host; rest.n;) {
        rest = span_from(rest, span_index(rest, '.') + 1);
        if (rest.n)
            fn(k, img_hash_add(img_hash_begin('W'), rest), arg);
    }
}

/* Keys F (a resource), R (a resource up to its first '/'), O (first word of the operation), A (all). Of what may mean
 * another method nobody can say what it is done to: V has all that are looked for by a resource. */
INLINE void keys_of_words(const struct ask *k, key_fn *fn, void *arg)
{
    keys_of_resource(k, k->resource, fn, arg);
    if (k->resource.p != k->written.resource.p)
        keys_of_resource(k, k->written.resource, fn, arg);
    keys_of_op(k, k->op, fn, arg);
    if (k->op.p != k->written.op.p)
        keys_of_op(k, k->written.op, fn, arg);
    if (k->beside.n && !span_starts(k->beside, SPAN("http.")))
        fn(k, img_hash_add(img_hash_begin('O'), span_first(k->beside, span_index(k->beside, '.'))), arg);
    if (k->overridden) {
        fn(k, img_hash_add(img_hash_begin('V'), k->request->host), arg);
        fn(k, img_hash_begin('V'), arg);
        if (k->resource.n)
            fn(k, img_hash_add(img_hash_begin('V'), span_first(k->resource, span_index(k->resource, ':'))), arg);
    }
    fn(k, img_hash_begin('A'), arg);
}

const struct rule_votes rule_votes_none = {.floor = -1,
                                           .deny = -1,
                                           .allow = -1,
                                           .hold = HOLD_SUM_NONE,
                                           .loose = HOLD_SUM_NONE,
                                           .hold_maybe = -1,
                                           .allow_maybe = -1,
                                           .credential_allow = IMG_NONE};

void rule_votes_of_one(const struct ask *k, uint32_t rule, struct rule_votes *t)
{
    struct weighing w = {.t = t};
    weigh(k, rule, &w);
}

void rule_votes_of(const struct ask *k, struct rule_votes *t)
{
    struct weighing w = {.t = t, .is = prefilter_classes(k)};
    keys_of_host(k, weigh_key, &w);
    keys_of_words(k, weigh_key, &w);
    if (t->hold.rule >= 0 && t->loose.rule >= 0)
        hold_sum_also(&t->hold, &t->loose);
}

struct each {
    rule_fn *fn;
    void *arg;
};

static void each_key(const struct ask *k, uint32_t hash, void *arg)
{
    const struct each *b = arg;
    struct img_range r = img_find(k->p, img_hash_end(hash));
    for (uint32_t i = 0; i < r.n; i++)
        b->fn(k, *(const uint32_t *)img_at(k->p, IMG_RULE_REF, r.first + i), b->arg);
}

void rule_votes_each(const struct ask *k, rule_fn *fn, void *arg)
{
    struct each b = {fn, arg};
    keys_of_host(k, each_key, &b);
    keys_of_words(k, each_key, &b);
}
