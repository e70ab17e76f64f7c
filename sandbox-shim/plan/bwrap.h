/* Becoming bubblewrap around a plan, in a process that was forked for it. */
#ifndef SANDBOX_SHIM_PLAN_BWRAP_H
#define SANDBOX_SHIM_PLAN_BWRAP_H

#include "sandbox-shim/plan/plan.h"

struct bwrap {
    const char *program; /* of bwrap_find */
    const char *verb;    /* whose words say what went wrong, on stderr */
    int status;          /* where bubblewrap reports (--json-status-fd); -1: nowhere */
    int talk;            /* the shim's end of the socket to who started it */
    bool tty;            /* standard input is the command's own terminal */
};

/* Bubblewrap's program, looked for in the system's own places and never in PATH;
 * `flag` (--bwrap) instead when given. NULL in words. */
const char *bwrap_find(const char *flag, struct err *e) MUSTCHECK;
/* In the child: into the plan's limits, and become bubblewrap with nothing of ours but what the plan passes and these
 * two descriptors. A process group of its own, which ends with whoever forked it. Exits with 1 in words. */
void bwrap_become(const struct bwrap *b, const struct plan *p) __attribute__((noreturn));
/* Why it probably was that a sandbox could not be set up, and what to do. Always -1. */
int bwrap_explain(struct err *e);

#endif
