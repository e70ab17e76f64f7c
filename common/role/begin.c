/* What each process of ours that is started does first, and what it gives up. See role_in.h. */
#include "common/role/role_in.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/span.h"

extern char **environ;

enum { FILES_MAX = 65536 };

/* What came through exec and was not meant for us: it has no close-on-exec mark, all of our own have. */
void role_close_inherited(void)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    if (d == NULL) {
        log_warn("inherited descriptors cannot be looked for: /proc is not there");
        return;
    }
    while ((e = readdir(d)) != NULL) {
        int fd = atoi(e->d_name);
        int flags = fd > ROLE_PARENT_FD ? fcntl(fd, F_GETFD) : -1;
        if (flags >= 0 && !(flags & FD_CLOEXEC))
            close(fd);
    }
    closedir(d);
}

bool role_is_alone(void)
{
    struct pollfd p = {.fd = ROLE_PARENT_FD};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

/* Nothing is wrong when who started this one ended, or had no more use for it, before it had begun. */
void role_end_if_alone(void)
{
    if (!role_is_alone())
        return;
    log_info("who started this program has ended already; so does it");
    exit(1);
}

/* Cleared by the kernel whenever the uid changes, so this is said again after it has. */
void role_die_with_parent(void)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        log_die("PR_SET_PDEATHSIG: %s", strerror(errno));
#ifndef COUNTERSIGN_DEV /* the leak check attaches to its own process */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        log_die("PR_SET_DUMPABLE: %s", strerror(errno));
#endif
    role_end_if_alone();
}

void role_limits(void)
{
    struct rlimit none = {0, 0}, files;
    if (setrlimit(RLIMIT_CORE, &none) != 0)
        log_die("RLIMIT_CORE: %s", strerror(errno));
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max < FILES_MAX ? files.rlim_max : FILES_MAX;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static long number_from_env(const char *name)
{
    const char *text = getenv(name);
    uint64_t v;
    if (text == NULL)
        return -1;
    if (span_u64(span_str(text), INT32_MAX, &v) != 0 || v == 0)
        log_die("%s is not the number of an ordinary user or group", name);
    return (long)v;
}

void role_user_read(struct role_user *u)
{
    u->uid = number_from_env("COUNTERSIGN_UID");
    u->gid = number_from_env("COUNTERSIGN_GID");
}

void role_user_become(const struct role_user *u)
{
    if (u->uid < 0 || geteuid() != 0)
        return;
    gid_t gid = (gid_t)(u->gid < 0 ? u->uid : u->gid);
    uid_t uid = (uid_t)u->uid;
    if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        log_die("becoming user %ld: %s", u->uid, strerror(errno));
    if (getuid() != uid || geteuid() != uid || getgid() != gid || setuid(0) == 0)
        log_die("becoming user %ld did not last", u->uid);
}

/* The strings lie where the kernel put them at exec, for anybody who can read this process's memory. */
void role_wipe_environment(void)
{
    for (char **e = environ; e != NULL && *e != NULL; e++)
        explicit_bzero(*e, strlen(*e));
    if (clearenv() != 0 || setenv("TZ", "UTC0", 1) != 0)
        log_die("the environment cannot be cleared");
    tzset();
}

void role_take_channel(const char *what)
{
    int flags = fcntl(ROLE_PARENT_FD, F_GETFL);

    if (flags < 0 || fcntl(ROLE_PARENT_FD, F_SETFL, flags & ~O_NONBLOCK) != 0 ||
        fcntl(ROLE_PARENT_FD, F_SETFD, FD_CLOEXEC) != 0)
        log_die("there is no %s on descriptor 3; countersignd starts this program", what);
}
