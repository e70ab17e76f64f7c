#include "sandbox-shim/plan/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    MIB = 1024 * 1024,
    MEMORY_MIN_MIB = 16,
    PIDS_MIN = 8,
    PIDS_MAX = 4194304,
    CPUS_MAX = 1024,
    OURS = 3, /* bubblewrap twice, and the shim */
};

/* --- what was asked for --------------------------------------------------- */

int limits_bytes(uint64_t *to, const char *option, const char *value, unsigned least_mib, struct err *e)
{
    static const char units[] = "KMG";
    char *end;
    unsigned long long n = value[0] >= '0' && value[0] <= '9' ? strtoull(value, &end, 10) : 0;
    const char *unit = n && *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

    if (n == 0 || (*end && (!unit || end[1])) || n > (UINT64_MAX >> 1) >> shift ||
        n << shift < (uint64_t)least_mib * MIB)
        return err_set(e, "%s %s is not an amount of at least %uM, like 512M or 4G", option, value, least_mib);
    *to = (uint64_t)n << shift;
    return 0;
}

int limits_memory(struct limits *l, const char *value, struct err *e)
{
    return limits_bytes(&l->memory, "--memory", value, MEMORY_MIN_MIB, e);
}

int limits_pids(struct limits *l, const char *value, struct err *e)
{
    char *end;
    unsigned long long n = value[0] >= '0' && value[0] <= '9' ? strtoull(value, &end, 10) : 0;

    if (n < PIDS_MIN || n > PIDS_MAX || *end)
        return err_set(e, "--pids %s is not a number from %d to %d", value, PIDS_MIN, PIDS_MAX);
    l->pids = n;
    return 0;
}

int limits_cpus(struct limits *l, const char *value, struct err *e)
{
    char *end;
    double n = value[0] >= '0' && value[0] <= '9' && !strpbrk(value, "xXeEpP") ? strtod(value, &end) : 0;

    if (!(n >= 0.01 && n <= CPUS_MAX) || *end)
        return err_set(e, "--cpus %s is not a number of CPUs, like 2 or 0.5", value);
    l->cpu_percent = (uint64_t)(n * 100 + 0.5);
    return 0;
}

/* --- what holds it ---------------------------------------------------------- */

int limits_begin(struct limits *l, const char *proc, struct err *e)
{
    const struct cgroup_amounts a = {
        .memory = l->memory, .pids = l->pids ? l->pids + OURS : 0, .cpu_percent = l->cpu_percent};
    char leaf[32];

    (void)snprintf(leaf, sizeof(leaf), "countersign-run-%d", (int)getpid());
    if ((!l->memory && !l->pids && !l->cpu_percent) || cgroup_make(&l->cgroup, proc, leaf, &a))
        return 0;
    if (l->cpu_percent)
        return err_set(e, "--cpus needs a cgroup that lets its children have the cpu controller, and there is none "
                          "here for this user (systemd gives one: `systemd-run --user --scope`)");
    if (l->pids && geteuid() == 0)
        return err_set(e, "--pids needs a cgroup that lets its children have the pids controller, and there is none "
                          "here; root's processes are counted by nothing else");
    return 0;
}

/* --- in the sandbox's process, and after it ------------------------------- */

int limits_enter(const struct limits *l)
{
    /* What it may write to, not what it may reserve: runtimes reserve much more than they use. */
    const struct rlimit memory = {.rlim_cur = l->memory, .rlim_max = l->memory};

    if (l->cgroup.n > 0)
        return cgroup_join(&l->cgroup);
    return l->memory ? setrlimit(RLIMIT_DATA, &memory) : 0;
}

void limits_say(const struct limits *l, char *out, size_t room)
{
    char memory[32] = "", pids[48] = "", cpus[48] = "";

    out[0] = '\0';
    if (!l->memory && !l->pids && !l->cpu_percent)
        return;

    if (l->memory)
        (void)snprintf(memory, sizeof(memory), " memory %llu MiB", (unsigned long long)l->memory / MIB);
    if (l->pids)
        (void)snprintf(pids, sizeof(pids), " processes %llu", (unsigned long long)l->pids);
    if (l->cpu_percent)
        (void)snprintf(cpus, sizeof(cpus), " cpus %llu.%02llu", (unsigned long long)l->cpu_percent / 100,
                       (unsigned long long)l->cpu_percent % 100);
    (void)snprintf(out, room, "limits:%s%s%s, %s%s", memory, pids, cpus,
                   l->cgroup.n > 0 ? "of all together, by the cgroup "
                   : l->memory     ? "by rlimits: memory is that of each process, for want of a cgroup"
                                   : "by rlimits, for want of a cgroup",
                   l->cgroup.n > 0 ? l->cgroup.folder[0].path : "");
}

/* The version of the cgroup that holds these here; 0: none does. */
static unsigned held_by(const char *proc, const struct cgroup_amounts *a)
{
    struct cgroup c;
    char leaf[48];

    (void)snprintf(leaf, sizeof(leaf), "countersign-look-%d", (int)getpid());
    unsigned version = cgroup_make(&c, proc, leaf, a) ? cgroup_version(&c) : 0;
    cgroup_end(&c);
    return version;
}

bool limits_here(const char *proc, char *out, size_t room)
{
    static const struct cgroup_amounts all = {
        .memory = (uint64_t)MEMORY_MIN_MIB * MIB, .pids = PIDS_MIN, .cpu_percent = 100};
    static const struct {
        const char *name;
        struct cgroup_amounts a;
    } each[] = {{"memory", {.memory = (uint64_t)MEMORY_MIN_MIB * MIB}},
                {", processes", {.pids = PIDS_MIN}},
                {", CPU", {.cpu_percent = 100}}};

    out[0] = '\0';
    for (size_t i = 0, n = 0; i < sizeof(each) / sizeof(each[0]) && n < room; i++) {
        unsigned version = held_by(proc, &each[i].a);
        n += (size_t)snprintf(out + n, room - n, "%s by %s", each[i].name,
                              version == 0   ? "none"
                              : version == 1 ? "cgroup v1"
                                             : "cgroup v2");
    }
    return held_by(proc, &all) > 0;
}

void limits_end(struct limits *l)
{
    cgroup_end(&l->cgroup);
}
