#include "sandbox-shim/warden/ring.h"

#include <stdlib.h>
#include <string.h>

void ring_free(struct ring *r)
{
    free(r->bytes);
    *r = (struct ring){0};
}

void ring_put(struct ring *r, struct span s)
{
    if (r->bytes == NULL && s.n > 0) {
        r->bytes = malloc(RING_MAX);
        r->first = r->end; /* what was counted before, while there was no memory, never was in it */
    }
    if (s.n > RING_MAX) {
        r->end += s.n - RING_MAX;
        s = span_from(s, s.n - RING_MAX);
    }
    while (r->bytes != NULL && s.n > 0) {
        size_t at = (size_t)(r->end % RING_MAX), n = s.n < RING_MAX - at ? s.n : RING_MAX - at;
        memcpy(r->bytes + at, s.p, n);
        r->end += n;
        s = span_from(s, n);
    }
    r->end += s.n;
}

struct span ring_get(const struct ring *r, uint64_t *at, size_t most, uint64_t *cut)
{
    uint64_t first = r->bytes == NULL ? r->end : r->first;

    if (r->bytes != NULL && r->end > RING_MAX && r->end - RING_MAX > first)
        first = r->end - RING_MAX;
    if (*at < first) {
        *cut += first - *at;
        *at = first;
    }
    size_t from = (size_t)(*at % RING_MAX), n = (size_t)(r->end - *at);
    if (n > RING_MAX - from)
        n = RING_MAX - from;
    if (n > most)
        n = most;
    if (n == 0)
        return SPAN_NONE;
    *at += n;
    return span_of(r->bytes + from, n);
}
