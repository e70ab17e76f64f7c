/* Bodies: none, one that is not looked into, those that are with a value for every answer, and pushes. */
#include "cli/policy/diff/diff_body.h"

#include <stdio.h>

enum { FIELDS_MAX = DIFF_FIELDS_MAX, VALUES_MAX = 128, BODIES_MAX = 20000, TYPES_MAX = 32 };

struct value { /* absent: text.p is NULL */
    struct span text, second;
};
struct field {
    struct span key;
    struct patterns l;
    uint64_t number[VALUES_MAX];
    size_t nnumbers, nliterals;
    struct span literal[VALUES_MAX]; /* of texts with a '*', which is no wildcard there */
    struct value v[VALUES_MAX];
    size_t n;
};
struct fields {
    struct field v[FIELDS_MAX];
    size_t n;
    uint32_t kind;               /* COND_* */
    struct span type[TYPES_MAX]; /* in which such a body may come */
    size_t ntypes;
};

static struct field *field_of(struct fields *f, struct span key)
{
    for (size_t i = 0; i < f->n; i++)
        if (span_eq(f->v[i].key, key))
            return &f->v[i];
    if (f->n == FIELDS_MAX)
        return NULL;
    f->v[f->n] = (struct field){.key = key};
    return &f->v[f->n++];
}

static int add_cond(struct space *s, struct fields *f, const struct policy *p, const struct img_cond *c)
{
    struct field *to = field_of(f, img_span(p, c->key));
    int rc = to ? diff_patterns_add_globs(s, &to->l, p, c->globs) : -1;
    for (uint32_t i = 0; rc == 0 && i < c->texts.n; i++) {
        struct span text = img_text(p, c->texts, i);
        if (span_index(text, '*') == text.n)
            rc = diff_patterns_add_both(s, &to->l, text);
        else if (to->nliterals < VALUES_MAX)
            to->literal[to->nliterals++] = text;
        else
            rc = -1;
    }
    if (rc == 0 && (c->op == COND_AT_MOST || c->op == COND_AT_LEAST)) {
        if (to->nnumbers == VALUES_MAX)
            return -1;
        to->number[to->nnumbers++] = c->number;
    }
    return rc;
}

/* What a limit adds up is asked of a body, too. */
static int add_counted(struct space *s, struct fields *of, const struct site *r)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->rule->limits.n && rc == 0; i++) {
        const struct img_limit *l = img_at(r->p, IMG_LIMIT, r->rule->limits.first + i);
        if (l->measure == LIMIT_REQUESTS)
            continue;
        struct field *to = field_of(&of[l->measure == LIMIT_JSON ? COND_JSON : COND_FORM], img_span(r->p, l->key));
        if (to == NULL || to->nnumbers + 2 > VALUES_MAX)
            return -1;
        to->number[to->nnumbers++] = l->max;
        to->number[to->nnumbers++] = 0;
        rc = diff_patterns_add(s, &to->l, SPAN("*"), false);
    }
    return rc;
}

static int add_value(struct field *f, struct span text, struct span second)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].text.p && text.p && span_eq(f->v[i].text, text) && span_eq(f->v[i].second, second))
            return 0;
    if (f->n == VALUES_MAX)
        return -1;
    f->v[f->n++] = (struct value){text, second};
    return 0;
}

static void put_form(struct dynbuf *b, struct span text)
{
    dynbuf_add_percent(b, text, "-._~");
}

static bool of_operations(const struct fields *of)
{
    return of->kind == COND_GRAPHQL || of->kind == COND_JSONRPC;
}

/* Its values are JSON. */
static bool is_json(const struct fields *of, const struct field *f)
{
    return of->kind == COND_JSON || (of_operations(of) && (f->key.n == 0 || f->key.p[0] == '/'));
}

static struct span spell(struct space *s, struct span text, bool json)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, 1 << 20);
    jsonw_begin(&w, &b);
    if (json)
        jsonw_string(&w, text);
    else
        put_form(&b, text);
    return arena_keep(s->a, &b);
}

