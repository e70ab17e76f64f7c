/* A set of names: what keeps one list from being walked for each entry of another. */
#ifndef POLICY_LOAD_READ_SET_H
#define POLICY_LOAD_READ_SET_H

#include "policy/load/read/keys.h"

/* Zeroes are the empty one. The names are not copied; set_free what was added to. */
struct set {
    struct span *v; /* open addressing: p NULL is free */
    size_t n, max;
};

/* Was it new? Without memory a problem is told, which refuses the policy. */
bool set_add(struct loader *l, struct set *s, struct span name);
void set_add_all(struct loader *l, struct set *s, const struct items *names);
bool set_has(const struct set *s, struct span name);
void set_free(struct set *s);

#endif
