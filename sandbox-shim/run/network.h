/* The network of a captured sandbox, set up from outside while nothing runs in it yet but the
 * shim: every address is reachable over loopback, and rules lead it all to the shim's ports. Inside, nobody ever has
 * the capability to change it. */
#ifndef SANDBOX_SHIM_RUN_NETWORK_H
#define SANDBOX_SHIM_RUN_NETWORK_H

#include <sys/types.h>

#include "common/err.h"

/* nft(8), looked for in the system's own places and never in PATH; NULL with words. */
const char *network_nft(struct err *e) MUSTCHECK;
/* Does this kernel let one of our user be captured? Tried in a network that is thrown away. -1 in words. */
int network_try(const char *nft, struct err *e) MUSTCHECK;
/* In the network of process `pid`, which `pidfd` shows to be that one still. -1: nothing of it can be relied on, and
 * the command must not be started. */
int network_set_up(const char *nft, pid_t pid, int pidfd, struct err *e) MUSTCHECK;

#endif
