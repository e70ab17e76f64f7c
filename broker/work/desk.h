/* Questions to the desk. */
#ifndef BROKER_WORK_DESK_H
#define BROKER_WORK_DESK_H

#include "common/span.h"

struct task;

/* One question to the desk; fn hears its status and its JSON; 503 when there was no answer. It is not
 * called after the task is over; it may be called before this returns. */
typedef void told_fn(struct task *t, uint64_t arg, unsigned status, struct span body);
void desk_ask(struct task *t, const char *method, struct span target, struct span json, told_fn *fn, uint64_t arg);
/* The same with a body that is no JSON. */
void desk_put(struct task *t, struct span target, struct span body, told_fn *fn, uint64_t arg);
void desk_forget(struct task *t);
/* "/api/v1/sandboxes/c-ID" and what follows; with path=... of a query where path.p is not NULL. */
struct span desk_box(struct task *t, const char *rest, struct span path) MUSTCHECK;
/* Its words for a person, of a refusal. */
struct span desk_words(struct task *t, unsigned status, struct span body);

#endif
