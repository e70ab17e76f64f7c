/* Requests of one shape that wait for one sandbox. */
#ifndef WEB_APPROVAL_GROUPS_GROUPS_H
#define WEB_APPROVAL_GROUPS_GROUPS_H

#include "web-approval/page/page.h"
#include "web-approval/reading/table.h"

enum {
    GROUP_LEAST = 3,         /* fewer stand one by one */
    GROUP_ROWS = TABLE_ROWS, /* in a table; what waits beside them is on the list when these are decided */
    GROUP_BODY = 16 * 1024,  /* longer bodies are read on the request's own page */
    GROUP_CELL = 160,        /* and so are longer values */
    GROUP_FORM = 64 * 1024,
};

struct group {
    struct view row[GROUP_ROWS]; /* the oldest first */
    size_t n, asked;
    bool full; /* there may be more */
    struct table table;
};

/* Of one sandbox and shape: the same operation and effect at the same place, with the same credential, held by the
 * same rule; of the path only steps with digits may differ. */
bool group_alike(const struct ticket *a, const struct ticket *b);
/* Those that are like the ticket of x->arg, itself with them, with their bodies; show() at once or when the ledger
 * has answered. Answers instead when it waits no more. */
void group_find(struct exchange *x, void (*show)(struct exchange *x, struct group *g));
/* NULL: row i may be approved in the table; else why it is decided on its own page. */
const char *group_alone(const struct group *g, size_t i);

#endif
