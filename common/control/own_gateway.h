/* countersignd as a child of ours, where none runs: for one command, or to seal a secret. */
#ifndef COMMON_CONTROL_OWN_GATEWAY_H
#define COMMON_CONTROL_OWN_GATEWAY_H

#include <sys/types.h>

#include "common/err.h"

/* Start it on this state directory and wait until it is ready. option, value: one more option of `countersign up`
 * (value NULL: it takes none). It ends with us, whatever ends us. CLI_OK and *pid; or the cli_exit to end with. */
int own_gateway_start(const char *state_dir, const char *option, const char *value, pid_t *pid,
                      struct err *e) MUSTCHECK;
/* End it and wait for that; 0: there is none. Its exit status, or -1. */
int own_gateway_stop(pid_t *pid);

#endif
