#include "policy/body/parsers.h"

#include "policy/image/glob.h"

enum { DIGITS_MAX = 18 };

bool cond_whole_number(struct span s, int64_t *out)
{
    bool minus = s.n > 0 && s.p[0] == '-';
    struct span digits = span_from(s, minus);
    uint64_t v = 0;
    if (digits.n == 0 || digits.n > DIGITS_MAX || (digits.n > 1 && digits.p[0] == '0') ||
        span_u64(digits, INT64_MAX, &v) != 0 || (minus && v == 0))
        return false;
    *out = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

static bool any_text(const struct policy *p, const struct img_cond *c, struct span s)
{
    for (uint32_t i = 0; i < c->texts.n; i++)
        if (span_eq(img_text(p, c->texts, i), s))
            return true;
    for (uint32_t i = 0; i < c->globs.n; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, c->globs.first + i);
        struct glob glob = {img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
        if (glob_match(&glob, s, 0, false))
            return true;
    }
    return false;
}

bool cond_asks_boolean(const struct body_question *q)
{
    const struct policy *p = q->p;
    const struct img_cond *c = q->c;
    bool is = c->op == COND_TEXT && c->texts.n > 0 && c->globs.n == 0;
    for (uint32_t i = 0; i < c->texts.n && is; i++)
        is = spelling_boolean(img_text(p, c->texts, i));
    return is;
}

bool cond_any_spelling(const struct body_question *q, struct span s, struct arena *a)
{
    const struct policy *p = q->p;
    const struct img_cond *c = q->c;
    for (uint32_t i = 0; i < c->texts.n; i++)
        if (spelling_same(s, img_text(p, c->texts, i), a))
            return true;
    return spelling_fits(p, c->globs, s, a) || (cond_asks_boolean(q) && spelling_truth(s) == TRUTH_NONE);
}

static enum fit text_fits(const struct body_question *q, const struct value *v, struct arena *a)
{
    if (q->strictly)
        return any_text(q->p, q->c, v->text) ? FIT_YES : FIT_NO;
    if (cond_any_spelling(q, v->text, a))
        return FIT_YES;
    if (v->other == NULL || v->other->failed)
        return FIT_MAYBE;
    for (size_t i = 0; i < v->other->n; i++)
        if (cond_any_spelling(q, v->other->v[i], a))
            return FIT_YES;
    return FIT_NO;
}

enum fit cond_value_fits(const struct body_question *q, const struct value *v, struct arena *a)
{
    const struct img_cond *c = q->c;
    enum fit otherwise = q->strictly ? FIT_NO : FIT_MAYBE;
    int64_t n;
    if (!v->plain)
        return otherwise;
    switch (c->op) {
    case COND_TEXT: return text_fits(q, v, a);
    case COND_AT_MOST:
        return !cond_whole_number(v->text, &n) ? otherwise : n <= (int64_t)c->number ? FIT_YES : FIT_NO;
    case COND_AT_LEAST:
        return !cond_whole_number(v->text, &n) ? otherwise : n >= (int64_t)c->number ? FIT_YES : FIT_NO;
    default: return FIT_NO;
    }
}

bool cond_asks_presence(const struct body_question *q)
{
    return q->c->op == COND_EXISTS || q->c->op == COND_ABSENT;
}

enum fit cond_presence_fits(const struct body_question *q, bool there, bool empty)
{
    if (q->c->op == COND_ABSENT && !q->strictly)
        there &= !empty;
    return there == (q->c->op == COND_EXISTS) ? FIT_YES : FIT_NO;
}

/* Of these alone a name has no other spelling but its case. */
static bool is_plain_name(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i], letter = (uint8_t)(c | 0x20);
        if (!(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9') && span_index(SPAN("_-./"), c) == 4)
            return false;
    }
    return true;
}

bool cond_name_is(struct span name, struct span want, struct arena *a)
{
    struct spellings other = {.n = 0};
    bool is = span_ieq(name, want);
    if (!is && !is_plain_name(name))
        spellings_of(name, SPAN_NONE, a, &other);
    for (size_t i = 0; i < other.n && !is; i++)
        is = spelling_same(other.v[i], want, a);
    return is || other.failed;
}

enum fit cond_name_fits(const struct body_question *q, struct span name, struct arena *a)
{
    struct spellings other = {.n = 0};
    if (!q->strictly && !is_plain_name(name))
        spellings_of(name, SPAN_NONE, a, &other);
    const struct value is = {name, true, &other};
    return cond_value_fits(q, &is, a);
}

void fit_sum_add(struct fit_sum *s, enum fit one)
{
    bool take = !s->some || (s->all ? one < s->fit : one > s->fit);
    s->some = true;
    s->fit = take ? one : s->fit;
}
