/* The slot of the credential that goes with a request, where it is a part of the request itself (policy/slot.h). */
#ifndef PROXY_JUDGE_SLOT_H
#define PROXY_JUDGE_SLOT_H

#include "proxy/judge/exchange/exchange.h"

/* Does its credential go into the body? Then the body is read whole, at most BODY_INLINE_MAX of it. */
bool slot_wants_body(const struct exchange *x);
/* Take out what the client had in the slot (x->own), put the mark in, and decide anew: what is decided is what
 * leaves. WALK_NEXT also when there is nothing to do; WALK_REPLY: refused. */
enum walk_next slot_take(struct exchange *x) MUSTCHECK;
/* Where the mark stands in what is about to leave. -1: it has none and should. */
int slot_place(struct exchange *x, struct wire_forward *f) MUSTCHECK;

#endif
