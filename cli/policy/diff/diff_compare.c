/* Two decisions about one request: what is looser now, what stricter, what merely another. */
#include "cli/policy/diff/diff_parts.h"

#include <stdlib.h>

/* -1 stricter, 0 the same, 1 looser, 2 neither. */
enum { STRICTER = -1, SAME = 0, LOOSER = 1, OTHER = 2 };

static void note(struct drift *c, enum aspect what, int how)
{
    if (how == LOOSER)
        c->widened |= what;
    else if (how == STRICTER)
        c->narrowed |= what;
    else if (how == OTHER)
        c->changed |= what;
}

static int of_two(bool looser, bool stricter)
{
    return looser ? (stricter ? OTHER : LOOSER) : stricter ? STRICTER : SAME;
}

static struct span credential_name(const struct policy *p, int i)
{
    struct credential c;
    return i >= 0 && policy_credential(p, (size_t)i, &c) ? c.name : SPAN_NONE;
}

static int compare_credentials(const struct diff *d, const struct decision *was, const struct decision *is)
{
    struct span a = credential_name(d->p[OLD], was->credential), b = credential_name(d->p[NEW], is->credential);
    if (span_eq(a, b))
        return SAME;
    return a.n == 0 ? LOOSER : b.n == 0 ? STRICTER : OTHER;
}

bool diff_texts_within(const struct policy *p, struct img_range r, const struct policy *q, struct img_range of)
{
    for (uint32_t i = 0; i < r.n; i++) {
        struct span one = img_text(p, r, i);
        bool found = false;
        for (uint32_t k = 0; k < of.n && !found; k++)
            found = span_eq(one, img_text(q, of, k));
        if (!found)
            return false;
    }
    return true;
}

static struct img_range operators_of(const struct policy *p, struct span name)
{
    for (uint32_t i = 0; i < p->n[IMG_APPROVER]; i++) {
        const struct img_approver *v = img_at(p, IMG_APPROVER, i);
        if (span_eq(img_span(p, v->name), name))
            return v->operators;
    }
    return (struct img_range){0, 0};
}

static struct img_range groups_of(const struct policy *p, struct span name)
{
    for (uint32_t i = 0; i < p->n[IMG_APPROVER]; i++) {
        const struct img_approver *v = img_at(p, IMG_APPROVER, i);
        if (span_eq(img_span(p, v->name), name))
            return v->groups;
    }
    return (struct img_range){0, 0};
}

static int approvers_compare(const struct policy *old, struct span was, const struct policy *new, struct span is)
{
    if (was.n == 0 || is.n == 0)
        return of_two(was.n && !is.n, is.n && !was.n);
    struct img_range a = operators_of(old, was), b = operators_of(new, is);
    struct img_range ga = groups_of(old, was), gb = groups_of(new, is);
    return of_two(!diff_texts_within(new, b, old, a) || !diff_texts_within(new, gb, old, ga),
                  !diff_texts_within(old, a, new, b) || !diff_texts_within(old, ga, new, gb));
}

/* 0 is the configured default: nobody knows here how long that is. */
static int compare_within(uint64_t was, uint64_t is)
{
    if (was == is)
        return SAME;
    return was == 0 || is == 0 ? OTHER : is > was ? LOOSER : STRICTER;
}

/* Does a bound everything that b bounds, at least as tightly? */
static bool bounds(const struct limit *a, const struct limit *b)
{
    return span_eq(a->measure, b->measure) && a->per >= b->per && a->max <= b->max && a->window_ms >= b->window_ms;
}

static bool all_bounded(const struct decision *by, const struct decision *of)
{
    for (size_t i = 0; i < of->nlimits; i++) {
        bool found = false;
        for (size_t k = 0; k < by->nlimits && !found; k++)
            found = bounds(&by->limits[k], &of->limits[i]);
        if (!found)
            return false;
    }
    return true;
}

/* What the ledger counts under. */
static bool same_count(const struct limit *a, const struct limit *b)
{
    return span_eq(a->rule, b->rule) && span_eq(a->measure, b->measure) && a->per == b->per;
}

static bool is_counted(const struct decision *d, const struct limit *l)
{
    for (size_t i = 0; i < d->nlimits; i++)
        if (same_count(&d->limits[i], l))
            return true;
    return false;
}

