/* What a confined role may still ask of the kernel: the one list of each group, and the folders.
 *
 * Landlock says where (files by folder, TCP at all or by port, signals and abstract sockets); seccomp says what.
 * The kernel's numbers for Landlock are written out here, since installed headers are older than kernels. */
#include "common/role/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- privileges ---- */

int wall_no_privileges(struct err *e)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_errno(e, "no_new_privs");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
        return err_errno(e, "dropping ambient capabilities");
    if (syscall(SYS_capset, &head, none) != 0)
        return err_errno(e, "dropping capabilities");
    return 0;
}

/* ---- Landlock ---- */

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_DIR = 1 << 7,
    FS_MAKE_REG = 1 << 8,
    FS_MAKE_SOCK = 1 << 9,
    FS_MAKE_SYM = 1 << 12,
    FS_REFER = 1 << 13,    /* ABI 2 */
    FS_TRUNCATE = 1 << 14, /* ABI 3 */
    FS_ALL_1 = (1 << 13) - 1,
    FS_IOCTL_DEV = 1 << 15, /* ABI 5 */
    NET_BIND_TCP = 1 << 0,  /* ABI 4 */
    NET_CONNECT_TCP = 1 << 1,
    SCOPE_ABSTRACT_UNIX = 1 << 0, /* ABI 6 */
    SCOPE_SIGNAL = 1 << 1,
    RULE_PATH = 1,
    RULE_PORT = 2,
    READ_ONLY = FS_READ_FILE | FS_READ_DIR,
    READ_WRITE = READ_ONLY | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG |
                 FS_MAKE_SOCK | FS_REFER | FS_TRUNCATE,
    OF_A_FILE = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    PORT_DNS = 53,
};

struct ruleset {
    uint64_t fs, net, scoped;
};
struct rule_port {
    uint64_t access, port;
};

static int allow_path(int set, const char *path, uint64_t access, const struct ruleset *r, struct err *e)
{
    struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    struct stat st;
    int rc = 0;
    if (rule.parent_fd < 0)
        return errno == ENOENT ? 1 : err_errno(e, "%s", path);
    if (fstat(rule.parent_fd, &st) != 0)
        rc = err_errno(e, "%s", path);
    rule.allowed_access = access & r->fs & (S_ISDIR(st.st_mode) ? ~0ULL : (uint64_t)OF_A_FILE);
    if (rc == 0 && syscall(SYS_landlock_add_rule, set, RULE_PATH, &rule, 0) != 0)
        rc = err_errno(e, "Landlock: %s", path);
    close(rule.parent_fd);
    return rc;
}

static int allow_paths(int set, const struct wall *w, const struct ruleset *r, struct err *e)
{
    static const char *const dns[] = {"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", NULL};
    for (const char *const *p = w->rw_dirs; p != NULL && *p != NULL; p++) {
        int rc = allow_path(set, *p, READ_WRITE | (w->calls & WALL_LINKS ? FS_MAKE_SYM : 0), r, e);
        if (rc != 0)
            return rc > 0 ? err_set(e, "%s is not there", *p) : -1;
    }
    for (const char *const *p = w->ro_paths; p != NULL && *p != NULL; p++)
        if (allow_path(set, *p, READ_ONLY, r, e) < 0)
            return -1;
    for (const char *const *p = dns; w->calls & WALL_DNS && *p != NULL; p++)
        if (allow_path(set, *p, READ_ONLY, r, e) < 0)
            return -1;
#ifdef COUNTERSIGN_DEV
    /* The sanitizers read this program's own files to report a fault. */
    if (allow_path(set, "/", READ_ONLY, r, e) != 0)
        return -1;
#endif
    return 0;
}

