/* What a request of one operation has to bring, as types: from the rule's match and the pack's row. What no type can
 * say is said in words. */
#include "policy/explain/typed.h"
#include "policy/explain/why.h"

enum { DEPTH_MAX = 16 };

struct making {
    const struct policy *p;
    const struct typed_op *e;
    struct arena *a;
};

static const struct type any = {.kind = TYPE_ANY}, text = {.kind = TYPE_TEXT}, never = {.kind = TYPE_NEVER};
static const struct type whole = {.kind = TYPE_OBJECT, .open = true};

static struct type *make(struct making *k, enum type_kind kind)
{
    struct type *t = arena_alloc(k->a, sizeof(*t));
    if (t)
        t->kind = kind;
    return t;
}

static struct type *make_object(struct making *k, size_t max, struct field **fields)
{
    struct type *t = make(k, TYPE_OBJECT);
    *fields = arena_alloc(k->a, (max ? max : 1) * sizeof(**fields));
    if (t)
        t->field = *fields;
    return *fields ? t : NULL;
}

static const struct type *make_object_of(struct making *k, struct span name, const struct type *of, bool required,
                                         bool texts)
{
    struct field *f;
    struct type *t = make_object(k, 1, &f);
    if (t == NULL)
        return NULL;
    f[0] = (struct field){name, required, of};
    t->n = 1;
    t->open = true;
    t->texts = texts;
    return t;
}

/* Of values that may stand there; any text where one of them is a pattern. */
static const struct type *make_texts(struct making *k, struct img_range texts, struct img_range globs, bool plain)
{
    struct span *v = arena_alloc(k->a, ((size_t)texts.n + globs.n) * sizeof(*v) + 1);
    struct type *t = make(k, TYPE_TEXT);
    size_t n = 0;
    if (v == NULL || t == NULL)
        return NULL;
    for (uint32_t i = 0; i < texts.n; i++)
        v[n++] = img_text(k->p, texts, i);
    for (uint32_t i = 0; i < globs.n; i++) {
        v[n] = img_glob(k->p, globs, i);
        if (span_index(v[n], '*') < v[n].n)
            return &text;
        n++;
    }
    t->text = v;
    t->n = n;
    t->plain = plain;
    return t;
}

static const struct type *path_of(struct making *k)
{
    size_t at = 0, n = 0;
    struct span name;
    struct field *f;
    bool deep;
    while (typed_param(k->e->path, &at, &name, &deep))
        n++;
    struct type *t = make_object(k, n + 1, &f);
    if (t == NULL)
        return NULL;
    at = 0;
    if (typed_param(k->e->origin, &at, &name, &deep))
        f[t->n++] = (struct field){name, true, &text};
    at = 0;
    while (typed_param(k->e->path, &at, &name, &deep))
        f[t->n++] = (struct field){name, true, &text};
    t->texts = true;
    return t;
}

static bool has_field(const struct field *f, size_t n, struct span name)
{
    for (size_t i = 0; i < n; i++)
        if (span_eq(f[i].name, name))
            return true;
    return false;
}

static const struct type *one_text(struct making *k, struct span value)
{
    struct span *v = arena_alloc(k->a, sizeof(*v));
    struct type *t = make(k, TYPE_TEXT);
    if (v == NULL || t == NULL)
        return NULL;
    *v = value;
    t->text = v;
    t->n = 1;
    return t;
}

/* What a pack's row has in its query, then what the rule asks for, then what else it knows. */
static struct type *pairs_of(struct making *k, struct img_range pairs, struct img_range more, struct span packs)
{
    size_t max = (size_t)pairs.n + more.n + 1;
    struct field *f;
    for (size_t i = 0; i < packs.n; i++)
        max += packs.p[i] == '&';
    struct type *t = make_object(k, max, &f);
    if (t == NULL)
        return NULL;
    for (struct span one, name, value; packs.n;) {
        (void)span_cut(packs, '&', &one, &packs);
        (void)span_cut(one, '=', &name, &value);
        if (!has_field(f, t->n, name))
            f[t->n++] = (struct field){name, true, one_text(k, value)};
    }
    for (uint32_t i = 0; i < pairs.n; i++) {
        const struct img_pair *one = img_at(k->p, IMG_PAIR, pairs.first + i);
        struct span name = img_span(k->p, one->key);
        if (!has_field(f, t->n, name))
            f[t->n++] = (struct field){name, true, make_texts(k, (struct img_range){0, 0}, one->values, false)};
    }
    for (uint32_t i = 0; i < more.n; i++)
        if (!has_field(f, t->n, img_text(k->p, more, i)))
            f[t->n++] = (struct field){img_text(k->p, more, i), false, &text};
    t->texts = true;
    return t;
}

