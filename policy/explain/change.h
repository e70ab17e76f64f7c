/* Between the files that change a request (explain.h). */
#ifndef POLICY_EXPLAIN_CHANGE_H
#define POLICY_EXPLAIN_CHANGE_H

#include "policy/explain/why.h"

enum { BODY_MADE_MAX = 1 << 20 };

struct making {
    const struct policy *p;
    const struct img_match *m; /* of the rule that is to fit */
    struct arena *a;
    struct change *out; /* the request as it was, to be changed */
    unsigned nth;
};

/* A name that fits the pattern: where a segment has a wildcard, that of `like` in the same place if it fits. */
struct span change_witness(struct making *k, struct span pattern, struct span like, uint8_t sep);
/* out->words: "with WHAT NAME: VALUE"; what is empty is left out. */
void change_say(struct making *k, const char *what, struct span name, struct span value);
/* name=value in place of every parameter of that name; value.p NULL: without it. */
struct span change_params_with(struct making *k, struct span params, struct span name, struct span value);
bool change_body(struct making *k);

#endif
