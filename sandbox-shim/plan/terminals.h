/* How many terminals a sandbox may have. They are numbered for the whole machine, which has some thousands for all:
 * without a bound of its own one sandbox takes everybody's. Bubblewrap mounts them without one, in a user namespace
 * that its last process is no part of any more; so the bound is set from outside, before anything runs but the shim.
 */
#ifndef SANDBOX_SHIM_PLAN_TERMINALS_H
#define SANDBOX_SHIM_PLAN_TERMINALS_H

#include "common/span.h"

enum { TERMINALS_MAX = 64 }; /* as many as commands run at once (TALK_RUNS_MAX) */

/* Forks who sets it. *info: where bubblewrap says which process the shim is (--info-fd); *wait: where the shim says
 * that it waits, and hears that it may go on (--wait): never, when the bound cannot be set, which is said on stderr
 * after `verb`. -1 with errno. */
int terminals_bound(const char *verb, int *info, int *wait) MUSTCHECK;

#endif
