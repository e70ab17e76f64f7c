/* Denied or held, and what is nearly the same would be let through: which refs, or which path. What is told is what a
 * rule says that the manifest of this subject shows, and only once it was asked whether it is so. */
#include "policy/near_change.h"

#include "policy/decide/evaluate.h"
#include "policy/explain/change.h"
#include "policy/image/glob.h"

/* How much is looked at: a refusal must stay cheap, whatever the policy and the request. */
enum { LOOKS = 400, TRIES = 4, PATTERNS = 4, REFS = 64, BODY_SMALL = 64 * 1024 };

struct near {
    const struct policy *p;
    const struct subject *s;
    const struct request *r;
    const struct decision *d;
    uint64_t now_ms;
    struct arena *a;
    unsigned looks, tries;
    enum verdict best; /* of what was found, and how much of the path is the same in it */
    size_t same;
    struct span words;
};

static void say(struct near *n, enum verdict v, const char *where, struct img_range globs, struct span one)
{
    struct dynbuf b;
    dynbuf_init(&b, WORDS_MAX);
    (void)dynbuf_addf(&b, "%s ", where);
    if (one.n)
        why_value(&b, one);
    else
        why_list(&b, n->p, IMG_GLOB, globs);
    (void)dynbuf_addf(&b, v == VERDICT_ALLOW ? " it is allowed." : " it is held for approval.");
    n->words = arena_keep(n->a, &b);
    n->best = v;
}

/* Would it let more through than was, to this subject, now? */
static bool may_help(struct near *n, const struct img_rule *r)
{
    return n->looks++ < LOOKS && (enum verdict)r->verdict > n->d->verdict && (enum verdict)r->verdict >= n->best &&
           match_scope(n->p, n->s, r) && when_in_force(n->p, r, n->now_ms);
}

/* ---- another ref ---- */

struct asked {
    struct ask k;
    struct span op;
    bool found;
};

static void see_asked(void *arg, const struct ask *k, const struct class *c)
{
    struct asked *x = arg;
    if (x->found || k->could || !span_eq(k->op, x->op))
        return;
    x->k = *k;
    x->found = true;
}

/* What all rules say of the same push to that ref, as a new one; VERDICT_DENY also where that is not sure. */
static enum verdict push_to(const struct ask *asked, struct span ref)
{
    struct member to = {.ref = ref};
    struct rule_votes t = rule_votes_none;
    struct ask k = *asked;
    k.member = k.members = &to;
    k.nmembers = 1;
    k.push_unknown = false;
    rule_votes_of(&k, &t);
    if (t.floor >= 0 || t.deny >= 0 || t.maybe_deny || t.maybe_hold || t.maybe_bound)
        return VERDICT_DENY;
    if (t.hold.rule >= 0)
        return VERDICT_HOLD;
    return t.allow >= 0 && t.loose.rule < 0 && !t.maybe_allow ? VERDICT_ALLOW : VERDICT_DENY;
}

/* Do the patterns leave out a ref of the push? Else it is for something else that the rule did not let it through. */
static bool other_refs(const struct near *n, struct img_range globs)
{
    for (size_t i = 0; i < n->d->push->nrefs && i < REFS; i++) {
        bool fits = false;
        for (uint32_t g = 0; g < globs.n && !fits; g++) {
            struct glob one = glob_of(img_glob(n->p, globs, g), '/');
            fits = glob_match(&one, n->d->push->refs[i].name, '/', false);
        }
        if (!fits)
            return true;
    }
    return false;
}

