#include "policy/body.h"

#include "common/utf8.h"
#include "policy/glob.h"

enum { FIELDS_MAX = 10000, DIGITS_MAX = 18 };
#define AMOUNT_MAX (UINT64_C(1) << 53)

/* ---- what it is ---- */

static struct span only_value(const struct request *r, struct span name, size_t *count)
{
    struct span value = SPAN_NONE;
    *count = 0;
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->fields[i].name, name)) {
            value = r->fields[i].value;
            ++*count;
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

static int nibble(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* -1: an escape that is none, a control character, bytes that are no UTF-8, or no memory. */
static int decode(struct span s, struct arena *a, struct span *out)
{
    uint8_t *dst = arena_alloc(a, s.n + 1);
    size_t n = 0;
    if (dst == NULL)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i] == '+' ? ' ' : s.p[i];
        if (c == '%') {
            int hi = s.n - i > 2 ? nibble(s.p[i + 1]) : -1, lo = hi >= 0 ? nibble(s.p[i + 2]) : -1;
            if (lo < 0)
                return -1;
            c = (uint8_t)(hi * 16 + lo);
            i += 2;
        }
        if (c == 0)
            return -1;
        dst[n++] = c;
    }
    *out = span_of(dst, n);
    return utf8_run(*out) == out->n ? 0 : -1;
}

/* A ';' may part fields for one server and not for another: then nobody knows what the fields are. */
static int parse_form(struct span body, struct body_view *v, struct arena *a)
{
    size_t max = 1, n = 0;
    for (size_t i = 0; i < body.n; i++) {
        if (body.p[i] == ';')
            return -1;
        max += body.p[i] == '&';
    }
    struct form_field *f = max <= FIELDS_MAX ? arena_alloc(a, max * sizeof(*f)) : NULL;
    if (f == NULL)
        return -1;
    while (body.n) {
        struct span pair = span_first(body, span_index(body, '&'));
        size_t eq = span_index(pair, '=');
        body = span_from(body, pair.n + 1);
        if (pair.n == 0)
            continue;
        if (decode(span_first(pair, eq), a, &f[n].name) != 0 || decode(span_from(pair, eq + 1), a, &f[n].value) != 0)
            return -1;
        if (span_eq(f[n].name, SPAN("_charset_")))
            return -1;
        n++;
    }
    v->field = f;
    v->nfields = n;
    return 0;
}

/* Of a body of a kind that is not looked into. */
static enum unclear_cause why_open(const struct request *r)
{
    size_t types, codings;
    struct span type = media_type(only_value(r, SPAN("Content-Type"), &types));
    struct span coding = only_value(r, SPAN("Content-Encoding"), &codings);
    if (!r->body_complete)
        return UNCLEAR_BODY_CUT;
    if (types != 1)
        return types ? UNCLEAR_TYPES : UNCLEAR_NO_TYPE;
    if (codings > 1 || (codings == 1 && !span_ieq(coding, SPAN("identity"))))
        return UNCLEAR_CODING;
    return type.n && span_ieq(type, SPAN("application/x-www-form-urlencoded")) ? UNCLEAR_FORM : UNCLEAR_TYPE;
}

