/* MCP servers of a turn (servers.c): their tools are a model's beside those of tools.h. */
#ifndef BROKER_WORK_SERVERS_H
#define BROKER_WORK_SERVERS_H

#include "broker/models/request/request.h"
#include "broker/work/work.h"

/* think_begin, once the servers run or have failed; servers_quiet: it is not wanted any more. */
void servers_think(struct task *t);
void servers_quiet(struct task *t);
/* A step begins: nothing of the one before is in flight. */
void servers_step(struct task *t);
void servers_free(struct task *t);
/* Is there such a tool now? Its name, kept for the step, and what a call of it is. */
bool servers_know(struct task *t, struct span name, struct span *kept, enum call_class *class);
/* The spans are the servers', until one of them ends. */
size_t servers_tools(const struct task *t, struct model_tool *out, size_t most);
/* Is it a tool of a server that is asked over HTTP? It needs no sandbox. */
bool servers_outside(const struct task *t, struct span tool);
/* False: the call is of no server's. Else task_done comes. */
bool servers_call(struct task *t, uint64_t ord) MUSTCHECK;
bool servers_abort(struct task *t, uint64_t ord) MUSTCHECK;

#endif
