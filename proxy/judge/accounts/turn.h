/* A turn: one frame from its arrival until the judge reads the next. Whose request it works for pays for it, and who
 * has spent more than its account holds waits while others ask: its front is not read until there is something left,
 * or nobody else is there. */
#ifndef PROXY_JUDGE_TURN_H
#define PROXY_JUDGE_TURN_H

#include "proxy/judge/state.h"

enum { TURN_LONG_US = 10 * 1000 };

void turn_begin(struct judge *j, const struct front *f); /* f: whose frame it is, or NULL */
/* From here on the turn is for this sandbox; NULL: for nobody's account. */
void turn_for(struct judge *j, const struct sandbox *s);
/* instance: of the front it began for; 0: none. It may be gone by now. */
void turn_end(struct judge *j, uint64_t instance);
/* Let go on who need not wait any more. In how many ms to look again; UINT64_MAX: nobody waits. */
uint64_t turn_look(struct judge *j);

#endif
