/* What the broker's models and tools did since this desk began, added up for Prometheus (/api/v1/metrics). Who is
 * told nothing by the broker loses nothing but the number. */
#ifndef WEB_APPROVAL_BROKER_TALLY_H
#define WEB_APPROVAL_BROKER_TALLY_H

#include "common/dynbuf.h"

struct broker_tally;
struct desk;
struct frame;

enum {
    TALLY_NAMES_MAX = 128, /* of each kind that are told apart; those behind them are one, _OTHER */
    TALLY_KEPT = 256,      /* times of each that are kept, the last ones */
    TALLY_ERRORS = 3       /* kinds of them that a line names */
};
enum tally_kind { TALLY_MODELS = 0, TALLY_TOOLS, TALLY_TASKS /* of turns */, TALLY_KINDS };

/* M_BROKER_SEEN, M_BROKER_SPANS, M_BROKER_METRICS, M_BROKER_WAITS. What cannot be read is said in the log. */
void broker_tally_frame(struct desk *d, struct frame *f);
/* In the text that Prometheus reads; of NULL nothing. */
void broker_tally_put(const struct broker_tally *t, struct dynbuf *out);
/* Turns that wait while no process runs any, and since when; 0: some do, or nobody has said. */
uint64_t broker_tally_waits(const struct broker_tally *t, uint64_t *since_ms);
/* Who says so has gone. */
void broker_tally_unsure(struct broker_tally *t);
/* Of those times that are kept, half took at most half_ms, and of twenty 19 at most most_ms. */
struct tally_times {
    size_t n;
    uint32_t half_ms, most_ms;
};
/* One model, tool or task. What a person ended, or a worker that was told to stop, did not fail. */
struct tally_line {
    const char *name; /* printable ASCII, but whatever somebody chose */
    uint64_t times, stopped, failed, late;
    struct {
        const char *word; /* NULL: there is none */
        uint64_t times;
    } error[TALLY_ERRORS]; /* the most frequent first */
    struct tally_times took, first;
};
/* Those of a kind, the worst first: by the share that failed, then by how long they take. */
size_t broker_tally_lines(const struct broker_tally *t, enum tally_kind kind, struct tally_line out[TALLY_NAMES_MAX]);

void broker_tally_free(struct broker_tally **t);

#endif
