/* What a model is asked. */
#ifndef BROKER_WORK_PROMPT_H
#define BROKER_WORK_PROMPT_H

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
/* think.c: which model it goes to (roomy: as of struct route_ask); the largest window, in tokens, of those that it
 * may go to. */
struct route_found think_route(struct task *t, const struct prompt *p, bool roomy);
uint64_t think_window(struct task *t, const struct prompt *p);

#endif