static bool is_word_of_json(struct span s)
{
    uint64_t n;
    return span_u64(s, UINT64_C(1) << 53, &n) == 0 || span_eq(s, SPAN("true")) || span_eq(s, SPAN("false")) ||
           span_eq(s, SPAN("null"));
}

/* ---- documents ---- */

static struct span token_of(struct span pointer)
{
    return span_first(span_from(pointer, 1), span_index(span_from(pointer, 1), '/'));
}

static void write_key(struct jsonw *w, struct span token)
{
    char key[512];
    size_t n = 0;
    for (size_t i = 0; i < token.n && n + 1 < sizeof(key); i++) {
        uint8_t c = token.p[i];
        if (c == '~' && i + 1 < token.n)
            c = token.p[++i] == '0' ? '~' : '/';
        key[n++] = (char)c;
    }
    key[n] = 0;
    jsonw_key(w, key);
}

int diff_write_json(struct jsonw *w, const struct stands *v, size_t n, unsigned depth)
{
    struct stands inner[FIELDS_MAX];
    bool done[FIELDS_MAX] = {false};
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i].key.n == 0) {
            if (n == 1)
                jsonw_raw(w, v[i].text);
            return n == 1 ? 0 : -1;
        }
    if (depth > JSON_DEPTH_MAX / 2)
        return -1;
    jsonw_object(w);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct span token = token_of(v[i].key);
        size_t m = 0;
        for (size_t k = i; k < n && !done[i]; k++)
            if (span_eq(token_of(v[k].key), token)) {
                inner[m++] = (struct stands){span_from(v[k].key, token.n + 1), v[k].text, SPAN_NONE};
                done[k] = k != i || done[k];
            }
        if (m == 0)
            continue;
        write_key(w, token);
        rc = diff_write_json(w, inner, m, depth + 1);
    }
    jsonw_end_object(w);
    return rc;
}

static int write_form(struct dynbuf *b, const struct stands *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < (v[i].second.p ? 2 : 1); k++) {
            if (b->n)
                (void)dynbuf_add_byte(b, '&');
            put_form(b, v[i].key);
            (void)dynbuf_add_byte(b, '=');
            (void)dynbuf_add(b, k ? v[i].second : v[i].text);
        }
    return 0;
}

static int write_body(struct dynbuf *b, const struct field *f, size_t nfields, const size_t *at, uint32_t kind)
{
    struct stands put[FIELDS_MAX];
    struct jsonw w;
    size_t n = 0;
    for (size_t i = 0; i < nfields; i++) {
        const struct value *v = &f[i].v[at[i]];
        if (v->text.p)
            put[n++] = (struct stands){f[i].key, v->text, v->second};
    }
    jsonw_begin(&w, b);
    return kind == COND_JSON      ? diff_write_json(&w, put, n, 0)
           : kind == COND_GRAPHQL ? diff_write_graphql(b, put, n)
           : kind == COND_JSONRPC ? diff_write_jsonrpc(b, put, n)
           : kind == COND_FORM    ? write_form(b, put, n)
                                  : diff_write_multipart(b, put, n);
}

/* ---- values ---- */

/* A body of this one value, if it is answered as none before. */
static int add_new(struct space *s, const struct fields *of, struct field *f, struct signs *l, struct value v)
{
    struct field one = {.key = f->key, .v = {v}, .n = 1};
    struct http_field type = {SPAN("Content-Type"), of->type[0]};
    struct request r = diff_bare_request(s, SPAN("POST"));
    struct dynbuf b;
    r.fields = &type;
    r.nfields = 1;
    r.has_body = r.body_complete = true;
    dynbuf_init(&b, 1 << 20);
    int rc = write_body(&b, &one, 1, (size_t[]){0}, of->kind);
    r.body = dynbuf_span(&b);
    rc = rc == 0 && dynbuf_ok(&b) ? diff_signs_add(s, l, &r) : -1;
    dynbuf_free(&b);
    return rc == 1 ? add_value(f, v.text, v.second) : rc;
}