static void try_refs(const struct ask *k, uint32_t index, void *arg)
{
    struct near *n = arg;
    const struct img_rule *rule = img_at(n->p, IMG_RULE, index);
    const struct img_match *m = img_at(n->p, IMG_MATCH, rule->match.first);
    struct making making = {.p = n->p, .a = n->a};
    if (m->git_refs.n == 0 || m->git_force == TRI_TRUE || m->git_delete == TRI_TRUE || !may_help(n, rule) ||
        (enum verdict)rule->verdict == n->best || !other_refs(n, m->git_refs) || n->tries++ >= TRIES)
        return;
    for (uint32_t i = 0; i < m->git_refs.n && i < PATTERNS; i++) {
        struct span ref = change_witness(&making, img_glob(n->p, m->git_refs, i), SPAN_NONE, '/');
        if (ref.n == 0 || push_to(k, ref) != (enum verdict)rule->verdict)
            return;
    }
    say(n, (enum verdict)rule->verdict, "To", m->git_refs, SPAN_NONE);
}

/* The question about the push is that of its head; the refs are known from the decision. */
static void find_refs(struct near *n)
{
    struct asked x = {.op = n->d->op};
    const struct observer look = {.asked = see_asked, .arg = &x};
    struct body_view unseen = {.looked = false};
    struct request head = *n->r;
    struct decision again;
    head.body_complete = !head.has_body;
    head.body = SPAN_NONE;
    evaluate(n->p, n->s, &head, n->now_ms, &unseen, n->a, &look, &again);
    if (x.found)
        rule_votes_each(&x.k, try_refs, n);
}

/* ---- another path ---- */

/* Bytes of whole segments that both begin with; 1: none, but for the slash. */
static size_t same_segments(struct span pattern, struct span path)
{
    size_t same = 0, i = 0;
    while (i < pattern.n && i < path.n && pattern.p[i] == path.p[i] && pattern.p[i] != '*') {
        i++;
        if (i == pattern.n || pattern.p[i] == '/')
            same = i == path.n || path.p[i] == '/' ? i : same;
    }
    return same;
}

static void try_path(void *arg, uint32_t index)
{
    struct near *n = arg;
    const struct img_rule *rule = img_at(n->p, IMG_RULE, index);
    const struct img_match *m = img_at(n->p, IMG_MATCH, rule->match.first);
    struct near_miss miss = {.index = index, .miss = MISS_PATH};
    struct change c;
    struct decision d;
    uint32_t best = 0;
    size_t most = 0;
    if (m->ws || m->paths.n == 0 || !may_help(n, rule))
        return;
    for (uint32_t i = 0; i < m->paths.n && i < PATTERNS; i++) {
        size_t same = same_segments(img_glob(n->p, m->paths, i), n->r->path);
        if (same > most)
            best = i;
        most = same > most ? same : most;
    }
    if (most < 2 || ((enum verdict)rule->verdict == n->best && most <= n->same) || n->tries++ >= TRIES ||
        !policy_change(n->p, n->s, n->r, &miss, best, n->a, &c))
        return;
    policy_judge(n->p, &c.subject, &c.request, n->now_ms, n->a, &d);
    if (d.need_body || d.verdict != (enum verdict)rule->verdict || !span_eq(d.rule.id, img_span(n->p, rule->id)))
        return;
    n->same = most;
    say(n, d.verdict, "At", m->paths,
        m->written.n ? img_text(n->p, m->written, best) : img_glob(n->p, m->paths, best));
}

struct span policy_near_change(const struct policy *p, const struct subject *s, const struct request *r,
                               const struct decision *d, uint64_t now_ms, struct arena *a)
{
    struct near n = {.p = p, .s = s, .r = r, .d = d, .now_ms = now_ms, .a = a, .best = d->verdict};
    bool ruled = span_eq(span_str(d->code), SPAN("rule")), unruled = span_eq(span_str(d->code), SPAN("no-rule"));
    if (d->verdict == VERDICT_ALLOW || d->need_body || d->upgrade || !(ruled || unruled))
        return SPAN_NONE;
    if (d->push && d->push->nrefs)
        find_refs(&n);
    else if (unruled && (!r->has_body || (r->body_complete && r->body.n <= BODY_SMALL)))
        why_host_rules(p, r->host, try_path, &n);
    return n.words;
}
