/* The fields of a form (application/x-www-form-urlencoded, WHATWG URL section 5.1). */
#include "policy/body/parsers.h"

enum ambiguity_cause body_form_look(struct body_view *v, struct span body, struct arena *a)
{
    return params_of_form(&v->form, body, a) == 0 ? AMBIGUITY_NONE : AMBIGUITY_FORM;
}

/* Another name that some server may take for this one: nobody knows. */
static bool form_in_doubt(const struct body_view *v, struct span name)
{
    uint32_t at = IMG_NONE;
    for (const struct param *one; (one = params_next(&v->form, params_key(name), &at)) != NULL;)
        if (one->late || !span_eq(one->name, name))
            return true;
    return false;
}

enum fit body_form_fits(struct body_view *v, const struct body_question *q, struct arena *a)
{
    struct span name = img_span(q->p, q->c->key);
    bool seen = false, all = true, empty = false;
    enum fit best = FIT_NO;
    uint32_t at = IMG_NONE;
    if (form_in_doubt(v, name))
        return FIT_MAYBE;
    for (struct param *one; (one = params_next(&v->form, params_key(name), &at)) != NULL;) {
        struct value is = {one->value, true, q->strictly ? NULL : param_spellings(one, a)};
        seen = true;
        empty |= one->value.n == 0;
        enum fit fit = cond_asks_presence(q) ? FIT_YES : cond_value_fits(q, &is, a);
        best = fit > best ? fit : best;
        all &= fit == FIT_YES;
    }
    if (cond_asks_presence(q))
        return cond_presence_fits(q, seen, empty);
    return q->strictly && !all ? FIT_NO : best;
}

enum ambiguity_cause body_form_doubt(struct body_view *v, struct span key, struct arena *a)
{
    (void)a;
    return form_in_doubt(v, key) ? AMBIGUITY_FIELD : AMBIGUITY_NUMBER;
}

struct span body_form_digits(struct body_view *v, struct span key, struct arena *a)
{
    struct span digits = SPAN_NONE;
    size_t found = 0;
    uint32_t at = IMG_NONE;
    (void)a;
    for (const struct param *one; (one = params_next(&v->form, params_key(key), &at)) != NULL; found++)
        digits = one->value;
    return found == 1 && !form_in_doubt(v, key) ? digits : SPAN_NONE;
}

int body_form_param(struct span key, struct arena *a, struct span *name)
{
    (void)a;
    *name = key;
    return 0;
}

struct body_shown body_form_show(struct body_view *v, const struct body_question *q, struct arena *a)
{
    struct span key = img_span(q->p, q->c->key);
    uint32_t at = IMG_NONE;
    (void)a;
    for (const struct param *one; (one = params_next(&v->form, params_key(key), &at)) != NULL;)
        if (span_eq(one->name, key))
            return (struct body_shown){"", one->value.n ? one->value : SPAN("empty"), ""};
    return (struct body_shown){.before = "not there"};
}