static const struct type *query_of(struct making *k)
{
    const struct img_match *m = k->e->match;
    struct span packs = k->e->op ? img_span(k->p, k->e->op->query) : SPAN_NONE;
    struct type *t = pairs_of(k, m->query, m->query_names, packs);
    if (t)
        t->open = !m->query_only && !(k->e->op && k->e->op->query_rule == QUERY_EXACT);
    return t;
}

static const struct type *header_of(struct making *k)
{
    struct type *t = pairs_of(k, k->e->match->header, (struct img_range){0, 0}, SPAN_NONE);
    if (t)
        t->open = true;
    return t;
}

/* ---- bodies ---- */

/* ~1 and ~0 of a JSON pointer. */
static struct span unescaped(struct making *k, struct span token)
{
    uint8_t *to = arena_alloc(k->a, token.n + 1);
    size_t n = 0;
    for (size_t i = 0; to && i < token.n; i++)
        if (token.p[i] == '~' && i + 1 < token.n)
            to[n++] = token.p[++i] == '1' ? '/' : '~';
        else
            to[n++] = token.p[i];
    return span_of(to, to ? n : 0);
}

/* An object with an object in it, down to where the pointer leads. What may be an element of a list is left open. */
static const struct type *below(struct making *k, struct span pointer, const struct type *leaf, bool required,
                                unsigned depth)
{
    uint64_t n;
    if (pointer.n == 0)
        return leaf;
    struct span token = span_from(pointer, 1);
    token = span_first(token, span_index(token, '/'));
    if (depth == 0 || span_u64(token, UINT64_MAX, &n) == 0 || span_eq(token, SPAN("-")))
        return &any;
    const struct type *of = below(k, span_from(pointer, 1 + token.n), leaf, required, depth - 1);
    struct span name = unescaped(k, token);
    return of && name.p ? make_object_of(k, name, of, required, false) : NULL;
}

static const struct type *leaf_of(struct making *k, const struct img_cond *c, bool json)
{
    struct type *t;
    switch (c->op) {
    case COND_TEXT: return make_texts(k, c->texts, c->globs, json);
    case COND_EXISTS: return json ? &any : &text;
    case COND_ABSENT: return &never;
    default: break;
    }
    if (!json)
        return &text;
    t = make(k, TYPE_NUMBER);
    if (t == NULL)
        return NULL;
    t->bounded_above = c->op == COND_AT_MOST;
    t->bounded_below = c->op == COND_AT_LEAST;
    *(t->bounded_above ? &t->most : &t->least) = c->number;
    return t;
}

static const struct type *cond_type(struct making *k, const struct img_cond *c, bool json)
{
    const struct type *leaf = leaf_of(k, c, json);
    bool required = c->op != COND_ABSENT;
    struct span key = img_span(k->p, c->key);
    if (leaf == NULL)
        return NULL;
    return json ? below(k, key, leaf, required, DEPTH_MAX) : make_object_of(k, key, leaf, required, true);
}

static const struct type *conds_type(struct making *k, struct img_range conds, bool json)
{
    const struct type **all = arena_alloc(k->a, (conds.n + 1) * sizeof(*all));
    struct type *t = make(k, TYPE_ALL);
    if (all == NULL || t == NULL)
        return NULL;
    for (uint32_t i = 0; i < conds.n; i++) {
        all[t->n] = cond_type(k, img_at(k->p, IMG_COND, conds.first + i), json);
        if (all[t->n++] == NULL)
            return NULL;
    }
    t->all = all;
    return t->n == 1 ? all[0] : t;
}

static const struct type *graphql_type(struct making *k)
{
    struct field *f;
    struct type *t = make_object(k, 3, &f);
    if (t == NULL)
        return NULL;
    f[t->n++] = (struct field){SPAN("query"), true, &text};
    f[t->n++] = (struct field){SPAN("operationName"), false, &text};
    f[t->n++] = (struct field){SPAN("variables"), false, &whole};
    t->open = true;
    return t;
}

