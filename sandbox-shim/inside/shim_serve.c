#include "sandbox-shim/inside/shim_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_command.h"
#include "sandbox-shim/inside/shim_talk.h"

enum {
    OUT_MAX = 256 * 1024,
    END_ROOM = TALK_HEAD + 64 + TALK_WHY_MAX, /* of a TALK_END */
    POLL_WARDEN = 0,
    POLL_SIGNALS = 1,
    POLL_RUNS = 2,
};

struct run {
    uint32_t id;
    pid_t pid;       /* 0: this place is free */
    int fd[2];       /* what its standard output and error come out of; -1: at its end */
    uint32_t credit; /* bytes that may be said */
    bool ended;
    int status;
    struct rusage used;
};

struct serve {
    int warden, signals;
    rlim_t processes;
    struct run run[TALK_RUNS_MAX];
    size_t nin, nout;
    uint8_t in[TALK_HEAD + TALK_PAYLOAD_MAX], out[OUT_MAX];
    char *word[TALK_WORDS_MAX + 1];
};

/* --- the way out ------------------------------------------------------------ */

static uint8_t *put_number(uint8_t *at, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
    return at + bytes;
}

static void flush(struct serve *s)
{
    ssize_t n = s->nout ? send(s->warden, s->out, s->nout, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        exit(EXIT_SETUP);
    if (n > 0) {
        s->nout -= (size_t)n;
        memmove(s->out, s->out + n, s->nout);
    }
}

static size_t room(const struct serve *s)
{
    return OUT_MAX - s->nout;
}

/* The payload begins here; the caller has seen to it that there is room. */
static uint8_t *say(struct serve *s, enum talk_type type, uint32_t run, size_t bytes)
{
    uint8_t *at = s->out + s->nout;

    s->nout += TALK_HEAD + bytes;
    at = put_number(at, bytes, 4);
    at = put_number(at, type, 1);
    return put_number(at, run, 4);
}

static void say_end(struct serve *s, uint32_t run, enum talk_how how, int code, const struct rusage *u,
                    const char *why)
{
    size_t n = strnlen(why, TALK_WHY_MAX);
    uint8_t *at = say(s, TALK_END, run, 2 + 3 * 8 + 4 + n);

    at = put_number(at, how, 1);
    at = put_number(at, (uint64_t)code, 1);
    at = put_number(at, (uint64_t)u->ru_utime.tv_sec * 1000000 + (uint64_t)u->ru_utime.tv_usec, 8);
    at = put_number(at, (uint64_t)u->ru_stime.tv_sec * 1000000 + (uint64_t)u->ru_stime.tv_usec, 8);
    at = put_number(at, (uint64_t)u->ru_maxrss, 8);
    at = put_number(at, n, 4);
    memcpy(at, why, n);
}

/* --- a command ---------------------------------------------------------------- */

static void __attribute__((noreturn))
run_exec(const struct serve *s, char *const variables[], const char *dir, int in, const int out[2])
{
    if (setpgid(0, 0) != 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out[0], STDOUT_FILENO) < 0 ||
        dup2(out[1], STDERR_FILENO) < 0)
        _exit(EXIT_SETUP);
    for (char *const *v = variables; *v; v++)
        if (putenv(*v) != 0)
            die(EXIT_SETUP, "no memory for the environment");
    if (*dir && chdir(dir) != 0)
        die(EXIT_SETUP, "cannot enter %s: %s", dir, strerror(errno));
    command_become(s->word, s->processes);
}

static void run_fail(struct serve *s, uint32_t id, const char *what)
{
    static const struct rusage none;
    char why[TALK_WHY_MAX];

    (void)snprintf(why, sizeof(why), "%s: %s", what, strerror(errno));
    say_end(s, id, TALK_FAILED, 0, &none, why);
}

static void close_two(int fd[2])
{
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

/* s->word: the arguments, a NULL, the variables, a NULL. */
static void run_start(struct serve *s, struct run *r, uint32_t id, char *const variables[], const char *dir)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, in = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (in < 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
        run_fail(s, id, "no descriptors");
        goto fail;
    }
    pid_t pid = fork();
    if (pid == 0)
        run_exec(s, variables, dir, in, (const int[2]){out[1], err[1]});
    if (pid < 0) {
        run_fail(s, id, "cannot fork");
        goto fail;
    }
    (void)setpgid(pid, pid); /* also here: whoever comes first */
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(err[0], F_SETFL, O_NONBLOCK);
    *r = (struct run){.id = id, .pid = pid, .fd = {out[0], err[0]}, .credit = TALK_WINDOW};
    close(out[1]);
    close(err[1]);
    close(in);
    return;
fail:
    close_two(out);
    close_two(err);
    if (in >= 0)
        close(in);
}

