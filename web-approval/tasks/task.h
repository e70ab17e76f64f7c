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
    struct task *next; /* of the desk's, while it runs */
    struct exchange *x;
    char id[BOX_NAME_MAX + 1];
    struct span tenant;
    unsigned attempts; /* that have begun, this one among them */
    bool ordered;      /* its command may have begun */
    bool cancelled;    /* by an operator */
    bool ending;       /* too late for that */
    uint64_t since_ms;
    struct starting start;
    struct task_kind *kind;
    struct share share;
    struct chore chore;
    struct span input, result;
    struct digest output;   /* of the result, or of what was left in its place */
    bool has_output, kept;  /* kept: the ledger has it, for operators alone */
    const char *error, *of; /* of: what broke its schema */
    unsigned how, code;     /* of its command */
    bool written, gone;     /* gone: its sandbox has ended, and nothing of it is left */
    struct schema_miss miss;
    struct task_before before;
};

/* Zeroed, as x->holds. NULL: answered. */
struct task *task_new(struct exchange *x) MUSTCHECK;
/* It has its kind, tenant and input: all that follows, to the answer. id: what it is to be known by; empty: one is
 * made. */
void task_go(struct exchange *x, struct task *t, struct span id);

/* Write it down, with what it can be made again from; then(x) when that is so. Answered if it cannot be. */
void task_write(struct exchange *x, struct task *t, void (*then)(struct exchange *x));
/* The same of one whose end nobody knows, and nothing is waited for. */
void task_write_lost(struct exchange *x, struct task *t);
/* The ledger is to keep bytes, to be had by their digest. False: they are too large, or it does not run. */
bool task_keep(struct desk *d, struct span tenant, struct span bytes);
/* What it has of a tenant by a digest: fn hears M_BLOB_IS. */
void task_blob_ask(struct exchange *x, struct span tenant, const struct digest *sha256, ask_fn *fn);
/* False: it has not, or they are others. */
bool task_blob_take(const struct frame *f, const struct digest *sha256, struct span *bytes) MUSTCHECK;
/* {"name": "64 hex digits"} */
bool task_digest_read(const struct json *what, const char *key, struct digest *d) MUSTCHECK;

/* It runs from now on, by t->id, or by one that is made for it. -1, answered: one of this id runs. */
int task_enlist(struct exchange *x, struct task *t, struct span id) MUSTCHECK;
void task_delist(struct task *t);
/* The id of its run, when it is written. */
struct span task_run(const struct exchange *x);
/* How it ended, in a word. */
const char *task_outcome(const struct task *t);
/* x->holds was made again: say whether it was the same. */
void task_reply_again(struct exchange *x, const struct task *t);

#endif
