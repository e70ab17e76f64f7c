/* How many terminals a sandbox may have. They are numbered for the whole machine, which has some thousands for all:
 * without a bound of its own one sandbox takes everybody's. Bubblewrap mounts them without one, in a user namespace
 * that its last process is no part of any more; so the bound is set from outside, before anything runs but the shim.
 */
#ifndef SANDBOX_SHIM_PLAN_TERMINALS_H
#define SANDBOX_SHIM_PLAN_TERMINALS_H

#include "common/span.h"

enum {
    TERMINALS_MAX = 64, /* as many as commands run at once (TALK_RUNS_MAX); */
    TERMINALS_CELL = 4, /* of one command with walls of its own: the machine's are soon all taken */
};

/* Sets it for the sandbox of whose shim bubblewrap says in `info` (--info-fd) which process it is; the shim runs and
 * waits. The caller's own namespaces are that sandbox's afterwards. -1 with errno. */
int terminals_bound(int info) MUSTCHECK;

#endif
