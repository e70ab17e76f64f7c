#include "policy/load/read/keys.h"

#include <stdio.h>

#include "common/text/nearest.h"
#include "common/time/instant.h"
#include "policy/load/read/scalar.h"

enum { KEYS_MAX = 40, TEXT_BYTES_MAX = 8192, CHOICES_TEXT = 400 };

static const char *kind_name(enum node_kind k)
{
    return k == NODE_TEXT ? "a single value" : k == NODE_LIST ? "a list" : "a mapping";
}

static bool is_kind(struct loader *l, const struct node *n, enum node_kind want)
{
    if (n->kind == want)
        return true;
    if (n->kind == NODE_TEXT && n->text.n == 0 && n->plain && n->key)
        load_problem(l, n, "P008", "\"%.*s\" has no value: %s is wanted", SPAN_FMT(span_first(n->key->text, 60)),
                     kind_name(want));
    else
        load_problem(l, n, "P008", "%s is wanted here, this is %s", kind_name(want), kind_name(n->kind));
    return false;
}

static bool decode_any_text(struct loader *l, const struct node *n, struct item *out, bool prose)
{
    const char *why;
    if (!is_kind(l, n, NODE_TEXT))
        return false;
    if (n->plain && (why = scalar_surprise(n->text)) != NULL) {
        load_problem(l, n, "P009", "%.*s is %s to YAML: write it in quotes if the word is meant",
                     SPAN_FMT(span_first(n->text, 60)), why);
        return false;
    }
    if (n->text.n == 0) {
        load_problem(l, n, "P008", n->plain ? "the value is missing" : "the value is empty");
        return false;
    }
    if (n->text.n > TEXT_BYTES_MAX) {
        load_problem(l, n, "P017", "the value has %zu bytes, more than %d", n->text.n, TEXT_BYTES_MAX);
        return false;
    }
    for (size_t i = 0; i < n->text.n; i++)
        if ((n->text.p[i] < 0x20 && !(prose && n->text.p[i] == '\n')) || n->text.p[i] == 0x7f) {
            load_problem(l, n, "P008", "the value has a control character: remove it");
            return false;
        }
    *out = (struct item){n->text, n};
    return true;
}

bool keys_decode_text(struct loader *l, const struct node *n, struct item *out)
{
    return decode_any_text(l, n, out, false);
}

static void decode_texts(struct loader *l, const struct node *n, struct items *out)
{
    size_t max = n->kind == NODE_LIST ? n->count : 1;
    out->at = n;
    if (n->kind == NODE_LIST && n->count == 0) {
        load_problem(l, n, "P008", "an empty list matches nothing: name something, or leave the key out");
        return;
    }
    out->v = arena_alloc(&l->a, max * sizeof(*out->v));
    if (out->v == NULL) {
        load_problem(l, n, "P003", "no memory for the file");
        return;
    }
    for (const struct node *c = n->kind == NODE_LIST ? n->child : n; c; c = n->kind == NODE_LIST ? c->next : NULL)
        if (keys_decode_text(l, c, &out->v[out->n]))
            out->n++;
}

static void decode_counts(struct loader *l, const struct node *n, const struct key *k, struct items *out)
{
    size_t max = n->kind == NODE_LIST ? n->count : 1;
    uint64_t v;
    out->at = n;
    out->v = arena_alloc(&l->a, (max ? max : 1) * sizeof(*out->v));
    if (out->v == NULL || max == 0) {
        load_problem(l, n, "P008", "an empty list matches nothing: name something, or leave the key out");
        return;
    }
    for (const struct node *c = n->kind == NODE_LIST ? n->child : n; c; c = n->kind == NODE_LIST ? c->next : NULL) {
        if (c->kind != NODE_TEXT || !c->plain || span_u64(c->text, k->hi, &v) != 0 || v < k->lo)
            load_problem(l, c, "P008", "%s must be a number from %llu to %llu", k->name, (unsigned long long)k->lo,
                         (unsigned long long)k->hi);
        else
            out->v[out->n++] = (struct item){c->text, c};
    }
}

