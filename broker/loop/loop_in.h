/* What the files of the loop share. */
#ifndef BROKER_LOOP_LOOP_IN_H
#define BROKER_LOOP_LOOP_IN_H

#include "broker/loop/loop.h"

/* One more action; never more than there is room for, since each call has at most one at a time. */
void agent_act(struct loop_actions *out, struct loop_action a);
/* What is known of a call, and so what is done. */
void agent_known(struct agent *l, const struct loop_event *e, struct loop_actions *out);
void agent_run(struct agent *l, uint64_t ord, struct loop_actions *out);
void agent_ask(struct agent *l, uint64_t ord, struct loop_actions *out);
void agent_settle(struct agent *l, uint64_t ord, enum call_end end, struct loop_actions *out);
/* Of a checkpoint; false: it is none of ours. */
bool agent_load(struct agent *l, struct span kept) MUSTCHECK;
/* What all calls of the step are together; all zero: none. Of a summary: those of the step before. */
struct digest agent_batch(const struct agent *l);

#endif