/* One piece of what it wrote, if there is some and it may be said. False: not now, or no more. */
static bool run_piece(struct serve *s, struct run *r, int which)
{
    size_t most = r->credit < TALK_PIECE_MAX ? r->credit : TALK_PIECE_MAX;
    uint8_t piece[TALK_PIECE_MAX];

    if (r->fd[which] < 0 || most == 0 || room(s) < TALK_HEAD + most + END_ROOM * TALK_RUNS_MAX)
        return false;
    ssize_t n = read(r->fd[which], piece, most);
    if (n > 0) {
        memcpy(say(s, which == 0 ? TALK_OUT : TALK_ERR, r->id, (size_t)n), piece, (size_t)n);
        r->credit -= (uint32_t)n;
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(r->fd[which]);
        r->fd[which] = -1;
    }
    return false;
}

/* When the command itself has ended, what it wrote until then is said, and no more is waited for: those that it left
 * behind may live as long as the sandbox. */
static void run_step(struct serve *s, struct run *r)
{
    for (int i = 0; i < 2; i++)
        while (run_piece(s, r, i))
            ;
    bool all = (r->credit > 0 && room(s) >= TALK_HEAD + TALK_PIECE_MAX + END_ROOM * TALK_RUNS_MAX) ||
               (r->fd[0] < 0 && r->fd[1] < 0);
    if (!r->ended || !all || room(s) < END_ROOM)
        return;
    say_end(s, r->id, WIFSIGNALED(r->status) ? TALK_SIGNALLED : TALK_EXITED,
            WIFSIGNALED(r->status) ? WTERMSIG(r->status) : WEXITSTATUS(r->status), &r->used, "");
    close_two(r->fd);
    *r = (struct run){0};
}

/* As pid 1 we inherit every orphan. */
static void children_reap(struct serve *s)
{
    struct rusage used;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0)
        for (size_t i = 0; i < TALK_RUNS_MAX; i++)
            if (s->run[i].pid == pid && !s->run[i].ended) {
                s->run[i].ended = true;
                s->run[i].status = status;
                s->run[i].used = used;
            }
}

/* --- the way in ----------------------------------------------------------------- */

struct reader {
    uint8_t *at, *end;
    bool bad;
};

static uint64_t get_number(struct reader *r, unsigned bytes)
{
    uint64_t v = 0;

    if ((size_t)(r->end - r->at) < bytes) {
        r->bad = true;
        return 0;
    }
    while (bytes-- > 0)
        v = v << 8 | *r->at++;
    return v;
}

/* Moved down by a byte, over the end of its length, so that there is room for a NUL. */
static char *get_text(struct reader *r)
{
    size_t n = get_number(r, 4);

    if (r->bad || (size_t)(r->end - r->at) < n) {
        r->bad = true;
        return NULL;
    }
    char *text = (char *)r->at - 1;
    memmove(text, r->at, n);
    text[n] = '\0';
    r->at += n;
    return text;
}

static struct run *run_of(struct serve *s, uint32_t id)
{
    for (size_t i = 0; i < TALK_RUNS_MAX; i++)
        if (s->run[i].pid != 0 && s->run[i].id == id)
            return &s->run[i];
    return NULL;
}

static void take_run(struct serve *s, uint32_t id, struct reader *r)
{
    size_t nargs = get_number(r, 2), nvars = get_number(r, 2), n = 0;
    struct run *free_one = NULL;

    if (nargs == 0 || nargs + nvars + 2 > TALK_WORDS_MAX)
        r->bad = true;
    for (size_t i = 0; !r->bad && i < nargs; i++)
        s->word[n++] = get_text(r);
    s->word[n++] = NULL;
    char **variables = s->word + n;
    for (size_t i = 0; !r->bad && i < nvars; i++)
        s->word[n++] = get_text(r);
    s->word[n] = NULL;
    const char *dir = get_text(r);
    if (r->bad || run_of(s, id))
        die(EXIT_SETUP, "the warden cannot be understood");
    for (size_t i = 0; i < TALK_RUNS_MAX; i++)
        if (s->run[i].pid == 0)
            free_one = &s->run[i];
    errno = EAGAIN;
    if (free_one)
        run_start(s, free_one, id, variables, dir);
    else
        run_fail(s, id, "too many commands run at once");
}

