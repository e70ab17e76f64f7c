#include "sandbox-shim/plan/terminals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INFO_MAX = 4096, PID_DIGITS = 10 };

/* Of {"child-pid": N, ...}, which is there when the shim is; 0: it does not say. */
static pid_t shim_pid(int info)
{
    char text[INFO_MAX];
    size_t n = 0;
    ssize_t got;
    uint64_t pid;

    while (n < sizeof(text) && memchr(text, '}', n) == NULL && (got = read(info, text + n, sizeof(text) - n)) > 0)
        n += (size_t)got;
    struct span s = span_of(text, n), key = SPAN("\"child-pid\":");
    s = span_trim(span_from(s, span_find(s, key) + key.n));
    for (n = 0; n < s.n && n < PID_DIGITS && s.p[n] >= '0' && s.p[n] <= '9';)
        n++;
    return span_u64(span_first(s, n), INT32_MAX, &pid) == 0 && pid > 1 ? (pid_t)pid : 0;
}

/* Never this machine's own. */
static int mounts_of(pid_t pid)
{
    char path[64];
    struct stat own, its;

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && (stat("/proc/self/ns/mnt", &own) != 0 || fstat(fd, &its) != 0 ||
                    (own.st_ino == its.st_ino && own.st_dev == its.st_dev))) {
        close(fd);
        errno = ESRCH;
        return -1;
    }
    return fd;
}

/* All that bubblewrap says of them, and how many there may be: what is not said is as if it never was. */
static int set_bound(pid_t pid)
{
    char options[64];
    int mounts = pid > 0 ? mounts_of(pid) : -1, user = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);

    (void)snprintf(options, sizeof(options), "ptmxmode=0666,mode=620,max=%d", TERMINALS_MAX);
    return user >= 0 && setns(user, CLONE_NEWUSER) == 0 && setns(mounts, CLONE_NEWNS) == 0 &&
                   mount("devpts", "/dev/pts", "devpts", MS_REMOUNT | MS_NOSUID | MS_NOEXEC, options) == 0
               ? 0
               : -1;
}

int terminals_bound(int info)
{
    return set_bound(shim_pid(info));
}
