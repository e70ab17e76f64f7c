/* What a row of the list says of a request: what in it is to be looked at twice, and the first values of its body.
 * Made from the whole request once and kept, since a request does not change and the list is shown again and again.
 */
#ifndef WEB_APPROVAL_GLANCE_GLANCE_H
#define WEB_APPROVAL_GLANCE_GLANCE_H

#include "web-approval/page/page.h"

enum {
    GLANCE_SAID = 3,
    GLANCE_TEXT = 96,                /* of a name or a value; a row shows less, so that a cut is seen */
    GLANCE_BODY = 64 * 1024,         /* longer bodies are read on the request's own page */
    GLANCE_BODIES = 4 * 1024 * 1024, /* read for one page; what is left is read for the next one */
    GLANCE_SETS = 256,
    GLANCE_WAYS = 4, /* kept at once: the product of both */
};

struct glance_text {
    uint8_t n, c[GLANCE_TEXT];
};

struct glance {
    char id[ID_TEXT];
    bool there;
    bool read;    /* with its body, or it has none */
    bool blocks;  /* it cannot be approved */
    size_t flags; /* of the reading: how many, and the words of the first (what blocks comes before) */
    const char *first;
    struct glance_text about, shows; /* its name and value; or empty */
    size_t nsaid, values;            /* values: how many the body has in all */
    struct glance_text name[GLANCE_SAID], value[GLANCE_SAID];
};

/* What the desk keeps; made by the first that asks. */
struct glances {
    struct glance kept[GLANCE_SETS][GLANCE_WAYS];
    uint8_t next[GLANCE_SETS];
};

/* What one page shows: its tickets, borrowed, the first first; show: when all is here that will come. */
struct glance_walk {
    const struct ticket *const *t;
    size_t n, at, bytes;
    void (*show)(struct exchange *x);
};

/* Make what is missing, then show; at once, or when the ledger has answered. x->step begins with w until then, and is
 * the caller's. */
void glance_walk(struct exchange *x, struct glance_walk *w);
/* NULL: nobody has looked at it. Good until the next is made. */
const struct glance *glance_of(const struct desk *d, const struct ticket *t);
/* The policy has changed: what it knew of hosts does not hold any more. */
void glance_forget(struct desk *d);

#endif
