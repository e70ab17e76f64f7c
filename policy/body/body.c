#include "policy/body/parsers.h"

#define AMOUNT_MAX (UINT64_C(1) << 53)

const struct body_parser body_parsers[] = {
    [COND_JSON] = {.name = "json",
                   .key = "pointer",
                   .words = "JSON",
                   .number = "a whole number, ",
                   .types = {SPAN("application/json"), SPAN("+json")},
                   .parse = body_json_look,
                   .fits = body_json_fits,
                   .doubt = body_json_doubt,
                   .digits = body_json_digits,
                   .param = body_json_param,
                   .show = body_json_show},
    [COND_FORM] = {.name = "form",
                   .key = "field",
                   .words = "a form",
                   .number = "", /* all of a form is text */
                   .types = {SPAN("application/x-www-form-urlencoded")},
                   .parse = body_form_look,
                   .fits = body_form_fits,
                   .doubt = body_form_doubt,
                   .digits = body_form_digits,
                   .param = body_form_param,
                   .show = body_form_show},
    {.name = "git-receive-pack",
     .types = {SPAN("application/x-git-receive-pack-request")},
     .pack = BODY_GIT_RECEIVE_PACK,
     .other_type = AMBIGUITY_PUSH_TYPE,
     .coded = AMBIGUITY_PUSH_CODING,
     .malformed = AMBIGUITY_PUSH,
     .find = body_git_find},
};
enum { PARSERS = sizeof(body_parsers) / sizeof(body_parsers[0]) };

/* ---- what it is ---- */

/* One type (RFC 6838 section 4.2), not a list of which some servers read the first and some the last. */
static bool is_type(struct span s)
{
    size_t slashes = 0;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i] | 0x20;
        slashes += s.p[i] == '/';
        if (!(c >= 'a' && c <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
            span_index(SPAN("/!#$&-^_.+"), s.p[i]) == 10)
            return false;
    }
    return slashes == 1;
}

/* "application/json; charset=utf-8": the type alone. Another charset, or a parameter nobody knows: empty. */
static struct span media_type(struct span value)
{
    struct span type = span_trim(span_first(value, span_index(value, ';')));
    struct span rest = span_trim(span_from(value, span_index(value, ';') + 1));
    if (!is_type(type))
        return SPAN_NONE;
    if (rest.n == 0 || span_ieq(rest, SPAN("charset=utf-8")) || span_ieq(rest, SPAN("charset=\"utf-8\"")))
        return type;
    return SPAN_NONE;
}

static bool has_type(const struct body_parser *b, struct span type)
{
    for (size_t i = 0; i < 2 && b->types[i].n; i++)
        if (b->types[i].p[0] == '+' ? spelling_ends(type, b->types[i]) : span_ieq(type, b->types[i]))
            return true;
    return false;
}

/* AMBIGUITY_NONE: there is none, or v->is what it says that it is. */
static enum ambiguity_cause head(struct body_view *v, const struct request *r)
{
    size_t types, codings;
    struct span type = media_type(spelling_field(r, SPAN("Content-Type"), &types));
    struct span coding = spelling_field(r, SPAN("Content-Encoding"), &codings);
    v->absent = !r->has_body;
    if (v->absent)
        return AMBIGUITY_NONE;
    if (!r->body_complete)
        return AMBIGUITY_BODY_CUT;
    if (types != 1)
        return types ? AMBIGUITY_TYPES : AMBIGUITY_NO_TYPE;
    if (codings > 1 || (codings == 1 && !span_ieq(coding, SPAN("identity"))))
        return AMBIGUITY_CODING;
    for (size_t i = 0; i < COND_KINDS && v->is == NULL; i++)
        v->is = has_type(&body_parsers[i], type) ? &body_parsers[i] : NULL;
    return v->is ? AMBIGUITY_NONE : AMBIGUITY_TYPE;
}

void body_look(struct body_view *v, const struct request *r, struct arena *a)
{
    if (v->looked)
        return;
    v->looked = true;
    enum ambiguity_cause why = head(v, r);
    if (v->is != NULL)
        why = v->is->parse(v, r->body, a);
    if (why != AMBIGUITY_NONE)
        v->is = NULL;
    v->open = (uint8_t)why;
}

