/* Who there is: the sandboxes the ledger told us of, found by name or by token. */
#ifndef PROXY_JUDGE_SANDBOX_H
#define PROXY_JUDGE_SANDBOX_H

#include "proxy/judge/state.h"

/* Add one or replace the one of that name. -1: no memory, or too many. */
int sandbox_put(struct judge *j, const struct wire_sandbox *w) MUSTCHECK;
void sandbox_remove(struct judge *j, struct span name);
struct sandbox *sandbox_find(struct judge *j, struct span name);
/* The one of that name, if it is of this session and has not ended; NULL: nobody, and no other one of the session is
 * it. */
struct sandbox *sandbox_still(struct judge *j, struct span name, struct span session);
/* Whose token this is. Compared as SHA-256, every one, in constant time. NULL: nobody's. */
struct sandbox *sandbox_by_token(struct judge *j, struct span token);
struct sandbox *sandbox_ref(struct sandbox *s);
void sandbox_unref(struct sandbox *s); /* NULL is fine */
/* No sandbox is given to it any more, and the parent ends it. */
void sandbox_end_front(struct judge *j, struct front *f);
/* Take one leaf for a host no rule names out of the hourly budget. False: it is used up. */
bool sandbox_take_leaf(struct sandbox *s, uint64_t now);

#endif
