/* All that came from one process, as /proc shows it, stopped and continued by signals: for who has no cgroup that
 * freezes. It is looked for again and again until nothing of it runs any more; who is told is known by more than its
 * number, which the next process may have. */
#ifndef COMMON_ROLE_FAMILY_H
#define COMMON_ROLE_FAMILY_H

#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

enum { FAMILY_MAX = 32768 /* processes of this machine that are looked through */ };

/* One round: who of it runs is told to stop (SIGSTOP); the process itself is not. 1: all stand, and after they were
 * seen to, nobody else was there whom one of them had started. 0: somebody ran, or one that is there, whoever's,
 * could not be looked at, as when it ended before. -1: that cannot be seen, as there are too many, or none that came
 * from it. */
int family_stop(pid_t from) MUSTCHECK;
/* Who stands still goes on, also who had stopped by itself. -1: as above. */
int family_continue(pid_t from) MUSTCHECK;

/* What it uses, UINT64_MAX each if that cannot be seen: what processes share is counted for each of them. */
struct family_usage {
    uint64_t memory; /* bytes */
    uint64_t pids;   /* processes and threads */
    uint64_t cpu_us; /* those that have ended included, where another one of it waited for them */
};
/* Of n of these, in one look. */
void family_usage(const pid_t *from, size_t n, struct family_usage *u);

#endif
