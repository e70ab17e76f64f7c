#include "policy/match/body.h"

#include "common/text/utf8.h"
#include "policy/classify/letters.h"
#include "policy/image/glob.h"

enum { DIGITS_MAX = 18 };
#define AMOUNT_MAX (UINT64_C(1) << 53)

/* ---- what it is ---- */

static struct span only_value(const struct request *r, struct span name, size_t *count)
{
    struct span value = SPAN_NONE;
    *count = 0;
    for (size_t i = 0; i < r->nfields; i++)
        if (spelling_of_name(r->fields[i].name, name)) {
            value = r->fields[i].value;
            *count += span_ieq(r->fields[i].name, name) ? 1 : 2; /* in another spelling: not everybody reads it */
        }
    return value;
}

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

static bool ends_folded(struct span s, struct span end)
{
    return s.n >= end.n && span_ieq(span_from(s, s.n - end.n), end);
}

static enum body_kind kind_of(const struct request *r)
{
    size_t types, codings;
    struct span type = media_type(only_value(r, SPAN("Content-Type"), &types));
    struct span coding = only_value(r, SPAN("Content-Encoding"), &codings);
    if (!r->has_body)
        return BODY_ABSENT;
    if (!r->body_complete || types != 1 || codings > 1 || (codings == 1 && !span_ieq(coding, SPAN("identity"))))
        return BODY_OPEN;
    if (span_ieq(type, SPAN("application/x-www-form-urlencoded")))
        return BODY_FORM;
    return span_ieq(type, SPAN("application/json")) || ends_folded(type, SPAN("+json")) ? BODY_JSON : BODY_OPEN;
}

/* Of a body of a kind that is not looked into. */
static enum ambiguity_cause why_open(const struct request *r)
{
    size_t types, codings;
    struct span type = media_type(only_value(r, SPAN("Content-Type"), &types));
    struct span coding = only_value(r, SPAN("Content-Encoding"), &codings);
    if (!r->body_complete)
        return AMBIGUITY_BODY_CUT;
    if (types != 1)
        return types ? AMBIGUITY_TYPES : AMBIGUITY_NO_TYPE;
    if (codings > 1 || (codings == 1 && !span_ieq(coding, SPAN("identity"))))
        return AMBIGUITY_CODING;
    return type.n && span_ieq(type, SPAN("application/x-www-form-urlencoded")) ? AMBIGUITY_FORM : AMBIGUITY_TYPE;
}

static void look(struct body_view *v, const struct request *r, struct arena *a)
{
    static const uint8_t faults[] = {[JSON_MALFORMED] = AMBIGUITY_JSON,
                                     [JSON_BYTES] = AMBIGUITY_ENCODING,
                                     [JSON_KEY_TWICE] = AMBIGUITY_KEY_TWICE,
                                     [JSON_OVER_LIMIT] = AMBIGUITY_BODY_LARGE};
    enum json_fault why;
    v->looked = true;
    v->kind = kind_of(r);
    if (v->kind == BODY_OPEN)
        v->open = (uint8_t)why_open(r);
    if (v->kind == BODY_JSON && (v->json = json_parse_or(r->body, a, &why)) == NULL) {
        v->kind = BODY_OPEN;
        v->open = faults[why];
    }
    if (v->kind == BODY_FORM && params_of_form(&v->form, r->body, a) != 0) {
        v->kind = BODY_OPEN;
        v->open = AMBIGUITY_FORM;
    }
}

/* ---- one value ---- */

/* A whole number in its one spelling, of at most 18 digits. */
static bool whole(struct span s, int64_t *out)
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
        if (span_eq(img_span(p, *(const struct img_str *)img_at(p, IMG_STR, c->texts.first + i)), s))
            return true;
    for (uint32_t i = 0; i < c->globs.n; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, c->globs.first + i);
        struct glob glob = {img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
        if (glob_match(&glob, s, 0, false))
            return true;
    }
    return false;
}

