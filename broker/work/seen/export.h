/* Spans, and what they come to as metrics, on their way to the operator's collector: through the gateway's proxy, as
 * an identity of this worker's, which the policy decides on as on any other. They wait here, bounded, and are sent
 * together a moment later; what is not taken in a few tries is lost, and counted. Metrics are of all since the worker
 * began: what one request of them had, the next one has. No turn waits for any of it. */
#ifndef BROKER_WORK_SEEN_EXPORT_H
#define BROKER_WORK_SEEN_EXPORT_H

#include "broker/otlp/otlp.h"
#include "broker/work/work.h"

enum {
    EXPORT_URL_MAX = 1024,
    EXPORT_SOON_MS = 5000,       /* one waits so long, for others that go with it, */
    EXPORT_TURN_MS = 100,        /* or until its turn is over, and this longer */
    EXPORT_EVERY_MS = 10000,     /* so long after something is measured it is sent, with what else is by then */
    EXPORT_TRIES = 5,            /* so often one request is sent; once, after one that was given up */
    EXPORT_PATIENCE_MS = 15000,  /* for its answer, and for an identity */
    EXPORT_AGAIN_MS = 1000,      /* after the first try, twice that after each other, */
    EXPORT_AGAIN_MOST_MS = 60000 /* or as the collector says, at most */
};

enum export_what { EXPORT_SPANS = 0, EXPORT_METRICS };
/* http:// or https://, a host and a path. NULL: no memory. */
struct export *export_new(struct work *w, enum export_what what, const char *url) MUSTCHECK;
/* Where nothing is exported, nothing is done. Its error is one of few words, and kept as it is. */
void export_add(struct work *w, const struct otlp_span *s);

void export_free(struct export **x);
/* How many spans, or points of metrics, wait or are on their way; how many no collector took. */
uint64_t export_waiting(const struct export *x);
uint64_t export_lost(const struct export *x);
/* Why, as the log had it last; empty: none was lost. */
const char *export_why(const struct export *x);
/* The worker ends: what it has not sent is lost, and said. Where nothing is exported, nothing is done. */
void export_end(struct work *w);

/* What is to be done about an answer. */
enum export_next { EXPORT_DROP = 0, EXPORT_TAKEN, EXPORT_AGAIN, EXPORT_ANEW };
/* status: of HTTP; 0, there was none. unsure: the gateway itself says that it could not send it, or does not know
 * what became of it; to send the same twice harms nobody, since ids and times say so. ANEW: with another identity. */
enum export_next export_next(unsigned status, bool unsure);
/* So long after this many tries; said_ms: what the collector asked for, 0: nothing. */
uint64_t export_wait(unsigned tries, uint64_t said_ms);
/* How many of n a collector that took a request did not keep: partialSuccess.rejectedSpans, or .rejectedDataPoints.
 */
uint64_t export_rejected(struct span body, enum export_what what, uint64_t n);

#endif
