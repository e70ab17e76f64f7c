/* What a sandbox may use: memory, processes, CPU. Held by a cgroup of its own where this machine lets us make
 * one, else by limits of each process, which hold less; never by nothing. */
#ifndef SANDBOX_SHIM_RUN_LIMITS_H
#define SANDBOX_SHIM_RUN_LIMITS_H

#include "common/err.h"
#include "common/role/cgroup.h"

struct limits {
    uint64_t memory;      /* bytes; 0, also of the others: no limit */
    uint64_t pids;        /* processes and threads */
    uint64_t cpu_percent; /* of one CPU */
    struct cgroup cgroup; /* ours, to be given back; of none: not held so */
};

/* An amount of bytes like 512M or 4G (K, M, G), of at least so many MiB. -1 in words that name the option. */
int limits_bytes(uint64_t *to, const char *option, const char *value, unsigned least_mib, struct err *e) MUSTCHECK;
/* --memory 512M (at least 16M), --pids 200 (8 to 4194304), --cpus 1.5 (0.01 to 1024). -1 in words. */
int limits_memory(struct limits *l, const char *value, struct err *e) MUSTCHECK;
int limits_pids(struct limits *l, const char *value, struct err *e) MUSTCHECK;
int limits_cpus(struct limits *l, const char *value, struct err *e) MUSTCHECK;

/* Decide what holds them, and make the cgroup. proc: /proc/self, or what a test has in its place. -1 in words: one of
 * them cannot be held here. */
int limits_begin(struct limits *l, const char *proc, struct err *e) MUSTCHECK;
/* In the child that becomes the sandbox: into the cgroup, or each process's memory limited. The processes are then
 * limited inside (countersign-shim --processes), where they alone are counted. -1 with errno. */
int limits_enter(const struct limits *l) MUSTCHECK;
/* What holds them: "limits: memory 512 MiB processes 200, of all together, by the cgroup ..."; empty: there are none.
 */
void limits_say(const struct limits *l, char *out, size_t room);
/* By what each could be held here: "memory by cgroup v1, processes by cgroup v1, CPU by none". A cgroup is made for
 * each and given back. True: one holds all of them, as `limits: strict` wants. proc: as above, or that of another
 * process. */
bool limits_here(const char *proc, char *out, size_t room) MUSTCHECK;
/* Whoever is left in the cgroup is killed, and it is given back. */
void limits_end(struct limits *l);

#endif
