/* What a score is made of. */
#ifndef BROKER_REPLAY_SCORE_IN_H
#define BROKER_REPLAY_SCORE_IN_H

#include "broker/replay/score.h"

/* Of n numbers, which are put in order; the middle one is the lower of two. None: all zero. */
struct score_spread score_spread(uint64_t *v, size_t n);
/* One more run, but for how long they take. */
void score_add(struct score_part *p, const struct again *r);

#endif
