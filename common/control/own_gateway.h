/* countersignd as a child of ours, where none runs: for one command, or to seal a secret. */
#ifndef COMMON_CONTROL_OWN_GATEWAY_H
#define COMMON_CONTROL_OWN_GATEWAY_H

#include <sys/types.h>

#include "common/err.h"

/* Start it on this state directory and wait until it is ready. more: further options of `countersign up` and their
 * values, at most OWN_GATEWAY_MORE, ended by NULL. It ends with us, whatever ends us. CLI_OK and *pid; or the
 * cli_exit to end with. */
enum { OWN_GATEWAY_MORE = 4 };
int own_gateway_start(const char *state_dir, const char *const *more, pid_t *pid, struct err *e) MUSTCHECK;
/* End it and wait for that; 0: there is none. Its exit status, or -1. */
int own_gateway_stop(pid_t *pid);

#endif
