/* A push as its commits: rows of {"label", "value"} behind those of its refs. Everything in them but the ids is what
 * the agent wrote; ids are computed, not believed. */
#ifndef PROXY_JUDGE_PUSH_FACTS_H
#define PROXY_JUDGE_PUSH_FACTS_H

#include "common/json/json.h"
#include "policy/policy.h"

/* Add rows to an open array, as many as leave `room` bytes in w's buffer unpassed; a last row says what was left out.
 * pack: what follows the ref commands in the body; nothing is added when it is empty. */
void push_facts(struct jsonw *w, size_t room, const struct git_push *push, struct span pack);
/* One row. False, and nothing written, when it would pass `room`. */
bool fact_row(struct jsonw *w, size_t room, struct span label, struct span value);

#endif
