/* An executable document of GraphQL (October 2021, section 2): all of its grammar is read, and what its definitions
 * select at their top is kept. */
#include "policy/body/graphql.h"

struct parse {
    struct graphql_lexer x;
    struct graphql_budget left;
    struct arena *a;
    enum ambiguity_cause why;
    unsigned depth;
    struct graphql_definition *in;   /* whose selections are read */
    struct graphql_selection **last; /* where its next one goes */
};

/* Selections nest, fields have values, values nest. */
static bool selections(struct parse *k, bool top);
static bool value(struct parse *k, bool constant, struct json *out);

static bool over(struct parse *k)
{
    k->why = AMBIGUITY_BODY_LARGE;
    return false;
}

static void next(struct parse *k)
{
    if (--k->left.tokens < 0) {
        k->left.tokens = 0;
        (void)over(k);
        k->x.kind = GRAPHQL_BAD;
        return;
    }
    graphql_next(&k->x);
}

static bool is(const struct parse *k, uint8_t kind)
{
    return k->x.kind == kind;
}

static bool is_word(const struct parse *k, struct span word)
{
    return is(k, GRAPHQL_NAME) && span_eq(k->x.text, word);
}

static bool is_on(const struct parse *k)
{
    return is(k, GRAPHQL_NAME) && k->x.text.n == 2 && k->x.text.p[0] == 'o' && k->x.text.p[1] == 'n';
}

/* It stands there, and is passed. */
static bool take(struct parse *k, uint8_t kind)
{
    bool there = is(k, kind);
    if (there)
        next(k);
    return there;
}

static bool take_name(struct parse *k, struct span *out)
{
    *out = k->x.text;
    return take(k, GRAPHQL_NAME);
}

static void *get(struct parse *k, size_t n)
{
    void *p = arena_alloc(k->a, n);
    if (p == NULL)
        (void)over(k);
    return p;
}

/* ---- values ---- */

/* A list or an object gets another child; NULL: none more, or one of this name is there. */
static struct json *add_child(struct parse *k, struct json *to, struct json **last, struct span key)
{
    for (const struct json *j = to->child; j != NULL && to->type == JSON_OBJECT; j = j->next)
        if (span_eq(j->key, key))
            return NULL;
    struct json *j = to->count < GRAPHQL_MEMBERS_MAX ? get(k, sizeof(*j)) : NULL;
    if (j == NULL) {
        (void)over(k);
        return NULL;
    }
    j->key = key;
    if (*last != NULL)
        (*last)->next = j;
    else
        to->child = j;
    *last = j;
    to->count++;
    return j;
}

/* "name: value", of an object or of arguments. */
static bool pair(struct parse *k, bool constant, struct json *to, struct json **last)
{
    struct span name;
    struct json *j = NULL;
    if (!take_name(k, &name) || !take(k, ':'))
        return false;
    if (to != NULL && (j = add_child(k, to, last, name)) == NULL)
        return false;
    return value(k, constant, j);
}

static bool list_or_object(struct parse *k, bool constant, struct json *out)
{
    struct json *last = NULL, *j;
    bool object = is(k, '{'), good = true;
    uint8_t end = object ? '}' : ']';
    if (++k->depth > GRAPHQL_DEPTH_MAX)
        return over(k);
    if (out != NULL)
        out->type = object ? JSON_OBJECT : JSON_ARRAY;
    for (next(k); good && !is(k, end);)
        if (object)
            good = pair(k, constant, out, &last);
        else if (out != NULL)
            good = (j = add_child(k, out, &last, SPAN_NONE)) != NULL && value(k, constant, j);
        else
            good = value(k, constant, NULL);
    k->depth--;
    return good && take(k, end);
}

static void word_of(struct span word, struct json *out)
{
    *out = (struct json){.type = JSON_STRING, .text = word, .key = out->key, .next = out->next};
    if (span_eq(word, SPAN("null")))
        out->type = JSON_NULL;
    else if (span_eq(word, SPAN("true")) || span_eq(word, SPAN("false")))
        out->type = JSON_BOOL;
    out->truth = out->type == JSON_BOOL && word.n == 4;
}

