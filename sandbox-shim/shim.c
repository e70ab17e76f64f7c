/* countersign-shim: the first process inside a sandbox. It listens on a loopback
 * port, starts the command, and carries each connection to the sandbox's own
 * Unix listener outside. libc only, no parsing, no credential.
 *
 *      CMD -- tcp 127.0.0.1:3128 --> shim -- unix socket --> (out) the gateway
 *
 * It must never start the command without its listener: a command whose relay is
 * missing would be cut off at best, and at worst find another one on that port. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNS_MAX = 256,        /* past it, new connections wait in the kernel's backlog */
    WAY_BYTES = 32 * 1024,  /* buffered per direction */
    CONNECT_WAIT_MS = 5000, /* how long a full backlog outside is tried again */
    RETRY_MS = 10,
    ACCEPT_PAUSE_MS = 100, /* after accept failed for want of descriptors or memory */
    EXIT_SETUP = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
};

/* Bytes on their way from one end to the other. */
struct way {
    size_t off, end; /* buf[off..end) is still to be written */
    bool eof;        /* the reading end said it is done */
    bool shut;       /* and the writing end has been told */
    uint8_t buf[WAY_BYTES];
};

struct conn {
    int fd[2];         /* 0: the client inside; 1: the gateway, -1 while not connected */
    int64_t try_until; /* still connecting; 0: no longer */
    bool refused;      /* the gateway cannot be reached; way[1] holds the answer that says so */
    struct way way[2]; /* way[i] goes from fd[i] to fd[1 - i] */
};

struct shim {
    const char *socket;
    struct sockaddr_in listen;
    bool tty;
    char **cmd;

    int listener, signals;
    pid_t child;
    int64_t accept_after; /* 0: now */
    struct conn *conn[CONNS_MAX];
    size_t nconns;
    struct pollfd poll[2 + 2 * CONNS_MAX];
};

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
enum { NFORWARDED = sizeof(forwarded) / sizeof(forwarded[0]) };

static const char unreachable[] = "HTTP/1.1 503 The gateway outside this sandbox cannot be reached\r\n"
                                  "Content-Type: text/plain\r\nConnection: close\r\n\r\n"
                                  "The gateway outside this sandbox cannot be reached. Nothing was sent. "
                                  "Try again once it runs.\n";

static void __attribute__((noreturn, format(printf, 2, 3))) die(int status, const char *fmt, ...)
{
    va_list ap;

    fputs("countersign-shim: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(status);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- one connection ------------------------------------------------------- */

static void conn_free(struct conn *c)
{
    for (int i = 0; i < 2; i++)
        if (c->fd[i] >= 0)
            close(c->fd[i]);
    free(c);
}

/* Not a silent close: the client gets words it can print. */
static void conn_refuse(struct conn *c)
{
    struct way *w = &c->way[1];

    c->refused = true;
    c->try_until = 0;
    memcpy(w->buf, unreachable, sizeof(unreachable) - 1);
    w->end = sizeof(unreachable) - 1;
    w->eof = true;
    c->way[0].shut = true; /* nobody to tell */
}

/* Connect, or find out that it cannot be, or leave it for the next round: a full
 * backlog is EAGAIN on a Unix socket and no poll tells when there is room. */
static void conn_connect(struct conn *c, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        conn_refuse(c);
        return;
    }
    memcpy(a.sun_path, path, strlen(path)); /* length checked at the start */
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0) {
        c->fd[1] = fd;
        c->try_until = 0;
        return;
    }
    int why = errno;
    close(fd);
    if (why != EAGAIN || now_ms() >= c->try_until)
        conn_refuse(c);
}

/* What to wait for on end i. */
static short conn_interest(const struct conn *c, int i)
{
    short events = 0;

    if (c->fd[i] < 0)
        return 0;
    if (!c->way[i].eof && c->way[i].end < WAY_BYTES && c->try_until == 0)
        events |= POLLIN;
    if (c->way[1 - i].off < c->way[1 - i].end)
        events |= POLLOUT;
    return events;
}

static int way_read(struct way *w, int fd)
{
    ssize_t n = recv(fd, w->buf + w->end, WAY_BYTES - w->end, 0);

    if (n > 0)
        w->end += (size_t)n;
    else if (n == 0)
        w->eof = true;
    else if (errno != EAGAIN && errno != EINTR)
        return -1;
    return 0;
}

