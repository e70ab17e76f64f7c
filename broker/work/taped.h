/* What the turn's machine hears and does is kept for a replay (broker/replay): numbers and names, never a word that
 * somebody said. It goes into the store with what is written down anyway, and may be missing there; no turn fails for
 * it. */
#ifndef BROKER_WORK_TAPED_H
#define BROKER_WORK_TAPED_H

#include "broker/work/work.h"

/* NULL: nothing is kept of this turn by this worker. taped_free takes it. */
struct taped *taped_new(void) MUSTCHECK;
void taped_free(struct taped **k);
void taped_begin(struct task *t, const struct loop_found *found, const struct loop_actions *did);
void taped_heard(struct task *t, const struct loop_event *e, const struct loop_actions *did);
/* What an attempt has cost of which nothing is kept. */
void taped_spent(struct task *t, const struct used *used);
/* Which model is asked; until the step's end. */
void taped_model(struct task *t, struct span name);
/* What is not written down yet, for whoever writes it down with something else, and says so then. */
struct span taped_rows(const struct task *t);
void taped_kept(struct task *t);
/* It is written down by itself. */
void taped_flush(struct task *t);

#endif
