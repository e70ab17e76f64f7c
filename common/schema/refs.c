/* Where each $ref leads, and that no value is held against schemas in a circle. */
#include <stdlib.h>

#include "common/id.h"
#include "common/schema/schema_in.h"

struct anchor {
    const struct rule *rule;
    struct node *node;
    size_t order; /* in the text */
};

struct index {
    struct node **node; /* by the address of their text */
    size_t n;
    struct anchor *anchor; /* by their names */
    size_t nanchors;
};

static int by_place(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)(*(struct node *const *)a)->at, y = (uintptr_t)(*(struct node *const *)b)->at;
    return x < y ? -1 : x > y;
}

static int by_name(const void *a, const void *b)
{
    const struct anchor *x = a, *y = b;
    return span_cmp(x->rule->value->text, y->rule->value->text);
}

static int by_name_and_order(const void *a, const void *b)
{
    const struct anchor *x = a, *y = b;
    int names = by_name(a, b);
    return names ? names : x->order < y->order ? -1 : x->order > y->order;
}

static int index_nodes(struct compile *c, struct index *x)
{
    x->node = arena_alloc(&c->s->arena, c->s->nodes * sizeof *x->node);
    x->anchor = arena_alloc(&c->s->arena, c->s->nodes * sizeof *x->anchor);
    if (x->node == NULL || x->anchor == NULL)
        return compile_refuse(c, c->top, NULL, "the schema is too large");
    for (struct node *n = c->s->top; n; n = n->next) {
        const struct rule *r = schema_rule(n, KW_ANCHOR);
        x->node[x->n++] = n;
        if (r)
            x->anchor[x->nanchors++] = (struct anchor){.rule = r, .node = n, .order = x->n};
    }
    qsort(x->node, x->n, sizeof *x->node, by_place);
    qsort(x->anchor, x->nanchors, sizeof *x->anchor, by_name_and_order);
    for (size_t i = 1; i < x->nanchors; i++)
        if (by_name(&x->anchor[i - 1], &x->anchor[i]) == 0)
            return compile_refuse(c, x->anchor[i].rule->value, "$anchor", "is another schema's, too");
    return 0;
}

static struct node *anchored(const struct index *x, struct span name)
{
    const struct json text = {.text = name};
    const struct rule rule = {.value = &text};
    const struct anchor wanted = {.rule = &rule}, *found;
    found = bsearch(&wanted, x->anchor, x->nanchors, sizeof *x->anchor, by_name);
    return found ? found->node : NULL;
}

static struct node *node_at(const struct index *x, const struct json *at)
{
    struct node key = {.at = at}, *wanted = &key;
    struct node **found = bsearch(&wanted, x->node, x->n, sizeof(struct node *), by_place);
    return found ? *found : NULL;
}

/* A fragment without its %XX; p is NULL when they are broken or there is no memory. */
static struct span unescape(struct arena *a, struct span s)
{
    uint8_t *to = arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n && to; i++) {
        int v = s.p[i] != '%' ? s.p[i] : s.n - i > 2 ? hex_number(span_from(s, i + 1), 2) : -1;
        if (v <= 0)
            return SPAN_NONE;
        to[n++] = (uint8_t)v;
        i += s.p[i] == '%' ? 2 : 0;
    }
    return span_of(to, n);
}

static int lead(struct compile *c, const struct index *x, struct rule *r)
{
    struct span to = unescape(&c->s->arena, span_from(r->value->text, 1));
    struct node *n;
    if (to.p == NULL)
        return compile_refuse(c, r->value, "$ref", "has a broken %, or is too long");
    n = to.n == 0 || to.p[0] == '/' ? node_at(x, json_pointer(c->top, to)) : anchored(x, to);
    if (n == NULL)
        return compile_refuse(c, r->value, "$ref", "leads to no schema of this document");
    r->branch[0] = (struct branch){.at = r->value, .node = n};
    r->nbranch = 1;
    return 0;
}

/* How many nodes in a row a value may be held against from this one on. */
static int chain_from(struct compile *c, struct node *n, unsigned depth)
{
    unsigned longest = 0;
    if (n->chain)
        return 0;
    n->open = true;
    for (struct rule *r = n->rules; r; r = r->next) {
        if ((r->word->flags & SAME) == 0)
            continue;
        for (size_t i = 0; i < r->nbranch; i++) {
            struct node *to = r->branch[i].node;
            if (to->open)
                return compile_refuse(c, r->value, r->word->name, "leads back here without going into the value");
            if (depth == SCHEMA_CHAIN_MAX)
                return compile_refuse(c, r->value, r->word->name, "more than 64 schemas are about the same value");
            if (chain_from(c, to, depth + 1) != 0)
                return -1;
            longest = to->chain > longest ? to->chain : longest;
        }
    }
    n->open = false;
    n->chain = longest + 1;
    return n->chain <= SCHEMA_CHAIN_MAX
               ? 0
               : compile_refuse(c, n->at, NULL, "more than 64 schemas are about the same value");
}

int compile_refs(struct compile *c)
{
    struct index x = {.n = 0};
    if (index_nodes(c, &x) != 0)
        return -1;
    for (struct node *n = c->s->top; n; n = n->next)
        for (struct rule *r = n->rules; r; r = r->next)
            if (r->word == &schema_keywords[KW_REF] && lead(c, &x, r) != 0)
                return -1;
    for (struct node *n = c->s->top; n; n = n->next)
        if (chain_from(c, n, 0) != 0)
            return -1;
    return 0;
}