static int way_write(struct way *w, int fd)
{
    while (w->off < w->end) {
        ssize_t n = send(fd, w->buf + w->off, w->end - w->off, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        w->off += (size_t)n;
    }
    w->off = w->end = 0;
    if (w->eof && !w->shut) {
        /* Half-close: the other direction may go on. */
        if (shutdown(fd, SHUT_WR) != 0 && errno != ENOTCONN)
            return -1;
        w->shut = true;
    }
    return 0;
}

/* Move what can be moved. -1: the connection is over, or broken. */
static int conn_step(struct conn *c, const short revents[2])
{
    for (int i = 0; i < 2; i++)
        if ((revents[i] & (POLLIN | POLLHUP | POLLERR)) && !c->way[i].eof && c->way[i].end < WAY_BYTES &&
            way_read(&c->way[i], c->fd[i]) != 0)
            return -1;
    if (c->refused)
        c->way[0].off = c->way[0].end = 0; /* read and dropped, so that our answer is not reset away */
    for (int i = 0; i < 2; i++)
        if (c->fd[1 - i] >= 0 && way_write(&c->way[i], c->fd[1 - i]) != 0)
            return -1;
    if (c->refused)
        return c->way[1].shut && c->way[0].eof ? -1 : 0;
    return c->way[0].shut && c->way[1].shut ? -1 : 0;
}

static void conn_accept(struct shim *s)
{
    int one = 1, fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            s->accept_after = now_ms() + ACCEPT_PAUSE_MS;
        return;
    }
    struct conn *c = calloc(1, sizeof(*c));
    if (!c) {
        close(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    c->fd[0] = fd;
    c->fd[1] = -1;
    c->try_until = now_ms() + CONNECT_WAIT_MS;
    conn_connect(c, s->socket);
    s->conn[s->nconns++] = c;
}

/* --- the command ---------------------------------------------------------- */

static void __attribute__((noreturn)) command_exec(const struct shim *s)
{
    sigset_t none;

    /* Its own group (or, on a terminal, its own session), so that a signal reaches a whole pipeline. */
    if (s->tty) {
        if (setsid() < 0 || ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0)
            die(EXIT_SETUP, "cannot take the terminal: %s", strerror(errno));
    } else if (setpgid(0, 0) != 0) {
        die(EXIT_SETUP, "cannot make a process group: %s", strerror(errno));
    }
    /* Everything here is CLOEXEC; this is the second lock on the door. */
    if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
        die(EXIT_SETUP, "cannot close descriptors: %s", strerror(errno));
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_DFL);
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0)
        die(EXIT_SETUP, "cannot unblock signals: %s", strerror(errno));
    execvp(s->cmd[0], s->cmd);
    int why = errno;
    die(why == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "cannot run %s: %s", s->cmd[0], strerror(why));
}

static void command_start(struct shim *s)
{
    pid_t pid = fork();

    if (pid < 0)
        die(EXIT_SETUP, "cannot fork: %s", strerror(errno));
    if (pid == 0)
        command_exec(s);
    if (!s->tty)
        (void)setpgid(pid, pid); /* also here: whoever comes first */
    s->child = pid;
}

/* As pid 1 we inherit every orphan. When the command itself ended, so do we, and
 * with us everything left in this pid namespace. */
static void children_reap(const struct shim *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != s->child)
            continue;
        exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (pid < 0 && errno == ECHILD)
        die(EXIT_SETUP, "lost the command");
}

static void signals_take(struct shim *s)
{
    struct signalfd_siginfo si;

    while (read(s->signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
        if (si.ssi_signo == SIGCHLD)
            children_reap(s);
        else if (kill(-s->child, (int)si.ssi_signo) != 0)
            (void)kill(s->child, (int)si.ssi_signo);
    }
}

/* --- start ---------------------------------------------------------------- */

static void signals_open(struct shim *s)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < NFORWARDED; i++)
        sigaddset(&set, forwarded[i]);
    (void)signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would eat the status */
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        die(EXIT_SETUP, "cannot block signals: %s", strerror(errno));
    s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (s->signals < 0)
        die(EXIT_SETUP, "cannot watch signals: %s", strerror(errno));
}

