/* The filter is a list of what is refused: arbitrary tools run in here, and what
 * they may reach is settled by namespaces and mounts. The list takes away what
 * would widen those (namespaces, mounts, handles), what the kernel keeps outside
 * of namespaces (keys, bpf, perf), what goes around system call checks
 * (io_uring), and every way to type into a terminal. ptrace stays: a debugger is
 * useful, and the pid namespace holds only the sandbox's own processes.
 *
 * Another ABI than the native one (32-bit, x32) ends the process: its numbers
 * would mean other calls. */
#include "sandbox-shim/plan/filter.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of an int argument the kernel reads the low 32 bits; a filter that compares all
 * 64 is stepped over by setting a high one. */
#define LOW 0xffffffffULL

enum {
    FAMILY_MAX = 64, /* compared one by one below, all above refused */
    PROTOCOL_MAX = 256,
    NETLINK_MAX = 32,
};

static const char *const refused[] = {
    /* keyrings, and engines that run programs or watch others in the kernel */
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "lookup_dcookie",
    "fanotify_init",
    "quotactl",
    "quotactl_fd",
    "kcmp",
    /* the machine */
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "syslog",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "iopl",
    "ioperm",
    "modify_ldt",
    "vhangup",
    "nfsservctl",
    "uselib",
    "sysfs",
    "_sysctl",
    /* mounts, namespaces, and files by handle instead of by name */
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "setns",
    "open_by_handle_at",
    "name_to_handle_at",
    NULL,
};

/* As if this kernel had none: their users know how to do without. clone3 takes its
 * flags in memory, where no filter can look; without it libc falls back to clone. */
static const char *const missing[] = {"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", NULL};

static int refuse_all(scmp_filter_ctx ctx, const char *const *names, int code)
{
    for (; *names; names++) {
        int nr = seccomp_syscall_resolve_name(*names);
        if (nr == __NR_SCMP_ERROR || seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)code), nr, 0) != 0)
            return -1;
    }
    return 0;
}

/* Argument `arg` of `nr`, its bits under mask, equals value. */
static int refuse_masked(scmp_filter_ctx ctx, int nr, unsigned arg, uint64_t mask, uint64_t value, int code)
{
    return seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)code), nr, 1,
                            SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, mask, value)) != 0
               ? -1
               : 0;
}

static int refuse_namespaces(scmp_filter_ctx ctx)
{
    static const uint64_t flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWNET,   CLONE_NEWPID,
                                     CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (refuse_masked(ctx, SCMP_SYS(clone), 0, flags[i], flags[i], EPERM) != 0 ||
            refuse_masked(ctx, SCMP_SYS(unshare), 0, flags[i], flags[i], EPERM) != 0)
            return -1;
    /* CLONE_NEWTIME shares its bit with clone's exit signal: it is a flag of unshare only */
    return refuse_masked(ctx, SCMP_SYS(unshare), 0, 0x80, 0x80, EPERM);
}

static int refuse_terminals(scmp_filter_ctx ctx)
{
    static const uint64_t requests[] = {TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS};

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        if (refuse_masked(ctx, SCMP_SYS(ioctl), 1, LOW, requests[i], EPERM) != 0)
            return -1;
    return 0;
}

/* The first process inside has the same user as all others, and the kernel asks for nothing else where one sets the
 * limits of another: it could be left without a descriptor. Everybody sets their own. */
static int refuse_limits_of_others(scmp_filter_ctx ctx)
{
    return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_NE, 0));
}

/* Families: Unix, IPv4, IPv6, and of netlink only ROUTE (getaddrinfo asks it for
 * the interfaces). Of IP only TCP, UDP and ICMP: others load modules. nr: socket, or socketpair, which makes one of
 * any family before it finds that this one has no pairs. */
static int refuse_sockets(scmp_filter_ctx ctx, int nr)
{
    static const int protocols[] = {IPPROTO_SCTP, IPPROTO_DCCP, IPPROTO_UDPLITE};
    uint32_t no = SCMP_ACT_ERRNO(EAFNOSUPPORT), none = SCMP_ACT_ERRNO(EPROTONOSUPPORT);
    int rc = 0;

    for (uint64_t f = 0; f < FAMILY_MAX; f++)
        if (f != AF_UNIX && f != AF_INET && f != AF_INET6 && f != AF_NETLINK)
            rc |= seccomp_rule_add(ctx, no, nr, 1, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, f));
    rc |= seccomp_rule_add(ctx, no, nr, 1, SCMP_A0(SCMP_CMP_GE, FAMILY_MAX));
    for (uint64_t p = 1; p < NETLINK_MAX; p++)
        rc |= seccomp_rule_add(ctx, none, nr, 2, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, AF_NETLINK),
                               SCMP_A2(SCMP_CMP_MASKED_EQ, LOW, p));
    rc |= seccomp_rule_add(ctx, none, nr, 2, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, AF_NETLINK),
                           SCMP_A2(SCMP_CMP_GE, NETLINK_MAX));
    for (int i = 0; i < 2; i++) {
        uint64_t family = i ? AF_INET6 : AF_INET;
        for (size_t k = 0; k < sizeof(protocols) / sizeof(protocols[0]); k++)
            rc |= seccomp_rule_add(ctx, none, nr, 2, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, family),
                                   SCMP_A2(SCMP_CMP_MASKED_EQ, LOW, (uint64_t)protocols[k]));
        rc |= seccomp_rule_add(ctx, none, nr, 2, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, family),
                               SCMP_A2(SCMP_CMP_GE, PROTOCOL_MAX));
    }
    return rc == 0 ? 0 : -1;
}

int filter_open(struct err *e)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int fd = -1, rc = -1;

    if (!ctx || seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) != 0 ||
        refuse_all(ctx, refused, EPERM) != 0 || refuse_all(ctx, missing, ENOSYS) != 0 ||
        refuse_namespaces(ctx) != 0 || refuse_terminals(ctx) != 0 || refuse_limits_of_others(ctx) != 0 ||
        refuse_sockets(ctx, SCMP_SYS(socket)) != 0 || refuse_sockets(ctx, SCMP_SYS(socketpair)) != 0) {
        (void)err_set(e, "the system call filter cannot be made on this machine");
        goto out;
    }
    fd = memfd_create("filter", MFD_CLOEXEC);
    if (fd < 0 || seccomp_export_bpf(ctx, fd) != 0 || lseek(fd, 0, SEEK_SET) != 0) {
        (void)err_errno(e, "the system call filter cannot be written");
        goto out;
    }
    rc = 0;
out:
    if (ctx)
        seccomp_release(ctx);
    if (rc != 0 && fd >= 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}
