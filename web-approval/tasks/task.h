/* A task on its way (api_tasks.c), what is written down of it (record.c), and how one is made again (repeat.c). */
#ifndef WEB_APPROVAL_TASKS_TASK_H
#define WEB_APPROVAL_TASKS_TASK_H

#include "web-approval/api/steps.h"
#include "web-approval/streams/share.h"
#include "web-approval/tasks/chore.h"

/* What the record says of the one that is made again. */
struct task_before {
    struct span run; /* empty: this one is new */
    struct span tenant, kind, digest, outcome, output;
    unsigned code;
    struct wire_box limits; /* these four of it */
    uint64_t cpu_percent;
    bool strict, signalled;
    struct digest kind_sha256, input_sha256;
};

struct task {
    struct starting start;
    struct task_kind *kind;
    struct share share;
    struct chore chore;
    struct span input, result;
    struct digest output; /* of the result, or of what was left in its place */
    bool has_output;
    const char *error, *of; /* of: what broke its schema */
    unsigned how, code;     /* of its command */
    bool written, gone;     /* gone: its sandbox has ended, and nothing of it is left */
    struct schema_miss miss;
    struct task_before before;
};

/* Zeroed, as x->holds. NULL: answered. */
struct task *task_new(struct exchange *x) MUSTCHECK;
/* It has its kind and input: all that follows, to the answer. */
void task_go(struct exchange *x, struct task *t);

/* Write it down, with what it can be made again from; then(x) when that is so. Answered if it cannot be. */
void task_write(struct exchange *x, struct task *t, void (*then)(struct exchange *x));
/* The same of one whose end nobody knows, and nothing is waited for. */
void task_write_lost(struct exchange *x, struct task *t);
/* The id of its run, when it is written. */
struct span task_run(const struct exchange *x);
/* How it ended, in a word. */
const char *task_outcome(const struct task *t);
/* x->holds was made again: say whether it was the same. */
void task_reply_again(struct exchange *x, const struct task *t);

#endif
