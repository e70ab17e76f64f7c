/* Server-sent events (WHATWG HTML section 9.2), fed in pieces of any size. Lines
 * end in LF or CRLF. A stream whose event is larger than API_EVENT_MAX, or than another limit, is refused. */
#ifndef COMMON_CONTROL_SSE_H
#define COMMON_CONTROL_SSE_H

#include "common/control/api.h"

struct sse {
    struct dynbuf line, data, name, id;
    uint64_t retry_ms; /* when to come back, as the stream said last; 0: it has not said */
    api_event_fn *fn;
    void *ctx;
};

void sse_init(struct sse *s, api_event_fn *fn, void *ctx);
void sse_init_max(struct sse *s, size_t event_max, api_event_fn *fn, void *ctx);
void sse_free(struct sse *s);
/* 0 to go on, -1 over a limit, else what fn returned. */
int sse_feed(struct sse *s, struct span bytes) MUSTCHECK;

#endif
