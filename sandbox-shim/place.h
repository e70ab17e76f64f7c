/* Which directory a sandbox may have, and where our own programs lie. */
#ifndef SANDBOX_SHIM_PLACE_H
#define SANDBOX_SHIM_PLACE_H

#include <limits.h>

#include "common/err.h"

/* Is one of two absolute, resolved paths the other, or inside it? */
bool place_overlaps(const char *a, const char *b);
/* Resolve a path whose last parts may not exist yet. -1 with errno. */
int place_resolve(const char *path, char out[PATH_MAX]) MUSTCHECK;

/* Resolve `dir` and refuse it, in words, when a sandbox must not have it: the state
 * directory or what holds it or lies in it, /, the home directory itself or what
 * holds it, the system's own directories, and (when writable) directories shared
 * with other people and programs. home may be NULL. */
int place_check(const char *dir, bool writable, const char *state_dir, const char *home, char out[PATH_MAX],
                struct err *e) MUSTCHECK;
/* A descriptor (O_PATH, CLOEXEC) of exactly that resolved directory: no part of it
 * became a link since. */
int place_open(const char *resolved, struct err *e) MUSTCHECK;

/* The file of one of our programs: beside this program when it lies in a build
 * tree, else in LIBEXECDIR. -1 when it cannot be executed. */
int place_program(const char *name, char out[PATH_MAX], struct err *e) MUSTCHECK;
/* The shipped policy of that name. */
int place_policy(const char *name, char out[PATH_MAX], struct err *e) MUSTCHECK;

#endif
