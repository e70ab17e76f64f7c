/* The wall itself, apart from the rest of a role's start: for role.c and its test. */
#ifndef COMMON_ROLE_WALL_H
#define COMMON_ROLE_WALL_H

#include "common/err.h"
#include "common/role/role.h"

/* All capabilities, and the way back to any. */
int wall_no_privileges(struct err *e) MUSTCHECK;
/* Landlock as far as this kernel has it: 0, with *abi its version, 0 when there is none at all. */
int wall_landlock(const struct wall *w, int *abi, struct err *e) MUSTCHECK;
/* System calls. Nothing that is not in the list of a group can be called any more; the process is killed. */
int wall_seccomp(const struct wall *w, struct err *e) MUSTCHECK;

#endif
