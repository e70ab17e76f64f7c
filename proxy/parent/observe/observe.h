/* What an operator sees of the running gateway: the log's level, whose exchanges are followed in it, and what every
 * role remembers of one exchange. */
#ifndef PROXY_PARENT_OBSERVE_H
#define PROXY_PARENT_OBSERVE_H

#include "common/log.h"
#include "common/span.h"

struct child;
struct frame;
struct loop;
struct parent;
struct trace_question;

enum { OBSERVE_FOLLOW = 128 };

struct observe {
    enum log_level level;
    char follow[OBSERVE_FOLLOW]; /* a sandbox or an exchange; empty: nobody */
    uint64_t until_ms;           /* monotonic; 0: until the next reload */
    struct timer *back;
    struct trace_question *question; /* one at a time */
};

/* As the configuration says, to this process and every role: at the start, and on a reload. */
void parent_log_configured(struct parent *p);
/* To one that has just been started. */
void parent_log_tell(struct parent *p, struct child *c);
/* The exchange of this run that is named so; 0: none. */
uint64_t parent_exchange(const struct parent *p, struct span text);
/* M_LOG_SET and M_TRACE_OF of the desk, M_TRACE of a role. */
void parent_log_set(struct parent *p, struct child *desk, struct frame *f);
void parent_trace_of(struct parent *p, struct child *desk, struct frame *f);
void parent_trace_came(struct parent *p, struct child *c, struct frame *f);

#endif
