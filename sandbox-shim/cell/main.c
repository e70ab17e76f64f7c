/* countersign-start-cell: becomes one command's own walls in a sandbox of the warden's.
 *
 * The parent starts it, in the sandbox's cgroup, at the /proc folder of the sandbox's first process; it is the
 * sandbox's own user, who has all rights over namespaces that it made itself and none elsewhere. Descriptor 3 is the
 * warden's, which says one command to what this becomes.
 *
 *   namespaces  users, mounts, name of the host, cgroups: the sandbox's · processes, network, IPC: its own, made from
 *               outside, so that those of processes lie beside each other: neither sees or signals the other's
 *   rights      those of a command in the sandbox: none, and the same system calls */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "common/role/role.h"
#include "sandbox-shim/cell/places.h"
#include "sandbox-shim/env.h"
#include "sandbox-shim/plan/filter.h"
#include "sandbox-shim/plan/plan.h"

enum { WARDEN_FD = 3, VARIABLES_MAX = 256 * 1024, FILTER_MAX = 4096, CAPS_LAST = 63 };

struct cell {
    int user, mounts, name, cgroup; /* the sandbox's namespaces */
    int listener, shim, filter;
    struct cell_trust trust;
    struct dynbuf variables;                /* of its image, each with its NUL */
    unsigned long long files, pids, memory; /* 0: no limit of its own */
    unsigned parts;                         /* of the sandbox's files in memory, one is its */
};

/* --- what is opened while it may be -------------------------------------------------- */

static int open_one(const char *path, int flags, int *fd, struct err *e)
{
    *fd = open(path, flags | O_CLOEXEC);
    return *fd >= 0 ? 0 : err_errno(e, "%s cannot be opened", path);
}

static int trust_open(const char *name, int *fd, struct err *e)
{
    const char *dir = getenv("COUNTERSIGN_TRUST");
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", dir ? dir : "", name);

    return dir && n > 0 && (size_t)n < sizeof(path) ? open_one(path, O_RDONLY, fd, e)
                                                    : err_set(e, "whom to trust was not said");
}

/* Where it was started: the first process of the sandbox, as /proc shows it. */
static int sandbox_open(struct cell *c, struct err *e)
{
    return open_one("ns/user", O_RDONLY, &c->user, e) != 0 || open_one("ns/mnt", O_RDONLY, &c->mounts, e) != 0 ||
                   open_one("ns/uts", O_RDONLY, &c->name, e) != 0 ||
                   open_one("ns/cgroup", O_RDONLY, &c->cgroup, e) != 0
               ? -1
               : 0;
}

/* Those of the folder of its image, that the parent holds for the sandbox. */
static int variables_read(struct cell *c, struct err *e)
{
    const char *image = getenv("COUNTERSIGN_IMAGE");
    char path[PATH_MAX];
    int fd = -1;

    dynbuf_init(&c->variables, VARIABLES_MAX);
    if (!image)
        return 0;
    int n = snprintf(path, sizeof(path), "%s/env", image);
    if (n < 0 || (size_t)n >= sizeof(path) || open_one(path, O_RDONLY | O_NOFOLLOW, &fd, e) != 0)
        return err_set(e, "its image cannot be read");
    int rc = file_read_fd(fd, &c->variables);
    close(fd);
    return rc == 0 && (c->variables.n == 0 || c->variables.p[c->variables.n - 1] == '\0')
               ? 0
               : err_set(e, "the variables of its image cannot be read");
}

static int all_open(struct cell *c, struct err *e)
{
    const char *lane = getenv("COUNTERSIGN_LANE"), *limits = getenv("COUNTERSIGN_CELL");

    if (!lane || !limits || sscanf(limits, "%llu %llu %llu %u", &c->files, &c->pids, &c->memory, &c->parts) != 4 ||
        c->parts == 0 || c->files == 0)
        return err_set(e, "countersignd starts this program");
    return sandbox_open(c, e) != 0 || variables_read(c, e) != 0 ||
                   open_one(lane, O_PATH | O_NOFOLLOW, &c->listener, e) != 0 ||
                   trust_open("ca.crt", &c->trust.ca, e) != 0 || trust_open("bundle.crt", &c->trust.bundle, e) != 0 ||
                   trust_open("truststore.p12", &c->trust.truststore, e) != 0
               ? -1
               : 0;
}

/* --- namespaces ----------------------------------------------------------------------- */

/* Into it, unless that is where we are. */
static int join(int fd, int type, const char *own)
{
    struct stat is, its;

    if (own && stat(own, &is) == 0 && fstat(fd, &its) == 0 && is.st_ino == its.st_ino && is.st_dev == its.st_dev)
        return 0;
    return setns(fd, type);
}

/* Whoever started this ends with it what it became. */
static int bound_to_parent(void)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL); /* other rights take it away */
}

