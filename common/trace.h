/* What became of the exchanges of this process, step by step: a ring of marks in memory of fixed size, always on, the
 * oldest overwritten. `countersign trace` asks every process for those of one exchange. A mark costs the reading of
 * the clock; it holds no byte of a request. */
#ifndef COMMON_TRACE_H
#define COMMON_TRACE_H

#include "common/dynbuf.h"

enum {
    TRACE_MARKS = 16384,      /* of a process, 32 bytes each; only what is used of them takes memory */
    TRACE_MARKS_SMALL = 2048, /* of a process of which there are many */
    TRACE_ANSWER_MARKS = 256, /* of one exchange */
    TRACE_WORD = 40           /* bytes of a text, at most */
};

/* Keep no more than so many marks, at most TRACE_MARKS. Those there are go. */
void trace_keep(size_t marks);
/* A step of this exchange came to this; a line at debug says so too. Both texts must be static: they are kept by
 * their address. Exchange 0 is none. */
void trace_step(uint64_t exchange, const char *step, const char *came);
/* The same of a state that changed. */
void trace_state(uint64_t exchange, const char *of, const char *from, const char *to);
/* The last marks of this exchange, the oldest first: u16 n, n x (u64 ns of CLOCK_MONOTONIC, span what, span came). */
void trace_put(struct dynbuf *b, uint64_t exchange);

#endif
