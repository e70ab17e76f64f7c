#include "proxy/judge/tickets/shape.h"

#include <string.h>

#include "common/json/json.h"
#include "common/text/visible.h"
#include "policy/grant.h"

enum { SHAPE_ARENA = 4 * 1024 * 1024, PATH_MAX_BYTES = 256 };

/* One name, and what of its value is part of the shape. */
struct named {
    struct span name, value;
    bool fixed;
};

struct names {
    struct named at[SHAPE_NAMES_MAX];
    size_t n;
    int rule;
    const struct policy *policy;
    struct arena *arena;
};

static bool is_letter(uint8_t c)
{
    uint8_t letter = c | 0x20;
    return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9');
}

/* A name that is shown as it is and is a part of a list of names without an escape. */
static bool name_plain(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (!is_letter(c) && c != '-' && c != '_' && c != '.' && c != '[' && c != ']')
            return false;
    }
    return s.n > 0 && s.n <= SHAPE_NAME_MAX;
}

static bool ends_in_method(struct span s)
{
    while (s.n > 0 && !is_letter(s.p[s.n - 1]))
        s.n--;
    return s.n >= 6 && span_ieq(span_from(s, s.n - 6), SPAN("method"));
}

/* Of these a value says what is done: another method, a call, an operation of GraphQL, several at once. And of what
 * some servers take for one of them. */
static bool name_rules(struct span s)
{
    static const struct span names[] = {SPAN("jsonrpc"), SPAN("query"),         SPAN("mutation"),
                                        SPAN("action"),  SPAN("operationName"), SPAN("requests"),
                                        SPAN("batch"),   SPAN("operations")};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (policy_grant_alike(s, names[i]))
            return true;
    for (size_t i = 0; i <= s.n; i++)
        if ((i == s.n || s.p[i] == '[') && ends_in_method(span_first(s, i)))
            return true;
    return false;
}

/* Text as it is read: nothing in it hides, turns or overprints. */
static bool text_shows(struct span s)
{
    char escape[VISIBLE_ESCAPE_MAX];
    for (size_t n = 0; s.n > 0; s = span_from(s, n)) {
        bool blank = s.p[0] == '\t' || s.p[0] == '\r';
        if (visible_char(s, &n, escape) == VISIBLE_ESCAPED && !blank)
            return false;
    }
    return true;
}

/* In order; a name that is there already is not added. 1 it is new, 0 it was there, -1. */
static int add(struct names *l, struct span name, const struct span *value)
{
    size_t at = l->n;
    while (at > 0 && span_cmp(l->at[at - 1].name, name) > 0)
        at--;
    if (at > 0 && span_eq(l->at[at - 1].name, name))
        return 0;
    if (l->n == SHAPE_NAMES_MAX || (value && value->n > SHAPE_FIXED_MAX))
        return -1;
    struct named is = {arena_copy(l->arena, name), value ? arena_copy(l->arena, *value) : SPAN_NONE, value != NULL};
    if (is.name.n != name.n || (value && is.value.n != value->n))
        return -1;
    memmove(&l->at[at + 1], &l->at[at], (l->n - at) * sizeof(l->at[0]));
    l->at[at] = is;
    l->n++;
    return 1;
}

/* --- a form, or a query ---------------------------------------------------------- */

static int decode(struct span s, struct arena *a, struct span *out)
{
    uint8_t *p = arena_alloc(a, s.n + 1);
    size_t n = 0;
    if (p == NULL)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        int v = s.p[i] == '%' ? hex_number(span_from(s, i + 1), 2) : s.p[i] == '+' ? ' ' : s.p[i];
        if (v < 0)
            return -1;
        i += s.p[i] == '%' ? 2 : 0;
        p[n++] = (uint8_t)v;
    }
    *out = span_of(p, n);
    return 0;
}

/* Whoever reads it takes each name once, and the same names. */
static int pairs_of(struct names *l, struct span s, enum grant_at at)
{
    struct span pair, name, value, text;
    if (span_index(s, ';') < s.n)
        return -1;
    while (s.n > 0) {
        (void)span_cut(s, '&', &pair, &s);
        (void)span_cut(pair, '=', &name, &value);
        if (!name_plain(name) || name_rules(name) || decode(value, l->arena, &text) != 0 || !text_shows(text))
            return -1;
        enum grant_fix fix = policy_grant_fixes(l->policy, l->rule, at, name);
        if (fix == GRANT_UNSURE || add(l, name, fix == GRANT_FIXES ? &value : NULL) != 1)
            return -1;
    }
    return 0;
}

