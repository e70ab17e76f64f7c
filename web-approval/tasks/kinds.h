/* The kinds of tasks that the configuration names, as the parent says them. */
#ifndef WEB_APPROVAL_TASKS_KINDS_H
#define WEB_APPROVAL_TASKS_KINDS_H

#include "common/schema/schema.h"
#include "proxy/task/wire_task.h"

struct frame;

struct task_kind {
    struct wire_task is; /* its spans are in `bytes` */
    struct dynbuf bytes;
    struct schema *input, *output;
    unsigned users;
};

struct task_kinds {
    struct task_kind *now[TASKS_MAX], *next[TASKS_MAX];
    size_t n, n_next, coming; /* next: those of a list that is not whole yet, of which so many are coming */
};

/* M_TASKS or M_TASK of the parent's. -1: it cannot be taken, and no kind of that list will be. */
int kinds_hear(struct task_kinds *k, unsigned type, struct span payload) MUSTCHECK;
/* One as wire_put_task has it, of nobody's list. NULL: it is none. */
struct task_kind *kind_of(struct span payload) MUSTCHECK;
/* Of this name: the tenant's own, else everybody's. NULL: there is none. It lives until kind_drop, whatever the
 * parent says meanwhile. */
struct task_kind *kind_use(struct task_kinds *k, struct span name, struct span tenant) MUSTCHECK;
/* NULL is fine; *t is NULL then. */
void kind_drop(struct task_kind **t);

#endif
