/* One cgroup for one sandbox, in whichever of the two versions this machine has: a folder for each controller
 * (version 1), or one for all that is held (2), or some of each. */
#ifndef COMMON_ROLE_CGROUP_H
#define COMMON_ROLE_CGROUP_H

#include "common/err.h"

enum { CGROUP_FOLDERS = 5, CGROUP_PATH = 1024 };
/* What a folder holds, as bits. */
enum { CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4, CGROUP_FREEZER = 8, CGROUP_COUNTER = 16 };

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
    bool freezes, counts;               /* it is to be frozen, its CPU time counted, if that can be done here */
};

/* What is used in it; UINT64_MAX: that is not counted. */
struct cgroup_usage {
    uint64_t memory, peak; /* bytes, now and at most */
    uint64_t files;        /* bytes of the memory that are files in memory, and what processes share */
    uint64_t pids;         /* processes and threads */
    uint64_t cpu_us;       /* since it was made */
};

/* Make one that holds all of these, with this name, below where we are; for version 2 at the nearest place above that
 * gives its children what is needed, and nothing of that place is changed. proc: /proc/self, or what a test has in
 * its place. False: not all of them can be held here, and nothing was left behind. */
bool cgroup_make(struct cgroup *c, const char *proc, const char *leaf, const struct cgroup_amounts *a) MUSTCHECK;
/* Into it; for who has one thread, as after a fork. -1 with errno. */
int cgroup_join(const struct cgroup *c) MUSTCHECK;
/* Of its first folder; of the one that freezes; 0: there is none. */
unsigned cgroup_version(const struct cgroup *c);
unsigned cgroup_freezer(const struct cgroup *c);
/* All that is in it stops where it is, also what is started meanwhile, or goes on. -1: nothing of it freezes, or
 * errno says why. */
int cgroup_freeze(const struct cgroup *c, bool on) MUSTCHECK;
/* Has all of it stopped? 1, or 0 not yet, or -1 that cannot be known. */
int cgroup_frozen(const struct cgroup *c) MUSTCHECK;
void cgroup_usage(const struct cgroup *c, struct cgroup_usage *u);
/* Whoever is left in it is killed, frozen or not, and it is given back: cgroup_try_end once, and true when nothing of
 * it is left; the other until then, for a second at most. */
bool cgroup_try_end(struct cgroup *c) MUSTCHECK;
void cgroup_end(struct cgroup *c);
/* The same of all whose name begins so, at the places where cgroup_make would put one: what a process left behind
 * that could not end them. Waits up to ten seconds for all of them together. */
void cgroup_sweep(const char *proc, const char *prefix);

#endif