static void take(struct serve *s, unsigned type, uint32_t id, struct reader *r)
{
    struct run *run = run_of(s, id);
    uint64_t n;

    switch (type) {
    case TALK_RUN: take_run(s, id, r); break;
    case TALK_SIGNAL:
        n = get_number(r, 1);
        if (run && !run->ended && n > 0 && kill(-run->pid, (int)n) != 0)
            (void)kill(run->pid, (int)n);
        break;
    case TALK_CREDIT:
        n = get_number(r, 4);
        if (run && n <= TALK_WINDOW - run->credit)
            run->credit += (uint32_t)n;
        break;
    default: r->bad = true;
    }
    if (r->bad || r->at != r->end)
        die(EXIT_SETUP, "the warden cannot be understood");
}

/* Whole frames, one after the other, as long as their answers have room. */
static void take_frames(struct serve *s)
{
    while (s->nin >= TALK_HEAD && room(s) >= END_ROOM) {
        struct reader r = {s->in, s->in + TALK_HEAD, false};
        size_t bytes = get_number(&r, 4);
        unsigned type = (unsigned)get_number(&r, 1);
        uint32_t id = (uint32_t)get_number(&r, 4);
        if (bytes > TALK_PAYLOAD_MAX)
            die(EXIT_SETUP, "the warden cannot be understood");
        if (s->nin < TALK_HEAD + bytes)
            return;
        r.end = r.at + bytes;
        take(s, type, id, &r);
        s->nin -= TALK_HEAD + bytes;
        memmove(s->in, s->in + TALK_HEAD + bytes, s->nin);
    }
}

/* A buffer that is full has a whole frame, which waits for room. */
static void read_warden(struct serve *s)
{
    if (s->nin == sizeof(s->in))
        return;
    ssize_t n = recv(s->warden, s->in + s->nin, sizeof(s->in) - s->nin, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        exit(EXIT_SETUP); /* it has ended, and nobody is there to run anything for */
    s->nin += n > 0 ? (size_t)n : 0;
}

/* --- the loop --------------------------------------------------------------- */

static nfds_t prepare(const struct serve *s, struct pollfd p[POLL_RUNS + 2 * TALK_RUNS_MAX])
{
    nfds_t n = POLL_RUNS;

    /* What finds no room here waits in the socket, until what we said is read. */
    short in = s->nin < sizeof(s->in) ? POLLIN : 0, out = s->nout > 0 ? POLLOUT : 0;
    p[POLL_WARDEN] = (struct pollfd){s->warden, (short)(in | out), 0};
    p[POLL_SIGNALS] = (struct pollfd){s->signals, POLLIN, 0};
    for (size_t i = 0; i < TALK_RUNS_MAX; i++)
        for (int k = 0; k < 2; k++)
            if (s->run[i].pid != 0 && s->run[i].credit > 0 && s->run[i].fd[k] >= 0 && s->nout == 0)
                p[n++] = (struct pollfd){s->run[i].fd[k], POLLIN, 0};
    return n;
}

void serve(int fd, rlim_t processes)
{
    static struct serve s;
    static struct pollfd p[POLL_RUNS + 2 * TALK_RUNS_MAX];
    struct signalfd_siginfo si;

    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* What is said on these is the gateway's to hear only until somebody else is in here. */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
        die(EXIT_SETUP, "no /dev/null");
    close(null);
    s.warden = fd;
    s.processes = processes;
    s.signals = signals_watch(NULL, 0);
    put_number(say(&s, TALK_HELLO, 0, 4), TALK_VERSION, 4);
    for (;;) {
        flush(&s);
        if (poll(p, prepare(&s, p), -1) < 0 && errno != EINTR)
            die(EXIT_SETUP, "poll: %s", strerror(errno));
        if (p[POLL_WARDEN].revents & (POLLIN | POLLHUP | POLLERR))
            read_warden(&s);
        take_frames(&s);
        while (read(s.signals, &si, sizeof(si)) == (ssize_t)sizeof(si))
            ;
        children_reap(&s);
        for (size_t i = 0; i < TALK_RUNS_MAX; i++)
            if (s.run[i].pid != 0)
                run_step(&s, &s.run[i]);
    }
}
