#include "cli/verbs/started/feed.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/verb.h"

enum { PATH_ROOM = 64, PIECE = 32 * 1024, ROOM_FD = 3 };

/* --- the process beside ------------------------------------------------------------ */

struct feeder {
    const char *sock;
    unsigned long long stream;
    uint64_t room; /* bytes that may be said */
    int resized;   /* readable when the terminal's size has changed; -1: there is none */
};

/* Without a word: what is wrong with the command or the gateway, the stream says. */
static int post(const struct feeder *f, const char *what, struct span bytes)
{
    struct dynbuf answer;
    char path[PATH_ROOM];
    unsigned status = 0;
    struct err e;

    (void)snprintf(path, sizeof(path), "/api/v1/streams/%llu/%s", f->stream, what);
    int rc = api_call(f->sock, "POST", path, bytes, &status, &answer, &e);
    dynbuf_free(&answer);
    return rc == 0 && status == 204 ? 0 : -1;
}

static void say_size(const struct feeder *f)
{
    struct signalfd_siginfo si;
    unsigned rows, columns;
    char body[64];

    while (read(f->resized, &si, sizeof(si)) == (ssize_t)sizeof(si))
        ;
    terminal_size(&rows, &columns);
    (void)snprintf(body, sizeof(body), "{\"rows\":%u,\"columns\":%u}", rows, columns);
    (void)!post(f, "resize", span_str(body));
}

/* As much of our input as there is room for. False: no more is wanted, or there. */
static bool say_input(struct feeder *f)
{
    static uint8_t bytes[PIECE];
    ssize_t n = read(STDIN_FILENO, bytes, f->room < PIECE ? (size_t)f->room : PIECE);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (post(f, "input", span_of(bytes, n > 0 ? (size_t)n : 0)) != 0 || n <= 0)
        return false;
    f->room -= (uint64_t)n;
    return true;
}

/* Until our input ends, or the one that follows the command does. */
static void feed(struct feeder *f)
{
    uint64_t more;

    for (;;) {
        struct pollfd p[] = {
            {ROOM_FD, POLLIN, 0}, {f->resized, POLLIN, 0}, {f->room > 0 ? STDIN_FILENO : -1, POLLIN, 0}};
        if (poll(p, 3, -1) < 0) {
            if (errno != EINTR)
                return;
        } else if (p[0].revents != 0) {
            if (read(ROOM_FD, &more, sizeof(more)) != (ssize_t)sizeof(more))
                return;
            f->room += more;
        } else if (p[1].revents != 0) {
            say_size(f);
        } else if (!say_input(f)) {
            return;
        }
    }
}

/* Nothing else of ours is open: the stream ends with whoever follows it. */
static void __attribute__((noreturn)) be_feeder(struct feeder *f, struct feed *of, int room)
{
    sigset_t winch;

    if (dup2(room, ROOM_FD) != ROOM_FD || close_range(ROOM_FD + 1, ~0U, 0) != 0)
        _exit(1);
    if (of->caller.raw) {
        sigemptyset(&winch);
        sigaddset(&winch, SIGWINCH);
        if (sigprocmask(SIG_BLOCK, &winch, NULL) == 0)
            f->resized = signalfd(-1, &winch, SFD_NONBLOCK | SFD_CLOEXEC);
        say_size(f); /* it may have changed since it was asked for */
    }
    feed(f);
    terminal_back(&of->caller); /* of one that was killed before it could */
    _exit(0);
}

/* --- its begin and end --------------------------------------------------------------- */

static struct terminal *switched;

/* Whatever ends us, but for what cannot be caught. */
static void put_back(int signo)
{
    terminal_back(switched);
    (void)raise(signo); /* when this returns, and by then it does what it does to anybody */
}

static int terminal_take(struct feed *f)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2};
    const struct sigaction back = {.sa_handler = put_back, .sa_flags = SA_RESETHAND};
    struct err e;

    switched = &f->caller;
    if (terminal_look(&f->caller, &e) != 0)
        return verb_fail(CLI_RUNTIME, "%s", e.text);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (sigaction(ends[i], &back, NULL) != 0)
            return verb_fail(CLI_RUNTIME, "the terminal could not be put back");
    return terminal_raw(&f->caller, &e) == 0 ? CLI_OK : verb_fail(CLI_RUNTIME, "%s", e.text);
}

int feed_begin(struct feed *f, const char *sock, struct span hello, bool terminal)
{
    struct feeder child = {.sock = sock, .resized = -1};
    struct arena a;
    int fd[2];

    arena_init(&a, API_EVENT_MAX);
    const struct json *j = json_parse(hello, &a);
    child.stream = member_u64(j, "stream");
    child.room = member_u64(j, "input");
    arena_free(&a);
    if (f->pid != 0 || (terminal && terminal_take(f) != CLI_OK))
        return CLI_RUNTIME;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
        return verb_fail(CLI_RUNTIME, "its standard input cannot be passed on");
    f->pid = fork();
    if (f->pid == 0)
        be_feeder(&child, f, fd[0]);
    close(fd[0]);
    f->more = fd[1];
    if (f->pid > 0)
        return CLI_OK;
    close(fd[1]);
    f->pid = 0;
    return verb_fail(CLI_RUNTIME, "its standard input cannot be passed on");
}

void feed_more(const struct feed *f, struct span data)
{
    uint64_t n;

    if (f->pid != 0 && span_u64(data, UINT32_MAX, &n) == 0)
        (void)!send(f->more, &n, sizeof(n), MSG_NOSIGNAL); /* it has gone if it has said all */
}

void feed_end(struct feed *f)
{
    if (f->pid != 0) {
        close(f->more);
        (void)kill(f->pid, SIGKILL); /* it may wait for a terminal */
        (void)waitpid(f->pid, NULL, 0);
        f->pid = 0;
    }
    terminal_back(&f->caller);
}
