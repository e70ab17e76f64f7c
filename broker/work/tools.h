/* The tools that a model has: files and commands in its conversation's sandbox. */
#ifndef BROKER_WORK_TOOLS_H
#define BROKER_WORK_TOOLS_H

#include "broker/models/request/request.h"
#include "broker/work/work.h"

enum {
    TOOL_SHOWN_MAX = 8 * 1024,    /* bytes of arguments and results that readers see of one event */
    TOOL_CONTENT_MAX = 512 * 1024 /* of a file that is written or changed at once */
};

typedef void tool_fn(struct task *t, uint64_t ord, const struct json *args);
struct tool {
    const char *name, *description, *schema;
    enum call_class class;
    tool_fn *run;
};
/* NULL: there is no such tool. */
const struct tool *tool_of(struct span name);
size_t tools_for_model(struct model_tool *out, size_t most);
/* What a call that is not run is written down as: its arguments say why. */
#define TOOL_BROKEN SPAN("broken-call")

tool_fn run_command, run_read, run_write, run_edit, run_list, run_remove;
/* command.c: the command `number` ("3.7") of this call is followed to its end, whoever began it. */
void command_follow(struct task *t, uint64_t ord, struct span number);
void command_abort(struct task *t, uint64_t ord);
/* By what a command of a call is known: "call-" and the key in hexadecimal. */
enum { COMMAND_MARK = 5 + 2 * DIGEST_BYTES };
void command_mark(const struct digest *key, char out[COMMAND_MARK + 1]);
/* files.c: is what an edit would do there already? fn-less: tells HEARD_LOOKED. */
void edit_look(struct task *t, uint64_t ord);

/* cut.c: the text, or as much of it as has room in `most` with words that say how much that is; a note in brackets
 * that is its last line stays. p NULL: no memory. */
struct span result_cut(struct arena *a, struct span text, size_t most) MUSTCHECK;
/* Without a character at the end of which a part is missing. */
struct span whole_chars(struct span s);

/* replayed.c: it gives what it gave then, and nothing is run. */
void replay_call(struct task *t, uint64_t ord);

/* task.c: the answer was not complete, and why. */
void task_cut(struct task *t, struct span stopped);

/* What runs of it is let go, and its buffers are freed. */
void tool_forget(struct work_call *c);

/* prompt.c: what the step leaves, as messages (two places); 0: no memory. */
size_t settle_messages(struct task *t, bool rewind, struct bstore_message *m);
struct span settle_effects(struct task *t);

#endif
