/* What readers see, written down before they see it. */
#ifndef BROKER_WORK_SHOW_H
#define BROKER_WORK_SHOW_H

#include "common/json/json.h"

struct task;

/* An event, whose body is freed; text that grows; all of it is written down: false, the task is over for this worker.
 */
void show(struct task *t, const char *type, struct dynbuf *body);
void show_delta(struct task *t, const char *type, uint64_t piece, struct span text);
bool show_flush(struct task *t) MUSTCHECK;
void show_begin(struct dynbuf *b, struct jsonw *w);

#endif