static const struct img_cond *named_cond(struct making *k, struct span name)
{
    struct img_range r = k->e->match->body;
    for (uint32_t i = 0; i < r.n; i++) {
        const struct img_cond *c = img_at(k->p, IMG_COND, r.first + i);
        if (span_eq(img_span(k->p, c->key), name))
            return c;
    }
    return NULL;
}

static const struct type *jsonrpc_type(struct making *k)
{
    const struct img_cond *method = named_cond(k, SPAN("method")), *tool = named_cond(k, SPAN("tool"));
    const struct type *params = &whole, *called = &text;
    struct field *f;
    struct type *t = make_object(k, 4, &f);
    if (t == NULL)
        return NULL;
    if (tool) {
        params = make_object_of(k, SPAN("name"), make_texts(k, tool->texts, tool->globs, false), true, false);
        called = one_text(k, SPAN("tools/call"));
    } else if (method) {
        called = make_texts(k, method->texts, method->globs, false);
    }
    f[t->n++] = (struct field){SPAN("jsonrpc"), true, one_text(k, SPAN("2.0"))};
    f[t->n++] = (struct field){SPAN("method"), true, called};
    f[t->n++] = (struct field){SPAN("id"), false, &any};
    f[t->n++] = (struct field){SPAN("params"), tool != NULL, params};
    t->open = true;
    return t;
}

/* A body has conditions of one kind: the loader takes no rule with both. */
static void find_body(struct making *k, struct typed_facts *out)
{
    const struct img_match *m = k->e->match;
    uint32_t kind = m->body.n ? ((const struct img_cond *)img_at(k->p, IMG_COND, m->body.first))->kind : COND_KINDS;
    uint32_t packs = k->e->op ? k->e->op->body : BODY_NONE;
    bool bare = span_eq(k->e->method, SPAN("GET")) || span_eq(k->e->method, SPAN("HEAD")) ||
                span_eq(k->e->method, SPAN("OPTIONS"));
    out->media = k->e->op ? img_span(k->p, k->e->op->content_type) : SPAN_NONE;
    out->as = BODY_AS_JSON;
    out->body_required = true;
    if (kind == COND_JSON) {
        out->body = conds_type(k, m->body, true);
    } else if (kind == COND_FORM) {
        out->as = BODY_AS_FORM;
        out->body = conds_type(k, m->body, false);
    } else if (!bare && (kind == COND_GRAPHQL || (kind == COND_KINDS && packs == BODY_GRAPHQL))) {
        out->body = graphql_type(k); /* of a GET it stands in the query */
    } else if (kind == COND_JSONRPC || (kind == COND_KINDS && packs == BODY_MCP)) {
        out->body = jsonrpc_type(k);
    } else {
        out->as = bare && (kind == COND_KINDS || kind == COND_GRAPHQL) ? BODY_AS_NONE : BODY_AS_BYTES;
        out->body = &any;
        out->body_required = !bare && kind != COND_KINDS;
    }
    if (out->media.n == 0 && out->as == BODY_AS_JSON)
        out->media = SPAN("application/json");
    if (out->as == BODY_AS_FORM)
        out->media = SPAN("application/x-www-form-urlencoded");
}

/* ---- words ---- */

static void list_words(const struct making *k, struct dynbuf *b, const char *what, enum img_table t,
                       struct img_range r)
{
    if (r.n == 0)
        return;
    (void)dynbuf_addf(b, " %s ", what);
    why_list(b, k->p, t, r);
    (void)dynbuf_add_byte(b, '.');
}

static void git_words(const struct making *k, struct dynbuf *b)
{
    const struct img_match *m = k->e->match;
    list_words(k, b, "Refs:", IMG_GLOB, m->git_refs);
    if (m->git_force != TRI_UNSET)
        (void)dynbuf_addf(b, m->git_force == TRI_TRUE ? " Forced pushes." : " No forced pushes.");
    if (m->git_delete != TRI_UNSET)
        (void)dynbuf_addf(b, m->git_delete == TRI_TRUE ? " Deletions of refs." : " No deletions of refs.");
}

