#include "sandbox-shim/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json/json.h"
#include "sandbox-shim/plan/bwrap.h"
#include "sandbox-shim/run/network.h"
#include "sandbox-shim/run/pty.h"

enum { STATUS_MAX = 4096 };

struct spawn {
    pid_t bwrap;
    int inside;  /* pidfd of the first process inside, or -1 */
    pid_t shim;  /* the same as a number */
    int talk[2]; /* to the shim, and the shim's end: transparent sets up the network by it; it ends with us */
    const char *nft;
    int reports; /* read end of --json-status-fd */
    int signals;
    struct dynbuf line;
    bool ended, has_exit;
    int exit_code;
    struct pty pty;
};

static const int caught[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
enum { NCAUGHT = sizeof(caught) / sizeof(caught[0]) };

int spawn_check_stdio(struct err *e)
{
    struct stat st;

    for (int fd = 0; fd < 3; fd++) {
        if (fstat(fd, &st) != 0) {
            if (open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
                return err_errno(e, "descriptor %d is closed and cannot be replaced", fd);
        } else if (S_ISDIR(st.st_mode)) {
            return err_set(e, "descriptor %d is a directory, which would be a way out of the sandbox", fd);
        }
    }
    return 0;
}

/* {"child-pid": N, ...} when the namespaces are there, {"exit-code": N} when the
 * command ended; without the second the command never ran. */
static void report_take(struct spawn *s, struct span line)
{
    struct arena a;
    const struct json *j;
    uint64_t n;

    arena_init(&a, 64 * 1024);
    j = json_parse(line, &a);
    if (j && json_u64(j, SPAN("child-pid"), &n) == 0 && n > 1 && n < INT32_MAX && s->inside < 0) {
        s->shim = (pid_t)n;
        s->inside = pidfd_open(s->shim, 0);
    }
    if (j && json_u64(j, SPAN("exit-code"), &n) == 0 && n < 256) {
        s->has_exit = true;
        s->exit_code = (int)n;
    }
    arena_free(&a);
}

static void reports_read(struct spawn *s)
{
    uint8_t *to;
    ssize_t n;

    while ((to = dynbuf_room(&s->line, 512)) && (n = read(s->reports, to, 512)) > 0) {
        dynbuf_grew(&s->line, (size_t)n);
        for (;;) {
            struct span all = dynbuf_span(&s->line);
            size_t end = span_index(all, '\n');
            if (end == all.n)
                break;
            report_take(s, span_first(all, end));
            dynbuf_drop(&s->line, end + 1);
        }
    }
}

static void signals_take(struct spawn *s)
{
    struct signalfd_siginfo si;

    while (read(s->signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
        int sig = (int)si.ssi_signo, status;
        if (sig == SIGCHLD) {
            if (waitpid(s->bwrap, &status, WNOHANG) == s->bwrap)
                s->ended = true;
        } else if (sig == SIGWINCH && s->pty.master >= 0) {
            pty_resize(&s->pty); /* the kernel tells those inside */
        } else if (s->inside >= 0) {
            (void)pidfd_send_signal(s->inside, sig, NULL, 0);
        } else if (sig != SIGWINCH) {
            (void)kill(s->bwrap, SIGKILL); /* still setting up */
        }
    }
}

/* The shim's ports are open: now what leads there, and then its word to go on. */
static int talk_take(struct spawn *s, struct err *e)
{
    char byte = 1;

    if (recv(s->talk[0], &byte, 1, 0) != 1 || s->nft == NULL)
        return 0; /* it ended, and says why on stderr */
    if (s->inside < 0)
        return err_set(e, "bubblewrap did not say which process is the sandbox's");
    if (network_set_up(s->nft, s->shim, s->inside, e) != 0)
        return -1;
    return send(s->talk[0], &byte, 1, MSG_NOSIGNAL) == 1 ? 0 : err_errno(e, "the sandbox ended");
}

static int spawn_loop(struct spawn *s, struct err *e)
{
    enum { FIRST = 3 };
    struct pollfd p[FIRST + PTY_POLLS] = {{.fd = s->signals, .events = POLLIN},
                                          {.fd = s->reports, .events = POLLIN},
                                          {.fd = s->talk[0], .events = POLLIN}};

    while (!s->ended) {
        pty_prepare(&s->pty, p + FIRST);
        if (poll(p, FIRST + PTY_POLLS, -1) < 0) {
            if (errno != EINTR)
                return err_errno(e, "poll");
            continue;
        }
        pty_carry(&s->pty, p + FIRST);
        if (p[1].revents) {
            reports_read(s);
            if (p[1].revents & (POLLHUP | POLLERR))
                p[1].fd = -1;
        }
        if (p[2].revents) {
            p[2].fd = -1; /* once */
            reports_read(s);
            if (talk_take(s, e) != 0)
                return -1;
        }
        if (p[0].revents)
            signals_take(s);
    }
    reports_read(s); /* what came between the last look and the end */
    return 0;
}

static void spawn_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int spawn_run(const char *bwrap, const char *nft, struct plan *p, int *status, struct err *e)
{
    struct spawn s = {.inside = -1, .reports = -1, .signals = -1, .talk = {-1, -1}, .nft = nft};
    int pipe_fd[2] = {-1, -1}, rc = -1;
    sigset_t set, old;

    pty_none(&s.pty);
    sigemptyset(&set);
    for (size_t i = 0; i < NCAUGHT; i++)
        sigaddset(&set, caught[i]);
    dynbuf_init(&s.line, STATUS_MAX);
    (void)signal(SIGCHLD, SIG_DFL);
    if (sigprocmask(SIG_BLOCK, &set, &old) != 0)
        return err_errno(e, "cannot block signals");
    s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s.signals < 0 || pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s.talk) != 0) {
        (void)err_errno(e, "cannot watch the sandbox");
        goto out;
    }
    s.reports = pipe_fd[0];
    if (terminal_here() && pty_open(&s.pty, e) != 0)
        goto out;
    s.bwrap = fork();
    if (s.bwrap == 0) {
        if (s.pty.slave >= 0 && pty_become(&s.pty) != 0) {
            perror("countersign run: the terminal");
            _exit(1);
        }
        bwrap_become(&(struct bwrap){bwrap, "countersign run", pipe_fd[1], s.talk[1], s.pty.slave >= 0}, p);
    }
    spawn_close(&pipe_fd[1]);
    spawn_close(&s.talk[1]);
    if (s.bwrap < 0) {
        (void)err_errno(e, "cannot fork");
        goto out;
    }
    rc = pty_begin(&s.pty, e);
    if (rc == 0)
        rc = spawn_loop(&s, e);
    if (rc != 0 && kill(s.bwrap, SIGKILL) == 0)
        (void)waitpid(s.bwrap, NULL, 0);
    pty_end(&s.pty);
    if (rc == 0 && !s.has_exit)
        rc = bwrap_explain(e);
    *status = s.exit_code;
out:
    pty_end(&s.pty);
    spawn_close(&pipe_fd[1]);
    spawn_close(&s.talk[0]);
    spawn_close(&s.talk[1]);
    spawn_close(&s.reports);
    spawn_close(&s.signals);
    spawn_close(&s.inside);
    dynbuf_free(&s.line);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    return rc;
}
