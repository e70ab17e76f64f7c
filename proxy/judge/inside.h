/* http://countersign.internal/: what a sandbox may ask about itself. Nothing here changes anything. */
#ifndef PROXY_JUDGE_INSIDE_H
#define PROXY_JUDGE_INSIDE_H

#include "proxy/judge/exchange.h"

bool inside_is(struct span host);
enum walk_next inside_answer(struct exchange *x);

#endif
