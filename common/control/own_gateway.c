#include "common/control/own_gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/control/exit.h"

/* A gateway that ends tells at once: its pipe ends. The waits are for one that hangs, and longer than a busy machine
   needs (a program that is asked for the master key has 30 s of its own). */
enum { READY_WAIT_MS = 600 * 1000, END_WAIT_MS = 60 * 1000 };

static void __attribute__((noreturn)) become_gateway(const char *const argv[], int ready)
{
    int null = open("/dev/null", O_RDONLY);

    /* Its own group: a Ctrl-C meant for the command must not take the gateway from under it. */
    if (null >= 0 && dup2(null, 0) == 0 && setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 &&
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0 && fcntl(ready, F_SETFD, 0) == 0)
        (void)execv("/proc/self/exe", (char *const *)argv);
    fprintf(stderr, "countersign: cannot start the gateway: %s\n", strerror(errno));
    _exit(1);
}

/* One byte means ready; the end of the pipe means it gave up (and said why on stderr). */
static int ready_wait(int fd, struct err *e)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;
    int rc;

    do
        rc = poll(&p, 1, READY_WAIT_MS);
    while (rc < 0 && errno == EINTR);
    if (rc == 0)
        return err_set(e, "the gateway was not ready within %d seconds", READY_WAIT_MS / 1000);
    if (rc < 0 || read(fd, &byte, 1) != 1)
        return err_set(e, "the gateway did not start; its words stand above");
    return 0;
}

int own_gateway_stop(pid_t *pid)
{
    int pidfd, status = -1;

    if (*pid <= 0)
        return -1;
    (void)kill(*pid, SIGTERM);
    pidfd = pidfd_open(*pid, 0);
    if (pidfd >= 0) {
        struct pollfd p = {.fd = pidfd, .events = POLLIN};
        if (poll(&p, 1, END_WAIT_MS) == 0)
            (void)kill(*pid, SIGKILL);
        close(pidfd);
    }
    if (waitpid(*pid, &status, 0) != *pid || !WIFEXITED(status))
        status = -1;
    *pid = 0;
    return status < 0 ? -1 : WEXITSTATUS(status);
}

int own_gateway_start(const char *state_dir, const char *const *more, pid_t *pid, struct err *e)
{
    char number[16];
    const char *argv[8 + OWN_GATEWAY_MORE + 1] = {"countersign", "up",        "--state-dir", state_dir,
                                                  "--quiet",     "--private", "--ready-fd",  number};
    int pipe_fd[2], rc, status;

    for (size_t i = 0; i < OWN_GATEWAY_MORE && more[i] != NULL; i++)
        argv[8 + i] = more[i];

    if (pipe2(pipe_fd, O_CLOEXEC) != 0) {
        (void)err_errno(e, "cannot start the gateway");
        return CLI_RUNTIME;
    }
    (void)snprintf(number, sizeof(number), "%d", pipe_fd[1]);
    *pid = fork();
    if (*pid == 0)
        become_gateway(argv, pipe_fd[1]);
    close(pipe_fd[1]);
    if (*pid < 0) {
        close(pipe_fd[0]);
        *pid = 0;
        (void)err_errno(e, "cannot start the gateway");
        return CLI_RUNTIME;
    }
    rc = ready_wait(pipe_fd[0], e);
    close(pipe_fd[0]);
    if (rc == 0)
        return CLI_OK;
    status = own_gateway_stop(pid);
    return status == CLI_INVALID || status == CLI_STORE ? status : CLI_RUNTIME;
}
