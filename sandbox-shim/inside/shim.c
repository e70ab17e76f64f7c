/* countersign-shim: the first process inside a sandbox. It listens on a loopback
 * port, starts the command, and carries each connection to the sandbox's own
 * Unix listener outside. libc only, no parsing, no credential.
 *
 *      CMD -- tcp 127.0.0.1:3128 --> shim -- unix socket --> (out) the gateway
 *      CMD -- tcp ANYWHERE:ANY   --> shim -- PROXY v2, then the same -->      (--captured)
 *      CMD -- dns ANYWHERE:53    --> shim: an address of our own              (--captured)
 *
 * It must never start the command without its listeners: a command whose relay is
 * missing would be cut off at best, and at worst find another one on that port.
 * The rules that lead here are set from outside, by `countersign run` (run/network.c):
 * the shim says one byte when its ports are open, and starts the command when it
 * gets one back. When that `run` is gone, so are we, at whatever moment. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_capture.h"
#include "sandbox-shim/inside/shim_command.h"
#include "sandbox-shim/inside/shim_relay.h"
#include "sandbox-shim/inside/shim_serve.h"

enum {
    CONNS_MAX = 256, /* past it, new connections wait in the kernel's backlog */
    RETRY_MS = 10,
    ACCEPT_PAUSE_MS = 100, /* after accept failed for want of descriptors or memory */
};

/* Where connections and questions come in. */
enum door_kind { DOOR_HTTP, DOOR_CAPTURED, DOOR_NAMES, DOOR_DATAGRAMS };
enum { DOORS_MAX = 7, POLL_RUN = 1, POLL_DOORS = 2, POLL_CONNS = POLL_DOORS + DOORS_MAX };
struct door {
    enum door_kind kind;
    int fd;
};

struct shim {
    const char *socket;
    struct sockaddr_in listen;
    bool tty;
    rlim_t processes; /* of ours and the command's; 0: no limit */
    char **cmd;

    int run;    /* to `countersign run` or the warden; -1: none */
    int warden; /* the same, when it is the warden; 0: it is not */
    int wait;   /* to who sets up from outside what cannot be from inside; 0: nobody does */
    bool captured;
    struct door door[DOORS_MAX];
    size_t ndoors;
    int signals;
    pid_t child;
    int64_t accept_after; /* 0: now */
    struct shim_conn *conn[CONNS_MAX];
    size_t nconns;
    struct pollfd poll[POLL_CONNS + 2 * CONNS_MAX];
};

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
enum { NFORWARDED = sizeof(forwarded) / sizeof(forwarded[0]) };

/* --- connections ------------------------------------------------------------ */

static void door_accept(struct shim *s, const struct door *d)
{
    uint8_t head[CAPTURE_HEADER_MAX];
    size_t nhead = 0;
    int fd = accept4(d->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            s->accept_after = now_ms() + ACCEPT_PAUSE_MS;
        return;
    }
    if (d->kind == DOOR_CAPTURED && (nhead = capture_header(fd, head)) == 0) {
        close(fd); /* somebody connected to this port itself */
        return;
    }
    struct shim_conn *c = shim_conn_new(d->kind == DOOR_HTTP       ? CONN_HTTP
                                        : d->kind == DOOR_CAPTURED ? CONN_CAPTURED
                                                                   : CONN_NAMES,
                                        fd, head, nhead, s->socket);
    if (c && c->broken)
        shim_conn_free(c);
    else if (c)
        s->conn[s->nconns++] = c;
}

/* --- the command ---------------------------------------------------------- */

