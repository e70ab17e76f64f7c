/* run --memory --pids --cpus: what they may be, and where a cgroup for them is made. A cgroup file system is not to
 * be had in every place that builds: a directory plays it, in which a new folder gets its files as the kernel gives
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-shim/plan/limits.h"

static char top[] = "/tmp/cs-limits-XXXXXX";
static const char *without; /* a file that new cgroups lack */
static bool busy;           /* cgroups cannot be removed yet */
static pid_t busy_with[2];  /* none of them as long as one of these lives */

static void put(const char *dir, const char *file, const char *text)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static const char *has(const char *dir, const char *file)
{
    static char text[256];
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = '\0';
    assert_int_equal(fclose(f), 0);
    return text;
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    static const char *const files[] = {"cgroup.procs",
                                        "tasks",
                                        "cgroup.kill",
                                        "memory.max",
                                        "memory.swap.max",
                                        "pids.max",
                                        "cpu.max",
                                        "cgroup.freeze",
                                        "cgroup.events",
                                        "freezer.state",
                                        "memory.limit_in_bytes",
                                        "memory.memsw.limit_in_bytes",
                                        "cpu.cfs_period_us",
                                        "cpu.cfs_quota_us",
                                        NULL};
    if (__real_mkdir(path, mode) != 0)
        return -1;
    for (const char *const *f = files; *f; f++)
        if (without == NULL || strcmp(*f, without) != 0)
            put(path, *f, "");
    return 0;
}

/* What the kernel does with a cgroup's files at rmdir. */
int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
    char words[2 * PATH_MAX + 32];
    for (int i = 0; i < 2; i++)
        if (busy_with[i] > 0 && waitpid(busy_with[i], NULL, WNOHANG) != 0)
            busy_with[i] = 0;
    if (busy || busy_with[0] > 0 || busy_with[1] > 0) {
        errno = EBUSY;
        return -1;
    }
    (void)snprintf(words, sizeof(words), "rm -f %s/*.* %s/tasks", path, path);
    assert_int_equal(system(words), 0);
    return __real_rmdir(path);
}

static int begin(void **state)
{
    char path[PATH_MAX], text[PATH_MAX];
    strcpy(top + strlen(top) - 6, "XXXXXX");
    if (!mkdtemp(top))
        return -1;
    without = NULL;
    busy = false;
    memset(busy_with, 0, sizeof(busy_with));
    for (const char *const *d = (const char *const[]){"proc", "fs", "fs/user", "fs/user/app", NULL}; *d; d++) {
        (void)snprintf(path, sizeof(path), "%s/%s", top, *d);
        if (__real_mkdir(path, 0755) != 0)
            return -1;
        put(path, "cgroup.subtree_control", "");
    }
    (void)snprintf(path, sizeof(path), "%s/proc", top);
    (void)snprintf(text, sizeof(text),
                   "22 1 0:20 / /proc rw - proc proc rw\n31 1 0:27 / %s/fs rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
                   top);
    put(path, "mountinfo", text);
    put(path, "cgroup", "4:memory:/old\n0::/user/app\n");
    return 0;
}

static int end(void **state)
{
    char words[PATH_MAX];
    (void)snprintf(words, sizeof(words), "rm -r %s", top);
    return system(words);
}

static const char *at(const char *below)
{
    static char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", top, below);
    return path;
}

static void only_amounts_that_make_sense_are_taken(void **state)
{
    struct limits l = {0};
    struct err e;
    static const char *const bad[] = {"",   "0",   "15M",        "-1",           "+1", " 1G",
                                      "1T", "1Gb", "0x10000000", "99999999999G", NULL};
    for (const char *const *b = bad; *b; b++)
        assert_int_equal(limits_memory(&l, *b, &e), -1);
    assert_int_equal(l.memory, 0);
    assert_int_equal(limits_memory(&l, "16M", &e), 0);
    assert_int_equal(l.memory, 16 << 20);
    assert_int_equal(limits_memory(&l, "4G", &e), 0);
    assert_int_equal(l.memory, UINT64_C(4) << 30);
    assert_int_equal(limits_memory(&l, "16777216", &e), 0);
    assert_int_equal(l.memory, 16 << 20);
    assert_int_equal(limits_pids(&l, "7", &e), -1);
    assert_int_equal(limits_pids(&l, "4194305", &e), -1);
    assert_int_equal(limits_pids(&l, "8", &e), 0);
    assert_int_equal(limits_cpus(&l, "0.001", &e), -1);
    assert_int_equal(limits_cpus(&l, "inf", &e), -1);
    assert_int_equal(limits_cpus(&l, "1025", &e), -1);
    assert_int_equal(limits_cpus(&l, "0.5", &e), 0);
    assert_int_equal(l.cpu_percent, 50);
}

