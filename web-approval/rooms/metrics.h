/* What people decided, for Prometheus. */
#ifndef WEB_APPROVAL_ROOMS_METRICS_H
#define WEB_APPROVAL_ROOMS_METRICS_H

#include "web-approval/desk.h"

void api_metrics(struct exchange *x);

#endif