static void body_words(const struct making *k, struct dynbuf *b)
{
    struct img_range r = k->e->match->body;
    for (uint32_t i = 0; i < r.n; i++) {
        const struct img_cond *c = img_at(k->p, IMG_COND, r.first + i);
        bool number = c->op == COND_AT_MOST || c->op == COND_AT_LEAST;
        if (c->globs.n == 0 && (c->kind == COND_JSON || (c->kind == COND_FORM && !number)))
            continue; /* its type says it all */
        (void)dynbuf_addf(b, " %s ", body_parsers[c->kind].name);
        why_value(b, img_span(k->p, c->key));
        (void)dynbuf_add(b, SPAN(": "));
        if (number)
            (void)dynbuf_addf(b, "%s %llu", c->op == COND_AT_MOST ? "at most" : "at least",
                              (unsigned long long)c->number);
        else if (c->op != COND_TEXT)
            (void)dynbuf_addf(b, "%s", c->op == COND_EXISTS ? "there" : "not there");
        else
            why_list(b, k->p, c->texts.n ? IMG_STR : IMG_GLOB, c->texts.n ? c->texts : c->globs);
        (void)dynbuf_add_byte(b, '.');
    }
}

static void pattern_words(const struct making *k, struct dynbuf *b, struct img_range pairs)
{
    for (uint32_t i = 0; i < pairs.n; i++) {
        const struct img_pair *one = img_at(k->p, IMG_PAIR, pairs.first + i);
        bool pattern = false;
        for (uint32_t v = 0; v < one->values.n && !pattern; v++) {
            struct span value = img_glob(k->p, one->values, v);
            pattern = span_index(value, '*') < value.n && value.n > 1;
        }
        if (!pattern)
            continue;
        (void)dynbuf_add_byte(b, ' ');
        why_value(b, img_span(k->p, one->key));
        (void)dynbuf_add(b, SPAN(": "));
        why_list(b, k->p, IMG_GLOB, one->values);
        (void)dynbuf_add_byte(b, '.');
    }
}

static void bound_words(const struct making *k, const struct manifest_want *want, struct dynbuf *b)
{
    const struct img_rule *r = k->e->rule;
    if (r->windows.n) {
        (void)dynbuf_addf(b, when_in_force(k->p, r, want->now_ms) ? " Only " : " Not now, only ");
        why_hours(b, k->p, r);
        (void)dynbuf_add_byte(b, '.');
    }
    if (r->limits.n)
        (void)dynbuf_addf(b, " So much in a time: past that it is %s.", r->over == IMG_NONE ? "denied" : "held");
    if (r->except.n)
        (void)dynbuf_addf(b, " With exceptions.");
    if (r->limits.n || r->except.n)
        (void)dynbuf_addf(b, " See /v1/manifest.");
}

static void words_of(const struct making *k, const struct manifest_want *want, struct dynbuf *b)
{
    const struct typed_op *e = k->e;
    const struct img_match *m = e->match;
    (void)dynbuf_addf(b, e->verdict == VERDICT_HOLD ? "Held: a person must approve each one first." : "Allowed.");
    if (e->op) {
        (void)dynbuf_add_byte(b, ' ');
        why_value(b, img_span(k->p, e->op->op));
        (void)dynbuf_addf(b, " (%s).", effect_name((enum effect)e->op->effect));
    }
    if (m->ws)
        (void)dynbuf_addf(b, " A WebSocket.");
    if (span_index(e->host, '*') < e->host.n)
        (void)dynbuf_addf(b, " hostName: %.*s.", SPAN_FMT(e->host));
    list_words(k, b, "Of", IMG_GLOB, m->resources);
    if (e->narrower)
        list_words(k, b, "The path also fits", IMG_GLOB, m->paths);
    git_words(k, b);
    pattern_words(k, b, m->query);
    pattern_words(k, b, m->header);
    body_words(k, b);
    bound_words(k, want, b);
    if (want->ids)
        (void)dynbuf_addf(b, " Rule %.*s.", SPAN_FMT(img_span(k->p, e->rule->id)));
    if (e->rule->say.n) {
        (void)dynbuf_add_byte(b, ' ');
        (void)dynbuf_add(b, img_span(k->p, e->rule->say));
    }
}

bool typed_facts(const struct policy *p, const struct manifest_want *want, const struct typed_op *e, struct arena *a,
                 struct typed_facts *out)
{
    struct making k = {p, e, a};
    struct dynbuf b;
    *out = (struct typed_facts){.path = path_of(&k), .query = query_of(&k), .header = header_of(&k)};
    find_body(&k, out);
    dynbuf_init(&b, 16 * WORDS_MAX);
    words_of(&k, want, &b);
    out->words = arena_keep(a, &b);
    return out->path && out->query && out->header && out->body && out->words.p;
}
