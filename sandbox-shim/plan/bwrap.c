#include "sandbox-shim/plan/bwrap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sandbox-shim/plan/beside.h"

enum { HEAD_MAX = 24 };

const char *bwrap_find(const char *flag, struct err *e)
{
    static const char *const places[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", NULL};

    if (flag) {
        if (flag[0] == '/' && access(flag, X_OK) == 0)
            return flag;
        (void)err_set(e, "%s is not the absolute path of a program", flag);
        return NULL;
    }
    for (const char *const *p = places; *p; p++)
        if (access(*p, X_OK) == 0)
            return *p;
    (void)err_set(e, "bubblewrap is not installed, and without it there is no sandbox: install it (Debian: `apt-get "
                     "install bubblewrap`) and try again");
    return NULL;
}

/* What the shim is told before the command; the words live in `text`. */
static size_t put_shim(const struct bwrap *b, const struct plan *p, const char *argv[HEAD_MAX], size_t n, int wait,
                       char text[4][32])
{
    (void)snprintf(text[0], sizeof(text[0]), "%d", b->talk);
    argv[n++] = INSIDE_SHIM;
    if (p->cmd) {
        argv[n++] = "--socket";
        argv[n++] = INSIDE_SOCKET;
    } else if (p->lane.listener > 0) {
        (void)snprintf(text[3], sizeof(text[3]), "%d", p->lane.listener);
        argv[n++] = "--lane";
        argv[n++] = text[3];
    }
    if (p->cmd || p->lane.listener > 0) {
        argv[n++] = "--listen";
        argv[n++] = p->cmd ? INSIDE_PROXY : INSIDE_LANE;
    }
    argv[n++] = p->cmd ? "--run" : "--warden";
    argv[n++] = text[0];
    if (wait >= 0) {
        (void)snprintf(text[2], sizeof(text[2]), "%d", wait);
        argv[n++] = "--wait";
        argv[n++] = text[2];
    }
    if (p->captured)
        argv[n++] = "--captured";
    if (p->limits.pids && p->limits.cgroup.n == 0) {
        (void)snprintf(text[1], sizeof(text[1]), "%llu", (unsigned long long)p->limits.pids);
        argv[n++] = "--processes";
        argv[n++] = text[1];
    }
    if (b->tty)
        argv[n++] = "--tty";
    if (p->cmd)
        argv[n++] = "--";
    return n;
}

/* Of all that is open, bubblewrap inherits this. */
static int keep_open(const struct bwrap *b, const struct plan *p, const int more[2])
{
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0 || fcntl(b->talk, F_SETFD, 0) != 0 ||
        (b->status >= 0 && fcntl(b->status, F_SETFD, 0) != 0))
        return -1;
    for (int i = 0; i < 2; i++)
        if (more[i] >= 0 && fcntl(more[i], F_SETFD, 0) != 0)
            return -1;
    for (size_t i = 0; i < p->nfds; i++)
        if (fcntl(p->fds[i], F_SETFD, 0) != 0)
            return -1;
    return 0;
}

void bwrap_become(const struct bwrap *b, const struct plan *p)
{
    char args[16], status[16], info[16], text[4][32];
    int beside[2] = {-1, -1};              /* where it is said which process the shim is, and where that waits */
    char *const no_environment[] = {NULL}; /* also no LD_PRELOAD of the caller's */
    size_t n = 0, count = 0;
    sigset_t none;

    while (p->cmd && p->cmd[count])
        count++;
    const char **argv = calloc(count + HEAD_MAX + 1, sizeof(*argv));
    if (!argv || setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        goto fail;
    /* The terminals of a sandbox that strangers start: those of `countersign run` are its caller's own. */
    if (beside_begin(b->verb, !p->cmd, &beside[0], &beside[1]) != 0 || limits_enter(&p->limits) != 0)
        goto fail;
    (void)snprintf(args, sizeof(args), "%d", p->args_fd);
    (void)snprintf(status, sizeof(status), "%d", b->status);
    argv[n++] = "bwrap";
    argv[n++] = "--args";
    argv[n++] = args;
    if (b->status >= 0) {
        argv[n++] = "--json-status-fd";
        argv[n++] = status;
    }
    if (beside[0] >= 0) {
        (void)snprintf(info, sizeof(info), "%d", beside[0]);
        argv[n++] = "--info-fd";
        argv[n++] = info;
    }
    argv[n++] = "--";
    n = put_shim(b, p, argv, n, beside[1], text);
    for (size_t i = 0; i < count; i++)
        argv[n++] = p->cmd[i];
    if (keep_open(b, p, beside) != 0)
        goto fail;
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execve(b->program, (char *const *)argv, no_environment);
fail:
    fprintf(stderr, "%s: cannot start %s: %s\n", b->verb, b->program, strerror(errno));
    _exit(1);
}

static bool file_says(const char *path, char c)
{
    char first = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t n = read(fd, &first, 1);
    close(fd);
    return n == 1 && first == c;
}

/* Never a weaker sandbox instead. */
int bwrap_explain(struct err *e)
{
    if (file_says("/proc/sys/kernel/unprivileged_userns_clone", '0'))
        return err_set(e, "the sandbox could not be set up and the command was not run: user namespaces are off for "
                          "ordinary users here (sysctl kernel.unprivileged_userns_clone=1 turns them on)");
    if (file_says("/proc/sys/user/max_user_namespaces", '0'))
        return err_set(e, "the sandbox could not be set up and the command was not run: no user namespaces are "
                          "allowed here (sysctl user.max_user_namespaces=15000 allows them)");
    if (file_says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
        return err_set(e, "the sandbox could not be set up and the command was not run: AppArmor restricts user "
                          "namespaces here (give bwrap a profile with `userns,`, or sysctl "
                          "kernel.apparmor_restrict_unprivileged_userns=0)");
    return err_set(e, "the sandbox could not be set up and the command was not run; bubblewrap's own words stand "
                      "above (inside a container, it must be allowed to make user namespaces)");
}
