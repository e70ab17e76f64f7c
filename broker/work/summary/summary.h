/* A step that summarises what is older, where the conversation is longer than its models' windows. Its answer is what
 * the messages it stands for are told as from then on; they stay where they are, for readers and for forks. */
#ifndef BROKER_WORK_SUMMARY_SUMMARY_H
#define BROKER_WORK_SUMMARY_SUMMARY_H

#include "broker/work/prompt.h"

/* The kind of such a step, which may say more behind a space. */
#define SUMMARY_KIND SPAN("summary")
bool summary_is(struct span kind);
#define SUMMARY_TASK SPAN("summary")

/* Of what the last checkpoint keeps. -1: it cannot be read. */
int summary_load(struct task *t) MUSTCHECK;
/* What a checkpoint keeps of it (message_state): {"summary":TEXT,"upto":N,"asked":N,"tokens":N,"tokens_max":N}. p
 * NULL: no memory. */
struct span summary_keep(struct task *t) MUSTCHECK;
/* Is what a model is to be asked so long that a summary comes first, and is there something to summarise? */
bool summary_due(struct task *t);
/* The same, whatever its length is: a provider has refused it as too long. */
bool summary_may(struct task *t);
/* What is asked for one. -1: t->why says it. */
int summary_prompt(struct task *t, struct prompt *out) MUSTCHECK;
/* Readers are told that this model is asked for it. */
void summary_begins(struct task *t, struct span model);
/* t->answer is what the step leaves; else why it is no summary, in words. */
const char *summary_take(struct task *t, const struct message *m);
/* What readers are told with its settlement; from then on it holds. */
struct bstore_event summary_event(struct task *t);
void summary_holds(struct task *t);

#endif
