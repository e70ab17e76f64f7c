/* The system calls a sandbox cannot make, as a seccomp program for bubblewrap. */
#ifndef SANDBOX_SHIM_RUN_FILTER_H
#define SANDBOX_SHIM_RUN_FILTER_H

#include "common/err.h"

/* A memfd (CLOEXEC, at its start) with the program, or -1. Any rule that cannot be
 * expressed on this machine is a failure: never a weaker filter. */
int filter_open(struct err *e) MUSTCHECK;

#endif
