/* Who stands beside bubblewrap, outside the sandbox, until the shim runs.
 *
 * Bubblewrap's second process waits for word from its first one before it binds its life to it, and waits for ever
 * when the first one was killed just then (0.8: a read of an eventfd, which has no end to see). Until the shim says
 * that it runs, who stands here kills the whole process group when the first one ends. */
#ifndef SANDBOX_SHIM_PLAN_BESIDE_H
#define SANDBOX_SHIM_PLAN_BESIDE_H

#include <stdbool.h>

/* Forks it, from the leader of a process group that is all the sandbox's and that becomes bubblewrap. *wait: where
 * the shim says that it runs, and hears that it may go on (--wait): never, when something cannot be set, which is
 * said on stderr after `verb`. terminals: their number is bounded, too; *info then: where bubblewrap says which
 * process the shim is (--info-fd), else -1. -1 with errno. */
int beside_begin(const char *verb, bool terminals, int *info, int *wait) __attribute__((warn_unused_result));

#endif