/* Is a truth value all that is asked for? */
static bool is_boolean(const struct policy *p, const struct img_cond *c)
{
    bool is = c->op == COND_TEXT && c->texts.n > 0 && c->globs.n == 0;
    for (uint32_t i = 0; i < c->texts.n && is; i++)
        is = spelling_boolean(img_span(p, *(const struct img_str *)img_at(p, IMG_STR, c->texts.first + i)));
    return is;
}

static bool any_spelling(const struct policy *p, const struct img_cond *c, struct span s, struct arena *a)
{
    for (uint32_t i = 0; i < c->texts.n; i++)
        if (spelling_same(s, img_span(p, *(const struct img_str *)img_at(p, IMG_STR, c->texts.first + i)), a))
            return true;
    return spelling_fits(p, c->globs, s, a) || (is_boolean(p, c) && spelling_truth(s) == TRUTH_NONE);
}

/* other: its other spellings, where they count; without memory for them there are none, and it may fit. */
struct value {
    struct span text;
    bool plain;
    const struct spellings *other;
};

static enum fit text_fits(const struct policy *p, const struct img_cond *c, const struct value *v, bool strictly,
                          struct arena *a)
{
    if (strictly)
        return any_text(p, c, v->text) ? FIT_YES : FIT_NO;
    if (any_spelling(p, c, v->text, a))
        return FIT_YES;
    if (v->other == NULL || v->other->failed)
        return FIT_MAYBE;
    for (size_t i = 0; i < v->other->n; i++)
        if (any_spelling(p, c, v->other->v[i], a))
            return FIT_YES;
    return FIT_NO;
}

/* What is no plain value, or a number in a spelling that may be another's, leaves the question open unless only what
 * is written counts. */
static enum fit value_fits(const struct policy *p, const struct img_cond *c, const struct value *v, bool strictly,
                           struct arena *a)
{
    enum fit otherwise = strictly ? FIT_NO : FIT_MAYBE;
    int64_t n;
    if (!v->plain)
        return otherwise;
    switch (c->op) {
    case COND_TEXT: return text_fits(p, c, v, strictly, a);
    case COND_AT_MOST: return !whole(v->text, &n) ? otherwise : n <= (int64_t)c->number ? FIT_YES : FIT_NO;
    case COND_AT_LEAST: return !whole(v->text, &n) ? otherwise : n >= (int64_t)c->number ? FIT_YES : FIT_NO;
    default: return FIT_NO;
    }
}

/* Present or not is all that is asked. */
static bool asks_presence(const struct img_cond *c)
{
    return c->op == COND_EXISTS || c->op == COND_ABSENT;
}

/* ---- JSON ---- */

/* A reference token with ~0 and ~1 undone. -1: no memory. */
static int token_name(struct span token, struct arena *a, struct span *out)
{
    *out = token;
    if (span_index(token, '~') == token.n)
        return 0;
    uint8_t *name = arena_alloc(a, token.n);
    size_t n = 0;
    for (size_t i = 0; name && i < token.n; i++) {
        bool escape = token.p[i] == '~' && i + 1 < token.n;
        i += escape;
        name[n++] = !escape ? token.p[i] : token.p[i] == '0' ? '~' : '/';
    }
    *out = span_of(name, n);
    return name ? 0 : -1;
}

/* The members of a large object by their names, case aside: made when it is first asked for one. */
struct json_object {
    const struct json *node;
    struct json_object *next;
    struct json_member {
        const struct json *at;
        uint64_t key;
        uint32_t next;
    } * member;
    uint32_t *slot;
    size_t slots;
};
enum { OBJECT_SMALL = 16 };

static uint64_t key_of(struct span name)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.n;) {
        uint8_t c = letter_next(name, &i);
        key = c ? (key ^ c) * UINT64_C(0x100000001b3) : key;
    }
    return key;
}