static void __attribute__((noreturn)) command_exec(const struct shim *s)
{
    /* Its own group (or, on a terminal, its own session), so that a signal reaches a whole pipeline. */
    if (s->tty) {
        if (setsid() < 0 || ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0)
            die(EXIT_SETUP, "cannot take the terminal: %s", strerror(errno));
    } else if (setpgid(0, 0) != 0) {
        die(EXIT_SETUP, "cannot make a process group: %s", strerror(errno));
    }
    command_become(s->cmd, s->processes);
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

static void listener_open(struct shim *s)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, (struct sockaddr *)&s->listen, sizeof(s->listen)) != 0 || listen(fd, SOMAXCONN) != 0)
        die(EXIT_SETUP, "cannot listen on 127.0.0.1:%d: %s; the command was not started", ntohs(s->listen.sin_port),
            strerror(errno));
    s->door[s->ndoors++] = (struct door){DOOR_HTTP, fd};
}

/* Without IPv6 in here (no ::1) there is nothing of it to capture. */
static void captured_open(struct shim *s)
{
    static const struct {
        enum door_kind kind;
        int type;
        uint16_t port;
    } wanted[] = {{DOOR_CAPTURED, SOCK_STREAM, CAPTURE_PORT},
                  {DOOR_NAMES, SOCK_STREAM, CAPTURE_NAMES_PORT},
                  {DOOR_DATAGRAMS, SOCK_DGRAM, CAPTURE_NAMES_PORT}};

    for (size_t i = 0; i < 2 * sizeof(wanted) / sizeof(*wanted); i++) {
        int family = i % 2 ? AF_INET6 : AF_INET;
        int fd = capture_open(family, wanted[i / 2].type, wanted[i / 2].port);
        if (fd < 0 && family == AF_INET6 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
            continue;
        if (fd < 0)
            die(EXIT_SETUP, "cannot listen on port %u for what is captured: %s; the command was not started",
                wanted[i / 2].port, strerror(errno));
        s->door[s->ndoors++] = (struct door){wanted[i / 2].kind, fd};
    }
}

/* Those outside set up now what is to be; they say why when they cannot. */
static void outside_wait(int fd, const char *what)
{
    char byte = 0;
    ssize_t n;

    if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
        die(EXIT_SETUP, "nobody sets up %s; nothing was started", what);
    do
        n = recv(fd, &byte, 1, 0);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        die(EXIT_SETUP, "%s could not be set up; nothing was started", what);
}

static void __attribute__((noreturn)) usage(void)
{
    die(EXIT_SETUP,
        "usage: countersign-shim --socket PATH --listen 127.0.0.1:PORT [--run FD] [--captured] [--processes N] "
        "[--tty] -- CMD [ARG...]\n"
        "       countersign-shim --warden FD [--wait FD] [--processes N]");
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

static int descriptor_parse(const char *text)
{
    char *end;
    long fd = strtol(text, &end, 10);

    if (*end != '\0' || fd <= STDERR_FILENO || fd > INT16_MAX)
        usage();
    return (int)fd;
}

static rlim_t processes_parse(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*end != '\0' || n == 0 || n > INT32_MAX)
        usage();
    return (rlim_t)n;
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
        else if (strcmp(*p, "--run") == 0 && p[1])
            s->run = descriptor_parse(*++p);
        else if (strcmp(*p, "--captured") == 0)
            s->captured = true;
        else if (strcmp(*p, "--warden") == 0 && p[1])
            s->warden = s->run = descriptor_parse(*++p);
        else if (strcmp(*p, "--wait") == 0 && p[1])
            s->wait = descriptor_parse(*++p);
        else if (strcmp(*p, "--processes") == 0 && p[1])
            s->processes = processes_parse(*++p);
        else
            usage();
    }
    if (s->warden > 0) { /* without a way out, and told there what to run */
        if (*p || s->socket || s->listen.sin_port != 0 || s->captured || s->tty)
            usage();
        return;
    }
    if (s->wait > 0 || !*p || !p[1] || !s->socket || s->listen.sin_port == 0 || (s->captured && s->run < 0))
        usage();
    if (strlen(s->socket) >= sizeof(a.sun_path))
        die(EXIT_SETUP, "the socket's path is too long");
    s->cmd = p + 1;
}

/* --- the loop ------------------------------------------------------------- */