static int add_numbers(struct space *s, const struct fields *of, struct field *f, struct signs *l)
{
    int rc = 0;
    for (size_t i = 0; i < f->nnumbers && rc == 0; i++)
        for (int step = -1; step <= 1 && rc == 0; step++) {
            struct span text = arena_printf(s->a, "%lld", (long long)f->number[i] + step);
            rc = text.p ? add_new(s, of, f, l, (struct value){text, SPAN_NONE}) : -1;
        }
    if (rc == 0 && f->nnumbers)
        rc = add_new(s, of, f, l, (struct value){SPAN("1.5"), SPAN_NONE});
    return rc == 0 && f->nnumbers ? add_new(s, of, f, l, (struct value){SPAN("-1"), SPAN_NONE}) : rc;
}

static int add_spelt(struct space *s, const struct fields *of, struct field *f, struct signs *l, struct span text)
{
    bool json = is_json(of, f), name = of_operations(of) && !json, graphql = of->kind == COND_GRAPHQL;
    if (name && (graphql ? !diff_graphql_can_be(f->key, text) : text.n == 0))
        return 0;
    if (of->kind == COND_MULTIPART && !diff_multipart_can_be(f->key, text))
        return 0;
    if (name &&
        (span_eq(f->key, SPAN("type")) || span_eq(f->key, SPAN("method")))) /* a pack tells these apart, too */
        return add_value(f, text, SPAN_NONE);
    struct span spelt = name || of->kind == COND_MULTIPART ? text : spell(s, text, json);
    int rc = spelt.p ? add_new(s, of, f, l, (struct value){spelt, SPAN_NONE}) : -1;
    if (rc == 0 && json && is_word_of_json(text))
        rc = add_new(s, of, f, l, (struct value){text, SPAN_NONE});
    return rc;
}

/* Given twice, two fields, two requests of a batch: an allow wants both to fit, a deny one. */
static int add_twice(struct space *s, const struct fields *of, struct field *f, struct signs *l)
{
    int rc = 0;
    for (size_t i = 1, n = f->n; i < n && rc == 0; i++)
        for (size_t k = 1; k <= i && rc == 0; k++)
            rc = add_new(s, of, f, l, (struct value){f->v[i].text, f->v[k].text});
    return rc;
}

static int find_values(struct space *s, const struct fields *of, struct field *f)
{
    struct signs l = {0};
    struct minterms found;
    int rc = add_value(f, SPAN_NONE, SPAN_NONE);
    if (rc != 0 || minterms_find(f->l.v, f->l.n, MINTERM_TEXT, s->a, &found) != 0)
        return -1;
    for (size_t i = 0; i < found.n && rc == 0; i++)
        rc = add_spelt(s, of, f, &l, found.v[i].text);
    for (size_t i = 0; i < f->nliterals && rc == 0; i++)
        rc = add_spelt(s, of, f, &l, f->literal[i]);
    rc = rc == 0 ? add_numbers(s, of, f, &l) : rc;
    if (rc == 0 && is_json(of, f))
        rc = add_new(s, of, f, &l, (struct value){SPAN("{}"), SPAN_NONE});
    bool twice = of->kind == COND_FORM || of->kind == COND_MULTIPART || of->kind == COND_JSONRPC ||
                 span_eq(f->key, SPAN("type")) || span_eq(f->key, SPAN("fields"));
    return rc == 0 && twice && !is_json(of, f) ? add_twice(s, of, f, &l) : rc;
}

static int add_body(struct space *s, struct dim *d, const struct fields *f, struct span text)
{
    int rc = 0;
    for (size_t i = 0; i < f->ntypes && rc == 0; i++)
        rc = diff_dim_add(s, d, (struct option){.body = true, .text = text, .second = f->type[i]}) ? 0 : -1;
    return rc;
}

static int add_bodies(struct space *s, struct dim *d, struct fields *f)
{
    size_t total = f->ntypes, at[FIELDS_MAX];
    struct dynbuf b;
    int rc = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (find_values(s, f, &f->v[i]) != 0)
            return -1;
        total *= f->v[i].n;
        if (total > BODIES_MAX)
            return -1;
    }
    total /= f->ntypes;
    for (size_t number = 0; number < total && rc == 0 && (f->n || f->ntypes > 1); number++) {
        size_t rest = number;
        for (size_t i = 0; i < f->n; i++) {
            at[i] = rest % f->v[i].n;
            rest /= f->v[i].n;
        }
        dynbuf_init(&b, 4 << 20);
        bool can_be = write_body(&b, f->v, f->n, at, f->kind) == 0;
        struct span text = arena_keep(s->a, &b);
        if (can_be)
            rc = text.p ? add_body(s, d, f, text) : -1;
    }
    return rc;
}

