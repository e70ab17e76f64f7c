#include "sandbox-shim/inside/shim_command.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

void die(int status, const char *fmt, ...)
{
    va_list ap;

    fputs("countersign-shim: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(status);
}

void command_become(char *const argv[], rlim_t processes)
{
    sigset_t none;

    /* Everything here is CLOEXEC; this is the second lock on the door. */
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
        die(EXIT_SETUP, "cannot close descriptors: %s", strerror(errno));
    /* Here, where the kernel counts those of this user namespace alone: we are one of them. */
    const struct rlimit most = {.rlim_cur = processes + 1, .rlim_max = processes + 1};
    if (processes != 0 && setrlimit(RLIMIT_NPROC, &most) != 0)
        die(EXIT_SETUP, "cannot limit the processes: %s", strerror(errno));
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_DFL);
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0)
        die(EXIT_SETUP, "cannot unblock signals: %s", strerror(errno));
    execvp(argv[0], argv);
    int why = errno;
    die(why == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "cannot run %s: %s", argv[0], strerror(why));
}

int signals_watch(const int *signals, unsigned n)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (unsigned i = 0; i < n; i++)
        sigaddset(&set, signals[i]);
    (void)signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would eat the status */
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        die(EXIT_SETUP, "cannot block signals: %s", strerror(errno));
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        die(EXIT_SETUP, "cannot watch signals: %s", strerror(errno));
    return fd;
}
