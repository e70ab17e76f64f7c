/* Keywords that hold the same value against other schemas. */
#include "common/schema/checks.h"

#include <stdlib.h>

bool check_ref(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_fits(r, rule->branch[0].node, j, rule);
}

bool check_all_of(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    for (size_t i = 0; i < rule->nbranch; i++)
        if (!run_fits(r, rule->branch[i].node, j, rule))
            return false;
    return true;
}

/* How many fit, of at most `enough`; all are tried where it counts what each of them has looked at. */
static size_t fitting(struct run *r, const struct rule *rule, const struct json *j, size_t enough)
{
    size_t found = 0;
    for (size_t i = 0; i < rule->nbranch && !r->over && (found < enough || r->s->tracks); i++)
        found += run_tries(r, rule->branch[i].node, j, rule);
    return found;
}

bool check_any_of(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return fitting(r, rule, j, 1) > 0 || run_miss(r, rule);
}

bool check_one_of(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return fitting(r, rule, j, 2) == 1 || run_miss(r, rule);
}

bool check_not(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    size_t looked = r->looked.n;
    bool fits = run_tries(r, rule->branch[0].node, j, rule);
    r->looked.n = looked;
    return !fits || run_miss(r, rule);
}

bool check_if(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    bool fits = run_tries(r, rule->branch[0].node, j, rule);
    const struct rule *then = schema_rule(n, fits ? KW_THEN : KW_ELSE);
    return then == NULL || run_fits(r, then->branch[0].node, j, then);
}

bool check_dependent_schemas(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    size_t place;
    if (j->type != JSON_OBJECT)
        return true;
    for (size_t i = 0; i < rule->nbranch; i++)
        if (run_member(r, j, rule->branch[i].at->key, &place) != NULL && !run_fits(r, rule->branch[i].node, j, rule))
            return false;
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Of the value at hand, the places that this schema has looked at, in their order. The caller frees; NULL: there are
 * none, or it is over. */
static uint32_t *looked_at(struct run *r, size_t *n)
{
    *n = (r->looked.n - r->base) / sizeof(uint32_t);
    uint32_t *places = *n && run_spend(r, *n * 8) ? malloc(*n * sizeof *places) : NULL;
    if (*n && places == NULL) {
        r->over = true;
        *n = 0;
    }
    if (places) {
        memcpy(places, r->looked.p + r->base, *n * sizeof *places);
        qsort(places, *n, sizeof *places, by_number);
    }
    return places;
}

/* What none of the rules before this one, here or in schemas that they lead to, has looked at. */
bool check_unevaluated(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    bool items = rule->word == &schema_keywords[KW_UNEVALUATED_ITEMS], good = true;
    size_t nlooked, k = 0, place = 0;
    if (j->type != (items ? JSON_ARRAY : JSON_OBJECT))
        return true;
    uint32_t *looked = looked_at(r, &nlooked);
    for (const struct json *c = j->child; c && good; c = c->next, place++) {
        while (k < nlooked && looked[k] < place)
            k++;
        if (k == nlooked || looked[k] != place)
            good = run_part(r, &rule->branch[0], c, place, rule);
    }
    free(looked);
    return good;
}