static void decode_rates(struct loader *l, const struct node *n, const struct key *k, struct items *out)
{
    uint64_t count, ms;
    if (n->kind == NODE_MAP) {
        (void)is_kind(l, n, NODE_TEXT);
        return;
    }
    decode_texts(l, n, out);
    for (size_t i = 0; i < out->n; i++) {
        const char *why = scalar_rate(out->v[i].text, &count, &ms);
        if (why)
            load_problem(l, out->v[i].at, "P008", "%s %s", k->name, why);
        else if (count < k->lo || count > k->hi)
            load_problem(l, out->v[i].at, "P008", "%s must be from %llu to %llu", k->name, (unsigned long long)k->lo,
                         (unsigned long long)k->hi);
    }
}

static void choices_text(const struct choice *c, char *out, size_t max)
{
    size_t n = 0;
    for (out[0] = 0; c->name && n < max; c++)
        if (c->value != CHOICE_LATER)
            n += (size_t)snprintf(out + n, max - n, "%s%s", n ? ", " : "", c->name);
}

static const char *nearest_choice(struct span word, const struct choice *c)
{
    const char *names[KEYS_MAX + 1] = {0};
    for (size_t n = 0; c->name && n < KEYS_MAX; c++)
        if (c->value != CHOICE_LATER)
            names[n++] = c->name;
    return nearest_name(word, names);
}

/* False: it is none of them, and that was said. */
static bool decode_choice(struct loader *l, const struct node *n, const struct key *k, uint64_t *v)
{
    char all[CHOICES_TEXT];
    if (!is_kind(l, n, NODE_TEXT))
        return false;
    for (const struct choice *c = k->choices; c->name; c++) {
        if (!span_eq(n->text, span_str(c->name)))
            continue;
        *v |= c->value == CHOICE_LATER ? 0 : c->value;
        if (c->value == CHOICE_LATER)
            load_problem(l, n, "P007", "%s: %s is not available yet", k->name, c->name);
        return c->value != CHOICE_LATER;
    }
    choices_text(k->choices, all, sizeof(all));
    bool some = k->type == KEY_SOME_OF;
    const char *near = nearest_choice(n->text, k->choices);
    load_problem(l, n, "P008", "%s cannot be \"%.*s\"%s%s%s is %s%s%s", k->name, SPAN_FMT(span_first(n->text, 60)),
                 near ? "; did you mean \"" : "", near ? near : "", near ? "\"? It" : ": it",
                 some ? "one of these or a list, as in [" : "one of ", all, some ? "]" : "");
    return false;
}

static void decode_number(struct loader *l, const struct node *n, const struct key *k, struct number *out)
{
    const char *why = NULL;
    out->at = n;
    if (k->type == KEY_SOME_OF && n->kind == NODE_LIST) {
        if (n->count == 0)
            load_problem(l, n, "P008", "an empty list matches nothing: name something, or leave the key out");
        for (const struct node *c = n->child; c; c = c->next)
            (void)decode_choice(l, c, k, &out->v);
    } else if (k->type == KEY_ONE_OF || k->type == KEY_SOME_OF) {
        if (!decode_choice(l, n, k, &out->v) && k->type == KEY_ONE_OF)
            out->at = NULL; /* zero is a choice, too: what follows from it would be said of what nobody chose */
    } else if (is_kind(l, n, NODE_TEXT)) {
        if (k->type == KEY_BOOL)
            why = scalar_bool(n->text, n->plain, &out->v);
        else if (k->type == KEY_TIME)
            why = scalar_time(n->text, &out->v);
        else if (k->type == KEY_INSTANT)
            why = instant_of(n->text, &out->v);
        else if (k->type == KEY_SIZE)
            why = scalar_size(n->text, &out->v);
        else if (!n->plain || span_u64(n->text, UINT64_MAX, &out->v) != 0)
            why = "is a number: digits only";
        if (why)
            load_problem(l, n, "P008", "%s %s", k->name, why);
        else if (k->hi && (out->v < k->lo || out->v > k->hi))
            load_problem(l, n, "P008", "%s must be from %llu to %llu", k->name, (unsigned long long)k->lo,
                         (unsigned long long)k->hi);
    }
}

