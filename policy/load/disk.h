/* A policy from disk: reads the files, floors, packs and CA files and compiles
 * them. The only part of policy/load that touches files; for the daemon's
 * loader child and the verbs. Nothing is followed: a symbolic link, a device, a
 * directory, a file over its limit or one that anybody may write is refused. */
#ifndef POLICY_LOAD_DISK_H
#define POLICY_LOAD_DISK_H

#include "common/arena.h"
#include "policy/load/load.h"

/* paths: the policy's files, one policy together. floors, packs: NULL for none and for the default
 * search (the installed packs, then ./conf/packs). CA files are relative to the folder of a policy
 * file. out is born with POLICY_IMAGE_MAX by the caller. 0, or -1 with *e as policy_load. */
int policy_load_from_disk(const char *const *paths, size_t n, const char *floors, const char *packs,
                          struct dynbuf *out, struct policy_problems *problems, struct err *e) MUSTCHECK;
/* The whole of a regular file of at most max bytes, in the arena. */
int policy_read_file(const char *path, size_t max, struct arena *a, struct span *out, struct err *e) MUSTCHECK;

#endif
