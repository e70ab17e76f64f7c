/* What a model is asked. */
#ifndef BROKER_WORK_PROMPT_H
#define BROKER_WORK_PROMPT_H

#include "broker/models/answer/answer.h"
#include "broker/models/message.h"
#include "broker/work/work.h"

/* Of a message: where it stands in the conversation (0: nowhere, it was made here), how long it is as it is kept;
 * whether a person said it, and that to this turn. */
struct prompt_row {
    uint64_t seq;
    size_t bytes;
    bool person, ours;
};
struct prompt {
    struct span system, task; /* task: of the table of models; empty: its first */
    struct message *message;
    struct prompt_row *row;
    size_t n, bytes, first; /* first: those before it stand for what is left out */
    uint64_t output;        /* tokens of the answer, at most */
    bool tools;
};
/* From the store, once for a step; NULL: t->why says it. */
const struct prompt *prompt_of(struct task *t) MUSTCHECK;
/* --- question/ --- Which model it goes to (roomy: as of struct route_ask); the largest window, in tokens, of those
 * that it may go to, but of none of this turn's own that a provider refused as too long for a smaller one. */
struct route_found think_route(struct task *t, const struct prompt *p, bool roomy);
uint64_t think_window(struct task *t, const struct prompt *p);
/* A bit for each model whose window is not larger than so many tokens. */
uint64_t think_not_larger(const struct task *t, uint64_t window);
/* As this model's provider takes it. -1: t->why says why not. */
int question_write(struct task *t, const struct prompt *p, const struct model_target *target, uint64_t max_tokens,
                   struct dynbuf *body) MUSTCHECK;
/* What an answer asks for, into t->call and t->calls; all that it asks for, even if that is too much. */
size_t calls_take(struct task *t, const struct answer_result *r, struct loop_asked *asked);

#endif