/* --- JSON ------------------------------------------------------------------------ */

static bool tree_shows(const struct json *j, unsigned depth)
{
    if (depth > SHAPE_DEPTH_MAX || !text_shows(j->text))
        return false;
    for (const struct json *c = j->child; c != NULL; c = c->next)
        if ((j->type == JSON_OBJECT && !name_plain(c->key)) || !tree_shows(c, depth + 1))
            return false;
    return true;
}

/* Every value's name: one for all the elements of a list. */
static int leaves(struct names *l, const struct json *j, struct span path)
{
    struct dynbuf b;
    int rc = 0;
    if (j->child == NULL)
        return add(l, path, NULL) < 0 ? -1 : 0;
    dynbuf_init(&b, PATH_MAX_BYTES);
    for (const struct json *c = j->child; c != NULL && rc == 0; c = c->next) {
        dynbuf_reset(&b);
        (void)dynbuf_add(&b, path);
        (void)dynbuf_add(&b, SPAN("/"));
        (void)dynbuf_add(&b, j->type == JSON_OBJECT ? c->key : SPAN("*"));
        rc = dynbuf_ok(&b) ? leaves(l, c, dynbuf_span(&b)) : -1;
    }
    dynbuf_free(&b);
    return rc;
}

static int fixed(struct names *l, const struct json *j)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, SHAPE_FIXED_MAX);
    jsonw_begin(&w, &b);
    jsonw_tree(&w, j);
    struct span value = dynbuf_span(&b);
    int rc = dynbuf_ok(&b) && add(l, j->key, &value) == 1 ? 0 : -1;
    dynbuf_free(&b);
    return rc;
}

static int members_of(struct names *l, struct span body)
{
    const struct json *j = json_parse(body, l->arena);
    if (j == NULL || j->type != JSON_OBJECT || !tree_shows(j, 0))
        return -1;
    for (const struct json *c = j->child; c != NULL; c = c->next) {
        enum grant_fix fix = policy_grant_fixes(l->policy, l->rule, GRANT_JSON, c->key);
        if (fix == GRANT_UNSURE || name_rules(c->key) ||
            (fix == GRANT_FIXES ? fixed(l, c) : leaves(l, c, c->key)) != 0)
            return -1;
    }
    return 0;
}

/* --- all of it ------------------------------------------------------------------- */

enum kind { KIND_NONE = 0, KIND_EMPTY, KIND_JSON, KIND_FORM };

/* By its type, said once; a body in a coding, or with a field that asks for another method, is of no kind. */
static enum kind kind_of(const struct wire_request *r, struct span body)
{
    struct span type = SPAN_NONE, rest;
    size_t types = 0;
    for (size_t i = 0; i < r->nfields; i++) {
        struct span name = r->field[i].name;
        if (span_ieq(name, SPAN("content-encoding")) || name_rules(name))
            return KIND_NONE;
        if (span_ieq(name, SPAN("content-type")) && types++ == 0)
            type = r->field[i].value;
    }
    if (body.n == 0)
        return types <= 1 ? KIND_EMPTY : KIND_NONE;
    if (types != 1 || body.n > SHAPE_BODY_MAX)
        return KIND_NONE;
    bool more = span_cut(type, ';', &type, &rest);
    if (more && !span_ieq(span_trim(rest), SPAN("charset=utf-8")))
        return KIND_NONE;
    type = span_trim(type);
    if (span_ieq(type, SPAN("application/x-www-form-urlencoded")))
        return KIND_FORM;
    bool suffix = type.n > 5 && span_ieq(span_from(type, type.n - 5), SPAN("+json"));
    return suffix || span_ieq(type, SPAN("application/json")) ? KIND_JSON : KIND_NONE;
}

/* What its pack leaves open, if that is a pattern of the path as it is sent; what no pack names has no open step. */
static bool path_of(const struct decision *d, struct span path, struct span *out)
{
    struct span want = d->open_path, a, b;
    *out = path;
    if (span_index(path, '{') < path.n)
        return false;
    if (d->open_path.n == 0)
        return d->pack.n == 0;
    *out = want;
    for (bool more = true; more;) {
        more = span_cut(want, '/', &a, &want);
        if (span_cut(path, '/', &b, &path) != more || (!span_eq(a, SPAN(POLICY_OPEN)) && !span_eq(a, b)))
            return false;
    }
    return true;
}