static void a_cgroup_of_ours_is_made_at_the_nearest_place_that_gives_what_is_needed(void **state)
{
    struct limits l = {.memory = 512 << 20, .pids = 100, .cpu_percent = 150};
    struct err e;
    char want[PATH_MAX], made[PATH_MAX];
    put(at("fs"), "cgroup.subtree_control", "cpuset cpu io memory pids\n");
    put(at("fs/user"), "cgroup.subtree_control", "cpu memory pids\n");
    put(at("fs/user/app"), "cgroup.subtree_control", "cpuset memory pids\n"); /* no cpu */
    assert_int_equal(limits_begin(&l, at("proc"), &e), 0);
    (void)snprintf(want, sizeof(want), "%s/fs/user/countersign-run-%d", top, (int)getpid());
    assert_int_equal(l.cgroup.n, 1);
    assert_string_equal(l.cgroup.folder[0].path, want);
    assert_string_equal(has(want, "memory.max"), "536870912");
    assert_string_equal(has(want, "memory.swap.max"), "0");
    assert_string_equal(has(want, "pids.max"), "103"); /* and three of our own */
    assert_string_equal(has(want, "cpu.max"), "150000 100000");
    assert_int_equal(limits_enter(&l), 0);
    assert_string_equal(has(want, "cgroup.procs"), "0");
    strcpy(made, l.cgroup.folder[0].path);
    limits_end(&l);
    assert_int_equal(access(made, F_OK), -1);
    assert_string_equal(has(at("fs/user"), "cgroup.subtree_control"), "cpu memory pids\n");
}

/* Half of what was asked for is not what was asked for. */
static void a_cgroup_that_does_not_take_a_limit_is_none(void **state)
{
    struct limits l = {.pids = 100, .cpu_percent = 100};
    struct err e;
    put(at("fs/user"), "cgroup.subtree_control", "cpu memory pids\n");
    without = "pids.max";
    assert_int_equal(limits_begin(&l, at("proc"), &e), -1);
    assert_non_null(strstr(e.text, "--cpus needs a cgroup"));
    assert_int_equal(l.cgroup.n, 0);
    without = "memory.swap.max"; /* a kernel without swap has no such file */
    l.memory = 64 << 20;
    assert_int_equal(limits_begin(&l, at("proc"), &e), 0);
    limits_end(&l);
}

/* Version 1: a hierarchy for each, mounted where it likes; what none of them has is version 2's. */
static void mount_version_1(const char *cpu)
{
    char text[4 * PATH_MAX], path[PATH_MAX];
    for (const char *const *d = (const char *const[]){"m", "m/own", "p", "p/own", "c", NULL}; *d; d++) {
        (void)snprintf(path, sizeof(path), "%s/fs/%s", top, *d);
        assert_int_equal(__real_mkdir(path, 0755), 0);
    }
    (void)snprintf(
        text, sizeof(text),
        "40 1 0:40 / %s/fs/m rw - cgroup cgroup rw,memory\n41 1 0:41 / %s/fs/p rw - cgroup x rw,hugetlb,pids\n"
        "42 1 0:42 %s %s/fs/c rw - cgroup cgroup rw,cpu,cpuacct\n31 1 0:27 / %s/fs rw - cgroup2 c rw\n",
        top, top, cpu, top, top);
    put(at("proc"), "mountinfo", text);
    put(at("proc"), "cgroup", "4:memory:/own\n3:hugetlb,pids:/own\n2:cpu,cpuacct:/\n0::/user/app\n");
}