static int enter(struct cell *c, struct err *e)
{
    int owner = ioctl(c->mounts, NS_GET_USERNS);

    if (owner < 0 || setns(owner, CLONE_NEWUSER) != 0 || join(c->name, CLONE_NEWUTS, "/proc/self/ns/uts") != 0 ||
        join(c->cgroup, CLONE_NEWCGROUP, "/proc/self/ns/cgroup") != 0 || setns(c->mounts, CLONE_NEWNS) != 0)
        return err_errno(e, "its sandbox cannot be entered");
    close(owner);
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return err_errno(e, "it can have no namespaces of its own");
    if (open_one(INSIDE_SHIM, O_PATH | O_NOFOLLOW, &c->shim, e) != 0)
        return -1;
    return bound_to_parent() == 0 ? 0 : err_errno(e, "it cannot be bound to who started it");
}

/* --- what it becomes ------------------------------------------------------------------- */

static int set_variable(void *ctx, const char *name, const char *value)
{
    return setenv(name, value, 1);
}

static int environment_make(struct cell *c, struct err *e)
{
    const struct env_values v = {SPAN("http://" INSIDE_LANE), INSIDE_BUNDLE, INSIDE_CA, INSIDE_TRUSTSTORE, false};

    if (clearenv() != 0 || setenv("PATH", INSIDE_PATH, 1) != 0 || setenv("PWD", INSIDE_WORKSPACE, 1) != 0)
        return err_set(e, "no memory for its variables");
    for (size_t at = 0; at < c->variables.n; at += strlen((char *)c->variables.p + at) + 1)
        if (strchr((char *)c->variables.p + at, '=') && putenv((char *)c->variables.p + at) != 0)
            return err_set(e, "no memory for its variables");
    for (const char *const *one = plan_variables; *one; one += 2)
        if (setenv(one[0], one[1], 1) != 0)
            return err_set(e, "no memory for its variables");
    return env_each(&v, set_variable, NULL, e);
}

/* Of the user namespace that it has entered last, none is left; what it executes gets none, for it is not root there.
 */
static int rights_drop(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};

    for (int cap = 0; cap <= CAPS_LAST; cap++)
        if (prctl(PR_CAPBSET_DROP, cap) != 0 && errno != EINVAL)
            return -1;
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : -1;
}

static int filter_load(int fd)
{
    static struct sock_filter rows[FILTER_MAX];
    ssize_t n = read(fd, rows, sizeof(rows));
    struct sock_fprog all = {.len = (unsigned short)(n > 0 ? (size_t)n / sizeof(*rows) : 0), .filter = rows};

    if (n <= 0 || (size_t)n == sizeof(rows) || (size_t)n % sizeof(*rows) != 0) {
        errno = EMSGSIZE;
        return -1;
    }
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

static void signals_as_usual(void)
{
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Those of the sandbox's own first process. */
static int limits_take(const struct cell *c)
{
    const struct rlimit files = {.rlim_cur = c->files, .rlim_max = c->files},
                        memory = {.rlim_cur = c->memory, .rlim_max = c->memory};

    if (c->memory > 0 && setrlimit(RLIMIT_DATA, &memory) != 0)
        return -1;
    return setrlimit(RLIMIT_NOFILE, &files);
}

static void __attribute__((noreturn)) become_shim(struct cell *c)
{
    char lane[16], warden[16], pids[32];
    const char *argv[] = {INSIDE_SHIM, "--warden", warden,      "--lane",
                          lane,        "--listen", INSIDE_LANE, c->pids ? "--processes" : NULL,
                          pids,        NULL};
    struct err e = {""};

    (void)snprintf(lane, sizeof(lane), "%d", c->listener);
    (void)snprintf(warden, sizeof(warden), "%d", WARDEN_FD);
    (void)snprintf(pids, sizeof(pids), "%llu", c->pids);
    if (places_make(&c->trust, c->parts, &e) != 0 || environment_make(c, &e) != 0)
        log_die("%s", e.text);
    if (join(c->user, CLONE_NEWUSER, "/proc/self/ns/user") != 0 || chdir(INSIDE_WORKSPACE) != 0)
        log_die("it cannot become the user of its sandbox: %s", strerror(errno));
    if (rights_drop() != 0 || bound_to_parent() != 0 || limits_take(c) != 0)
        log_die("its rights cannot be given up: %s", strerror(errno));
    signals_as_usual();
    if (close_range(WARDEN_FD, ~0U, CLOSE_RANGE_CLOEXEC) != 0 || fcntl(WARDEN_FD, F_SETFD, 0) != 0 ||
        fcntl(c->listener, F_SETFD, 0) != 0 || filter_load(c->filter) != 0)
        log_die("the system calls that it lacks cannot be taken away: %s", strerror(errno));
    (void)syscall(SYS_execveat, c->shim, "", argv, environ, AT_EMPTY_PATH);
    log_die("its first process cannot be executed: %s", strerror(errno));
}

int main(void)
{
    static struct cell c;
    struct err e = {""};
    int status;

    int found = all_open(&c, &e);
    role_job_start("start-cell");
    if (found != 0)
        log_die("%s", e.text);
    if ((c.filter = filter_open(&e)) < 0 || enter(&c, &e) != 0)
        log_die("%s", e.text);
    pid_t pid = fork();
    if (pid < 0)
        log_die("no process can be started for it: %s", strerror(errno));
    if (pid == 0)
        become_shim(&c);
    (void)close_range(STDERR_FILENO + 1, ~0U, 0); /* nothing of its is held open by this process */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return 0;
}
