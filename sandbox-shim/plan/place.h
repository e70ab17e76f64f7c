/* Which directory a sandbox may have, and where our own programs lie. */
#ifndef SANDBOX_SHIM_RUN_PLACE_H
#define SANDBOX_SHIM_RUN_PLACE_H

#include <limits.h>

#include "common/err.h"

/* Is one of two absolute, resolved paths the other, or inside it? */
bool place_overlaps(const char *a, const char *b);
/* Resolve a path whose last parts may not exist yet. -1 with errno. */
int place_resolve(const char *path, char out[PATH_MAX]) MUSTCHECK;

/* Open `dir` (O_PATH, CLOEXEC) part by part; out: its resolved path. A symbolic link on the way is refused, in words
 * that name the real path: a sandbox may have planted it in what once was its workspace. Those in directories of the
 * system that only root can write are followed. What is checked and mounted is this descriptor, whatever the path
 * leads to by then. -1 in words. */
int place_open(const char *dir, char out[PATH_MAX], struct err *e) MUSTCHECK;
/* Refuse a resolved directory, in words, when a sandbox must not have it: the state directory or what holds it or
 * lies in it, /, the home directory itself or what holds it, the system's own directories, and (when writable)
 * directories shared with other people and programs. home may be NULL. */
int place_check(const char *real, bool writable, const char *state_dir, const char *home, struct err *e) MUSTCHECK;

/* The file of one of our programs: beside this program when it lies in a build
 * tree, else in LIBEXECDIR. -1 when it cannot be executed. */
int place_program(const char *name, char out[PATH_MAX], struct err *e) MUSTCHECK;
/* The shipped policy of that name. */
int place_policy(const char *name, char out[PATH_MAX], struct err *e) MUSTCHECK;

#endif
