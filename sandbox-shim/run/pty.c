#include "sandbox-shim/run/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

void pty_none(struct pty *t)
{
    memset(t, 0, sizeof(*t));
    t->master = t->slave = -1;
}

void pty_resize(const struct pty *t)
{
    struct winsize size;

    if (t->master >= 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
        (void)ioctl(t->master, TIOCSWINSZ, &size);
}

int pty_open(struct pty *t, struct err *e)
{
    char name[64];

    pty_none(t);
    t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (t->master < 0 || grantpt(t->master) != 0 || unlockpt(t->master) != 0 ||
        ptsname_r(t->master, name, sizeof(name)) != 0 || fcntl(t->master, F_SETFL, O_NONBLOCK) != 0)
        return err_errno(e, "no terminal can be made for the command");
    t->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (t->slave < 0)
        return err_errno(e, "no terminal can be made for the command");
    if (terminal_look(&t->caller, e) != 0)
        return -1;
    if (tcsetattr(t->slave, TCSANOW, &t->caller.saved) != 0)
        return err_errno(e, "no terminal can be made for the command");
    pty_resize(t);
    return 0;
}

int pty_become(const struct pty *t)
{
    for (int fd = 0; fd < 3; fd++)
        if (isatty(fd) && dup2(t->slave, fd) != fd)
            return -1;
    return 0;
}

int pty_begin(struct pty *t, struct err *e)
{
    if (t->master < 0)
        return 0;
    close(t->slave);
    t->slave = -1;
    if (terminal_raw(&t->caller, e) != 0)
        return -1;
    pty_resize(t);
    return 0;
}

void pty_prepare(const struct pty *t, struct pollfd polls[PTY_POLLS])
{
    bool has_out = t->out.off < t->out.end;

    polls[0] = polls[1] = polls[2] = (struct pollfd){.fd = -1};
    if (t->master < 0)
        return;
    if (!t->input_ended && t->in.off == t->in.end)
        polls[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    if (t->in.off < t->in.end)
        polls[1].events |= POLLOUT;
    if (!has_out)
        polls[1].events |= POLLIN;
    if (polls[1].events)
        polls[1].fd = t->master;
    if (has_out)
        polls[2] = (struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT};
}

/* False when there was nothing, now or any more. */
static bool out_fill(struct pty *t)
{
    ssize_t n = read(t->master, t->out.buf, sizeof(t->out.buf));

    if (n > 0) {
        t->out.off = 0;
        t->out.end = (size_t)n;
        return true;
    }
    return n < 0 && errno == EINTR;
}

static void out_write(struct pty *t)
{
    ssize_t n = write(STDOUT_FILENO, t->out.buf + t->out.off, t->out.end - t->out.off);

    if (n > 0)
        t->out.off += (size_t)n;
    else if (n < 0 && errno != EINTR && errno != EAGAIN)
        t->out.off = t->out.end; /* nobody looks any more; the command will get its SIGHUP */
}

static void in_read(struct pty *t)
{
    ssize_t n = read(STDIN_FILENO, t->in.buf, sizeof(t->in.buf));

    t->in.off = 0;
    t->in.end = n > 0 ? (size_t)n : 0;
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        t->input_ended = true;
}

static void in_write(struct pty *t)
{
    ssize_t n = write(t->master, t->in.buf + t->in.off, t->in.end - t->in.off);

    if (n > 0)
        t->in.off += (size_t)n;
    else if (n < 0 && errno != EINTR && errno != EAGAIN)
        t->in.off = t->in.end;
}

void pty_carry(struct pty *t, const struct pollfd polls[PTY_POLLS])
{
    if (polls[0].revents)
        in_read(t);
    if (polls[1].revents & POLLOUT)
        in_write(t);
    if ((polls[1].revents & (POLLIN | POLLHUP | POLLERR)) && t->out.off == t->out.end && !out_fill(t) &&
        errno == EIO && t->in.off == t->in.end) {
        /* Every descriptor of the slave is closed; another may be opened only by
         * a process that still holds one. */
        close(t->master);
        t->master = -1;
    }
    if (polls[2].revents)
        out_write(t);
}

void pty_end(struct pty *t)
{
    while (t->master >= 0 || t->out.off < t->out.end) {
        if (t->out.off == t->out.end && (t->master < 0 || !out_fill(t)))
            break;
        out_write(t);
    }
    terminal_back(&t->caller);
    if (t->master >= 0)
        close(t->master);
    if (t->slave >= 0)
        close(t->slave);
    pty_none(t);
}
