/* Denied or held for the hours of a rule: when would it not be? The times at which a rule about this request begins
 * or ends are few; at each of them in turn the request is judged as it would be then, until more is let through. */
#include "policy/next_change.h"

#include "policy/decide/evaluate.h"
#include "policy/explain/why.h"

/* How much is looked at: a denial must stay cheap, whatever the policy and the request. */
enum {
    ROUNDS = 24,
    ROUNDS_LARGE = 4, /* of what costs more to judge than most */
    LOOKS = 2000,
    BODY_FEW = 8 * 1024, /* bytes: past that it is large; past BODY_SMALL it is not looked into once more */
    BODY_SMALL = 64 * 1024,
    REFS_FEW = 4, /* each is judged alone */
    REFS_SMALL = 64,
    HORIZON_MS = 8 * 86400 * 1000
};

struct turn {
    int64_t now, next; /* Unix seconds */
    int rule;          /* of which */
    unsigned looks;
    struct span by; /* id of what decided */
    bool stays;     /* that is a deny of all hours: it goes before whatever begins */
};

static void see(const struct ask *k, uint32_t rule, void *arg)
{
    struct turn *t = arg;
    const struct img_rule *r = img_at(k->p, IMG_RULE, rule);
    if (r->windows.n == 0 && r->verdict == VERDICT_DENY && span_eq(img_span(k->p, r->id), t->by))
        t->stays = true;
    if (r->windows.n == 0 || t->looks >= LOOKS || !match_scope(k->p, k->subject, r) ||
        match_fits(k, img_at(k->p, IMG_MATCH, r->match.first), ANY_PLACE) == FIT_NO)
        return;
    t->looks += r->windows.n;
    int64_t next = when_next(k->p, r, t->now);
    if (next >= t->next)
        return;
    t->next = next;
    t->rule = (int)rule;
}

static void see_question(void *arg, const struct ask *k, const struct class *c)
{
    rule_votes_each(k, see, arg);
}

/* The codes of a denial, or hold, that other rules in force could change. */
static bool by_rules(const struct decision *d)
{
    static const struct span codes[] = {SPAN("no-rule"), SPAN("host-not-named"), SPAN("rule"), SPAN("floor")};
    bool found = false;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        found |= span_eq(span_str(d->code), codes[i]);
    return found && d->verdict != VERDICT_ALLOW && !d->need_body && d->op.n > 0;
}

/* Of the rule that will decide; where that is not known without the body, of the one that begins then. */
static void describe(const struct policy *p, const struct turn *t, struct arena *a, struct next_change *o)
{
    int at = img_rule_named(p, o->decision.rule.id);
    const struct img_rule *r = at < 0 ? NULL : img_at(p, IMG_RULE, (uint32_t)at);
    struct dynbuf b;
    if (r == NULL && o->decision.need_body)
        r = img_at(p, IMG_RULE, (uint32_t)t->rule);
    if (r && r->verdict == VERDICT_DENY)
        r = NULL;
    dynbuf_init(&b, WORDS_MAX);
    if (r)
        why_hours(&b, p, r);
    o->hours = arena_keep(a, &b);
    dynbuf_init(&b, WORDS_MAX);
    why_time(&b, o->at_ms);
    o->at = arena_keep(a, &b);
}

bool policy_next_change(const struct policy *p, const struct subject *s, const struct request *r,
                        const struct decision *d, uint64_t now_ms, struct arena *a, struct next_change *out)
{
    struct body_view unseen = {.looked = false}, seen = unseen; /* of the head, and of what is asked each time */
    struct request asked = *r, head = *r;
    *out = (struct next_change){.at_ms = now_ms};
    if (p->n[IMG_WINDOW] == 0 || !by_rules(d) || now_ms > INT64_MAX / 2)
        return false;
    head.body_complete = !head.has_body;
    head.body = SPAN_NONE;
    if (asked.body.n > BODY_SMALL || (d->push && d->push->nrefs > REFS_SMALL))
        asked = head;
    if (!asked.body_complete) {
        evaluate(p, s, &asked, now_ms, &seen, a, NULL, &out->decision);
        if (out->decision.need_body)
            return false; /* only its large body says more, and that is not looked into once more */
    }
    struct turn t = {.now = (int64_t)(now_ms / 1000), .by = d->rule.id};
    const struct observer look = {.asked = see_question, .arg = &t};
    bool large = d->push ? d->push->nrefs > REFS_FEW : asked.body.n > BODY_FEW;
    for (unsigned i = 0; i < (large && asked.body_complete ? ROUNDS_LARGE : ROUNDS); i++) {
        t.next = INT64_MAX;
        evaluate(p, s, &head, out->at_ms, &unseen, a, &look, &out->decision);
        if (t.stays || t.next == INT64_MAX || (uint64_t)t.next * 1000 > now_ms + HORIZON_MS)
            return false;
        out->at_ms = (uint64_t)t.next * 1000;
        evaluate(p, s, &asked, out->at_ms, &seen, a, NULL, &out->decision);
        if (out->decision.need_body ? !asked.body_complete : out->decision.verdict > d->verdict) {
            describe(p, &t, a, out);
            return out->at.n > 0;
        }
        t.now = t.next;
    }
    return false;
}
