#include "policy/load/read/set.h"

#include <stdlib.h>

#include "policy/image/image.h"

/* Where it is, or the free place where it would be. */
static size_t place_of(const struct set *s, struct span name)
{
    size_t i = img_hash_end(img_hash_add(img_hash_begin('S'), name)) & (s->max - 1);
    while (s->v[i].p != NULL && !span_eq(s->v[i], name))
        i = (i + 1) & (s->max - 1);
    return i;
}

static int grow(struct set *s)
{
    struct set bigger = {.max = s->max ? 2 * s->max : 16, .n = s->n};
    bigger.v = calloc(bigger.max, sizeof(*bigger.v));
    if (bigger.v == NULL)
        return -1;
    for (size_t i = 0; i < s->max; i++)
        if (s->v[i].p != NULL)
            bigger.v[place_of(&bigger, s->v[i])] = s->v[i];
    free(s->v);
    *s = bigger;
    return 0;
}

bool set_add(struct loader *l, struct set *s, struct span name)
{
    if (name.n == 0)
        return false;
    if (2 * s->n >= s->max && grow(s) != 0) {
        load_problem(l, NULL, "P003", "no memory to compare names");
        return false;
    }
    size_t at = place_of(s, name);
    if (s->v[at].p != NULL)
        return false;
    s->v[at] = name;
    s->n++;
    return true;
}

void set_add_all(struct loader *l, struct set *s, const struct items *names)
{
    for (size_t i = 0; i < names->n; i++)
        (void)set_add(l, s, names->v[i].text);
}

bool set_has(const struct set *s, struct span name)
{
    return s->n > 0 && name.n > 0 && s->v[place_of(s, name)].p != NULL;
}

void set_free(struct set *s)
{
    free(s->v);
    *s = (struct set){0};
}
