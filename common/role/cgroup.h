/* One cgroup for one sandbox, in whichever of the two versions this machine has: a folder for each controller
 * (version 1), or one for all that is held (2), or some of each. */
#ifndef COMMON_ROLE_CGROUP_H
#define COMMON_ROLE_CGROUP_H

#include "common/err.h"

enum { CGROUP_FOLDERS = 4, CGROUP_PATH = 1024 };
/* What a folder holds, as bits. */
enum { CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4 };

struct cgroup {
    struct cgroup_folder {
        char path[CGROUP_PATH];
        unsigned version, holds;
    } folder[CGROUP_FOLDERS];
    unsigned n; /* 0: there is none */
};

/* 0 each: not held. */
struct cgroup_amounts {
    uint64_t memory, pids, cpu_percent; /* bytes; processes and threads; of one CPU */
};

/* Make one that holds all of these, with this name, below where we are; for version 2 at the nearest place above that
 * gives its children what is needed, and nothing of that place is changed. proc: /proc/self, or what a test has in
 * its place. False: not all of them can be held here, and nothing was left behind. */
bool cgroup_make(struct cgroup *c, const char *proc, const char *leaf, const struct cgroup_amounts *a) MUSTCHECK;
/* Into it, with all threads. -1 with errno. */
int cgroup_join(const struct cgroup *c) MUSTCHECK;
/* Of its first folder; 0: there is none. */
unsigned cgroup_version(const struct cgroup *c);
/* Whoever is left in it is killed, and it is given back: cgroup_try_end once, and true when nothing of it is left;
 * the other until then, for a second at most. */
bool cgroup_try_end(struct cgroup *c) MUSTCHECK;
void cgroup_end(struct cgroup *c);
/* The same of all whose name begins so, at the places where cgroup_make would put one: what a process left behind
 * that could not end them. */
void cgroup_sweep(const char *proc, const char *prefix);

#endif
