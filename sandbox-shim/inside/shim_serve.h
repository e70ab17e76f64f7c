/* A sandbox that is told what to run, for as long as it lives. */
#ifndef SANDBOX_SHIM_INSIDE_SERVE_H
#define SANDBOX_SHIM_INSIDE_SERVE_H

#include <sys/resource.h>

#include "sandbox-shim/inside/doors/shim_doors.h"

/* Run what the warden says at the other end of fd (shim_talk.h). When that end is gone, so are we, and with us
 * everything in this pid namespace. processes: at most so many in here, 0: no limit. d: its way out, if any is open.
 */
void serve(int fd, rlim_t processes, struct doors *d) __attribute__((noreturn));

#endif
