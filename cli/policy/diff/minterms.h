/* Patterns cut the space of all strings into classes: two strings that fit the same patterns are decided alike. One
 * string for every class that is not empty, found by walking the product of the patterns' automata. Pure. */
#ifndef CLI_POLICY_DIFF_MINTERMS_H
#define CLI_POLICY_DIFF_MINTERMS_H

#include "common/arena.h"

enum { MINTERMS_MAX = 4096 };

struct pattern { /* a glob as in policy/image/glob.h */
    struct span text;
    bool fold;
};
struct minterm {
    struct span text;
    const uint64_t *fits; /* bit i: pattern i */
};
/* TEXT: one run, or nothing. NAME: one run. PATH: '/' and segments, '/' at the end or not. REF: segments between '/'.
 */
enum minterm_kind { MINTERM_TEXT = 0, MINTERM_NAME, MINTERM_PATH, MINTERM_REF };

struct minterms {
    const struct minterm *v;
    size_t n;
};

/* Shorter strings first. -1: more classes or states than are looked at, or no memory. */
int minterms_find(const struct pattern *v, size_t n, enum minterm_kind kind, struct arena *a,
                  struct minterms *out) MUSTCHECK;

static inline bool minterm_fits(const struct minterm *m, size_t pattern)
{
    return m->fits[pattern / 64] >> pattern % 64 & 1;
}

#endif
