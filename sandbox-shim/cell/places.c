/* What others of the sandbox write, a cell does not read, but for the workspace and what was given to it: a settings
 * file or a socket that a neighbour left in /tmp or at home would be obeyed with the lane of the cell. */
#include "sandbox-shim/cell/places.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "sandbox-shim/plan/plan.h"
#include "sandbox-shim/plan/terminals.h"

enum { OPTIONS = 64, FILE_MAX = 1024 * 1024, TRUST_BYTES = 8 * 1024 * 1024 };
#define QUIET (MS_NOSUID | MS_NODEV)

/* As large as the one that it covers, or a part of that where no cgroup counts what all of them hold. */
static int fresh(const char *where, unsigned mode, unsigned parts, struct err *e)
{
    char options[OPTIONS];
    struct statvfs old;

    if (statvfs(where, &old) != 0)
        return err_errno(e, "%s of the sandbox cannot be seen", where);
    unsigned long long size = (unsigned long long)old.f_blocks * (unsigned long long)old.f_frsize / parts;
    (void)snprintf(options, sizeof(options), "mode=%o,size=%llu", mode, size > 0 ? size : 1 /* 0: without bounds */);
    return mount("tmpfs", where, "tmpfs", QUIET, options) == 0 ? 0 : err_errno(e, "no %s of its own", where);
}

/* As plan.c has it for the sandbox: nothing in it can be written, and what tells of the machine is hidden. */
static int own_proc(struct err *e)
{
    if (mount("proc", "/proc", "proc", QUIET | MS_NOEXEC, NULL) != 0)
        return err_errno(e, "no /proc of its own");
    for (const char *const *h = plan_hidden; *h; h++)
        if (access(*h, F_OK) == 0 && mount("/dev/null", *h, NULL, MS_BIND, NULL) != 0)
            return err_errno(e, "%s cannot be hidden", *h);
    return mount(NULL, "/proc", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | QUIET | MS_NOEXEC, NULL) == 0
               ? 0
               : err_errno(e, "its /proc cannot be made read-only");
}

static int own_terminals(struct err *e)
{
    char options[OPTIONS];

    (void)snprintf(options, sizeof(options), "newinstance,ptmxmode=0666,mode=620,max=%d", TERMINALS_CELL);
    return mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, options) == 0
               ? 0
               : err_errno(e, "no terminals of its own");
}

static int copy(int from, const char *to)
{
    struct stat st;
    off_t at = 0;
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), rc = -1;

    if (fd >= 0 && fstat(from, &st) == 0 && st.st_size <= FILE_MAX)
        for (rc = 0; rc == 0 && at < st.st_size;)
            rc = sendfile(fd, from, &at, (size_t)(st.st_size - at)) > 0 ? 0 : -1;
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Its sandbox may have no way out, and none of these. */
static int own_trust(const struct cell_trust *t, struct err *e)
{
    char options[OPTIONS];

    (void)snprintf(options, sizeof(options), "mode=755,size=%d", TRUST_BYTES);
    if (mount("tmpfs", "/countersign", "tmpfs", QUIET | MS_NOEXEC, options) != 0 || copy(t->ca, INSIDE_CA) != 0 ||
        copy(t->bundle, INSIDE_BUNDLE) != 0 || copy(t->truststore, INSIDE_TRUSTSTORE) != 0 ||
        mount(NULL, "/countersign", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | QUIET | MS_NOEXEC, NULL) != 0)
        return err_errno(e, "whom to trust cannot be put there");
    return 0;
}

static int own_loopback(struct err *e)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rc = fd >= 0 ? ioctl(fd, SIOCSIFFLAGS, &lo) : -1;

    if (rc != 0)
        (void)err_errno(e, "its loopback cannot be had");
    if (fd >= 0)
        close(fd);
    return rc;
}

int places_make(const struct cell_trust *t, unsigned parts, struct err *e)
{
    (void)umask(0);
    if (own_proc(e) != 0 || own_terminals(e) != 0 || fresh("/tmp", 01777, parts, e) != 0 ||
        fresh("/var/tmp", 01777, parts, e) != 0 || fresh("/dev/shm", 01777, parts, e) != 0 ||
        fresh("/run", 0755, parts, e) != 0 || fresh("/home", 0755, parts, e) != 0 || own_trust(t, e) != 0 ||
        own_loopback(e) != 0)
        return -1;
    (void)umask(022);
    return mkdir(INSIDE_HOME, 0755) == 0 ? 0 : err_errno(e, "no home of its own");
}
