/* What one sandbox has spent here: processor time, and places in tables that all sandboxes share. It is kept by name:
 * another session, other labels or a new policy fill nothing up again. */
#ifndef PROXY_JUDGE_ACCOUNT_H
#define PROXY_JUDGE_ACCOUNT_H

#include "common/span.h"

struct account {
    unsigned refs;
    size_t upstreams; /* places of the table in upstreams.h */
};

/* NULL: no memory. */
struct account *account_new(void) MUSTCHECK;
struct account *account_ref(struct account *a);
void account_unref(struct account *a); /* NULL is fine */

#endif
