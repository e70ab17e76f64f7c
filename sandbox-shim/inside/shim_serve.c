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
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_command.h"
#include "sandbox-shim/inside/shim_files.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "sandbox-shim/inside/shim_terminal.h"

enum {
    OUT_MAX = 256 * 1024,
    END_ROOM = TALK_HEAD + 64 + TALK_WHY_MAX, /* of a TALK_END */
    POLL_WARDEN = 0,
    POLL_SIGNALS = 1,
    POLL_RUNS = 2,
    POLL_MOST = POLL_RUNS + 3 * TALK_RUNS_MAX,
    TERMINAL_HOLDS = 128 * 1024, /* more than a terminal's buffers, which are never counted whole */
};

struct run {
    uint32_t id;
    pid_t pid;       /* 0: this place is free */
    int fd[2];       /* what its standard output and error, or its terminal, come out of; -1: at its end */
    uint32_t credit; /* bytes that may be said */
    int in;          /* what its standard input is read from; -1: it has none, or no more */
    bool terminal;   /* in is another descriptor of the same as fd[0] */
    uint8_t *input;  /* TALK_IN_WINDOW bytes of it, of which so many wait; NULL: it has none */
    size_t ninput;
    bool input_ends; /* behind these */
    bool ended;
    size_t left[2]; /* when it has: bytes of its outputs that may still be said */
    int status;
    struct rusage used;
};