static struct ruleset handled(const struct wall *w, int abi)
{
    struct ruleset r = {.fs = FS_ALL_1};
    if (abi >= 2)
        r.fs |= FS_REFER;
    if (abi >= 3)
        r.fs |= FS_TRUNCATE;
    if (abi >= 4)
        r.net = w->tcp_connect ? NET_BIND_TCP : NET_BIND_TCP | NET_CONNECT_TCP;
    if (abi >= 5)
        r.fs |= FS_IOCTL_DEV;
    if (abi >= 6)
        /* Whose child is to end with it must reach that child: the signal of a parent's death is asked about as well.
         */
        r.scoped = SCOPE_ABSTRACT_UNIX | (w->calls & WALL_WAIT ? 0u : SCOPE_SIGNAL);
    return r;
}

static int allow_port(int set, uint16_t port, struct err *e)
{
    struct rule_port p = {NET_CONNECT_TCP, port};
    return syscall(SYS_landlock_add_rule, set, RULE_PORT, &p, 0) == 0 ? 0 : err_errno(e, "Landlock: port %u", port);
}

static int allow_ports(int set, const struct wall *w, struct err *e)
{
    if (w->calls & WALL_DNS && allow_port(set, PORT_DNS, e) != 0) /* an answer too long for a datagram */
        return -1;
    for (size_t i = 0; i < w->nports; i++)
        if (allow_port(set, w->ports[i], e) != 0)
            return -1;
    return 0;
}

int wall_landlock(const struct wall *w, int *abi, struct err *e)
{
    int rc = -1, got = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    *abi = got > 0 ? got : 0;
    if (*abi == 0)
        return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : err_errno(e, "Landlock");
    struct ruleset r = handled(w, *abi);
    size_t size = *abi >= 6 ? sizeof(r) : *abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
    int set = (int)syscall(SYS_landlock_create_ruleset, &r, size, 0);
    if (set < 0)
        return err_errno(e, "Landlock");
    if (allow_paths(set, w, &r, e) != 0)
        goto out;
    if (r.net & NET_CONNECT_TCP && allow_ports(set, w, e) != 0)
        goto out;
    if (syscall(SYS_landlock_restrict_self, set, 0) != 0) {
        err_errno(e, "Landlock");
        goto out;
    }
    rc = 0;
out:
    close(set);
    return rc;
}

/* ---- system calls ---- */

struct call {
    unsigned group; /* WALL_BASE: every role */
    int nr;
    int error; /* 0: allowed; else what it fails with, instead of a kill */
    unsigned nargs;
    struct scmp_arg_cmp arg[3];
};

#define ARGS1(a)       .nargs = 1, .arg = {a}
#define ARGS3(a, b, c) .nargs = 3, .arg = {a, b, c}
#define EQ(n, v)       SCMP_CMP64(n, SCMP_CMP_EQ, v)
#define MASK(n, m, v)  SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, m, v)
#define ALLOW(g, name)                                                                                               \
    {                                                                                                                \
        .group = WALL_##g, .nr = SCMP_SYS(name)                                                                      \
    }
#define ALLOW_FCNTL(g, cmd)                                                                                          \
    {                                                                                                                \
        .group = WALL_##g, .nr = SCMP_SYS(fcntl), ARGS1(EQ(1, cmd))                                                  \
    }
/* MPTCP and the raw protocols are other numbers. */
#define ALLOW_SOCKET(g, family, type, proto)                                                                         \
    {                                                                                                                \
        .group = WALL_##g, .nr = SCMP_SYS(socket), ARGS3(EQ(0, family), MASK(1, 0xf, type), EQ(2, proto))            \
    }
#define REFUSE(name, e)                                                                                              \
    {                                                                                                                \
        .nr = SCMP_SYS(name), .error = e                                                                             \
    }

enum { FCHMODAT2 = 452 /* libseccomp may be older than the call */ };
enum { WRITING = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY) };

