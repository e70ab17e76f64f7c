/* From the text of a schema to its nodes. */
#include "common/schema/schema_in.h"

#include <stdio.h>

#include "common/text/utf8.h"

/* What only describes. */
static const char *const notes[] = {"title",
                                    "description",
                                    "default",
                                    "examples",
                                    "example",
                                    "$comment",
                                    "deprecated",
                                    "readOnly",
                                    "writeOnly",
                                    "enumNames",
                                    "discriminator" /* oneOf restricts */,
                                    "contentEncoding",
                                    "contentMediaType",
                                    "contentSchema",
                                    "markdownDescription",
                                    NULL};

/* What is told more about than that it is not known. */
static const struct {
    const char *name, *why;
} others[] = {
    {"dependencies", "is of older drafts; dependentRequired and dependentSchemas say it"},
    {"additionalItems", "is of older drafts; prefixItems and items say it"},
    {"$recursiveRef", "is of an older draft; a $ref to \"#\" says it"},
    {"$recursiveAnchor", "is of an older draft; a $ref to \"#\" says it"},
    {"$dynamicRef", "is not known here: what it leads to depends on the way there; $ref does not"},
    {"$dynamicAnchor", "is not known here; $anchor is"},
    {"$vocabulary", "is of schemas of schemas, which are not known here"},
    {"nullable", "is no keyword of JSON Schema; \"null\" among the types says it"},
};

/* The way from a value down to `at`, written behind a pointer. cap 0: no more fits. */
static bool locate(const struct json *from, const struct json *at, char *to, size_t cap, size_t *n)
{
    size_t had = *n, i = 0;
    if (from == at)
        return true;
    for (const struct json *c = from->child; c; c = c->next, i++) {
        char number[24];
        int digits = snprintf(number, sizeof number, "%zu", i);
        struct span token = from->type == JSON_OBJECT ? c->key : span_of(number, (size_t)digits);
        bool whole = schema_pointer_add(to, cap, n, token);
        if (locate(c, at, to, whole ? cap : 0, n))
            return true;
        *n = had;
        to[had] = '\0';
    }
    return false;
}

/* As much of a foreign text as fits, in whole characters. */
static void copy_text(char *to, size_t cap, struct span from)
{
    size_t n = utf8_run(span_first(from, cap - 1));
    if (n)
        memcpy(to, from.p, n);
    to[n] = '\0';
}

static int refuse(struct compile *c, const struct json *at, struct span keyword, const char *why)
{
    size_t n = 0;
    c->fault->pointer[0] = '\0';
    if (c->top && !locate(c->top, at, c->fault->pointer, sizeof c->fault->pointer, &n))
        c->fault->pointer[0] = '\0';
    copy_text(c->fault->keyword, sizeof c->fault->keyword, keyword);
    return err_set(&c->fault->why, "%s", why);
}

int compile_refuse(struct compile *c, const struct json *at, const char *keyword, const char *why)
{
    return refuse(c, at, span_str(keyword), why);
}

/* What is no keyword here: a note, or something that may restrict. */
static int unknown(struct compile *c, const struct json *member)
{
    if (span_starts(member->key, SPAN("x-")))
        return 0;
    for (const char *const *note = notes; *note; note++)
        if (span_eq(member->key, span_str(*note)))
            return 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (span_eq(member->key, span_str(others[i].name)))
            return refuse(c, member, member->key, others[i].why);
    return refuse(c, member, member->key, "is not known here, and may restrict; a note of your own begins with x-");
}

static const struct keyword *keyword_of(struct span name)
{
    for (size_t i = 0; i < KW_COUNT; i++)
        if (span_eq(name, span_str(schema_keywords[i].name)))
            return &schema_keywords[i];
    return NULL;
}

/* In the order of the table. */
static void insert(struct node *n, struct rule *rule)
{
    struct rule **at = &n->rules;
    while (*at && (*at)->word < rule->word)
        at = &(*at)->next;
    rule->next = *at;
    *at = rule;
}

/* Draft-07's list of items is prefixItems, and additionalItems beside it is what items are now. KW_COUNT: neither. */
static enum keyword_id of_draft_07(const struct node *n, const struct json *member)
{
    const struct json *items = json_get(n->at, SPAN("items"));
    if (items == NULL || items->type != JSON_ARRAY)
        return KW_COUNT;
    return member == items ? KW_PREFIX_ITEMS : span_eq(member->key, SPAN("additionalItems")) ? KW_ITEMS : KW_COUNT;
}