/* constant: without variables. out: zeroed but for its key; NULL: it is only read. */
static bool value(struct parse *k, bool constant, struct json *out)
{
    struct span text = k->x.text, said;
    switch (k->x.kind) {
    case '$':
        next(k);
        if (constant || !take_name(k, &text))
            return false;
        if (out != NULL)
            out->text = text; /* and JSON_BAD */
        return true;
    case '[':
    case '{': return list_or_object(k, constant, out);
    case GRAPHQL_STRING:
    case GRAPHQL_BLOCK:
        if (graphql_string(&k->x, k->a, &said) != 0)
            return false;
        if (out != NULL)
            *out = (struct json){.type = JSON_STRING, .text = said, .key = out->key};
        break;
    case GRAPHQL_INT:
    case GRAPHQL_FLOAT:
        if (out != NULL)
            *out = (struct json){.type = JSON_NUMBER, .text = text, .key = out->key};
        break;
    case GRAPHQL_NAME:
        if (out != NULL)
            word_of(text, out);
        break;
    default: return false;
    }
    next(k);
    return true;
}

/* In parentheses, at least one. out: NULL, or an object that they become. */
static bool arguments(struct parse *k, bool constant, struct json *out)
{
    struct json *last = NULL;
    next(k);
    do
        if (!pair(k, constant, out, &last))
            return false;
    while (!is(k, ')'));
    next(k);
    return true;
}

static bool directives(struct parse *k, bool constant)
{
    struct span name;
    while (take(k, '@'))
        if (!take_name(k, &name) || (is(k, '(') && !arguments(k, constant, NULL)))
            return false;
    return true;
}

/* ---- selections ---- */

static bool keep(struct parse *k, struct graphql_selection s)
{
    struct graphql_selection *one = get(k, sizeof(*one));
    if (one == NULL)
        return false;
    *one = s;
    *k->last = one;
    k->last = &one->next;
    return true;
}

/* What a spread names is found when all definitions are known; until then it names itself. */
static bool fragment(struct parse *k, bool top)
{
    if (is(k, GRAPHQL_NAME) && !is_on(k)) {
        struct graphql_selection s = {.top = top, .fragment = k->in};
        return take_name(k, &s.name) && keep(k, s) && directives(k, false);
    }
    if (take(k, GRAPHQL_NAME) && !take(k, GRAPHQL_NAME))
        return false;
    return (!is(k, '@') || directives(k, false)) && selections(k, top);
}

static bool alias(struct parse *k, struct span *name)
{
    if (k->left.aliases == 0)
        return over(k);
    k->left.aliases--;
    next(k);
    return take_name(k, name);
}

static bool field(struct parse *k, bool top)
{
    struct span name;
    struct json *of = NULL;
    if (!take_name(k, &name))
        return false;
    if (!top && (is(k, GRAPHQL_NAME) || is(k, '}')))
        return true; /* which most are */
    if (is(k, ':') && !alias(k, &name))
        return false;
    if (is(k, '(')) {
        if (top && (of = get(k, sizeof(*of))) == NULL)
            return false;
        if (of != NULL)
            of->type = JSON_OBJECT;
        if (!arguments(k, false, of))
            return false;
    }
    if (top && !keep(k, (struct graphql_selection){.top = true, .name = name, .arguments = of}))
        return false;
    return (!is(k, '@') || directives(k, false)) && (!is(k, '{') || selections(k, false));
}

static bool selections(struct parse *k, bool top)
{
    if (++k->depth > GRAPHQL_DEPTH_MAX)
        return over(k);
    if (!take(k, '{'))
        return false;
    do
        if (take(k, GRAPHQL_SPREAD) ? !fragment(k, top) : !field(k, top))
            return false;
    while (!is(k, '}'));
    k->depth--;
    next(k);
    return true;
}

/* ---- definitions ---- */

static bool type_of(struct parse *k)
{
    unsigned lists = 0;
    struct span name;
    while (take(k, '['))
        lists++;
    if (!take_name(k, &name))
        return false;
    (void)take(k, '!');
    for (; lists > 0 && take(k, ']'); lists--)
        (void)take(k, '!');
    return lists == 0;
}

static bool variable(struct parse *k, struct graphql_definition *d)
{
    struct graphql_variable v = {.next = d->variables}, *one;
    struct json *usual;
    if (!take(k, '$') || !take_name(k, &v.name) || !take(k, ':') || !type_of(k))
        return false;
    for (one = d->variables; one != NULL; one = one->next)
        if (span_eq(one->name, v.name))
            return false;
    if (take(k, '=')) {
        if ((usual = get(k, sizeof(*usual))) == NULL || !value(k, true, usual))
            return false;
        v.usual = usual;
    }
    if ((one = get(k, sizeof(*one))) == NULL)
        return false;
    *one = v;
    d->variables = one;
    return directives(k, true);
}