/* Is what was used of l still counted, by a limit of now that bounds as much? */
static bool goes_on(const struct decision *was, const struct decision *is, const struct limit *l)
{
    for (size_t i = 0; i < is->nlimits; i++)
        if (same_count(&is->limits[i], l) || (bounds(&is->limits[i], l) && is_counted(was, &is->limits[i])))
            return true;
    return false;
}

/* A limit that was, in whose place is one of another rule, measure or per: it begins at nothing, whatever was used.
 */
static bool counts_anew(const struct decision *was, const struct decision *is)
{
    bool begins = false, ends = false;
    for (size_t i = 0; i < is->nlimits; i++)
        begins |= !is_counted(was, &is->limits[i]);
    for (size_t i = 0; i < was->nlimits; i++)
        ends |= !goes_on(was, is, &was->limits[i]);
    return begins && ends;
}

static int compare_numbers(uint64_t was, uint64_t is)
{
    return of_two(is > was, is < was);
}

static void compare_messages(struct drift *c, const struct decision *was, const struct decision *is)
{
    const struct ws_terms *a = &was->messages, *b = &is->messages;
    if (!was->upgrade || !is->upgrade)
        return;
    int how[] = {of_two((b->send & ~a->send) != 0, (a->send & ~b->send) != 0), compare_numbers(a->max, b->max),
                 compare_numbers(a->total, b->total), compare_numbers(a->within_ms, b->within_ms)};
    size_t n = a->send && b->send ? sizeof(how) / sizeof(how[0]) : 1;
    for (size_t i = 0; i < n; i++)
        note(c, ASPECT_MESSAGES, how[i]);
    if (!span_eq(was->subprotocols, is->subprotocols))
        note(c, ASPECT_PROTOCOLS, was->subprotocols.n < is->subprotocols.n ? LOOSER : STRICTER);
}

static bool same_gate(const struct policy *p, const struct gate *a, const struct policy *q, const struct gate *b)
{
    bool same = span_eq(a->name, b->name) && a->words == b->words && a->kind == b->kind && a->body == b->body &&
                span_eq(a->url, b->url) && span_eq(a->secret, b->secret) && a->api == b->api &&
                span_eq(a->model, b->model) && span_eq(a->instructions, b->instructions);
    struct credential x = {0}, y = {0};
    bool with = a->credential >= 0 && policy_credential(p, (size_t)a->credential, &x);
    same = same && with == (b->credential >= 0 && policy_credential(q, (size_t)b->credential, &y)) &&
           span_eq(x.name, y.name);
    for (size_t i = 0; same && i < a->words; i++)
        same = span_eq(policy_gate_word(p, a, i), policy_gate_word(q, b, i));
    return same;
}

/* Is each of those asked there too? One of the same name that asks elsewhere is another one. */
static bool gates_within(const struct policy *p, uint32_t gates, const struct policy *q, uint32_t others)
{
    struct gate a, b;
    bool all = true;
    for (size_t i = 0; all && policy_gate(p, i, &a); i++) {
        bool found = (gates >> i & 1) == 0;
        for (size_t k = 0; !found && policy_gate(q, k, &b); k++)
            found = (others >> k & 1) != 0 && same_gate(p, &a, q, &b);
        all = found;
    }
    return all;
}

/* Is each whom this one escalates to asked as early there? By who they are: an entry may change under its name. */
static bool steps_within(const struct policy *p, const struct decision *d, const struct policy *q,
                         const struct decision *of)
{
    struct escalation a[ESCALATE_MAX], b[ESCALATE_MAX];
    size_t n = policy_escalations(p, d, a), m = policy_escalations(q, of, b);
    bool all = true;
    for (size_t i = 0; all && i < n && of->approve_by.n > 0; i++) { /* else any operator may, from the beginning */
        bool found = false;
        for (size_t k = 0; !found && k < m; k++)
            found = b[k].after_ms <= a[i].after_ms &&
                    diff_texts_within(p, operators_of(p, a[i].to), q, operators_of(q, b[k].to)) &&
                    diff_texts_within(p, groups_of(p, a[i].to), q, groups_of(q, b[k].to));
        all = found;
    }
    return all;
}