static void a_folder_in_each_hierarchy_of_version_1_is_made(void **state)
{
    struct limits l = {.memory = 512 << 20, .pids = 100, .cpu_percent = 150};
    struct err e;
    char leaf[64];
    mount_version_1("/");
    assert_int_equal(limits_begin(&l, at("proc"), &e), 0);
    assert_int_equal(l.cgroup.n, 3);
    (void)snprintf(leaf, sizeof(leaf), "fs/m/own/countersign-run-%d", (int)getpid());
    assert_string_equal(l.cgroup.folder[0].path, at(leaf));
    assert_string_equal(has(at(leaf), "memory.limit_in_bytes"), "536870912");
    assert_string_equal(has(at(leaf), "memory.memsw.limit_in_bytes"), "536870912");
    assert_string_equal(has(l.cgroup.folder[1].path, "pids.max"), "103");
    assert_string_equal(has(l.cgroup.folder[2].path, "cpu.cfs_quota_us"), "150000");
    assert_string_equal(has(l.cgroup.folder[2].path, "cpu.cfs_period_us"), "100000");
    assert_int_equal(limits_enter(&l), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(has(l.cgroup.folder[i].path, "tasks"), "0");
    limits_end(&l);
    assert_int_equal(access(at(leaf), F_OK), -1);
    (void)snprintf(leaf, sizeof(leaf), "fs/p/own/countersign-run-%d", (int)getpid());
    assert_int_equal(access(at(leaf), F_OK), -1);
}

static pid_t waiting(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    assert_true(pid > 1);
    return pid;
}

/* A list that is longer than what is read of it: its last number is cut, and another process has that one. */
static void half_a_number_is_nobodys(void **state)
{
    enum { READ = 64 * 1024 - 1 };
    static char text[READ + 16];
    struct limits l = {.memory = 64 << 20};
    struct err e;
    char number[16];
    int status;
    mount_version_1("/");
    assert_int_equal(limits_begin(&l, at("proc"), &e), 0);
    pid_t theirs = waiting(), ours = waiting();
    int n = snprintf(text, sizeof(text), "%d\n", (int)ours);
    int last = snprintf(number, sizeof(number), "%d", (int)theirs);
    memset(text + n, '\n', (size_t)(READ - n - last));
    memcpy(text + READ - last, number, (size_t)last);
    memcpy(text + READ, "7\n", 3); /* what is not read */
    put(l.cgroup.folder[0].path, "cgroup.procs", text);
    limits_end(&l);
    assert_int_equal(waitpid(ours, &status, 0), ours);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(kill(theirs, SIGTERM), 0);
    assert_int_equal(waitpid(theirs, &status, 0), theirs);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* Version 2 of an older kernel. */
static void without_a_file_that_kills_each_one_is_killed(void **state)
{
    struct limits l = {.pids = 100};
    struct err e;
    char text[16];
    int status;
    without = "cgroup.kill";
    put(at("fs/user/app"), "cgroup.subtree_control", "pids\n");
    assert_int_equal(limits_begin(&l, at("proc"), &e), 0);
    pid_t ours = waiting();
    (void)snprintf(text, sizeof(text), "%d\n", (int)ours);
    put(l.cgroup.folder[0].path, "cgroup.procs", text);
    limits_end(&l);
    assert_int_equal(kill(ours, SIGTERM), 0); /* of no use to who is killed already, and else the end of this test */
    assert_int_equal(waitpid(ours, &status, 0), ours);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A controller whose hierarchy is not mounted as a whole may be version 2's; if it is not, nothing is held by halves.
 */
static void what_version_1_lacks_is_looked_for_in_version_2(void **state)
{
    struct limits l = {.memory = 64 << 20, .cpu_percent = 50};
    struct err e;
    char leaf[64];
    mount_version_1("/part");
    put(at("fs/user/app"), "cgroup.subtree_control", "cpu\n");
    assert_int_equal(limits_begin(&l, at("proc"), &e), 0);
    assert_int_equal(l.cgroup.n, 2);
    (void)snprintf(leaf, sizeof(leaf), "fs/user/app/countersign-run-%d", (int)getpid());
    assert_string_equal(l.cgroup.folder[1].path, at(leaf));
    assert_string_equal(has(at(leaf), "cpu.max"), "50000 100000");
    assert_string_equal(has(at(leaf), "memory.max"), ""); /* version 1 has it */
    limits_end(&l);
    put(at("fs/user/app"), "cgroup.subtree_control", "io\n");
    assert_int_equal(limits_begin(&l, at("proc"), &e), -1);
    assert_int_equal(l.cgroup.n, 0);
    (void)snprintf(leaf, sizeof(leaf), "fs/m/own/countersign-run-%d", (int)getpid());
    assert_int_equal(access(at(leaf), F_OK), -1);
}

/* Looked at one by one: what strict asks for is all of it at once. */
static void what_this_machine_can_hold_is_said(void **state)
{
    char said[128];
    mount_version_1("/part");
    put(at("fs/user/app"), "cgroup.subtree_control", "cpu\n");
    assert_true(limits_here(at("proc"), said, sizeof(said)));
    assert_string_equal(said, "memory by cgroup v1, processes by cgroup v1, CPU by cgroup v2");
    put(at("fs/user/app"), "cgroup.subtree_control", "io\n");
    assert_false(limits_here(at("proc"), said, sizeof(said)));
    assert_string_equal(said, "memory by cgroup v1, processes by cgroup v1, CPU by none");
    put(at("proc"), "mountinfo", "");
    assert_false(limits_here(at("proc"), said, sizeof(said)));
    assert_string_equal(said, "memory by none, processes by none, CPU by none");
    (void)snprintf(said, sizeof(said), "fs/m/own/countersign-look-%d", (int)getpid());
    assert_int_equal(access(at(said), F_OK), -1); /* nothing is left */
}

/* Whose processes all stop: in version 2 the folder that holds them, in version 1 one of a hierarchy of its own. */
static void what_freezes_is_made_with_it(void **state)
{
    const struct cgroup_amounts a = {.memory = 64 << 20, .freezes = true};
    struct cgroup c;
    put(at("fs/user/app"), "cgroup.subtree_control", "memory\n");
    assert_true(cgroup_make(&c, at("proc"), "leaf", &a));
    assert_int_equal(c.n, 1);
    assert_int_equal(cgroup_freezer(&c), 2);
    assert_int_equal(cgroup_freeze(&c, true), 0);
    assert_string_equal(has(c.folder[0].path, "cgroup.freeze"), "1");
    put(c.folder[0].path, "cgroup.events", "populated 1\nfrozen 0\n");
    assert_int_equal(cgroup_frozen(&c), 0);
    put(c.folder[0].path, "cgroup.events", "populated 1\nfrozen 1\n");
    assert_int_equal(cgroup_frozen(&c), 1);
    assert_int_equal(cgroup_freeze(&c, false), 0);
    assert_string_equal(has(c.folder[0].path, "cgroup.freeze"), "0");
    cgroup_end(&c);
    without = "cgroup.freeze"; /* an older kernel */
    assert_true(cgroup_make(&c, at("proc"), "leaf", &a));
    assert_int_equal(cgroup_freeze(&c, true), -1);
    cgroup_end(&c);
}

static void what_is_used_is_read_where_it_is_counted(void **state)
{
    const struct cgroup_amounts a = {.memory = 64 << 20, .pids = 10, .counts = true};
    char text[4 * PATH_MAX];
    struct cgroup_usage u;
    struct cgroup c;
    put(at("fs/user/app"), "cgroup.subtree_control", "memory pids\n");
    assert_true(cgroup_make(&c, at("proc"), "leaf", &a));
    put(c.folder[0].path, "memory.current", "1000\n");
    put(c.folder[0].path, "memory.stat", "anon 5\nshmem_thp 9\nshmem 77\nfile 3\n");
    put(c.folder[0].path, "pids.current", "12\n");
    put(c.folder[0].path, "cpu.stat", "usage_usec 555\nuser_usec 1\n");
    cgroup_usage(&c, &u);
    assert_true(u.memory == 1000 && u.files == 77 && u.pids == 12 && u.cpu_us == 555);
    assert_true(u.peak == UINT64_MAX); /* an older kernel */
    cgroup_end(&c);
    mount_version_1("/");
    assert_int_equal(__real_mkdir(at("fs/a"), 0755), 0);
    (void)snprintf(text, sizeof(text),
                   "40 1 0:40 / %s/fs/m rw - cgroup c rw,memory\n41 1 0:41 / %s/fs/p rw - cgroup c rw,pids\n"
                   "44 1 0:44 / %s/fs/a rw - cgroup c rw,cpuacct\n",
                   top, top, top);
    put(at("proc"), "mountinfo", text);
    put(at("proc"), "cgroup", "5:cpuacct:/\n4:memory:/own\n3:pids:/own\n");
    assert_true(cgroup_make(&c, at("proc"), "leaf", &a));
    put(at("fs/m/own/leaf"), "memory.usage_in_bytes", "2000\n");
    put(at("fs/m/own/leaf"), "memory.max_usage_in_bytes", "3000\n");
    put(at("fs/m/own/leaf"), "memory.stat", "cache 1\n");
    put(at("fs/p/own/leaf"), "pids.current", "7\n");
    put(at("fs/a/leaf"), "cpuacct.usage", "9999000\n");
    cgroup_usage(&c, &u);
    assert_true(u.memory == 2000 && u.peak == 3000 && u.pids == 7 && u.cpu_us == 9999 && u.files == UINT64_MAX);
    cgroup_end(&c);
    cgroup_usage(&c, &u); /* none */
    assert_true(u.memory == UINT64_MAX && u.pids == UINT64_MAX && u.cpu_us == UINT64_MAX);
}

static void mount_version_1_with_a_freezer(void)
{
    char text[4 * PATH_MAX];
    mount_version_1("/");
    assert_int_equal(__real_mkdir(at("fs/f"), 0755), 0);
    assert_int_equal(__real_mkdir(at("fs/a"), 0755), 0);
    (void)snprintf(text, sizeof(text),
                   "40 1 0:40 / %s/fs/m rw - cgroup cgroup rw,memory\n43 1 0:43 / %s/fs/f rw - cgroup c rw,freezer\n"
                   "44 1 0:44 / %s/fs/a rw - cgroup c rw,cpuacct\n",
                   top, top, top);
    put(at("proc"), "mountinfo", text);
    put(at("proc"), "cgroup", "6:cpuacct:/\n5:freezer:/\n4:memory:/own\n");
}

static void what_is_frozen_dies_before_it_goes_on(void **state)
{
    struct cgroup_amounts a = {.memory = 64 << 20};
    struct cgroup c;
    char text[16];
    int status;
    mount_version_1_with_a_freezer();
    assert_true(cgroup_make(&c, at("proc"), "leaf", &a));
    assert_int_equal(c.n, 1); /* who does not ask for it has none */
    assert_int_equal(cgroup_freezer(&c), 0);
    assert_int_equal(cgroup_freeze(&c, true), -1);
    assert_int_equal(cgroup_frozen(&c), -1);
    cgroup_end(&c);
    a.freezes = a.counts = true;
    assert_true(cgroup_make(&c, at("proc"), "leaf", &a));
    assert_int_equal(c.n, 3); /* of which the last one does not freeze */
    assert_int_equal(cgroup_freezer(&c), 1);
    assert_int_equal(cgroup_freeze(&c, true), 0);
    assert_string_equal(has(at("fs/f/leaf"), "freezer.state"), "FROZEN");
    put(at("fs/f/leaf"), "freezer.state", "FREEZING\n");
    assert_int_equal(cgroup_frozen(&c), 0);
    put(at("fs/f/leaf"), "freezer.state", "FROZEN\n");
    assert_int_equal(cgroup_frozen(&c), 1);
    pid_t ours = waiting();
    (void)snprintf(text, sizeof(text), "%d\n", (int)ours);
    put(at("fs/f/leaf"), "cgroup.procs", text);
    busy = true;
    assert_false(cgroup_try_end(&c));
    assert_string_equal(has(at("fs/f/leaf"), "freezer.state"), "THAWED\n"); /* over the longer word of the kernel's */
    assert_int_equal(waitpid(ours, &status, 0), ours);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    busy = false;
    assert_true(cgroup_try_end(&c));
    assert_int_equal(access(at("fs/f/leaf"), F_OK), -1);
    assert_true(cgroup_make(&c, at("proc"), "leaf", &a)); /* what an earlier gateway left behind */
    assert_int_equal(cgroup_freeze(&c, true), 0);
    cgroup_sweep(at("proc"), "lea");
    assert_int_equal(access(at("fs/f/leaf"), F_OK), -1);
    without = "freezer.state"; /* a folder of another user's, say */
    assert_true(cgroup_make(&c, at("proc"), "leaf", &a));
    assert_int_equal(cgroup_freeze(&c, true), -1);
    cgroup_end(&c);
}

/* Of many that an earlier gateway left behind, none is waited for before each is killed. */
static void all_that_was_left_behind_ends_together(void **state)
{
    static const char *const leaf[] = {"leaf-1", "leaf-2"};
    struct cgroup_amounts a = {.memory = 64 << 20};
    struct cgroup c;
    char text[16], path[32];
    mount_version_1_with_a_freezer();
    a.freezes = true;
    for (int i = 0; i < 2; i++) {
        busy_with[i] = waiting();
        assert_true(cgroup_make(&c, at("proc"), leaf[i], &a));
        (void)snprintf(text, sizeof(text), "%d\n", (int)busy_with[i]);
        (void)snprintf(path, sizeof(path), "fs/f/%s", leaf[i]);
        put(at(path), "cgroup.procs", text);
    }
    cgroup_sweep(at("proc"), "leaf-");
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "fs/f/%s", leaf[i]);
        assert_int_equal(access(at(path), F_OK), -1);
    }
}

static void without_one_memory_is_limited_for_each_process(void **state)
{
    struct limits l = {.memory = 64 << 20};
    struct err e;
    char said[512];
    put(at("proc"), "mountinfo",
        "31 1 0:27 / /x rw - tmpfs cgroup2 rw\n32 1 0:28 /part /y rw - cgroup2 cgroup2 rw\n");
    assert_int_equal(limits_begin(&l, at("proc"), &e), 0);
    assert_int_equal(l.cgroup.n, 0);
    limits_say(&l, said, sizeof(said));
    assert_non_null(strstr(said, "memory is that of each process"));
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit is;
        _exit(limits_enter(&l) != 0 || getrlimit(RLIMIT_DATA, &is) != 0 || is.rlim_cur != 64 << 20);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    l.pids = 20; /* root's are counted by nothing else */
    assert_int_equal(limits_begin(&l, at("proc"), &e), geteuid() == 0 ? -1 : 0);
    l = (struct limits){0};
    limits_say(&l, said, sizeof(said));
    assert_string_equal(said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_amounts_that_make_sense_are_taken),
        cmocka_unit_test_setup_teardown(a_cgroup_of_ours_is_made_at_the_nearest_place_that_gives_what_is_needed,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_cgroup_that_does_not_take_a_limit_is_none, begin, end),
        cmocka_unit_test_setup_teardown(a_folder_in_each_hierarchy_of_version_1_is_made, begin, end),
        cmocka_unit_test_setup_teardown(half_a_number_is_nobodys, begin, end),
        cmocka_unit_test_setup_teardown(without_a_file_that_kills_each_one_is_killed, begin, end),
        cmocka_unit_test_setup_teardown(what_version_1_lacks_is_looked_for_in_version_2, begin, end),
        cmocka_unit_test_setup_teardown(what_this_machine_can_hold_is_said, begin, end),
        cmocka_unit_test_setup_teardown(what_freezes_is_made_with_it, begin, end),
        cmocka_unit_test_setup_teardown(what_is_used_is_read_where_it_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(what_is_frozen_dies_before_it_goes_on, begin, end),
        cmocka_unit_test_setup_teardown(all_that_was_left_behind_ends_together, begin, end),
        cmocka_unit_test_setup_teardown(without_one_memory_is_limited_for_each_process, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