/* NULL: no memory. */
static const struct json_object *object_of(struct body_view *v, const struct json *j, struct arena *a)
{
    size_t n = 0;
    for (struct json_object *o = v->object; o; o = o->next)
        if (o->node == j)
            return o;
    struct json_object *o = arena_alloc(a, sizeof(*o));
    if (o == NULL)
        return NULL;
    *o = (struct json_object){.node = j, .next = v->object, .slots = OBJECT_SMALL};
    while (o->slots < 2 * j->count)
        o->slots *= 2;
    o->member = arena_alloc(a, j->count * sizeof(*o->member));
    o->slot = arena_alloc(a, o->slots * sizeof(*o->slot));
    if (o->member == NULL || o->slot == NULL)
        return NULL;
    memset(o->slot, 0xff, o->slots * sizeof(*o->slot));
    for (const struct json *at = j->child; at; at = at->next, n++) {
        uint64_t key = key_of(at->key);
        uint32_t *slot = &o->slot[key % o->slots];
        o->member[n] = (struct json_member){at, key, *slot};
        *slot = (uint32_t)n;
    }
    v->object = o;
    return o;
}

/* Of one member: is it the one, or may it be? */
static void see_member(const struct json *at, struct span name, const struct json **found,
                       enum ambiguity_cause *doubt)
{
    if (span_eq(name, at->key))
        *found = at;
    else if (letters_same(name, at->key))
        *doubt = AMBIGUITY_KEY_CASE;
}

static const struct json *member_of(struct body_view *v, const struct json *j, struct span name,
                                    enum ambiguity_cause *doubt, struct arena *a)
{
    const struct json *found = NULL;
    const struct json_object *o = j->count > OBJECT_SMALL ? object_of(v, j, a) : NULL;
    if (o == NULL) {
        for (const struct json *at = j->child; at; at = at->next)
            see_member(at, name, &found, doubt);
        return found;
    }
    uint64_t key = key_of(name);
    for (uint32_t i = o->slot[key % o->slots]; i != IMG_NONE && *doubt == AMBIGUITY_NONE; i = o->member[i].next)
        if (o->member[i].key == key)
            see_member(o->member[i].at, name, &found, doubt);
    return found;
}

/* The member or element; *doubt when another key differs in case alone: some servers take it for the same, or when a
 * name is asked of a list: to a server that takes batches each of its elements is a request. */
static const struct json *child_of(struct body_view *v, const struct json *j, struct span token,
                                   enum ambiguity_cause *doubt, struct arena *a)
{
    const struct json *at = j->child;
    uint64_t index = 0;
    struct span name;
    if (j->type == JSON_OBJECT && token_name(token, a, &name) == 0)
        return member_of(v, j, name, doubt, a);
    if (j->type == JSON_OBJECT)
        *doubt = AMBIGUITY_OTHER;
    if (j->type != JSON_ARRAY)
        return NULL;
    if (span_u64(token, JSON_NODES_MAX, &index) != 0) {
        if (at != NULL)
            *doubt = AMBIGUITY_BATCH;
        return NULL;
    }
    for (; at && index; index--)
        at = at->next;
    return at;
}

static const struct json *json_at(struct body_view *v, struct span pointer, enum ambiguity_cause *doubt,
                                  struct arena *a)
{
    const struct json *j = v->json;
    struct span token;
    bool more = pointer.n > 0;
    pointer = span_from(pointer, 1);
    while (more && j) {
        more = span_cut(pointer, '/', &token, &pointer);
        j = child_of(v, j, token, doubt, a);
    }
    return j;
}

/* A value that is nothing to many is as good as absent to what restricts. */
static enum fit presence_fits(const struct img_cond *c, bool there, bool empty, bool strictly)
{
    if (c->op == COND_ABSENT && !strictly)
        there &= !empty;
    return there == (c->op == COND_EXISTS) ? FIT_YES : FIT_NO;
}

/* The other spellings of a text: those of a long one are not looked for again for each rule. */
struct json_spelt {
    const struct json *node;
    struct json_spelt *next;
    struct spellings other;
};

