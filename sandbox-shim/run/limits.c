#include "sandbox-shim/run/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FILE_MAX = 64 * 1024,
    MIB = 1024 * 1024,
    MEMORY_MIN_MIB = 16,
    PIDS_MIN = 8,
    PIDS_MAX = 4194304,
    CPUS_MAX = 1024,
    CPU_PERIOD_US = 100000,
    DIR_ROOM = PATH_MAX + 32,
    FILE_ROOM = DIR_ROOM + 32,
    OURS = 3, /* bubblewrap twice, and the shim */
    END_TRIES = 100,
};

/* --- what was asked for --------------------------------------------------- */

int limits_memory(struct limits *l, const char *value, struct err *e)
{
    static const char units[] = "KMG";
    char *end;
    unsigned long long n = value[0] >= '0' && value[0] <= '9' ? strtoull(value, &end, 10) : 0;
    const char *unit = n && *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

    if (n == 0 || (*end && (!unit || end[1])) || n > (UINT64_MAX >> 1) >> shift ||
        n << shift < (uint64_t)MEMORY_MIN_MIB * MIB)
        return err_set(e, "--memory %s is not an amount of at least 16M, like 512M or 4G", value);
    l->memory = (uint64_t)n << shift;
    return 0;
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

/* --- where a cgroup of ours may be ---------------------------------------- */

/* NUL-terminated. -1 with errno. */
static int read_file(const char *path, char out[FILE_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got = -1;

    if (fd < 0)
        return -1;
    while (n < FILE_MAX - 1 && (got = read(fd, out + n, FILE_MAX - 1 - n)) > 0)
        n += (size_t)got;
    close(fd);
    out[n] = '\0';
    return got < 0 ? -1 : 0;
}

/* ID PARENT DEV ROOT POINT OPTIONS ... - cgroup2 ...: where it is mounted. */
static int find_mount(char *mountinfo, char point[PATH_MAX])
{
    char *rest = mountinfo, *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        char root[PATH_MAX];
        if (strstr(line, " - cgroup2 ") && sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2 &&
            strcmp(root, "/") == 0)
            return 0;
    }
    return -1;
}

/* The line 0::PATH. */
static int find_own(char *cgroup, char path[PATH_MAX])
{
    char *rest = cgroup, *line;

    while ((line = strsep(&rest, "\n")) != NULL)
        if (strncmp(line, "0::/", 4) == 0 && strlen(line + 3) < PATH_MAX && !strstr(line, "/..")) {
            memcpy(path, line + 3, strlen(line + 3) + 1);
            return 0;
        }
    return -1;
}

/* Is this word one of those in the list? */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

static int write_value(const char *dir, const char *file, const char *value)
{
    char path[FILE_ROOM];
    int fd, rc;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    rc = write(fd, value, strlen(value)) == (ssize_t)strlen(value) ? 0 : -1;
    close(fd);
    return rc;
}

static int set_values(const struct limits *l, const char *dir)
{
    char value[64];

    (void)snprintf(value, sizeof(value), "%llu", (unsigned long long)l->memory);
    if (l->memory && (write_value(dir, "memory.max", value) != 0 ||
                      (write_value(dir, "memory.swap.max", "0") != 0 && errno != ENOENT))) /* no swap, no file */
        return -1;
    (void)snprintf(value, sizeof(value), "%llu", (unsigned long long)l->pids + OURS);
    if (l->pids && write_value(dir, "pids.max", value) != 0)
        return -1;
    (void)snprintf(value, sizeof(value), "%llu %d", (unsigned long long)l->cpu_percent * (CPU_PERIOD_US / 100),
                   CPU_PERIOD_US);
    return l->cpu_percent ? write_value(dir, "cpu.max", value) : 0;
}

/* One of ours below dir, if its children are given what we need. Nothing of dir's own is changed. */
static bool make_below(struct limits *l, const char *dir)
{
    char path[FILE_ROOM], has[FILE_MAX];

    (void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
    if (read_file(path, has) != 0 || (l->memory && !has_word(has, "memory")) || (l->pids && !has_word(has, "pids")) ||
        (l->cpu_percent && !has_word(has, "cpu")))
        return false;
    int n = snprintf(path, sizeof(path), "%s/countersign-run-%d", dir, (int)getpid());
    if (n <= 0 || n >= PATH_MAX || mkdir(path, 0755) != 0)
        return false;
    if (set_values(l, path) == 0) {
        memcpy(l->cgroup, path, (size_t)n + 1);
        return true;
    }
    (void)rmdir(path);
    return false;
}

/* From where we are upwards: the first place that lets us. */
static bool make_cgroup(struct limits *l, const char *proc)
{
    char path[DIR_ROOM], text[FILE_MAX], point[PATH_MAX], own[PATH_MAX];
    bool made = false;

    (void)snprintf(path, sizeof(path), "%s/mountinfo", proc);
    if (read_file(path, text) != 0 || find_mount(text, point) != 0)
        return false;
    (void)snprintf(path, sizeof(path), "%s/cgroup", proc);
    if (read_file(path, text) != 0 || find_own(text, own) != 0)
        return false;
    for (;;) {
        int n = snprintf(path, sizeof(path), "%s%s", point, strcmp(own, "/") == 0 ? "" : own);
        if (n > 0 && n < PATH_MAX - 32 && (made = make_below(l, path)))
            break;
        if (strcmp(own, "/") == 0 || own[0] == '\0')
            break;
        *strrchr(own, '/') = '\0';
    }
    return made;
}

int limits_begin(struct limits *l, const char *proc, struct err *e)
{
    if ((!l->memory && !l->pids && !l->cpu_percent) || make_cgroup(l, proc))
        return 0;
    if (l->cpu_percent)
        return err_set(e, "--cpus needs a cgroup (v2) that lets its children have the cpu controller, and there is "
                          "none here for this user (systemd gives one: `systemd-run --user --scope`)");
    if (l->pids && geteuid() == 0)
        return err_set(e, "--pids needs a cgroup (v2) that lets its children have the pids controller, and there is "
                          "none here; root's processes are counted by nothing else");
    return 0;
}

/* --- in the sandbox's process, and after it ------------------------------- */

int limits_enter(const struct limits *l)
{
    /* What it may write to, not what it may reserve: runtimes reserve much more than they use. */
    const struct rlimit memory = {.rlim_cur = l->memory, .rlim_max = l->memory};

    if (l->cgroup[0])
        return write_value(l->cgroup, "cgroup.procs", "0");
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
                   l->cgroup[0] ? "of all together, by the cgroup "
                   : l->memory  ? "by rlimits: memory is that of each process, for want of a cgroup"
                                : "by rlimits, for want of a cgroup",
                   l->cgroup);
}

void limits_end(struct limits *l)
{
    static const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};

    if (!l->cgroup[0])
        return;
    (void)write_value(l->cgroup, "cgroup.kill", "1");
    for (int i = 0; i < END_TRIES && rmdir(l->cgroup) != 0 && errno == EBUSY; i++)
        (void)nanosleep(&moment, NULL);
    l->cgroup[0] = '\0';
}
