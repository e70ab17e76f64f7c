/* Keywords about members and elements. */
#include "common/schema/checks.h"

/* --- objects --- */

bool check_min_properties(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_OBJECT || j->count >= rule->count);
}

bool check_max_properties(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_OBJECT || j->count <= rule->count);
}

static bool has_all(struct run *r, const struct json *object, const struct json *names)
{
    size_t place;
    for (const struct json *name = names->child; name; name = name->next)
        if (run_member(r, object, name->text, &place) == NULL)
            return false;
    return true;
}

bool check_required(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_OBJECT || has_all(r, j, rule->value));
}

bool check_dependent_required(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    size_t place;
    if (j->type != JSON_OBJECT)
        return true;
    for (const struct json *one = rule->value->child; one; one = one->next)
        if (run_member(r, j, one->key, &place) != NULL && !has_all(r, j, one))
            return run_miss(r, rule);
    return true;
}

bool check_property_names(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    if (j->type != JSON_OBJECT)
        return true;
    for (const struct json *c = j->child; c; c = c->next) {
        struct json name = {.type = JSON_STRING, .text = c->key};
        if (!run_tries(r, rule->branch[0].node, &name, rule))
            return run_miss(r, rule);
    }
    return true;
}

bool check_properties(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    size_t place;
    if (j->type != JSON_OBJECT)
        return true;
    for (size_t i = 0; i < rule->nbranch; i++) {
        const struct json *c = run_member(r, j, rule->branch[i].at->key, &place);
        if (c != NULL && !run_part(r, &rule->branch[i], c, place, rule))
            return false;
    }
    return true;
}

bool check_pattern_properties(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    size_t place = 0;
    if (j->type != JSON_OBJECT)
        return true;
    for (const struct json *c = j->child; c; c = c->next, place++)
        for (size_t i = 0; i < rule->nbranch; i++)
            if (run_finds(r, rule->branch[i].pattern, c->key) && !run_part(r, &rule->branch[i], c, place, rule))
                return false;
    return true;
}

/* Do properties or patternProperties (NULL: there are none) speak of this name? */
static bool is_spoken_of(struct run *r, const struct rule *names, const struct rule *patterns, struct span name)
{
    for (size_t i = 0; names && i < names->nbranch; i++)
        if (run_is_name(r, names->branch[i].at->key, name))
            return true;
    for (size_t i = 0; patterns && i < patterns->nbranch; i++)
        if (run_finds(r, patterns->branch[i].pattern, name))
            return true;
    return false;
}

bool check_additional(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    const struct rule *names = schema_rule(n, KW_PROPERTIES), *patterns = schema_rule(n, KW_PATTERN_PROPERTIES);
    size_t place = 0;
    if (j->type != JSON_OBJECT)
        return true;
    for (const struct json *c = j->child; c; c = c->next, place++)
        if (!is_spoken_of(r, names, patterns, c->key) && !run_part(r, &rule->branch[0], c, place, rule))
            return false;
    return true;
}

/* --- lists --- */

bool check_min_items(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_ARRAY || j->count >= rule->count);
}

bool check_max_items(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_ARRAY || j->count <= rule->count);
}

bool check_unique(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_ARRAY || rule->count == 0 || !run_has_twins(r, j));
}

bool check_prefix_items(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    const struct json *c = j->type == JSON_ARRAY ? j->child : NULL;
    for (size_t i = 0; i < rule->nbranch && c; i++, c = c->next)
        if (!run_part(r, &rule->branch[i], c, i, rule))
            return false;
    return true;
}

bool check_items(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    const struct rule *prefix = schema_rule(n, KW_PREFIX_ITEMS);
    size_t place = 0, first = prefix ? prefix->nbranch : 0;
    if (j->type != JSON_ARRAY)
        return true;
    for (const struct json *c = j->child; c; c = c->next, place++)
        if (place >= first && !run_part(r, &rule->branch[0], c, place, rule))
            return false;
    return true;
}

bool check_contains(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    const struct rule *min = schema_rule(n, KW_MIN_CONTAINS), *max = schema_rule(n, KW_MAX_CONTAINS);
    uint64_t found = 0;
    size_t place = 0;
    if (j->type != JSON_ARRAY)
        return true;
    for (const struct json *c = j->child; c && !r->over; c = c->next, place++) {
        size_t looked = r->looked.n;
        bool fits = run_tries(r, rule->branch[0].node, c, rule);
        r->looked.n = looked; /* what was looked at inside it */
        if (fits)
            run_looked(r, place);
        found += fits;
    }
    if (found < (min ? min->count : 1))
        return run_miss(r, min ? min : rule);
    return max == NULL || found <= max->count || run_miss(r, max);
}
