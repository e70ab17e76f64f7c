#include "sandbox-shim/plan/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox-shim/plan/terminals.h"

enum { LEADER_ENDED = SIGUSR1 };

/* All are in its group still: a process of bubblewrap's leaves it (setsid) after its life was bound to the first
 * one's. This one, too. */
static void group_ends(int sig)
{
    (void)sig;
    (void)kill(0, SIGKILL);
}

static int leader_watch(pid_t leader)
{
    struct sigaction ends = {.sa_handler = group_ends};
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, LEADER_ENDED);
    if (sigaction(LEADER_ENDED, &ends, NULL) != 0 || sigprocmask(SIG_UNBLOCK, &one, NULL) != 0 ||
        prctl(PR_SET_PDEATHSIG, LEADER_ENDED) != 0)
        return -1;
    if (getppid() != leader)
        group_ends(0);
    return 0;
}

static void __attribute__((noreturn)) stand(const char *verb, pid_t leader, int info, int shim)
{
    char byte;
    ssize_t n = -1;

    if (leader_watch(leader) != 0) {
        fprintf(stderr, "%s: cannot watch the sandbox begin: %s\n", verb, strerror(errno));
        _exit(1);
    }
    do
        n = recv(shim, &byte, 1, 0);
    while (n < 0 && errno == EINTR);
    if (n != 1) /* it ended, and says why */
        _exit(1);
    if (info >= 0 && terminals_bound(info) != 0) {
        fprintf(stderr, "%s: its terminals cannot be bounded: %s\n", verb, strerror(errno));
        _exit(1);
    }
    _exit(send(shim, &byte, 1, MSG_NOSIGNAL) == 1 ? 0 : 1);
}

int beside_begin(const char *verb, bool terminals, int *info, int *wait)
{
    int reports[2] = {-1, -1}, talk[2] = {-1, -1};
    pid_t leader = getpid(), pid = -1;

    if ((!terminals || pipe2(reports, O_CLOEXEC) == 0) &&
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) == 0)
        pid = fork();
    if (pid == 0) {
        /* Nothing else of the sandbox's may stay open by this process. */
        if ((terminals && dup2(reports[0], STDIN_FILENO) != STDIN_FILENO) ||
            dup2(talk[0], STDOUT_FILENO) != STDOUT_FILENO || close_range(STDERR_FILENO + 1, ~0U, 0) != 0)
            _exit(1);
        stand(verb, leader, terminals ? STDIN_FILENO : -1, STDOUT_FILENO);
    }
    for (int i = 0; i < 2; i++) { /* the first of each is that process's; without it, nobody's */
        if (reports[i] >= 0 && (i == 0 || pid < 0))
            close(reports[i]);
        if (talk[i] >= 0 && (i == 0 || pid < 0))
            close(talk[i]);
    }
    *info = reports[1];
    *wait = talk[1];
    return pid < 0 ? -1 : 0;
}