static int poll_prepare(struct shim *s)
{
    int wait = -1;
    bool open = s->nconns < CONNS_MAX;

    if (s->accept_after != 0 && now_ms() >= s->accept_after)
        s->accept_after = 0;
    if (s->accept_after != 0)
        wait = ACCEPT_PAUSE_MS;
    s->poll[0] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    s->poll[POLL_RUN] = (struct pollfd){.fd = s->run, .events = POLLIN};
    for (size_t i = 0; i < DOORS_MAX; i++) {
        bool now = i < s->ndoors && (s->door[i].kind == DOOR_DATAGRAMS || (open && s->accept_after == 0));
        s->poll[POLL_DOORS + i] = (struct pollfd){.fd = now ? s->door[i].fd : -1, .events = POLLIN};
    }
    for (size_t k = 0; k < s->nconns; k++) {
        for (int i = 0; i < 2; i++) {
            short events = shim_conn_interest(s->conn[k], i);
            /* Without interest not even a hang-up may wake us: it would do so for ever. */
            s->poll[POLL_CONNS + 2 * k + (size_t)i] =
                (struct pollfd){.fd = events ? s->conn[k]->fd[i] : -1, .events = events};
        }
        if (s->conn[k]->try_until != 0)
            wait = RETRY_MS;
    }
    return wait;
}

static void conns_step(struct shim *s, size_t polled)
{
    for (size_t k = polled; k-- > 0;) {
        struct shim_conn *c = s->conn[k];
        const struct pollfd *p = &s->poll[POLL_CONNS + 2 * k];
        short revents[2] = {p[0].revents, p[1].revents};
        if (c->try_until != 0)
            shim_conn_connect(c, s->socket);
        if (shim_conn_step(c, revents) == 0)
            continue;
        shim_conn_free(c);
        s->conn[k] = s->conn[--s->nconns];
    }
}

static void doors_step(struct shim *s)
{
    for (size_t i = 0; i < s->ndoors; i++) {
        if (!s->poll[POLL_DOORS + i].revents)
            continue;
        if (s->door[i].kind == DOOR_DATAGRAMS)
            capture_names(s->door[i].fd);
        else if (s->nconns < CONNS_MAX)
            door_accept(s, &s->door[i]);
    }
}

/* Nothing that was left open outside is of use in here, but for the one that was named. */
static void descriptors_close(const struct shim *s)
{
    unsigned keep = (unsigned)s->run;

    if (s->run < 0 ? close_range(STDERR_FILENO + 1, ~0U, 0) != 0
                   : (keep > STDERR_FILENO + 1 && close_range(STDERR_FILENO + 1, keep - 1, 0) != 0) ||
                         close_range(keep + 1, ~0U, 0) != 0 || fcntl(s->run, F_SETFD, FD_CLOEXEC) != 0)
        die(EXIT_SETUP, "cannot close inherited descriptors: %s", strerror(errno));
}

int main(int argc, char **argv)
{
    static struct shim s = {.run = -1};

    arguments_parse(&s, argv);
    if (s.wait > 0)
        outside_wait(s.wait, "how many terminals there may be");
    descriptors_close(&s);
    if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        die(EXIT_SETUP, "prctl: %s", strerror(errno));
    if (s.warden > 0)
        serve(s.warden, s.processes);
    s.signals = signals_watch(forwarded, NFORWARDED);
    listener_open(&s);
    if (s.captured) {
        captured_open(&s);
        outside_wait(s.run, "what is captured");
    }
    command_start(&s);
    for (;;) {
        int wait = poll_prepare(&s);
        size_t polled = s.nconns;
        if (poll(s.poll, (nfds_t)(POLL_CONNS + 2 * polled), wait) < 0) {
            if (errno == EINTR)
                continue;
            die(EXIT_SETUP, "poll: %s", strerror(errno));
        }
        if (s.poll[0].revents)
            signals_take(&s);
        if (s.poll[POLL_RUN].revents)
            exit(EXIT_SETUP); /* nothing more is ever said there: it has ended, and nobody waits for us */
        conns_step(&s, polled);
        doors_step(&s);
    }
}