/* NULL: no memory. */
static const struct spellings *json_spellings(struct body_view *v, const struct json *j, struct span text,
                                              struct arena *a)
{
    struct json_spelt *s = v->spelt;
    while (s && s->node != j)
        s = s->next;
    if (s == NULL && (s = arena_alloc(a, sizeof(*s))) != NULL) {
        *s = (struct json_spelt){.node = j, .next = v->spelt};
        spellings_of(text, SPAN_NONE, a, &s->other);
        v->spelt = s;
    }
    return s ? &s->other : NULL;
}

static enum fit json_fits(struct body_view *v, const struct policy *p, const struct img_cond *c, bool strictly,
                          struct arena *a)
{
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    const struct json *j = json_at(v, img_span(p, c->key), &doubt, a);
    if (doubt != AMBIGUITY_NONE)
        return FIT_MAYBE;
    if (asks_presence(c))
        return presence_fits(c, j != NULL, j && (j->type == JSON_NULL || (j->type == JSON_STRING && j->text.n == 0)),
                             strictly);
    if (j == NULL)
        return FIT_NO;
    struct span text = j->type == JSON_BOOL   ? (j->truth ? SPAN("true") : SPAN("false"))
                       : j->type == JSON_NULL ? SPAN("null")
                                              : j->text;
    bool plain = j->type != JSON_ARRAY && j->type != JSON_OBJECT, boolean = !strictly && is_boolean(p, c);
    int64_t n;
    if (j->type == JSON_NULL && boolean)
        return any_spelling(p, c, SPAN("false"), a) ? FIT_MAYBE : FIT_NO;
    if (c->op != COND_TEXT)
        plain = j->type == JSON_NUMBER;
    else if (strictly && j->type == JSON_STRING && (span_eq(text, SPAN("false")) || span_eq(text, SPAN("null"))))
        plain = false; /* quoted, it is true to many */
    else if (j->type == JSON_NUMBER && !strictly)
        plain = whole(text, &n); /* 5.0 and 5e0 are 5 to many */
    if (j->type == JSON_STRING && span_index(text, 0) < text.n)
        plain = false; /* to a C program it ends there */
    bool others = plain && !strictly && c->op == COND_TEXT;
    struct value is = {text, plain, others ? json_spellings(v, j, text, a) : NULL};
    enum fit fit = value_fits(p, c, &is, strictly, a);
    /* 0 is true in Ruby, and "false" wherever any text is. */
    return fit == FIT_NO && boolean && j->type != JSON_BOOL ? FIT_MAYBE : fit;
}

/* ---- forms ---- */

/* Is it in the query too? Servers differ on which of the two counts (B13), and on whether ';' parts (B12). */
static bool in_query(struct body_view *v, const struct request *r, struct span want, struct arena *a)
{
    uint32_t at = IMG_NONE;
    params_of_query(&v->query, r->query, r->path, a);
    if (v->query.failed || v->query.doubtful)
        return true;
    for (const struct param *one; (one = params_next(&v->query, params_key(want), &at)) != NULL;)
        if (one->name.n)
            return true;
    return false;
}