/* The terms of what is allowed or held in both. */
static void compare_terms(const struct diff *d, struct drift *c, const struct decision *was,
                          const struct decision *is)
{
    note(c, ASPECT_CREDENTIAL, compare_credentials(d, was, is));
    note(c, ASPECT_LIMITS, of_two(!all_bounded(is, was), !all_bounded(was, is)));
    note(c, ASPECT_COUNTED, counts_anew(was, is) ? OTHER : SAME);
    compare_messages(c, was, is);
    if (was->verdict != VERDICT_HOLD)
        return;
    note(c, ASPECT_APPROVERS, approvers_compare(d->p[OLD], was->approve_by, d->p[NEW], is->approve_by));
    const struct approval_terms *a = &was->approval, *b = &is->approval;
    note(c, ASPECT_APPROVERS, compare_numbers(b->quorum, a->quorum)); /* more of them is stricter */
    note(c, ASPECT_APPROVERS, compare_numbers(a->self, b->self));
    note(c, ASPECT_APPROVERS, compare_numbers(b->step_up, a->step_up));
    note(c, ASPECT_APPROVERS,
         of_two(a->diff == DIFF_REQUIRED && b->diff != DIFF_REQUIRED,
                b->diff == DIFF_REQUIRED && a->diff != DIFF_REQUIRED));
    note(c, ASPECT_APPROVERS, a->diff != b->diff ? OTHER : SAME);
    note(c, ASPECT_APPROVERS,
         of_two(!gates_within(d->p[OLD], a->gates, d->p[NEW], b->gates),
                !gates_within(d->p[NEW], b->gates, d->p[OLD], a->gates)));
    note(c, ASPECT_APPROVERS,
         of_two(!steps_within(d->p[NEW], is, d->p[OLD], was), !steps_within(d->p[OLD], was, d->p[NEW], is)));
    note(c, ASPECT_REASON,
         of_two(was->reason_required && !is->reason_required, is->reason_required && !was->reason_required));
    note(c, ASPECT_WITHIN, compare_within(was->within_ms, is->within_ms));
}

/* What comes of the request once these limits are used up; false: none of them is one of its own. */
static bool judge_past(const struct policy *p, const struct request *r, uint64_t now_ms, struct span rule,
                       const struct decision *d, struct arena *a, struct decision *out)
{
    bool past[LIMITS_MAX] = {false}, any = false;
    for (size_t i = 0; i < d->nlimits && i < LIMITS_MAX; i++)
        any |= past[i] = rule.n == 0 || span_eq(d->limits[i].rule, rule);
    *out = *d;
    if (any)
        policy_past_limits(p, r, past, now_ms, a, out);
    return any;
}

/* Past all limits, and past those of each rule alone. */
static void compare_past(const struct diff *d, struct drift *c, const struct request *r, uint64_t now_ms,
                         const struct decision *was, const struct decision *is, struct arena *a)
{
    struct decision then, now;
    for (size_t i = 0; i <= was->nlimits; i++) {
        struct span rule = i ? was->limits[i - 1].rule : SPAN_NONE;
        struct drift terms = {0};
        if (!judge_past(d->p[OLD], r, now_ms, rule, was, a, &then) ||
            !judge_past(d->p[NEW], r, now_ms, rule, is, a, &now))
            continue;
        if (then.verdict != now.verdict)
            note(c, ASPECT_OVER, now.verdict > then.verdict ? LOOSER : STRICTER);
        else if (then.verdict != VERDICT_DENY)
            compare_terms(d, &terms, &then, &now);
        c->changed |= terms.changed & ASPECT_COUNTED;
        terms.changed &= ~(uint32_t)ASPECT_COUNTED;
        c->widened |= terms.widened ? ASPECT_OVER : 0;
        c->narrowed |= terms.narrowed ? ASPECT_OVER : 0;
        c->changed |= terms.changed ? ASPECT_OVER : 0;
    }
}

struct drift diff_decisions(const struct diff *d, const struct request *r, uint64_t now_ms,
                            const struct decision *was, const struct decision *is, struct arena *a)
{
    struct drift c = {0};
    if (was->verdict != is->verdict) {
        note(&c, ASPECT_VERDICT, is->verdict > was->verdict ? LOOSER : STRICTER);
    } else if (is->verdict != VERDICT_DENY) {
        compare_terms(d, &c, was, is);
        compare_past(d, &c, r, now_ms, was, is, a);
    }
    return c;
}

enum diff_kind diff_change_kind(const struct drift *c)
{
    return c->widened ? DIFF_WIDENED : c->changed ? DIFF_CHANGED : c->narrowed ? DIFF_NARROWED : DIFF_NOTE;
}