/* ---- other types, and pushes ---- */

static int add_type(struct space *s, struct dim *d, struct span type)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->v[i].body && span_ieq(d->v[i].second, type))
            return 0;
    return diff_dim_add(s, d, (struct option){.body = true, .text = SPAN("x"), .second = type}) ? 0 : -1;
}

/* asked: by BODY_. */
static int add_pack_types(struct space *s, struct dim *d, bool asked[BODY_KINDS])
{
    int rc = 0;
    for (size_t i = 0; i < s->nops; i++) {
        const struct img_op *o = s->op[i].op;
        rc |= o->content_type.n ? add_type(s, d, img_span(s->op[i].p, o->content_type)) : 0;
        asked[o->body] = true;
    }
    return rc;
}

#define ZERO_ID "0000000000000000000000000000000000000000"
#define A_ID    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B_ID    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static int add_pushes(struct space *s, struct dim *d)
{
    static const struct span ids[][2] = {
        {SPAN(ZERO_ID), SPAN(A_ID)}, {SPAN(A_ID), SPAN(B_ID)}, {SPAN(A_ID), SPAN(ZERO_ID)}};
    struct patterns l = {0};
    struct minterms found;
    int rc = diff_patterns_add(s, &l, SPAN("refs/*/*/**"), false);
    for (size_t i = 0; i < s->nparts; i++)
        rc |= diff_patterns_add_globs(s, &l, s->part[i].p, s->part[i].match->git_refs);
    if (rc != 0 || minterms_find(l.v, l.n, MINTERM_REF, s->a, &found) != 0)
        return -1;
    for (size_t i = 0; i < found.n; i++)
        for (size_t k = 0; k < 3 && minterm_fits(&found.v[i], 0); k++) {
            struct option o = {.body = true, .ref = true, .push = {found.v[i].text, ids[k][0], ids[k][1]}};
            if (asked_refs(s->a, &o.push, 1, &o.text) != 0 || diff_dim_add(s, d, o) == NULL)
                return -1;
        }
    return 0;
}

static int take_type(struct space *s, struct dim *d, struct fields *of, const struct minterm *m)
{
    struct fields *f = minterm_fits(m, 2) ? &of[COND_FORM] : &of[COND_JSON];
    if (!minterm_fits(m, 0) && !minterm_fits(m, 1) && !minterm_fits(m, 2))
        return add_type(s, d, m->text) || !diff_dim_add(s, d, (struct option){.second = m->text}) ? -1 : 0;
    if (f->ntypes == TYPES_MAX)
        return -1;
    if (!span_ieq(m->text, f->type[0]))
        f->type[f->ntypes++] = m->text;
    return diff_dim_add(s, d, (struct option){.second = m->text}) ? 0 : -1;
}

/* Where rules ask for the type: one of every class of types, with a body and without; and a body without a type. What
 * is looked into is asked of types, too. */
static int add_types_of_rules(struct space *s, struct dim *d, struct fields *of)
{
    struct patterns l = {0};
    struct minterms found;
    int rc = diff_patterns_add(s, &l, SPAN("application/json"), true) |
             diff_patterns_add(s, &l, SPAN("*/*+json"), true) |
             diff_patterns_add(s, &l, SPAN("application/x-www-form-urlencoded"), true);
    size_t own = l.n;
    for (size_t i = 0; i < s->nparts; i++)
        for (uint32_t k = 0; k < s->part[i].match->header.n; k++) {
            const struct policy *p = s->part[i].p;
            const struct img_pair *v = img_at(p, IMG_PAIR, s->part[i].match->header.first + k);
            if (span_ieq(img_span(p, v->key), SPAN("content-type")))
                rc |= diff_patterns_add_globs(s, &l, p, v->values);
        }
    if (rc != 0 || l.n == own)
        return rc;
    if (minterms_find(l.v, l.n, MINTERM_NAME, s->a, &found) != 0)
        return -1;
    for (size_t i = 0; i < found.n && rc == 0; i++)
        rc = take_type(s, d, of, &found.v[i]);
    return rc == 0 && diff_dim_add(s, d, (struct option){.body = true, .text = SPAN("x")}) ? 0 : -1;
}