static void decode_list(struct loader *l, const struct node *n, const struct table *t, struct list *out)
{
    out->at = n;
    if (!is_kind(l, n, NODE_LIST))
        return;
    out->v = n->count ? arena_alloc(&l->a, n->count * t->size) : NULL;
    if (out->v == NULL && n->count) {
        load_problem(l, n, "P003", "no memory for the file");
        return;
    }
    for (const struct node *c = n->child; c; c = c->next)
        keys_decode_map(l, c, t, (uint8_t *)out->v + t->size * out->n++);
}

static void decode_maps(struct loader *l, const struct node *n, const struct table *t, struct list *out)
{
    if (n->kind == NODE_LIST && n->count == 0)
        load_problem(l, n, "P008", "an empty list says nothing: name something, or leave the key out");
    if (n->kind == NODE_LIST) {
        decode_list(l, n, t, out);
        return;
    }
    out->at = n;
    out->v = arena_alloc(&l->a, t->size);
    if (out->v == NULL)
        load_problem(l, n, "P003", "no memory for the file");
    else
        keys_decode_map(l, n, t, out->v);
    out->n = out->v != NULL;
}

struct named {
    const struct node *at;
    struct item name;
};

static bool decode_name(struct loader *l, const struct node *key, struct item *out)
{
    if (!keys_decode_text(l, key, out))
        return false;
    if (scalar_is_name(key->text))
        return true;
    load_problem(l, key, "P008",
                 "\"%.*s\" is no name: letters, digits, '.', '_' and '-', at most 64, and a letter or "
                 "digit first",
                 SPAN_FMT(span_first(key->text, 60)));
    return false;
}

static void decode_named(struct loader *l, const struct node *n, const struct table *t, struct list *out)
{
    out->at = n;
    if (!is_kind(l, n, NODE_MAP))
        return;
    out->v = n->count ? arena_alloc(&l->a, n->count * t->size) : NULL;
    if (out->v == NULL && n->count) {
        load_problem(l, n, "P003", "no memory for the file");
        return;
    }
    for (const struct node *c = n->child; c; c = c->next) {
        void *one = (uint8_t *)out->v + t->size * out->n++;
        keys_decode_map(l, c, t, one);
        (void)decode_name(l, c->key, &((struct named *)one)->name);
    }
}

static void decode_pairs(struct loader *l, const struct node *n, const struct key *k, struct list *out)
{
    out->at = n;
    if (!is_kind(l, n, NODE_MAP))
        return;
    struct pair *v = n->count ? arena_alloc(&l->a, n->count * sizeof(*v)) : NULL;
    if (v == NULL) {
        load_problem(l, n, "P008", "an empty mapping matches nothing: name something, or leave the key out");
        return;
    }
    out->v = v;
    for (const struct node *c = n->child; c; c = c->next, v++, out->n++) {
        v->at = c;
        if (c->kind == NODE_MAP) {
            load_problem(l, c, "P008", "one value or a list of values is wanted here");
            continue;
        }
        if ((k->flags & KEY_SINGLE) && !is_kind(l, c, NODE_TEXT))
            continue;
        (void)keys_decode_text(l, c->key, &v->name);
        decode_texts(l, c, &v->values);
    }
}

