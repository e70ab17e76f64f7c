/* What the broker's models and tools did since this desk began, added up for Prometheus (/api/v1/metrics). Who is
 * told nothing by the broker loses nothing but the number. */
#ifndef WEB_APPROVAL_BROKER_TALLY_H
#define WEB_APPROVAL_BROKER_TALLY_H

#include "common/dynbuf.h"

struct broker_tally;
struct desk;
struct frame;

enum {
    TALLY_NAMES_MAX = 128 /* models, and tools, that are told apart; those behind them are one, _OTHER */
};

/* M_BROKER_SEEN, M_BROKER_SPANS, M_BROKER_WAITS. What cannot be read is said in the log. */
void broker_tally_frame(struct desk *d, struct frame *f);
/* In the text that Prometheus reads; of NULL nothing. */
void broker_tally_put(const struct broker_tally *t, struct dynbuf *out);
/* Turns that wait while no process runs any, and since when; 0: some do, or nobody has said. */
uint64_t broker_tally_waits(const struct broker_tally *t, uint64_t *since_ms);
/* Who says so has gone. */
void broker_tally_unsure(struct broker_tally *t);
void broker_tally_free(struct broker_tally **t);

#endif
