/* What a model is asked. */
#ifndef BROKER_WORK_PROMPT_H
#define BROKER_WORK_PROMPT_H

#include "broker/models/message.h"
#include "broker/work/work.h"

struct prompt {
    struct message *message;
    size_t n, bytes;
};
/* From the store. -1: t->why says it. */
int prompt_build(struct task *t, struct arena *a, struct prompt *out) MUSTCHECK;
extern const char prompt_system[];

#endif