/* A line each; a value that is part of the shape behind its name. None of them has a line's end in it. */
static struct span lines_of(const struct names *l, const char *kind, struct arena *a)
{
    struct dynbuf b;
    dynbuf_init(&b, SHAPE_NAMES_MAX * (PATH_MAX_BYTES + SHAPE_FIXED_MAX + 8));
    dynbuf_addf(&b, "%s\n", kind);
    for (size_t i = 0; i < l->n; i++) {
        (void)dynbuf_add(&b, l->at[i].name);
        (void)dynbuf_add(&b, l->at[i].fixed ? SPAN("=") : SPAN_NONE);
        (void)dynbuf_add(&b, l->at[i].value);
        (void)dynbuf_add(&b, SPAN("\n"));
    }
    struct span out = dynbuf_ok(&b) ? arena_copy(a, dynbuf_span(&b)) : SPAN_NONE;
    dynbuf_free(&b);
    return out;
}

static void names_json(struct jsonw *w, const char *key, const struct names *l)
{
    jsonw_kv_array(w, key);
    for (size_t i = 0; i < l->n; i++) {
        jsonw_object(w);
        jsonw_kv(w, "name", l->at[i].name);
        if (l->at[i].fixed)
            jsonw_kv(w, "value", l->at[i].value);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static struct span words_of(struct span path, const struct names *query, const char *kind, const struct names *body,
                            struct arena *a)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, SHAPE_JSON_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "path", path);
    names_json(&w, "query", query);
    jsonw_kv(&w, "body", span_str(kind));
    names_json(&w, "names", body);
    jsonw_end_object(&w);
    struct span out = dynbuf_ok(&b) ? arena_copy(a, dynbuf_span(&b)) : SPAN_NONE;
    dynbuf_free(&b);
    return out;
}

static bool may(const struct decision *d)
{
    return d->verdict == VERDICT_HOLD && d->grants.uses > 0 && d->grants.within_ms > 0 && !d->upgrade &&
           d->push == NULL && d->join_body.n == 0 && d->requests == 1 && !d->requests_more &&
           span_eq(span_str(d->code), SPAN("rule"));
}

static int make(const struct decision *d, const struct digest_input *in, struct names *query, struct names *body,
                struct arena *a, struct wire_shape *out)
{
    static const char *const kinds[] = {"", "", "JSON", "a form"};
    const struct wire_request *r = in->request;
    enum kind kind = kind_of(r, in->body);
    struct span path;
    if (kind == KIND_NONE || in->has_join_body || !path_of(d, r->path, &path) ||
        (r->has_query && pairs_of(query, r->query, GRANT_QUERY) != 0) ||
        (kind == KIND_FORM && pairs_of(body, in->body, GRANT_FORM) != 0) ||
        (kind == KIND_JSON && members_of(body, in->body) != 0))
        return -1;
    struct shape_input s = {path, lines_of(query, "query", a), lines_of(body, kinds[kind], a), d->resource,
                            span_str(effect_name(d->effect))};
    *out = (struct wire_shape){.json = words_of(path, query, kinds[kind], body, a),
                               .uses = d->grants.uses,
                               .within_ms = d->grants.within_ms};
    if (s.query.n == 0 || s.body.n == 0 || out->json.n == 0)
        return -1;
    request_shape(in, &s, &out->digest);
    return 0;
}

void shape_of(const struct policy *p, const struct decision *d, const struct digest_input *in, struct arena *a,
              struct wire_shape *out)
{
    struct arena own;
    int rule = may(d) ? policy_grant_rule(p, d->rule.id) : -1;
    struct wire_shape is = {.uses = 0};
    *out = is;
    if (rule < 0)
        return;
    arena_init(&own, SHAPE_ARENA);
    struct names query = {.rule = rule, .policy = p, .arena = &own}, body = query;
    if (make(d, in, &query, &body, &own, &is) == 0) {
        *out = is;
        out->json = arena_copy(a, is.json);
    }
    if (out->json.n != is.json.n || is.json.n == 0)
        *out = (struct wire_shape){.uses = 0};
    arena_free(&own);
}