static int add_conds(struct space *s, struct fields *of)
{
    int rc = 0;
    for (size_t i = 0; i < s->nparts; i++)
        for (uint32_t k = 0; k < s->part[i].match->body.n; k++) {
            const struct img_cond *c = img_at(s->part[i].p, IMG_COND, s->part[i].match->body.first + k);
            rc |= add_cond(s, &of[c->kind], s->part[i].p, c);
        }
    for (size_t i = 0; i < s->nsites; i++)
        rc |= add_counted(s, of, &s->site[i]);
    return rc;
}

/* Where anything asks what an operation is, each type of one. */
static int add_operation_types(struct space *s, struct fields *of, bool of_pack)
{
    struct field *f = of->n || of_pack ? field_of(of, SPAN("type")) : NULL;
    if (of->n == 0 && !of_pack)
        return 0;
    return f == NULL || diff_patterns_add(s, &f->l, SPAN("query"), false) ||
                   diff_patterns_add(s, &f->l, SPAN("mutation"), false) ||
                   diff_patterns_add(s, &f->l, SPAN("subscription"), false)
               ? -1
               : 0;
}

/* Where anything asks what a message does, one that asks and one that calls a tool. */
static int add_methods(struct space *s, struct fields *of, bool of_pack)
{
    struct field *f = of->n || of_pack ? field_of(of, SPAN("method")) : NULL;
    if (of->n == 0 && !of_pack)
        return 0;
    return f == NULL || diff_patterns_add(s, &f->l, SPAN("tools/list"), false) ||
                   diff_patterns_add(s, &f->l, SPAN("tools/call"), false)
               ? -1
               : 0;
}

int diff_space_bodies(struct space *s)
{
    struct fields *of = arena_alloc(s->a, COND_KINDS * sizeof(*of));
    struct dim *d = diff_space_dim(s, DIM_BODY, SPAN_NONE);
    bool asked[BODY_KINDS] = {false};
    s->why = "bodies";
    if (of) {
        of[COND_JSON] = (struct fields){.kind = COND_JSON, .type = {SPAN("application/json")}, .ntypes = 1};
        of[COND_FORM] =
            (struct fields){.kind = COND_FORM, .type = {SPAN("application/x-www-form-urlencoded")}, .ntypes = 1};
        of[COND_GRAPHQL] = (struct fields){.kind = COND_GRAPHQL, .type = {SPAN("application/json")}, .ntypes = 1};
        of[COND_MULTIPART] = (struct fields){.kind = COND_MULTIPART, .type = {diff_multipart_type}, .ntypes = 1};
        of[COND_JSONRPC] = (struct fields){.kind = COND_JSONRPC, .type = {SPAN("application/json")}, .ntypes = 1};
    }
    if (of == NULL || d == NULL || diff_dim_add(s, d, (struct option){0}) == NULL ||
        add_type(s, d, SPAN("application/octet-stream")) != 0 || add_pack_types(s, d, asked) != 0 ||
        add_types_of_rules(s, d, of) != 0)
        return -1;
    if (asked[BODY_GIT_RECEIVE_PACK] && add_pushes(s, d) != 0)
        return -1;
    if (add_conds(s, of) != 0 || add_operation_types(s, &of[COND_GRAPHQL], asked[BODY_GRAPHQL]) != 0 ||
        add_methods(s, &of[COND_JSONRPC], asked[BODY_MCP]) != 0)
        return -1;
    for (uint32_t kind = 0; kind < COND_KINDS; kind++)
        if (add_bodies(s, d, &of[kind]) != 0)
            return -1;
    s->why = NULL;
    return 0;
}