struct serve {
    int warden, signals;
    struct steps *steps; /* commands have a way out; NULL: none has */
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

/* What is asked for; its words are those of struct serve: the arguments, a NULL, the variables, a NULL. */
struct order {
    enum talk_input input;
    unsigned rows, columns;
    char *const *variables;
    const char *dir;
    const struct file_order *file; /* instead of all these, with TALK_PIPE; NULL: it is a command */
};

/* Both ends of what a command has: in[0], out[1] and err[1] are its own; -1: none. Of a terminal it has in[0] for all
 * three, and in[1] and out[0] are ours. */
struct ends {
    int in[2], out[2], err[2];
};

static void close_two(const int fd[2])
{
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

static void ends_close(const struct ends *e)
{
    close_two(e->in);
    close_two(e->out);
    close_two(e->err);
}

/* -1 with errno; what is open by then is the caller's to close. */
static int ends_open(struct ends *e, const struct order *o)
{
    *e = (struct ends){{-1, -1}, {-1, -1}, {-1, -1}};
    if (o->input == TALK_TERMINAL) {
        if (terminal_open(o->rows, o->columns, &e->out[0], &e->in[0]) != 0)
            return -1;
        e->in[1] = fcntl(e->out[0], F_DUPFD_CLOEXEC, 0);
        return e->in[1] < 0 ? -1 : 0;
    }
    if (o->input == TALK_NO_INPUT)
        e->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    else if (pipe2(e->in, O_CLOEXEC) != 0 || fcntl(e->in[1], F_SETFL, O_NONBLOCK) != 0)
        return -1;
    if (e->in[0] < 0 || pipe2(e->out, O_CLOEXEC) != 0 || pipe2(e->err, O_CLOEXEC) != 0 ||
        fcntl(e->out[0], F_SETFL, O_NONBLOCK) != 0 || fcntl(e->err[0], F_SETFL, O_NONBLOCK) != 0)
        return -1;
    return 0;
}

static void __attribute__((noreturn))
run_exec(const struct serve *s, uint32_t run, const struct order *o, const struct ends *e)
{
    if (o->input == TALK_TERMINAL ? terminal_take(e->in[0]) != 0
                                  : setpgid(0, 0) != 0 || dup2(e->in[0], STDIN_FILENO) < 0 ||
                                        dup2(e->out[1], STDOUT_FILENO) < 0 || dup2(e->err[1], STDERR_FILENO) < 0)
        _exit(EXIT_SETUP);
    if (o->file)
        files_become(o->file);
    if (s->steps && steps_environment(s->steps, run) != 0)
        die(EXIT_SETUP, "no memory for the environment");
    for (char *const *v = o->variables; *v; v++)
        if (putenv(*v) != 0)
            die(EXIT_SETUP, "no memory for the environment");
    if (*o->dir && chdir(o->dir) != 0)
        die(EXIT_SETUP, "cannot enter %s: %s", o->dir, strerror(errno));
    command_become(s->word, s->processes);
}

static void run_fail(struct serve *s, uint32_t id, const char *what)
{
    static const struct rusage none;
    char why[TALK_WHY_MAX];

    (void)snprintf(why, sizeof(why), "%s: %s", what, strerror(errno));
    say_end(s, id, TALK_FAILED, 0, &none, why);
}

static void run_start(struct serve *s, struct run *r, uint32_t id, const struct order *o)
{
    uint8_t *input = o->input != TALK_NO_INPUT ? malloc(TALK_IN_WINDOW) : NULL;
    struct ends e = {{-1, -1}, {-1, -1}, {-1, -1}};

    if ((o->input != TALK_NO_INPUT && !input) || ends_open(&e, o) != 0) {
        run_fail(s, id, "no descriptors");
        goto fail;
    }
    if (s->steps && !o->file)
        steps_add(s->steps, id);
    pid_t pid = fork();
    if (pid == 0)
        run_exec(s, id, o, &e);
    if (pid < 0) {
        run_fail(s, id, "cannot fork");
        goto fail;
    }
    if (o->input != TALK_TERMINAL) /* whose session the child begins, and could not as a group's leader */
        (void)setpgid(pid, pid);   /* also here: whoever comes first */
    *r = (struct run){.id = id,
                      .pid = pid,
                      .fd = {e.out[0], e.err[0]},
                      .credit = TALK_WINDOW,
                      .in = e.in[1],
                      .terminal = o->input == TALK_TERMINAL,
                      .input = input};
    e.in[1] = e.out[0] = e.err[0] = -1;
    ends_close(&e);
    return;
fail:
    ends_close(&e);
    free(input);
}

static void input_close(struct run *r)
{
    if (r->in >= 0)
        close(r->in);
    r->in = -1;
}

/* As much of its input as it takes now. What it does not want, because it has closed it, is as if it had been given:
 * who has more of it waits for nothing. */
static void run_feed(struct serve *s, struct run *r)
{
    while (r->ninput > 0 && room(s) >= TALK_HEAD + 4 + END_ROOM * TALK_RUNS_MAX) {
        ssize_t n = r->in >= 0 ? write(r->in, r->input, r->ninput) : (ssize_t)r->ninput;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            input_close(r);
            continue;
        }
        r->ninput -= (size_t)n;
        memmove(r->input, r->input + n, r->ninput);
        put_number(say(s, TALK_FED, r->id, 4), (uint64_t)n, 4);
    }
    if (r->input_ends && r->ninput == 0)
        input_close(r);
}

/* One piece of what it wrote, if there is some and it may be said. False: not now, or no more. */
static bool run_piece(struct serve *s, struct run *r, int which)
{
    size_t most = r->credit < TALK_PIECE_MAX ? r->credit : TALK_PIECE_MAX;
    uint8_t piece[TALK_PIECE_MAX];

    if (r->ended && most > r->left[which])
        most = r->left[which];
    if (r->fd[which] < 0 || most == 0 || room(s) < TALK_HEAD + most + END_ROOM * TALK_RUNS_MAX)
        return false;
    ssize_t n = read(r->fd[which], piece, most);
    if (n > 0) {
        memcpy(say(s, which == 0 ? TALK_OUT : TALK_ERR, r->id, (size_t)n), piece, (size_t)n);
        r->credit -= (uint32_t)n;
        r->left[which] -= r->ended ? (size_t)n : 0;
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(r->fd[which]);
        r->fd[which] = -1;
        if (r->terminal) /* which nobody in there has open any more: who opens it again finds it hung up */
            input_close(r);
    }
    return false;
}

static bool all_is_said(const struct run *r, int which)
{
    return r->fd[which] < 0 || r->left[which] == 0;
}

/* When the command itself has ended, what it wrote until then is said, and no more is waited for: those that it left
 * behind may live as long as the sandbox, and write faster than anybody reads. */
static void run_step(struct serve *s, struct run *r)
{
    for (int i = 0; i < 2; i++)
        while (run_piece(s, r, i))
            ;
    bool all = (r->credit > 0 && room(s) >= TALK_HEAD + TALK_PIECE_MAX + END_ROOM * TALK_RUNS_MAX) ||
               (all_is_said(r, 0) && all_is_said(r, 1));
    if (!r->ended || !all || room(s) < END_ROOM)
        return;
    say_end(s, r->id, WIFSIGNALED(r->status) ? TALK_SIGNALLED : TALK_EXITED,
            WIFSIGNALED(r->status) ? WTERMSIG(r->status) : WEXITSTATUS(r->status), &r->used, "");
    close_two(r->fd);
    input_close(r);
    free(r->input);
    *r = (struct run){0};
}

static void run_ended(struct run *r)
{
    int n;

    r->ended = true;
    for (int i = 0; i < 2; i++)
        r->left[i] = !r->terminal && ioctl(r->fd[i], FIONREAD, &n) == 0 && n >= 0 ? (size_t)n : TERMINAL_HOLDS;
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
                run_ended(&s->run[i]);
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

/* One that has nobody; NULL, and that is said: none is left. */
static struct run *run_place(struct serve *s, uint32_t id)
{
    for (size_t i = 0; i < TALK_RUNS_MAX; i++)
        if (s->run[i].pid == 0)
            return &s->run[i];
    errno = EAGAIN;
    run_fail(s, id, "too many commands run at once");
    return NULL;
}

static void take_run(struct serve *s, uint32_t id, struct reader *r)
{
    unsigned input = (unsigned)get_number(r, 1), rows = (unsigned)get_number(r, 2),
             columns = (unsigned)get_number(r, 2);
    size_t nargs = get_number(r, 2), nvars = get_number(r, 2), n = 0;

    if (input > TALK_TERMINAL || nargs == 0 || nargs + nvars + 2 > TALK_WORDS_MAX)
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
    struct run *place = run_place(s, id);
    if (place)
        run_start(s, place, id, &(struct order){(enum talk_input)input, rows, columns, variables, dir, NULL});
}

/* A child costs many times what a small file does. False: it is to have one. */
static bool read_now(struct serve *s, uint32_t id, const struct file_order *o)
{
    static const struct rusage none;
    static uint8_t piece[TALK_PIECE_MAX];

    if (room(s) < TALK_HEAD + TALK_PIECE_MAX + END_ROOM * (TALK_RUNS_MAX + 1))
        return false;
    ssize_t n = files_read_now(o, piece, sizeof(piece));
    if (n < 0)
        return false;
    if (n > 0)
        memcpy(say(s, TALK_OUT, id, (size_t)n), piece, (size_t)n);
    say_end(s, id, TALK_EXITED, 0, &none, "");
    return true;
}

static void take_file(struct serve *s, uint32_t id, struct reader *r)
{
    struct file_order o = {.what = (enum talk_file)get_number(r, 1),
                           .mode = (unsigned)get_number(r, 2),
                           .whole = get_number(r, 1) != 0,
                           .from = get_number(r, 8),
                           .most = get_number(r, 8)};

    o.path = get_text(r);
    o.other = get_text(r);
    if (r->bad || run_of(s, id))
        die(EXIT_SETUP, "the warden cannot be understood");
    if (read_now(s, id, &o))
        return;
    struct run *place = run_place(s, id);
    if (place)
        run_start(s, place, id, &(struct order){.input = TALK_PIPE, .file = &o});
}

/* Of a run that has ended: nobody's. */
static void take_input(struct run *run, struct reader *r)
{
    size_t n = (size_t)(r->end - r->at);

    if (run && (!run->input || run->input_ends || n == 0 || n > TALK_IN_WINDOW - run->ninput)) {
        r->bad = true;
        return;
    }
    if (run) {
        memcpy(run->input + run->ninput, r->at, n);
        run->ninput += n;
    }
    r->at = r->end;
}

static void take_size(const struct run *run, struct reader *r)
{
    unsigned rows = (unsigned)get_number(r, 2), columns = (unsigned)get_number(r, 2);

    if (run && run->terminal && run->fd[0] >= 0)
        terminal_resize(run->fd[0], rows, columns);
}

static void take(struct serve *s, unsigned type, uint32_t id, struct reader *r)
{
    struct run *run = run_of(s, id);
    uint64_t n;

    switch (type) {
    case TALK_RUN: take_run(s, id, r); break;
    case TALK_SIGNAL:
        n = get_number(r, 1);
        if (run && n > 0 && kill(-run->pid, (int)n) != 0 && !run->ended) /* what it left behind is its group's, too */
            (void)kill(run->pid, (int)n);
        break;
    case TALK_CREDIT:
        n = get_number(r, 4);
        if (run && n <= TALK_WINDOW - run->credit)
            run->credit += (uint32_t)n;
        break;
    case TALK_FILE: take_file(s, id, r); break;
    case TALK_BORN:
        n = get_number(r, 8);
        r->bad |= n == 0 || !s->steps;
        if (s->steps)
            s->steps->born = n;
        break;
    case TALK_IN: take_input(run, r); break;
    case TALK_IN_END:
        if (run)
            run->input_ends = true;
        break;
    case TALK_SIZE: take_size(run, r); break;
    case TALK_NAME: r->bad |= !files_named(get_text(r)); break;
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

static nfds_t prepare(const struct serve *s, struct pollfd p[POLL_MOST])
{
    nfds_t n = POLL_RUNS;

    /* What finds no room here waits in the socket, until what we said is read. */
    short in = s->nin < sizeof(s->in) ? POLLIN : 0, out = s->nout > 0 ? POLLOUT : 0;
    p[POLL_WARDEN] = (struct pollfd){s->warden, (short)(in | out), 0};
    p[POLL_SIGNALS] = (struct pollfd){s->signals, POLLIN, 0};
    for (size_t i = 0; s->nout == 0 && i < TALK_RUNS_MAX; i++) {
        const struct run *r = &s->run[i];
        for (int k = 0; k < 2; k++)
            if (r->pid != 0 && r->credit > 0 && r->fd[k] >= 0)
                p[n++] = (struct pollfd){r->fd[k], POLLIN, 0};
        if (r->pid != 0 && r->in >= 0 && r->ninput > 0)
            p[n++] = (struct pollfd){r->in, POLLOUT, 0};
    }
    return n;
}

static void wait_for_more(struct serve *s, struct doors *d)
{
    static struct pollfd p[POLL_MOST + DOORS_POLL];
    nfds_t n = prepare(s, p);
    int wait = doors_prepare(d, p + n);

    if (poll(p, n + doors_polled(d), wait) < 0) {
        if (errno != EINTR)
            die(EXIT_SETUP, "poll: %s", strerror(errno));
        return; /* what is there is there still */
    }
    if (p[POLL_WARDEN].revents & (POLLIN | POLLHUP | POLLERR))
        read_warden(s);
    doors_step(d, p + n);
}

void serve(int fd, rlim_t processes, struct doors *d)
{
    static struct serve s;
    struct signalfd_siginfo si;

    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* What is said on these is the gateway's to hear only until somebody else is in here. */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
        die(EXIT_SETUP, "no /dev/null");
    close(null);
    s.warden = fd;
    s.steps = d->steps;
    s.processes = processes;
    s.signals = signals_watch(NULL, 0);
    files_begin();
    (void)signal(SIGPIPE, SIG_IGN); /* a command may close its input */
    put_number(say(&s, TALK_HELLO, 0, 4), TALK_VERSION, 4);
    for (;;) {
        flush(&s);
        wait_for_more(&s, d);
        take_frames(&s);
        while (read(s.signals, &si, sizeof(si)) == (ssize_t)sizeof(si))
            ;
        children_reap(&s);
        for (size_t i = 0; i < TALK_RUNS_MAX; i++)
            if (s.run[i].pid != 0) {
                run_feed(&s, &s.run[i]);
                run_step(&s, &s.run[i]);
            }
    }
}
