/* What an operator sees of the running gateway: the log's level, whose exchanges are followed in it, and what every
 * role remembers of one exchange. */
#ifndef PROXY_PARENT_OBSERVE_H
#define PROXY_PARENT_OBSERVE_H

#include "common/log.h"
#include "common/span.h"

struct child;
struct err;
struct frame;
struct loop;
struct parent;
struct trace_question;

enum { OBSERVE_FOLLOW = 128 };
#define RECORDING_NAME "recording" /* below the state directory */

struct observe {
    enum log_level level;
    char follow[OBSERVE_FOLLOW]; /* a sandbox or an exchange; empty: nobody */
    uint64_t until_ms;           /* monotonic; 0: until the next reload */
    struct timer *back;
    struct trace_question *question; /* one at a time */
    bool records;
    int recording;                         /* records: the file */
    uint64_t recorded, rec_from, rec_upto; /* bytes in it; what the judge was told last */
};

/* As the configuration says, to this process and every role: at the start, and on a reload. */
void parent_log_configured(struct parent *p);
/* To one that has just been started. */
void parent_log_tell(struct parent *p, struct child *c);
/* The exchange of this run that is named so; 0: none. */
uint64_t parent_exchange(const struct parent *p, struct span text);
/* record.c: what the judge hears and says of those who are followed, in a file of the state directory that is its
 * owner's alone. Begin it anew; end it; tell the judge (started: one that has just been, or NULL); M_RECORDED. */
int parent_record_begin(struct parent *p, struct err *e) MUSTCHECK;
void parent_record_end(struct parent *p);
void parent_record_tell(struct parent *p, const struct log_setting *s, struct child *started);
void parent_recorded(struct parent *p, struct frame *f);
/* M_LOG_SET and M_TRACE_OF of the desk, M_TRACE of a role. */
void parent_log_set(struct parent *p, struct child *desk, struct frame *f);
void parent_trace_of(struct parent *p, struct child *desk, struct frame *f);
void parent_trace_came(struct parent *p, struct child *c, struct frame *f);

#endif
