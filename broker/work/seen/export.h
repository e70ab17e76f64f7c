/* Spans on their way to the operator's collector: through the gateway's proxy, as an identity of this worker's, which
 * the policy decides on as on any other. They wait here, bounded, and are sent together a moment later; what is not
 * taken in a few tries is lost, and counted. No turn waits for any of it. */
#ifndef BROKER_WORK_SEEN_EXPORT_H
#define BROKER_WORK_SEEN_EXPORT_H

#include "broker/otlp/otlp.h"
#include "broker/work/work.h"

enum {
    EXPORT_URL_MAX = 1024,
    EXPORT_SOON_MS = 5000,       /* one waits so long, for others that go with it, */
    EXPORT_TURN_MS = 100,        /* or until its turn is over, and this longer */
    EXPORT_TRIES = 5,            /* so often one request is sent; once, after one that was given up */
    EXPORT_PATIENCE_MS = 15000,  /* for its answer, and for an identity */
    EXPORT_AGAIN_MS = 1000,      /* after the first try, twice that after each other, */
    EXPORT_AGAIN_MOST_MS = 60000 /* or as the collector says, at most */
};

/* http:// or https://, a host and a path. NULL: no memory. */
struct export *export_new(struct work *w, const char *url) MUSTCHECK;
/* Where nothing is exported, nothing is done. */
void export_add(struct work *w, const struct otlp_span *s);

void export_free(struct export **x);
/* How many wait or are on their way; how many no collector took. */
uint64_t export_waiting(const struct export *x);
uint64_t export_lost(const struct export *x);
/* Why, as the log had it last; empty: none was lost. */
const char *export_why(const struct export *x);
/* The worker ends: what it has not sent is lost, and said. Where nothing is exported, nothing is done. */
void export_end(struct work *w);

/* What is to be done about an answer. */
enum export_next { EXPORT_DROP = 0, EXPORT_TAKEN, EXPORT_AGAIN, EXPORT_ANEW };
/* status: of HTTP; 0, there was none. unsure: the gateway itself says that it could not send it, or does not know
 * what became of it; to send the same spans twice harms nobody, since their ids say so. ANEW: with another identity.
 */
enum export_next export_next(unsigned status, bool unsure);
/* So long after this many tries; said_ms: what the collector asked for, 0: nothing. */
uint64_t export_wait(unsigned tries, uint64_t said_ms);
/* How many of n spans a collector that took a request did not keep: partialSuccess.rejectedSpans. */
uint64_t export_rejected(struct span body, uint64_t n);

#endif
