/* The slot of a credential in one request: the query, the path, a form or a JSON body (common/http/slot.h; a header
 * field needs no finding). The client's own value there is taken out and the mark put in. Pure. */
#ifndef POLICY_SLOT_H
#define POLICY_SLOT_H

#include "common/http/slot.h"
#include "policy/policy.h"

struct slotted {
    struct span path, query, body; /* of the request as it leaves, with the mark; those without it as they came */
    bool has_query;
    size_t at;       /* where the mark begins in the one that has it */
    struct span own; /* what the client had there, decoded; of several the last */
    size_t nown;     /* so many values of its own the client had there: none, one, or more */
    const char *why; /* in words, when there is no slot */
};

/* r has its whole body where the slot is in one. Done again on what came of it, it comes to the same. What out has is
 * of r or in the arena. -1: the request has no such slot, or some servers would see another one; nothing of it may be
 * sent. */
int slot_find(const struct credential *c, const struct request *r, struct arena *a, struct slotted *out) MUSTCHECK;

#endif
