/* A set of bit vectors of one length, numbered in the order they came; each remembers how it was reached. */
#ifndef CLI_POLICY_DIFF_STATES_H
#define CLI_POLICY_DIFF_STATES_H

#include "common/arena.h"

struct state_from {
    uint32_t parent, symbol;
};
struct states {
    size_t words, n, max;
    uint64_t *v;
    struct state_from *from;
    uint32_t *slot; /* index + 1 */
    size_t slots;
};

/* At most max vectors of so many words. -1: no memory. */
int states_init(struct states *s, size_t words, size_t max) MUSTCHECK;
void states_free(struct states *s);
/* 1: it is new; 0: it was there; -1: no room. *at: its number. */
int states_add(struct states *s, const uint64_t *v, struct state_from from, size_t *at) MUSTCHECK;

static inline const uint64_t *states_at(const struct states *s, size_t i)
{
    return s->v + i * s->words;
}

#endif
