/* JSON as its values. */
#include "web-approval/reading/parts.h"

enum { DEEP = 12, NAMES_COMPARED = 256, OFTEN = 10, FEW_VALUES = 200, NAME_KEPT = 256 };

static size_t values_in(const struct json *j)
{
    size_t n = j->child ? 0 : 1;

    for (const struct json *c = j->child; c; c = c->next)
        n += values_in(c);
    return n;
}

static struct span below(struct reading *r, struct span name, struct span step)
{
    struct span head = name.n > NAME_KEPT ? SPAN(".../") : arena_join(r->arena, name, SPAN("/"));
    return head.p ? arena_join(r->arena, head, step) : SPAN_NONE;
}

static uint32_t lower_hash(struct span s)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + 32u : s.p[i])) * 16777619u;
    return h;
}

/* Two names that are the same but for capitals, which some readers do not tell apart. */
static void alike(struct reading *r, const struct json *object, struct span name)
{
    uint32_t hash[NAMES_COMPARED];
    const struct json *at[NAMES_COMPARED];
    size_t n = 0;

    for (const struct json *c = object->child; c && n < NAMES_COMPARED; c = c->next, n++) {
        hash[n] = lower_hash(c->key);
        at[n] = c;
        for (size_t i = 0; i < n; i++)
            if (hash[i] == hash[n] && span_ieq(at[i]->key, c->key) && !span_eq(at[i]->key, c->key)) {
                flag_add(r, "Names that differ in capitals alone: to some servers they are one, and the last counts",
                         below(r, name, c->key), at[i]->key);
                return;
            }
    }
}

static void twice(struct reading *r, const struct json *object, struct span name)
{
    size_t i = 0;

    for (const struct json *a = object->child; a && i < NAMES_COMPARED; a = a->next, i++) {
        size_t n = i;
        for (const struct json *b = a->next; b && n < NAMES_COMPARED; b = b->next, n++)
            if (span_eq(a->key, b->key)) {
                flag_add(r, "A name stands more than once: servers differ in which value counts",
                         below(r, name, a->key), SPAN_NONE);
                return;
            }
    }
    flag_add(r, "A name stands more than once: servers differ in which value counts", name, SPAN_NONE);
}

/* Several things to do at once: in a list at the top, or in one that is named so. */
static void batch(struct reading *r, const struct json *j, struct span name)
{
    static const char *const lists[] = {"requests", "operations", "batch",    "actions",
                                        "commands", "calls",      "mutations"};
    size_t objects = 0;
    bool named = name.n == 0;

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        named |= span_ieq(j->key, span_str(lists[i]));
    for (const struct json *c = named && j->type == JSON_ARRAY ? j->child : NULL; c; c = c->next)
        objects += c->type == JSON_OBJECT;
    if (objects > 1)
        flag_add(r, "Several operations in one request", name, arena_printf(r->arena, "%zu", objects));
}

static void walk(struct reading *r, const struct json *j, struct span name, unsigned depth)
{
    size_t i = 0;

    if (depth >= DEEP && j->child == NULL)
        flag_add(r, "A value that stands deep in the body", name, j->text);
    if (j->twice)
        twice(r, j, name);
    if (j->type == JSON_OBJECT)
        alike(r, j, name);
    if (depth < 3)
        batch(r, j, name);
    if (j->child == NULL) {
        static const struct span words[] = {SPAN("null"), SPAN("false"), SPAN("[]"), SPAN("{}")};
        bool text = j->type == JSON_STRING, number = j->type == JSON_NUMBER;
        struct span word = j->type == JSON_BOOL    ? j->truth ? SPAN("true") : words[1]
                              : j->type == JSON_ARRAY ? words[2]
                           : j->type == JSON_NULL  ? words[0]
                                                   : words[3];
        value_add(r, name, text || number ? j->text : word, text ? VALUE_TEXT : number ? VALUE_NUMBER : VALUE_WORD);
        return;
    }
    bool list = j->type == JSON_ARRAY;
    struct span all = list && r->together ? below(r, name, SPAN("*")) : SPAN_NONE;
    for (const struct json *c = j->child; c; c = c->next, i++) {
        struct span at = all.p ? all : below(r, name, list ? arena_printf(r->arena, "%zu", i) : c->key);
        text_look(r, at, c->key);
        walk(r, c, at, depth + 1);
        if (c->text.n >= READING_LONG && c->next)
            flag_add(r, "Behind a long value stands", below(r, name, c->next->key), c->next->text);
    }
}

static struct span up_to_list(struct span name)
{
    for (size_t i = name.n; i > 0; i--)
        if (name.p[i - 1] == '*')
            return span_first(name, i);
    return SPAN_NONE;
}

/* Of a long list, what one of its elements alone has. */
static void alone(struct reading *r)
{
    for (size_t i = 0; i < r->nsaid; i++) {
        struct span list = up_to_list(r->said[i].name);
        bool often = false;
        for (size_t k = 0; list.n && r->said[i].times == 1 && k < r->nsaid && !often; k++)
            often = r->said[k].times >= OFTEN && span_eq(up_to_list(r->said[k].name), list);
        if (often)
            flag_add(r, "Of a long list, one element alone has", r->said[i].name, r->said[i].value);
    }
}

void tree_read(struct reading *r, const struct json *j)
{
    r->kind = "JSON";
    r->together = values_in(j) > FEW_VALUES;
    walk(r, j, SPAN_NONE, 0);
    if (r->together)
        alone(r);
}
