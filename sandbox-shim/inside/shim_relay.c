#include "sandbox-shim/inside/shim_relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_names.h"

enum { CONNECT_WAIT_MS = 5000 /* how long a full backlog outside is tried again */ };

static const char unreachable[] = "HTTP/1.1 503 The gateway outside this sandbox cannot be reached\r\n"
                                  "Content-Type: text/plain\r\nConnection: close\r\n\r\n"
                                  "The gateway outside this sandbox cannot be reached. Nothing was sent. "
                                  "Try again once it runs.\n";

static const char nobodys[] =
    "HTTP/1.1 403 Which command sends this is not known\r\n"
    "Content-Type: text/plain\r\nConnection: close\r\n\r\n"
    "Which command of this sandbox sends this is not known, so nothing was sent. Each has a "
    "proxy address of its own: use the one that http_proxy names there.\n";

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void conn_say(struct shim_conn *c, const char *words)
{
    struct way *w = &c->way[1];

    c->refused = true;
    w->end = strlen(words);
    memcpy(w->buf, words, w->end);
    w->eof = true;
    c->way[0].shut = true; /* nobody to tell */
}

static struct shim_conn *conn_new(enum conn_kind kind, int fd)
{
    struct shim_conn *c = calloc(1, sizeof(*c));
    int one = 1;

    if (!c) {
        close(fd);
        return NULL;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    c->kind = kind;
    c->fd[0] = fd;
    c->fd[1] = -1;
    return c;
}

struct shim_conn *shim_conn_new(enum conn_kind kind, int fd, const uint8_t *head, size_t nhead, const char *socket)
{
    struct shim_conn *c = conn_new(kind, fd);

    if (!c || kind == CONN_NAMES)
        return c;
    if (nhead)
        memcpy(c->way[0].buf, head, nhead);
    c->way[0].end = nhead;
    c->try_until = now_ms() + CONNECT_WAIT_MS;
    shim_conn_connect(c, socket);
    return c;
}

struct shim_conn *shim_conn_nobodys(int fd)
{
    struct shim_conn *c = conn_new(CONN_HTTP, fd);

    if (c)
        conn_say(c, nobodys);
    return c;
}

void shim_conn_free(struct shim_conn *c)
{
    const struct linger reset = {1, 0};

    if (c->broken)
        (void)setsockopt(c->fd[0], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    for (int i = 0; i < 2; i++)
        if (c->fd[i] >= 0)
            close(c->fd[i]);
    free(c);
}

/* Not a silent close: the client gets words it can print, or a reset. */
static void conn_refuse(struct shim_conn *c)
{
    c->try_until = 0;
    if (c->kind == CONN_CAPTURED) {
        c->broken = true;
        return;
    }
    conn_say(c, unreachable);
}

/* Connect, or find out that it cannot be, or leave it for the next round: a full
 * backlog is EAGAIN on a Unix socket and no poll tells when there is room. */
void shim_conn_connect(struct shim_conn *c, const char *path)
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

short shim_conn_interest(const struct shim_conn *c, int i)
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

/* Each whole question (with its length before it) becomes an answer. A client that does not read waits; one that
 * says what is no question is cut off. */
static int conn_names(struct shim_conn *c)
{
    struct way *in = &c->way[0], *out = &c->way[1];

    while (in->end - in->off >= 2 && WAY_BYTES - out->end >= 2 + NAMES_ANSWER_MAX) {
        size_t n = (size_t)in->buf[in->off] << 8 | in->buf[in->off + 1];
        if (n == 0 || n > NAMES_ASK_MAX)
            return -1;
        if (in->end - in->off < 2 + n)
            break;
        size_t m = names_answer(in->buf + in->off + 2, n, out->buf + out->end + 2);
        if (m == 0)
            return -1;
        out->buf[out->end] = (uint8_t)(m >> 8);
        out->buf[out->end + 1] = (uint8_t)m;
        out->end += 2 + m;
        in->off += 2 + n;
    }
    memmove(in->buf, in->buf + in->off, in->end - in->off);
    in->end -= in->off;
    in->off = 0;
    out->eof = in->eof;
    return 0;
}

int shim_conn_step(struct shim_conn *c, const short revents[2])
{
    if (c->broken)
        return -1;
    for (int i = 0; i < 2; i++)
        if ((revents[i] & (POLLIN | POLLHUP | POLLERR)) && !c->way[i].eof && c->way[i].end < WAY_BYTES &&
            way_read(&c->way[i], c->fd[i]) != 0)
            return -1;
    if (c->kind == CONN_NAMES) {
        size_t before;
        do {
            before = c->way[0].end;
            if (conn_names(c) != 0 || way_write(&c->way[1], c->fd[0]) != 0)
                return -1;
        } while (c->way[0].end != before && c->way[1].end == 0); /* what had no room before has it now */
        return c->way[1].shut ? -1 : 0;
    }
    if (c->refused)
        c->way[0].off = c->way[0].end = 0; /* read and dropped, so that our answer is not reset away */
    for (int i = 0; i < 2; i++)
        if (c->fd[1 - i] >= 0 && way_write(&c->way[i], c->fd[1 - i]) != 0)
            return -1;
    if (c->refused)
        return c->way[1].shut && c->way[0].eof ? -1 : 0;
    return c->way[0].shut && c->way[1].shut ? -1 : 0;
}
