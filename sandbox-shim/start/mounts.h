/* Directories and devices that the parent gives a sandbox beside its limits. */
#ifndef SANDBOX_SHIM_START_MOUNTS_H
#define SANDBOX_SHIM_START_MOUNTS_H

#include "sandbox-shim/plan/plan.h"

/* Those of COUNTERSIGN_MOUNTS and COUNTERSIGN_DEVICES (proxy/parent/programs/extras.c), while this is still who may
 * open them; with COUNTERSIGN_PLACES in mounts that are this process's own. -1 in words. */
int mounts_open(struct plan *p, struct err *e) MUSTCHECK;
/* kept.c: the file system in this file, made if it is not there yet, of so many bytes, mounted at that place, where
 * what is the sandbox's first user's on disk is this user's. -1 in words. */
int kept_mount(const char *file, uint64_t size, unsigned user, const char *place, struct err *e) MUSTCHECK;

#endif