static bool variables(struct parse *k, struct graphql_definition *d)
{
    size_t n = 0;
    do
        if (++n > GRAPHQL_MEMBERS_MAX ? !over(k) : !variable(k, d))
            return false;
    while (!take(k, ')'));
    return true;
}

static bool definition(struct parse *k, struct graphql_definition *d)
{
    static const struct {
        struct span word;
        enum graphql_type type;
    } words[] = {{SPAN("query"), GRAPHQL_QUERY},
                 {SPAN("mutation"), GRAPHQL_MUTATION},
                 {SPAN("subscription"), GRAPHQL_SUBSCRIPTION},
                 {SPAN("fragment"), GRAPHQL_FRAGMENT}};
    size_t i = 0;
    struct span on;
    k->in = d;
    k->last = &d->selections;
    d->type = GRAPHQL_QUERY;
    if (is(k, '{'))
        return selections(k, true);
    while (i < 4 && !is_word(k, words[i].word))
        i++;
    if (i == 4)
        return false;
    d->type = words[i].type;
    next(k);
    if (d->type == GRAPHQL_FRAGMENT) {
        if (is_on(k) || !take_name(k, &d->name) || !is_on(k))
            return false;
        next(k);
        return take_name(k, &on) && directives(k, false) && selections(k, true);
    }
    if (is(k, GRAPHQL_NAME))
        (void)take_name(k, &d->name);
    return (!take(k, '(') || variables(k, d)) && directives(k, false) && selections(k, true);
}

/* Two of one kind have one name; an operation without one stands alone. */
static bool clashes(const struct graphql_definition *a, const struct graphql_definition *b)
{
    if ((a->type == GRAPHQL_FRAGMENT) != (b->type == GRAPHQL_FRAGMENT))
        return false;
    return a->name.n == 0 || b->name.n == 0 || span_eq(a->name, b->name);
}

static struct graphql_definition *definitions(struct parse *k)
{
    struct graphql_definition *first = NULL, **last = &first, *d;
    size_t n = 0;
    for (next(k); !is(k, GRAPHQL_END); last = &d->next) {
        d = n++ < GRAPHQL_DEFINITIONS_MAX ? get(k, sizeof(*d)) : NULL;
        if (d == NULL) {
            (void)over(k);
            return NULL;
        }
        *last = d;
        if (!definition(k, d))
            return NULL;
        for (struct graphql_definition *e = first; e != d; e = e->next)
            if (clashes(d, e))
                return NULL;
    }
    return first;
}

static bool link_spreads(struct graphql_definition *first)
{
    for (struct graphql_definition *d = first; d != NULL; d = d->next)
        for (struct graphql_selection *s = d->selections; s != NULL; s = s->next) {
            struct graphql_definition *f = s->fragment ? first : NULL;
            while (f != NULL && (f->type != GRAPHQL_FRAGMENT || !span_eq(f->name, s->name)))
                f = f->next;
            if (s->fragment != NULL && f == NULL)
                return false;
            s->fragment = f;
        }
    return true;
}

/* As deep as there are definitions. */
static bool circles(struct graphql_definition *d)
{
    enum { NEW = 0, OPEN, DONE };
    bool found = d->mark == OPEN;
    if (d->mark != NEW)
        return found;
    d->mark = OPEN;
    for (struct graphql_selection *s = d->selections; s != NULL && !found; s = s->next)
        found = s->fragment != NULL && circles(s->fragment);
    d->mark = DONE;
    return found;
}

struct graphql_definition *graphql_parse(struct span text, struct graphql_budget *left, struct arena *a,
                                         enum ambiguity_cause *why)
{
    struct parse k = {.left = *left, .a = a, .why = AMBIGUITY_GRAPHQL};
    graphql_lex(&k.x, text.n ? text : SPAN(""));
    struct graphql_definition *first = definitions(&k);
    bool good = first != NULL && link_spreads(first);
    for (struct graphql_definition *d = first; d != NULL && good; d = d->next)
        good = !circles(d);
    for (struct graphql_definition *d = first; d != NULL && good; d = d->next)
        d->mark = 0;
    *left = k.left;
    *why = k.why;
    return good ? first : NULL;
}