static void decode_key(struct loader *l, const struct node *n, const struct key *k, void *out)
{
    void *field = (uint8_t *)out + k->at;
    switch (k->type) {
    case KEY_TEXT:
    case KEY_PROSE: (void)decode_any_text(l, n, field, k->type == KEY_PROSE); break;
    case KEY_TEXTS:
        if (n->kind == NODE_MAP)
            (void)is_kind(l, n, NODE_TEXT);
        else if (n->kind == NODE_LIST && n->count == 0 && (k->flags & KEY_EMPTY))
            ((struct items *)field)->at = n;
        else
            decode_texts(l, n, field);
        break;
    case KEY_COUNTS: decode_counts(l, n, k, field); break;
    case KEY_RATES: decode_rates(l, n, k, field); break;
    case KEY_BOOL:
    case KEY_COUNT:
    case KEY_TIME:
    case KEY_INSTANT:
    case KEY_SIZE:
    case KEY_ONE_OF:
    case KEY_SOME_OF: decode_number(l, n, k, field); break;
    case KEY_MAP: keys_decode_map(l, n, k->table, field); break;
    case KEY_LIST: decode_list(l, n, k->table, field); break;
    case KEY_MAPS: decode_maps(l, n, k->table, field); break;
    case KEY_NAMED: decode_named(l, n, k->table, field); break;
    case KEY_PAIRS: decode_pairs(l, n, k, field); break;
    case KEY_CALL: k->call(l, n, field); break;
    case KEY_LATER:
        load_problem(l, n->key, "P007", "\"%s\" is not available yet: nothing enforces it, so it is refused",
                     k->name);
        break;
    case KEY_NEVER: load_problem(l, n->key, "P006", "\"%s\" cannot be here: %s", k->name, k->help); break;
    case KEY_END: break;
    }
}

/* The bit of the key that may have been meant: that one is not missed as well. */
static uint64_t unknown_key(struct loader *l, const struct node *key, const struct table *t)
{
    const char *names[KEYS_MAX + 1] = {0};
    size_t n = 0, meant = 0;
    for (const struct key *k = t->keys; k->type != KEY_END && n < KEYS_MAX; k++)
        names[n++] = k->name;
    const char *near = load_problem_kept(l, true) ? nearest_name(key->text, names) : NULL;
    if (near)
        load_problem(l, key, "P006", "%s has no key \"%.*s\"; did you mean \"%s\"?", t->what,
                     SPAN_FMT(span_first(key->text, 60)), near);
    else
        load_problem(l, key, "P006", "%s has no key \"%.*s\"", t->what, SPAN_FMT(span_first(key->text, 60)));
    while (near && names[meant] != near)
        meant++;
    return near ? (uint64_t)1 << meant : 0;
}

/* What follows from a mistake is not said: whoever checks passes over such an entry. */
static void set_broken(const struct node *n)
{
    ((struct node *)(uintptr_t)n)->broken = true; /* of the loader's own tree */
}

void keys_decode_map(struct loader *l, const struct node *n, const struct table *t, void *out)
{
    uint64_t seen = 0;
    size_t before = l->refused;
    *(const struct node **)out = n;
    if (!is_kind(l, n, NODE_MAP)) {
        set_broken(n);
        return;
    }
    for (const struct node *c = n->child; c; c = c->next) {
        const struct key *k = t->keys;
        while (k->type != KEY_END && !span_eq(c->key->text, span_str(k->name)))
            k++;
        if (k->type == KEY_END) {
            seen |= unknown_key(l, c->key, t);
            continue;
        }
        seen |= (uint64_t)1 << (k - t->keys);
        decode_key(l, c, k, out);
    }
    for (const struct key *k = t->keys; k->type != KEY_END; k++)
        if ((k->flags & KEY_NEEDED) && (seen & (uint64_t)1 << (k - t->keys)) == 0)
            load_problem(l, n, "P010", "%s needs the key \"%s\"%s%s", t->what, k->name, k->help ? ": " : "",
                         k->help ? k->help : "");
    if (l->refused != before)
        set_broken(n);
}