/* clang-format off */
static const struct call calls[] = {
    /* memory; no page is ever made executable */
    {.nr = SCMP_SYS(mmap), ARGS1(MASK(2, PROT_EXEC, 0))},
    {.nr = SCMP_SYS(mprotect), ARGS1(MASK(2, PROT_EXEC, 0))},
    ALLOW(BASE, munmap), ALLOW(BASE, mremap), ALLOW(BASE, madvise), ALLOW(BASE, brk),
    ALLOW(BASE, mlock), ALLOW(BASE, mlock2), ALLOW(BASE, munlock),
    /* descriptors that are open already */
    ALLOW(BASE, read), ALLOW(BASE, write), ALLOW(BASE, readv), ALLOW(BASE, writev), ALLOW(BASE, close),
    ALLOW(BASE, recvfrom), ALLOW(BASE, recvmsg), ALLOW(BASE, sendto), ALLOW(BASE, sendmsg), ALLOW(BASE, shutdown),
    ALLOW(BASE, getsockopt), ALLOW(BASE, setsockopt), ALLOW(BASE, getsockname), ALLOW(BASE, getpeername),
    ALLOW(BASE, lseek), ALLOW(BASE, fstat),
    {.nr = SCMP_SYS(newfstatat), ARGS1(EQ(3, AT_EMPTY_PATH))}, /* fstat in disguise */
    ALLOW_FCNTL(BASE, F_DUPFD_CLOEXEC), ALLOW_FCNTL(BASE, F_GETFD), ALLOW_FCNTL(BASE, F_SETFD),
    ALLOW_FCNTL(BASE, F_GETFL), ALLOW_FCNTL(BASE, F_SETFL), ALLOW_FCNTL(BASE, F_GET_SEALS),
    ALLOW(BASE, epoll_wait), ALLOW(BASE, epoll_pwait), ALLOW(BASE, epoll_pwait2), ALLOW(BASE, epoll_ctl),
    ALLOW(BASE, poll), ALLOW(BASE, ppoll),
    /* time, chance, oneself */
    ALLOW(BASE, clock_gettime), ALLOW(BASE, clock_getres), ALLOW(BASE, gettimeofday), ALLOW(BASE, time),
    ALLOW(BASE, getrandom), ALLOW(BASE, getpid), ALLOW(BASE, gettid), ALLOW(BASE, getppid), ALLOW(BASE, getuid),
    ALLOW(BASE, geteuid), ALLOW(BASE, getgid), ALLOW(BASE, getegid), ALLOW(BASE, getrusage), ALLOW(BASE, sysinfo),
    ALLOW(BASE, uname), ALLOW(BASE, sched_yield), ALLOW(BASE, sched_getaffinity), ALLOW(BASE, futex),
    ALLOW(BASE, rt_sigaction), ALLOW(BASE, rt_sigprocmask), ALLOW(BASE, rt_sigreturn), ALLOW(BASE, sigaltstack),
    ALLOW(BASE, restart_syscall), ALLOW(BASE, exit), ALLOW(BASE, exit_group),
    {.nr = SCMP_SYS(prlimit64), .nargs = 2, .arg = {EQ(0, 0), EQ(2, 0)}}, /* asking, of oneself */
    /* what libraries try without harm */
    REFUSE(ioctl, ENOTTY), REFUSE(prctl, EPERM),

    ALLOW(MEMFD, memfd_create), ALLOW(MEMFD, ftruncate), ALLOW(MEMFD, fallocate), ALLOW(MEMFD, pread64),
    ALLOW(MEMFD, pwrite64), ALLOW_FCNTL(MEMFD, F_ADD_SEALS),

    ALLOW(ACCEPT, accept4), ALLOW(ACCEPT, accept),

    ALLOW(UNIX, connect), ALLOW_SOCKET(UNIX, AF_UNIX, SOCK_STREAM, 0),
    {.group = WALL_PAIR, .nr = SCMP_SYS(socketpair), ARGS3(EQ(0, AF_UNIX), MASK(1, 0xf, SOCK_STREAM), EQ(2, 0))},

    ALLOW(WAIT, wait4),

    ALLOW(CONNECT, connect),
    ALLOW_SOCKET(CONNECT, AF_INET, SOCK_STREAM, 0), ALLOW_SOCKET(CONNECT, AF_INET, SOCK_STREAM, IPPROTO_TCP),
    ALLOW_SOCKET(CONNECT, AF_INET6, SOCK_STREAM, 0), ALLOW_SOCKET(CONNECT, AF_INET6, SOCK_STREAM, IPPROTO_TCP),

    ALLOW(DNS, connect), ALLOW(DNS, bind), ALLOW(DNS, sendmmsg), ALLOW(DNS, recvmmsg),
    ALLOW_SOCKET(DNS, AF_INET, SOCK_STREAM, 0), ALLOW_SOCKET(DNS, AF_INET, SOCK_STREAM, IPPROTO_TCP),
    ALLOW_SOCKET(DNS, AF_INET6, SOCK_STREAM, 0), ALLOW_SOCKET(DNS, AF_INET6, SOCK_STREAM, IPPROTO_TCP),
    ALLOW_SOCKET(DNS, AF_INET, SOCK_DGRAM, 0), ALLOW_SOCKET(DNS, AF_INET, SOCK_DGRAM, IPPROTO_UDP),
    ALLOW_SOCKET(DNS, AF_INET6, SOCK_DGRAM, 0), ALLOW_SOCKET(DNS, AF_INET6, SOCK_DGRAM, IPPROTO_UDP),

    {.group = WALL_READ_FILES | WALL_DNS, .nr = SCMP_SYS(openat), ARGS1(MASK(2, WRITING, O_RDONLY))},
    {.group = WALL_READ_FILES | WALL_DNS, .nr = SCMP_SYS(open), ARGS1(MASK(1, WRITING, O_RDONLY))},
    /* SQLite asks for a write-ahead log to read and write, is refused, and reads it then. */
    {.group = WALL_READ_FILES, .error = EACCES, .nr = SCMP_SYS(openat), ARGS1(MASK(2, O_ACCMODE, O_RDWR))},
    {.group = WALL_READ_FILES, .error = EACCES, .nr = SCMP_SYS(open), ARGS1(MASK(1, O_ACCMODE, O_RDWR))},
    {.group = WALL_READ_FILES | WALL_DNS | WALL_FILES | WALL_UNIX_LISTEN, .nr = SCMP_SYS(newfstatat)},
    {.group = WALL_READ_FILES | WALL_DNS | WALL_FILES | WALL_UNIX_LISTEN, .nr = SCMP_SYS(stat)},
    {.group = WALL_READ_FILES | WALL_DNS | WALL_FILES | WALL_UNIX_LISTEN, .nr = SCMP_SYS(lstat)},
    {.group = WALL_READ_FILES | WALL_DNS | WALL_FILES, .nr = SCMP_SYS(pread64)},
    {.group = WALL_READ_FILES | WALL_FILES, .nr = SCMP_SYS(statx)},
    {.group = WALL_READ_FILES | WALL_DNS | WALL_FILES, .nr = SCMP_SYS(access)},
    {.group = WALL_READ_FILES | WALL_DNS | WALL_FILES, .nr = SCMP_SYS(faccessat)},
    {.group = WALL_READ_FILES | WALL_DNS | WALL_FILES, .nr = SCMP_SYS(faccessat2)},
    {.group = WALL_READ_FILES | WALL_FILES, .nr = SCMP_SYS(readlink)},
    {.group = WALL_READ_FILES | WALL_FILES, .nr = SCMP_SYS(readlinkat)},
    {.group = WALL_READ_FILES | WALL_FILES, .nr = SCMP_SYS(getdents64)},
    {.group = WALL_READ_FILES | WALL_FILES, .nr = SCMP_SYS(getcwd)},
    {.group = WALL_READ_FILES | WALL_FILES, .nr = SCMP_SYS(fstatfs)},
    /* a reader of a database holds read locks; on a descriptor that cannot write there are no others */
    ALLOW_FCNTL(READ_FILES, F_SETLK), ALLOW_FCNTL(READ_FILES, F_GETLK),
    ALLOW(READ_FILES, nanosleep), ALLOW(READ_FILES, clock_nanosleep),

    ALLOW(FILES, openat), ALLOW(FILES, open), ALLOW(FILES, pwrite64), ALLOW(FILES, ftruncate), ALLOW(FILES, fsync),
    ALLOW(FILES, fdatasync), ALLOW(FILES, fallocate), ALLOW(FILES, rename), ALLOW(FILES, renameat),
    ALLOW(FILES, renameat2), ALLOW(FILES, unlink), ALLOW(FILES, unlinkat), ALLOW(FILES, link), ALLOW(FILES, linkat),
    ALLOW(FILES, mkdir), ALLOW(FILES, mkdirat), ALLOW(FILES, rmdir), ALLOW(FILES, umask), ALLOW(FILES, flock),
    ALLOW(FILES, fchmod), ALLOW(FILES, fchown), ALLOW(FILES, utimensat), ALLOW(FILES, msync),
    ALLOW(FILES, nanosleep), ALLOW(FILES, clock_nanosleep), /* a locked database is tried again */
    ALLOW_FCNTL(FILES, F_SETLK), ALLOW_FCNTL(FILES, F_SETLKW), ALLOW_FCNTL(FILES, F_GETLK),
    ALLOW_FCNTL(FILES, F_OFD_SETLK), ALLOW_FCNTL(FILES, F_OFD_GETLK),

    ALLOW(LINKS, openat2), ALLOW(LINKS, symlinkat),

    ALLOW(MODES, chmod), ALLOW(MODES, fchmodat),
    /* as newer libraries do that where no link is to be followed; they go on without it */
    {.group = WALL_MODES, .nr = FCHMODAT2, .error = ENOSYS},

    ALLOW_SOCKET(UNIX_LISTEN, AF_UNIX, SOCK_STREAM, 0),
    ALLOW(UNIX_LISTEN, bind), ALLOW(UNIX_LISTEN, listen), ALLOW(UNIX_LISTEN, accept4), ALLOW(UNIX_LISTEN, accept),
    ALLOW(UNIX_LISTEN, umask), ALLOW(UNIX_LISTEN, chmod), ALLOW(UNIX_LISTEN, fchmod), ALLOW(UNIX_LISTEN, fchmodat),
    ALLOW(UNIX_LISTEN, unlink), ALLOW(UNIX_LISTEN, unlinkat),
};
/* clang-format on */

static int add(scmp_filter_ctx ctx, const struct call *c)
{
    uint32_t action = c->error == 0 ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO((uint16_t)c->error);
    int rc = seccomp_rule_add_array(ctx, action, c->nr, c->nargs, c->arg);
    /* -EEXIST: another group has said so; -EDOM: this machine has no such call. */
    return rc == -EEXIST || rc == -EDOM ? 0 : rc;
}

int wall_seccomp(const struct wall *w, struct err *e)
{
    /* abort() and raise(), to oneself. */
    const struct call own = {.nr = SCMP_SYS(tgkill), ARGS1(EQ(0, (uint64_t)getpid()))};
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int rc = ctx == NULL ? -ENOMEM : 0;
    if (rc == 0)
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (rc == 0)
        rc = add(ctx, &own);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls) && rc == 0; i++)
        if (calls[i].group == WALL_BASE || calls[i].group & w->calls)
            rc = add(ctx, &calls[i]);
    if (rc == 0)
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (rc == 0)
        rc = seccomp_load(ctx);
    if (ctx != NULL)
        seccomp_release(ctx);
    errno = -rc;
    return rc == 0 ? 0 : err_errno(e, "seccomp");
}