static void listener_open(struct shim *s)
{
    int one = 1;

    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->listener < 0 || setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(s->listener, (struct sockaddr *)&s->listen, sizeof(s->listen)) != 0 ||
        listen(s->listener, SOMAXCONN) != 0)
        die(EXIT_SETUP, "cannot listen on 127.0.0.1:%d: %s; the command was not started", ntohs(s->listen.sin_port),
            strerror(errno));
}

static void __attribute__((noreturn)) usage(void)
{
    die(EXIT_SETUP, "usage: countersign-shim --socket PATH --listen 127.0.0.1:PORT [--tty] -- CMD [ARG...]");
}

/* "127.x.y.z:port". Only loopback: this port is for the processes in here. */
static void listen_parse(struct shim *s, const char *text)
{
    char host[INET_ADDRSTRLEN], *end;
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;

    if (n == 0 || n >= sizeof(host))
        usage();
    memcpy(host, text, n);
    host[n] = '\0';
    long port = strtol(colon + 1, &end, 10);
    if (inet_pton(AF_INET, host, &s->listen.sin_addr) != 1 || *end != '\0' || port < 1 || port > 65535)
        usage();
    if (ntohl(s->listen.sin_addr.s_addr) >> 24 != 127)
        die(EXIT_SETUP, "%s is not a loopback address", host);
    s->listen.sin_family = AF_INET;
    s->listen.sin_port = htons((uint16_t)port);
}

static void arguments_parse(struct shim *s, char **argv)
{
    struct sockaddr_un a;
    char **p = argv + 1;

    for (; *p && strcmp(*p, "--") != 0; p++) {
        if (strcmp(*p, "--tty") == 0)
            s->tty = true;
        else if (strcmp(*p, "--socket") == 0 && p[1])
            s->socket = *++p;
        else if (strcmp(*p, "--listen") == 0 && p[1])
            listen_parse(s, *++p);
        else
            usage();
    }
    if (!*p || !p[1] || !s->socket || s->listen.sin_port == 0)
        usage();
    if (strlen(s->socket) >= sizeof(a.sun_path))
        die(EXIT_SETUP, "the socket's path is too long");
    s->cmd = p + 1;
}

/* --- the loop ------------------------------------------------------------- */

static int poll_prepare(struct shim *s)
{
    int wait = -1;

    if (s->accept_after != 0 && now_ms() >= s->accept_after)
        s->accept_after = 0;
    if (s->accept_after != 0)
        wait = ACCEPT_PAUSE_MS;
    s->poll[0] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    s->poll[1] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (s->nconns < CONNS_MAX && s->accept_after == 0)
        s->poll[1].fd = s->listener;
    for (size_t k = 0; k < s->nconns; k++) {
        for (int i = 0; i < 2; i++) {
            short events = conn_interest(s->conn[k], i);
            /* Without interest not even a hang-up may wake us: it would do so for ever. */
            s->poll[2 + 2 * k + (size_t)i] = (struct pollfd){.fd = events ? s->conn[k]->fd[i] : -1, .events = events};
        }
        if (s->conn[k]->try_until != 0)
            wait = RETRY_MS;
    }
    return wait;
}

static void conns_step(struct shim *s, size_t polled)
{
    for (size_t k = polled; k-- > 0;) {
        struct conn *c = s->conn[k];
        short revents[2] = {s->poll[2 + 2 * k].revents, s->poll[3 + 2 * k].revents};
        if (c->try_until != 0)
            conn_connect(c, s->socket);
        if (conn_step(c, revents) == 0)
            continue;
        conn_free(c);
        s->conn[k] = s->conn[--s->nconns];
    }
}

int main(int argc, char **argv)
{
    static struct shim s;

    /* Nothing that was left open outside is of use in here. */
    if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0)
        die(EXIT_SETUP, "cannot close inherited descriptors: %s", strerror(errno));
    arguments_parse(&s, argv);
    if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        die(EXIT_SETUP, "prctl: %s", strerror(errno));
    signals_open(&s);
    listener_open(&s);
    command_start(&s);
    for (;;) {
        int wait = poll_prepare(&s);
        size_t polled = s.nconns;
        if (poll(s.poll, (nfds_t)(2 + 2 * polled), wait) < 0) {
            if (errno == EINTR)
                continue;
            die(EXIT_SETUP, "poll: %s", strerror(errno));
        }
        if (s.poll[0].revents)
            signals_take(&s);
        conns_step(&s, polled);
        if (s.poll[1].revents)
            conn_accept(&s);
    }
}
