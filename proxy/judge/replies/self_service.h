/* http://countersign.internal/: what a sandbox may ask about itself. Nothing here changes anything. */
#ifndef PROXY_JUDGE_SELF_SERVICE_H
#define PROXY_JUDGE_SELF_SERVICE_H

#include "proxy/judge/exchange/exchange.h"

bool self_service_is(struct span host);
enum walk_next self_service_answer(struct exchange *x);

#endif
