#include "cli/policy/diff/states.h"

#include <stdlib.h>
#include <string.h>

int states_init(struct states *s, size_t words, size_t max)
{
    *s = (struct states){.words = words ? words : 1, .max = max, .slots = 1024};
    s->slot = calloc(s->slots, sizeof(*s->slot));
    return s->slot ? 0 : -1;
}

void states_free(struct states *s)
{
    free(s->v);
    free(s->from);
    free(s->slot);
    *s = (struct states){0};
}

static size_t place_of(const struct states *s, const uint64_t *v)
{
    uint64_t h = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < s->words; i++) {
        h = (h ^ v[i]) * 0xbf58476d1ce4e5b9;
        h ^= h >> 29;
    }
    size_t at = (size_t)h & (s->slots - 1);
    while (s->slot[at] && memcmp(states_at(s, s->slot[at] - 1), v, s->words * sizeof(*v)) != 0)
        at = (at + 1) & (s->slots - 1);
    return at;
}

/* Room for twice as many, in the lists and in the table. */
static int grow(struct states *s)
{
    size_t cap = s->slots, n = s->n;
    uint64_t *v = reallocarray(s->v, cap, s->words * sizeof(*v));
    if (v == NULL)
        return -1;
    s->v = v;
    struct state_from *from = reallocarray(s->from, cap, sizeof(*from));
    if (from == NULL)
        return -1;
    s->from = from;
    uint32_t *slot = calloc(2 * cap, sizeof(*slot));
    if (slot == NULL)
        return -1;
    free(s->slot);
    s->slot = slot;
    s->slots = 2 * cap;
    for (size_t i = 0; i < n; i++)
        s->slot[place_of(s, states_at(s, i))] = (uint32_t)i + 1;
    return 0;
}

int states_add(struct states *s, const uint64_t *v, struct state_from from, size_t *at)
{
    size_t place = place_of(s, v);
    if (s->slot[place]) {
        *at = s->slot[place] - 1;
        return 0;
    }
    if (s->n == s->max)
        return -1;
    /* The lists are as long as half the table: grown together. */
    if (s->v == NULL || s->n == s->slots / 2) {
        if (grow(s) != 0)
            return -1;
        place = place_of(s, v);
    }
    *at = s->n++;
    memcpy(s->v + *at * s->words, v, s->words * sizeof(*v));
    s->from[*at] = from;
    s->slot[place] = (uint32_t)*at + 1;
    return 1;
}