static void look(struct body_view *v, const struct request *r, struct arena *a)
{
    static const uint8_t faults[] = {[JSON_MALFORMED] = UNCLEAR_JSON,
                                     [JSON_BYTES] = UNCLEAR_ENCODING,
                                     [JSON_KEY_TWICE] = UNCLEAR_KEY_TWICE,
                                     [JSON_OVER_LIMIT] = UNCLEAR_BODY_LARGE};
    enum json_fault why;
    *v = (struct body_view){.looked = true, .kind = kind_of(r)};
    if (v->kind == BODY_OPEN)
        v->open = (uint8_t)why_open(r);
    if (v->kind == BODY_JSON && (v->json = json_parse_or(r->body, a, &why)) == NULL) {
        v->kind = BODY_OPEN;
        v->open = faults[why];
    }
    if (v->kind == BODY_FORM && parse_form(r->body, v, a) != 0) {
        v->kind = BODY_OPEN;
        v->open = UNCLEAR_FORM;
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

static bool any_text(const struct policy *p, const struct img_cond *c, struct span s, bool fold)
{
    for (uint32_t i = 0; i < c->texts.n; i++) {
        struct span want = img_span(p, *(const struct img_str *)img_at(p, IMG_STR, c->texts.first + i));
        if (fold ? span_ieq(want, s) : span_eq(want, s))
            return true;
    }
    for (uint32_t i = 0; i < c->globs.n; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, c->globs.first + i);
        struct glob glob = {img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
        if (glob_match(&glob, s, 0, fold))
            return true;
    }
    return false;
}

/* What is no plain value, or a number in a spelling that may be another's, leaves the question open unless only what
 * is written counts. */
static enum fit value_fits(const struct policy *p, const struct img_cond *c, struct span text, bool plain,
                           bool strictly)
{
    enum fit otherwise = strictly ? FIT_NO : FIT_MAYBE;
    int64_t n;
    if (!plain)
        return otherwise;
    switch (c->op) {
    case COND_TEXT: return any_text(p, c, text, !strictly) ? FIT_YES : FIT_NO;
    case COND_AT_MOST: return !whole(text, &n) ? otherwise : n <= (int64_t)c->number ? FIT_YES : FIT_NO;
    case COND_AT_LEAST: return !whole(text, &n) ? otherwise : n >= (int64_t)c->number ? FIT_YES : FIT_NO;
    default: return FIT_NO;
    }
}

/* Present or not is all that is asked. */
static bool asks_presence(const struct img_cond *c)
{
    return c->op == COND_EXISTS || c->op == COND_ABSENT;
}

/* ---- JSON ---- */

static uint8_t low(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* The next character of a key for one that ignores case: the long s is an s to it, and the sign for kelvin a k
 * (Unicode's simple case folding; no other character folds to ASCII). */
static uint8_t next_folded(struct span key, size_t *at)
{
    struct span rest = span_from(key, *at);
    if (span_starts(rest, SPAN("\xc5\xbf")) || span_starts(rest, SPAN("\xe2\x84\xaa"))) {
        *at += rest.p[0] == 0xc5 ? 2 : 3;
        return rest.p[0] == 0xc5 ? 's' : 'k';
    }
    return low(key.p[(*at)++]);
}

/* A reference token with ~0 and ~1 undone, against a key. fold: case aside. */
static bool token_is(struct span token, struct span key, bool fold)
{
    size_t k = 0;
    for (size_t i = 0; i < token.n; i++) {
        uint8_t c = token.p[i];
        if (c == '~' && i + 1 < token.n)
            c = token.p[++i] == '0' ? '~' : '/';
        if (k == key.n)
            return false;
        uint8_t d = fold ? next_folded(key, &k) : key.p[k++];
        if ((fold ? low(c) : c) != d)
            return false;
    }
    return k == key.n;
}

/* The member or element; *doubt when another key differs in case alone: some servers take it for the same, or when a
 * name is asked of a list: to a server that takes batches each of its elements is a request. */
static const struct json *child_of(const struct json *j, struct span token, enum unclear_cause *doubt)
{
    const struct json *found = NULL, *at = j->child;
    uint64_t index = 0;
    if (j->type == JSON_OBJECT) {
        for (; at; at = at->next) {
            if (token_is(token, at->key, false))
                found = at;
            else if (token_is(token, at->key, true))
                *doubt = UNCLEAR_KEY_CASE;
        }
        return found;
    }
    if (j->type != JSON_ARRAY)
        return NULL;
    if (span_u64(token, JSON_NODES_MAX, &index) != 0) {
        if (at != NULL)
            *doubt = UNCLEAR_BATCH;
        return NULL;
    }
    for (; at && index; index--)
        at = at->next;
    return at;
}

static const struct json *json_at(const struct json *j, struct span pointer, enum unclear_cause *doubt)
{
    struct span token;
    bool more = pointer.n > 0;
    pointer = span_from(pointer, 1);
    while (more && j) {
        more = span_cut(pointer, '/', &token, &pointer);
        j = child_of(j, token, doubt);
    }
    return j;
}

static enum fit json_fits(const struct body_view *v, const struct policy *p, const struct img_cond *c, bool strictly)
{
    enum unclear_cause doubt = UNCLEAR_NONE;
    const struct json *j = json_at(v->json, img_span(p, c->key), &doubt);
    if (doubt != UNCLEAR_NONE)
        return FIT_MAYBE;
    if (asks_presence(c))
        return (j != NULL) == (c->op == COND_EXISTS) ? FIT_YES : FIT_NO;
    if (j == NULL)
        return FIT_NO;
    struct span text = j->type == JSON_BOOL   ? (j->truth ? SPAN("true") : SPAN("false"))
                       : j->type == JSON_NULL ? SPAN("null")
                                              : j->text;
    bool plain = j->type != JSON_ARRAY && j->type != JSON_OBJECT;
    int64_t n;
    if (c->op != COND_TEXT)
        plain = j->type == JSON_NUMBER;
    else if (strictly && j->type == JSON_STRING && (span_eq(text, SPAN("false")) || span_eq(text, SPAN("null"))))
        plain = false; /* quoted, it is true to many */
    else if (j->type == JSON_NUMBER && !strictly)
        plain = whole(text, &n); /* 5.0 and 5e0 are 5 to many */
    return value_fits(p, c, text, plain, strictly);
}

/* ---- forms ---- */

/* The next byte of a name that tells two names apart for everybody: PHP makes an underscore of '.', ' ' and a '['
 * that nothing closes, and cuts blanks in front; Rack cuts brackets in front. 0: none is left. */
static uint8_t next_sure(struct span name, size_t *at)
{
    static const struct span unsure = SPAN("[]._+ ");
    while (*at < name.n) {
        uint8_t c = next_folded(name, at);
        if (c > ' ' && span_index(unsure, c) == unsure.n)
            return c;
    }
    return 0;
}

bool body_field_may_be(struct span name, struct span want)
{
    size_t i = 0, k = 0;
    uint8_t c;
    while ((c = next_sure(want, &k)) != 0)
        if (next_sure(name, &i) != c)
            return false;
    name = span_from(name, i);
    i = 0;
    return next_sure(span_first(name, span_index(name, '[')), &i) == 0;
}

/* Is it in the query too? Servers differ on which of the two counts (B13), and on whether ';' parts (B12). */
static bool in_query(struct span query, struct span want, struct arena *a)
{
    while (query.n) {
        size_t n = span_index(query, '&'), semicolon = span_index(query, ';');
        struct span param = span_first(query, n < semicolon ? n : semicolon), name;
        query = span_from(query, param.n + 1);
        name = span_first(param, span_index(param, '='));
        bool plain = span_index(name, '%') == name.n && span_index(name, '+') == name.n;
        if ((!plain && decode(name, a, &name) != 0) || (name.n && body_field_may_be(name, want)))
            return true;
    }
    return false;
}

/* A field by its name; of a JSON pointer the member that it begins with, which is what servers mix with the query. */
static bool key_in_query(const struct request *r, uint32_t kind, struct span key, struct arena *a)
{
    if (kind == COND_FORM || r->query.n == 0 || key.n < 2)
        return kind == COND_FORM && in_query(r->query, key, a);
    struct span token = span_from(key, 1);
    token = span_first(token, span_index(token, '/'));
    uint8_t *name = arena_alloc(a, token.n + 1);
    size_t n = 0;
    for (size_t i = 0; name && i < token.n; i++) {
        bool escape = token.p[i] == '~' && i + 1 < token.n;
        i += escape;
        name[n++] = !escape ? token.p[i] : token.p[i] == '0' ? '~' : '/';
    }
    return name == NULL || in_query(r->query, span_of(name, n), a);
}

static enum fit form_fits(const struct body_view *v, const struct policy *p, const struct img_cond *c, bool strictly)
{
    struct span name = img_span(p, c->key);
    bool seen = false, all = true;
    enum fit best = FIT_NO;
    for (size_t i = 0; i < v->nfields; i++) {
        if (!span_eq(v->field[i].name, name)) {
            if (body_field_may_be(v->field[i].name, name))
                return FIT_MAYBE;
            continue;
        }
        seen = true;
        enum fit one = asks_presence(c) ? FIT_YES : value_fits(p, c, v->field[i].value, true, strictly);
        best = one > best ? one : best;
        all &= one == FIT_YES;
    }
    if (asks_presence(c))
        return seen == (c->op == COND_EXISTS) ? FIT_YES : FIT_NO;
    return strictly && !all ? FIT_NO : best;
}

enum fit body_fits(struct body_view *v, const struct policy *p, const struct img_cond *c, const struct request *r,
                   bool strictly, struct arena *a)
{
    if (!v->looked)
        look(v, r, a);
    if (key_in_query(r, c->kind, img_span(p, c->key), a))
        return FIT_MAYBE;
    switch (v->kind) {
    case BODY_ABSENT: return FIT_NO;
    case BODY_JSON: return c->kind == COND_JSON ? json_fits(v, p, c, strictly) : strictly ? FIT_NO : FIT_MAYBE;
    case BODY_FORM: return c->kind == COND_FORM ? form_fits(v, p, c, strictly) : strictly ? FIT_NO : FIT_MAYBE;
    case BODY_OPEN: break;
    }
    return FIT_MAYBE;
}

enum unclear_cause body_unclear(const struct body_view *v, const struct policy *p, const struct img_cond *c,
                                const struct request *r, struct arena *a)
{
    struct span key = img_span(p, c->key);
    enum unclear_cause doubt = UNCLEAR_NONE;
    if (v->kind == BODY_OPEN)
        return (enum unclear_cause)v->open; /* first: whatever the rule asks about */
    if (key_in_query(r, c->kind, key, a))
        return UNCLEAR_QUERY;
    if ((v->kind == BODY_JSON) != (c->kind == COND_JSON))
        return UNCLEAR_KIND;
    for (size_t i = 0; v->kind == BODY_FORM && i < v->nfields; i++)
        if (!span_eq(v->field[i].name, key) && body_field_may_be(v->field[i].name, key))
            return UNCLEAR_FIELD;
    const struct json *j = v->kind == BODY_JSON ? json_at(v->json, key, &doubt) : NULL;
    if (doubt != UNCLEAR_NONE)
        return doubt;
    return v->kind == BODY_FORM || (j && j->type == JSON_NUMBER) ? UNCLEAR_NUMBER : UNCLEAR_VALUE;
}

/* ---- an amount ---- */

static bool form_amount(const struct body_view *v, struct span name, struct span *out)
{
    size_t found = 0;
    for (size_t i = 0; i < v->nfields; i++) {
        if (span_eq(v->field[i].name, name)) {
            *out = v->field[i].value;
            found++;
        } else if (body_field_may_be(v->field[i].name, name)) {
            return false;
        }
    }
    return found == 1;
}

enum amount body_amount(struct body_view *v, uint32_t kind, struct span key, const struct request *r, struct arena *a,
                        uint64_t *out)
{
    struct span text = SPAN_NONE;
    enum unclear_cause doubt = UNCLEAR_NONE;
    int64_t n;
    if (!v->looked)
        look(v, r, a);
    *out = 0;
    if (v->kind == BODY_OPEN)
        return AMOUNT_OPEN;
    if (key_in_query(r, kind, key, a) || (kind == COND_FORM && v->kind == BODY_FORM && !form_amount(v, key, &text)))
        return AMOUNT_NONE;
    if (kind == COND_JSON && v->kind == BODY_JSON) {
        const struct json *j = json_at(v->json, key, &doubt);
        text = j && j->type == JSON_NUMBER && doubt == UNCLEAR_NONE ? j->text : SPAN_NONE;
    }
    if (!whole(text, &n) || n < 0 || n > (int64_t)AMOUNT_MAX)
        return AMOUNT_NONE;
    *out = (uint64_t)n;
    return AMOUNT_SEEN;
}
