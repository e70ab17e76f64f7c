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

#include "sandbox-shim/inside/shim_command.h"
#include "sandbox-shim/inside/diff/shim_image.h"
#include "sandbox-shim/inside/diff/shim_package.h"
#include "sandbox-shim/inside/doors/shim_doors.h"
#include "sandbox-shim/inside/shim_serve.h"

enum { POLL_RUN = 1, POLL_DOORS = 2, LANE_PART = 4 /* of the descriptors: connections, with two of them each */ };
struct shim {
    struct sockaddr_in listen;
    bool tty;
    rlim_t processes; /* of ours and the command's; 0: no limit */
    char **cmd;

    int run;    /* to `countersign run` or the warden; -1: none */
    int warden; /* the same, when it is the warden; 0: it is not */
    int wait;   /* to who sets up from outside what cannot be from inside; 0: nobody does */
    int lane;   /* of the warden's: the gateway's socket, as what it is in the file system; 0: no way out */
    bool captured;
    int signals;
    pid_t child;
    struct doors doors;
    struct pollfd poll[POLL_DOORS + DOORS_POLL];
};

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
enum { NFORWARDED = sizeof(forwarded) / sizeof(forwarded[0]) };

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
        "usage: countersign-shim --socket PATH --listen 127.0.0.1:PORT [--run FD] [--wait FD] [--captured] "
        "[--processes N] [--tty] -- CMD [ARG...]\n"
        "       countersign-shim --warden FD [--lane FD --listen 127.0.0.1:PORT] [--wait FD] [--processes N]");
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
            s->doors.socket = *++p;
        else if (strcmp(*p, "--listen") == 0 && p[1])
            listen_parse(s, *++p);
        else if (strcmp(*p, "--run") == 0 && p[1])
            s->run = descriptor_parse(*++p);
        else if (strcmp(*p, "--captured") == 0)
            s->captured = true;
        else if (strcmp(*p, "--warden") == 0 && p[1])
            s->warden = s->run = descriptor_parse(*++p);
        else if (strcmp(*p, "--lane") == 0 && p[1])
            s->lane = descriptor_parse(*++p);
        else if (strcmp(*p, "--wait") == 0 && p[1])
            s->wait = descriptor_parse(*++p);
        else if (strcmp(*p, "--processes") == 0 && p[1])
            s->processes = processes_parse(*++p);
        else
            usage();
    }
    if (s->warden > 0) { /* told there what to run; without a lane it has no way out */
        if (*p || s->doors.socket || (s->listen.sin_port != 0) != (s->lane > 0) || s->captured || s->tty)
            usage();
        return;
    }
    if (s->lane > 0 || !*p || !p[1] || !s->doors.socket || s->listen.sin_port == 0 || (s->captured && s->run < 0))
        usage();
    if (strlen(s->doors.socket) >= sizeof(a.sun_path))
        die(EXIT_SETUP, "the socket's path is too long");
    s->cmd = p + 1;
}

/* --- the loop ------------------------------------------------------------- */

/* Nothing that was left open outside is of use in here, but for what was named. */
static void descriptors_close(const struct shim *s)
{
    unsigned low = STDERR_FILENO + 1, keep[2] = {s->run < 0 ? 0 : (unsigned)s->run, (unsigned)s->lane};

    if (keep[0] > keep[1])
        keep[0] = (unsigned)s->lane, keep[1] = (unsigned)s->run;
    for (int i = 0; i < 2; i++) {
        if (keep[i] < low)
            continue;
        if ((keep[i] > low && close_range(low, keep[i] - 1, 0) != 0) || fcntl((int)keep[i], F_SETFD, FD_CLOEXEC) != 0)
            die(EXIT_SETUP, "cannot close inherited descriptors: %s", strerror(errno));
        low = keep[i] + 1;
    }
    if (close_range(low, ~0U, 0) != 0)
        die(EXIT_SETUP, "cannot close inherited descriptors: %s", strerror(errno));
}

/* Its ports, before anything in here runs. The socket is where no path in here leads: it is connected to by way of
 * the descriptor, which nobody else has. */
static void lane_open(struct shim *s)
{
    static struct steps steps;
    static char path[64];
    struct rlimit files;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", s->lane);
    s->doors.socket = path;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / LANE_PART < s->doors.most)
        s->doors.most = files.rlim_cur / LANE_PART;
    steps_begin(&steps, &s->listen);
    s->doors.steps = &steps;
    doors_open(&s->doors, &s->listen);
}

int main(int argc, char **argv)
{
    static struct shim s = {.run = -1, .doors.most = CONNS_MAX};

    if (argv[0] && argv[1] && strcmp(argv[1], "--push-diff") == 0)
        push_diff(argv + 2); /* a command in there, and no first process */
    if (argv[0] && argv[1] && strcmp(argv[1], PACKAGE_DIFF_MODE) == 0)
        package_diff(argv + 2);
    if (argv[0] && argv[1] && strcmp(argv[1], IMAGE_DIFF_MODE) == 0)
        image_diff(argv + 2);
    arguments_parse(&s, argv);
    if (s.wait > 0)
        outside_wait(s.wait, "how it ends, and how many terminals there may be");
    descriptors_close(&s);
    if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        die(EXIT_SETUP, "prctl: %s", strerror(errno));
    if (s.lane > 0)
        lane_open(&s);
    if (s.warden > 0)
        serve(s.warden, s.processes, &s.doors);
    s.signals = signals_watch(forwarded, NFORWARDED);
    doors_open(&s.doors, &s.listen);
    if (s.captured) {
        doors_capture(&s.doors);
        outside_wait(s.run, "what is captured");
    }
    command_start(&s);
    for (;;) {
        s.poll[0] = (struct pollfd){.fd = s.signals, .events = POLLIN};
        s.poll[POLL_RUN] = (struct pollfd){.fd = s.run, .events = POLLIN};
        int wait = doors_prepare(&s.doors, s.poll + POLL_DOORS);
        if (poll(s.poll, POLL_DOORS + doors_polled(&s.doors), wait) < 0) {
            if (errno == EINTR)
                continue;
            die(EXIT_SETUP, "poll: %s", strerror(errno));
        }
        if (s.poll[0].revents)
            signals_take(&s);
        if (s.poll[POLL_RUN].revents)
            exit(EXIT_SETUP); /* nothing more is ever said there: it has ended, and nobody waits for us */
        doors_step(&s.doors, s.poll + POLL_DOORS);
    }
}
