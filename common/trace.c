#include "common/trace.h"

#include <time.h>

#include "common/log.h"
#include "common/time/clock.h"
#include "common/msg.h"

struct mark {
    uint64_t exchange, ns;
    const char *what, *came;
};

static struct mark ring[TRACE_MARKS];
static size_t size = TRACE_MARKS, next; /* next: where the next mark goes, in place of the oldest */

void trace_keep(size_t marks)
{
    size = marks == 0 || marks > TRACE_MARKS ? TRACE_MARKS : marks;
    next = 0;
    memset(ring, 0, sizeof(ring));
}

static void mark(uint64_t exchange, const char *what, const char *came)
{
    if (exchange == 0)
        return;
    ring[next] = (struct mark){exchange, clock_ns(CLOCK_MONOTONIC), what, came};
    next = next + 1 < size ? next + 1 : 0;
}

void trace_step(uint64_t exchange, const char *step, const char *came)
{
    mark(exchange, step, came);
    if (log_wants(LOG_DEBUG, exchange))
        log_exchange(LOG_DEBUG, exchange, "%s: %s", step, came);
}

void trace_state(uint64_t exchange, const char *of, const char *from, const char *to)
{
    mark(exchange, of, to);
    if (log_wants(LOG_DEBUG, exchange))
        log_exchange(LOG_DEBUG, exchange, "%s: %s -> %s", of, from, to);
}

void trace_put(struct dynbuf *b, uint64_t exchange)
{
    size_t back = 0, n = 0; /* how far back the first of them is */
    while (exchange != 0 && back < size && n < TRACE_ANSWER_MARKS)
        n += ring[(next + size - ++back) % size].exchange == exchange;
    msg_put_u16(b, (uint16_t)n);
    for (; back > 0; back--) {
        const struct mark *m = &ring[(next + size - back) % size];
        if (exchange == 0 || m->exchange != exchange)
            continue;
        msg_put_u64(b, m->ns);
        msg_put_span(b, span_first(span_str(m->what), TRACE_WORD));
        msg_put_span(b, span_first(span_str(m->came), TRACE_WORD));
    }
}