static int member_of(struct compile *c, struct node *n, const struct json *member)
{
    const struct keyword *word = keyword_of(member->key);
    enum keyword_id old = c->old ? of_draft_07(n, member) : KW_COUNT;
    if (old != KW_COUNT)
        word = &schema_keywords[old];
    else if (word == NULL)
        return unknown(c, member);
    else if (c->old && word->flags & NEWER)
        return refuse(c, member, member->key, "is not of draft-07, which this schema says it is");
    struct rule *rule = arena_alloc(&c->s->arena, sizeof *rule);
    if (rule == NULL)
        return refuse(c, member, member->key, "the schema is too large");
    rule->word = word;
    rule->value = member;
    insert(n, rule);
    if (word == &schema_keywords[KW_UNEVALUATED] || word == &schema_keywords[KW_UNEVALUATED_ITEMS])
        c->s->tracks = true;
    return compile_argument(c, rule);
}

/* Draft-07 does not look at what stands beside a $ref, 2020-12 does: who meant which? */
static int check_old_ref(struct compile *c, const struct node *n)
{
    const struct rule *ref = schema_rule(n, KW_REF);
    if (!c->old || ref == NULL)
        return 0;
    for (const struct rule *r = n->rules; r; r = r->next)
        if (r != ref && r->word->check)
            return compile_refuse(c, ref->value, "$ref",
                                  "draft-07, which this schema says it is, ignores what stands beside it");
    return 0;
}

struct node *compile_schema(struct compile *c, const struct json *at)
{
    if (at->type != JSON_OBJECT && at->type != JSON_BOOL) {
        (void)!compile_refuse(c, at, NULL, "a schema is an object, true or false");
        return NULL;
    }
    struct node *n = c->s->nodes < SCHEMA_NODES_MAX ? arena_alloc(&c->s->arena, sizeof *n) : NULL;
    if (n == NULL) {
        (void)!compile_refuse(c, at, NULL, "there are too many schemas in it");
        return NULL;
    }
    c->s->nodes++;
    n->at = at;
    n->kind = at->type == JSON_OBJECT ? NODE_RULES : at->truth ? NODE_ALWAYS : NODE_NEVER;
    if (c->s->last)
        c->s->last->next = n;
    c->s->last = n;
    for (const struct json *m = at->child; m; m = m->next)
        if (member_of(c, n, m) != 0)
            return NULL;
    return check_old_ref(c, n) == 0 ? n : NULL;
}

static bool says_draft_07(const struct json *top)
{
    static const char *const names[] = {
        "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema", NULL};
    struct span said = json_text(top, SPAN("$schema"));
    for (const char *const *name = names; *name; name++)
        if (span_eq(said, span_str(*name)))
            return true;
    return false;
}

static int compile_top(struct compile *c, struct span text)
{
    static const char *const faults[] = {[JSON_MALFORMED] = "it is no JSON",
                                         [JSON_BYTES] = "it is no JSON: its text is not clean UTF-8",
                                         [JSON_KEY_TWICE] = "a name stands twice in one of its objects",
                                         [JSON_OVER_LIMIT] = "it has too many values, or is nested too deep"};
    enum json_fault fault;
    if (text.n > SCHEMA_TEXT_MAX)
        return compile_refuse(c, NULL, NULL, "it is larger than 256 KiB");
    c->top = json_parse_or(text, &c->s->arena, &fault);
    if (c->top == NULL)
        return compile_refuse(c, NULL, NULL, faults[fault]);
    const struct json *past = schema_number_past(c->top);
    if (past)
        return compile_refuse(c, past, NULL, "a number has at most 1,024 characters and an exponent up to 9,999");
    c->old = says_draft_07(c->top);
    c->s->top = compile_schema(c, c->top);
    return c->s->top ? compile_refs(c) : -1;
}

int schema_compile(struct span text, unsigned options, struct schema **out, struct schema_fault *f)
{
    struct arena a;
    struct compile c = {.fault = f, .options = options};
    *f = (struct schema_fault){.pointer = ""};
    *out = NULL;
    arena_init(&a, SCHEMA_ARENA);
    struct schema *s = arena_alloc(&a, sizeof *s);
    if (s == NULL) {
        arena_free(&a);
        return err_set(&f->why, "there is no memory");
    }
    s->arena = a; /* from here on the arena is the schema's, which lies in it */
    c.s = s;
    if (compile_top(&c, text) != 0) {
        schema_free(&s);
        return -1;
    }
    *out = s;
    return 0;
}