/* ---- conditions ---- */

/* Servers differ on which of the two counts (B13), and on whether ';' parts (B12). */
bool body_in_query(struct body_view *v, const struct request *r, const struct body_parser *b, struct span key,
                   struct arena *a)
{
    uint32_t at = IMG_NONE;
    struct span name;
    if (r->query.n == 0 && !path_hides_query(r->path))
        return false;
    if (b->param(key, a, &name) != 0)
        return true;
    if (name.n == 0)
        return false;
    params_of_query(&v->query, r->query, r->path, a);
    if (v->query.failed || v->query.doubtful)
        return true;
    for (const struct param *one; (one = params_next(&v->query, params_key(name), &at)) != NULL;)
        if (one->name.n)
            return true;
    return false;
}

/* No body is an empty one to many servers, where the method is one that has bodies. */
static bool may_be_empty(const struct request *r)
{
    return !span_eq(r->method, SPAN("GET")) && !span_eq(r->method, SPAN("HEAD")) &&
           !span_eq(r->method, SPAN("OPTIONS"));
}

enum fit body_fits(struct body_view *v, const struct policy *p, const struct img_cond *c, const struct request *r,
                   bool strictly, struct arena *a)
{
    const struct body_parser *b = &body_parsers[c->kind];
    const struct body_question q = {p, c, strictly};
    body_look(v, r, a);
    if (body_in_query(v, r, b, img_span(p, c->key), a))
        return FIT_MAYBE;
    if (v->absent)
        return c->op == COND_ABSENT && !strictly && may_be_empty(r) ? FIT_YES : FIT_NO;
    if (v->is == b)
        return b->fits(v, &q, a);
    return v->is != NULL && strictly ? FIT_NO : FIT_MAYBE;
}

enum ambiguity_cause body_ambiguity(struct body_view *v, const struct policy *p, const struct img_cond *c,
                                    const struct request *r, struct arena *a)
{
    const struct body_parser *b = &body_parsers[c->kind];
    struct span key = img_span(p, c->key);
    if (v->is == NULL && !v->absent)
        return (enum ambiguity_cause)v->open; /* first: whatever the rule asks about */
    if (body_in_query(v, r, b, key, a))
        return AMBIGUITY_QUERY;
    return v->is != b ? AMBIGUITY_KIND : b->doubt(v, key, a);
}

enum amount body_amount(struct body_view *v, uint32_t kind, struct span key, const struct request *r, struct arena *a,
                        uint64_t *out)
{
    const struct body_parser *b = &body_parsers[kind];
    int64_t n;
    body_look(v, r, a);
    *out = 0;
    if (v->is == NULL && !v->absent)
        return AMOUNT_OPEN;
    if (v->is != b || body_in_query(v, r, b, key, a) || !cond_whole_number(b->digits(v, key, a), &n) || n < 0 ||
        n > (int64_t)AMOUNT_MAX)
        return AMOUNT_NONE;
    *out = (uint64_t)n;
    return AMOUNT_SEEN;
}

/* ---- packs ---- */

const char *body_find(uint32_t pack, const struct request *r, struct span resource, struct arena *a, bool *pending,
                      enum ambiguity_cause *why, struct body_found *found)
{
    const struct body_parser *b = body_parsers + COND_KINDS;
    size_t types, codings;
    struct span type = spelling_field(r, SPAN("Content-Type"), &types);
    (void)spelling_field(r, SPAN("Content-Encoding"), &codings);
    while (b < body_parsers + PARSERS - 1 && b->pack != pack)
        b++;
    *why = b->other_type;
    if (b->pack != pack || !r->has_body || types != 1 || !has_type(b, type))
        return "unclassified";
    *why = b->coded;
    if (codings > 0)
        return "unclassified";
    *pending = !r->body_complete;
    *why = b->malformed;
    return *pending ? NULL : b->find(r, resource, a, found);
}