/* A field by its name; of a JSON pointer the member that it begins with, which is what servers mix with the query. */
static bool key_in_query(struct body_view *v, const struct request *r, uint32_t kind, struct span key,
                         struct arena *a)
{
    if (r->query.n == 0 && !path_hides_query(r->path))
        return false;
    if (kind == COND_FORM || key.n < 2)
        return kind == COND_FORM && in_query(v, r, key, a);
    struct span token = span_from(key, 1), name;
    token = span_first(token, span_index(token, '/'));
    return token_name(token, a, &name) != 0 || in_query(v, r, name, a);
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

static enum fit form_fits(const struct body_view *v, const struct policy *p, const struct img_cond *c, bool strictly,
                          struct arena *a)
{
    struct span name = img_span(p, c->key);
    bool seen = false, all = true, empty = false;
    enum fit best = FIT_NO;
    uint32_t at = IMG_NONE;
    if (form_in_doubt(v, name))
        return FIT_MAYBE;
    for (struct param *one; (one = params_next(&v->form, params_key(name), &at)) != NULL;) {
        struct value is = {one->value, true, strictly ? NULL : param_spellings(one, a)};
        seen = true;
        empty |= one->value.n == 0;
        enum fit fit = asks_presence(c) ? FIT_YES : value_fits(p, c, &is, strictly, a);
        best = fit > best ? fit : best;
        all &= fit == FIT_YES;
    }
    if (asks_presence(c))
        return presence_fits(c, seen, empty, strictly);
    return strictly && !all ? FIT_NO : best;
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
    if (!v->looked)
        look(v, r, a);
    if (key_in_query(v, r, c->kind, img_span(p, c->key), a))
        return FIT_MAYBE;
    switch (v->kind) {
    case BODY_ABSENT: return c->op == COND_ABSENT && !strictly && may_be_empty(r) ? FIT_YES : FIT_NO;
    case BODY_JSON: return c->kind == COND_JSON ? json_fits(v, p, c, strictly, a) : strictly ? FIT_NO : FIT_MAYBE;
    case BODY_FORM: return c->kind == COND_FORM ? form_fits(v, p, c, strictly, a) : strictly ? FIT_NO : FIT_MAYBE;
    case BODY_OPEN: break;
    }
    return FIT_MAYBE;
}

enum ambiguity_cause body_ambiguity(struct body_view *v, const struct policy *p, const struct img_cond *c,
                                    const struct request *r, struct arena *a)
{
    struct span key = img_span(p, c->key);
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    if (v->kind == BODY_OPEN)
        return (enum ambiguity_cause)v->open; /* first: whatever the rule asks about */
    if (key_in_query(v, r, c->kind, key, a))
        return AMBIGUITY_QUERY;
    if ((v->kind == BODY_JSON) != (c->kind == COND_JSON))
        return AMBIGUITY_KIND;
    if (v->kind == BODY_FORM && form_in_doubt(v, key))
        return AMBIGUITY_FIELD;
    const struct json *j = v->kind == BODY_JSON ? json_at(v, key, &doubt, a) : NULL;
    if (doubt != AMBIGUITY_NONE)
        return doubt;
    return v->kind == BODY_FORM || (j && j->type == JSON_NUMBER) ? AMBIGUITY_NUMBER : AMBIGUITY_VALUE;
}

/* ---- an amount ---- */

static bool form_amount(const struct body_view *v, struct span name, struct span *out)
{
    size_t found = 0;
    uint32_t at = IMG_NONE;
    for (const struct param *one; (one = params_next(&v->form, params_key(name), &at)) != NULL; found++) {
        if (one->late || !span_eq(one->name, name))
            return false;
        *out = one->value;
    }
    return found == 1;
}

enum amount body_amount(struct body_view *v, uint32_t kind, struct span key, const struct request *r, struct arena *a,
                        uint64_t *out)
{
    struct span text = SPAN_NONE;
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    int64_t n;
    if (!v->looked)
        look(v, r, a);
    *out = 0;
    if (v->kind == BODY_OPEN)
        return AMOUNT_OPEN;
    if (key_in_query(v, r, kind, key, a) ||
        (kind == COND_FORM && v->kind == BODY_FORM && !form_amount(v, key, &text)))
        return AMOUNT_NONE;
    if (kind == COND_JSON && v->kind == BODY_JSON) {
        const struct json *j = json_at(v, key, &doubt, a);
        text = j && j->type == JSON_NUMBER && doubt == AMBIGUITY_NONE ? j->text : SPAN_NONE;
    }
    if (!whole(text, &n) || n < 0 || n > (int64_t)AMOUNT_MAX)
        return AMOUNT_NONE;
    *out = (uint64_t)n;
    return AMOUNT_SEEN;
}
