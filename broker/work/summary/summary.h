/* A step that summarises what is older, where the conversation is longer than its models' windows. Its answer is what
 * the messages it stands for are told as from then on; they stay where they are, for readers and for forks. */
#ifndef BROKER_WORK_SUMMARY_SUMMARY_H
#define BROKER_WORK_SUMMARY_SUMMARY_H

#include "broker/work/prompt.h"

/* The kind of such a step, which may say more behind a space. */
#define SUMMARY_KIND SPAN("summary")
#define MODEL_KIND   SPAN("model") /* of any other */
#define SUMMARY_TASK SPAN("summary")
/* A step was planned as one, and what it left is one: a broker of an earlier version that took such a step over may
 * have asked for an answer in it. */
bool summary_found(const struct bstore_turn *f);

/* Of what the last checkpoint keeps. -1: it cannot be read. */
int summary_load(struct task *t) MUSTCHECK;
/* What a checkpoint keeps of it (message_state): {"of":"model","blocks":[],"summary":TEXT,"upto":N,"asked":N,
 * "tokens":N,"tokens_max":N}; a broker of an earlier version that settles it has an empty message. p NULL: no memory.
 */
struct span summary_keep(struct task *t) MUSTCHECK;
/* Is what a model is to be asked so long that a summary comes first, and is there something to summarise? */
bool summary_due(struct task *t);
/* The same, whatever its length is: a provider has refused it as too long. */
bool summary_may(struct task *t);
/* None is to be had: has what is to be asked room as it is? */
bool summary_can_wait(struct task *t);
/* What is asked for one. -1: t->why says it. */
int summary_prompt(struct task *t, struct prompt *out) MUSTCHECK;
/* How long it may be, in words: who is asked answers with at most so many tokens. */
void summary_room(struct task *t, struct prompt *p, uint64_t tokens);
/* It was too long for who was asked: tell half as much. False: no less is worth a summary. */
bool summary_less(struct task *t) MUSTCHECK;
/* Readers are told that this model is asked for it. */
void summary_begins(struct task *t, struct span model);
/* t->answer is what the step leaves; else why it is no summary, in words. */
const char *summary_take(struct task *t, const struct message *m);
/* What readers are told with its settlement; from then on it holds. -1: it does not, and is in the store alone. */
struct bstore_event summary_event(struct task *t);
int summary_holds(struct task *t) MUSTCHECK;

#endif
