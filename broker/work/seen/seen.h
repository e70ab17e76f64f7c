/* What a turn did, told outside it: as spans (broker/otlp, export.h), and to the desk, which counts (its metrics).
 * Numbers and names; none of it is waited for. */
#ifndef BROKER_WORK_SEEN_SEEN_H
#define BROKER_WORK_SEEN_SEEN_H

#include "broker/models/answer/answer.h"
#include "broker/otlp/otlp.h"
#include "broker/work/work.h"

/* One question to a model is over. answer: NULL, there was none; error: NULL, it went well. */
struct seen_chat {
    const struct route_model *model;
    const struct answer_result *answer;
    const char *error;
    uint64_t begun_ms, first_ms; /* first_ms: when something came, 0: never */
    uint64_t try;                /* which of the attempt's models */
    uint64_t cost_micro;
    bool unasked; /* it was not sent: how long that took says nothing of the model */
};
void seen_chat(struct task *t, const struct seen_chat *k);
/* Whose part a request to an MCP server is: the turn's, or this call's, once it is sent. Empty: no spans are sent. */
struct seen_parent {
    char text[OTLP_PARENT_TEXT + 1];
};
struct seen_parent seen_turns(const struct task *t);
struct seen_parent seen_calls(const struct task *t, uint64_t ord);
/* A call of this step is settled. */
void seen_call(struct task *t, uint64_t ord);
/* The turn has its end. */
void seen_turn(struct task *t);

#endif
