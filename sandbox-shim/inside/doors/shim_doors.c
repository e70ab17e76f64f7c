#include "sandbox-shim/inside/doors/shim_doors.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_capture.h"
#include "sandbox-shim/inside/shim_command.h"

enum { RETRY_MS = 10, ACCEPT_PAUSE_MS = 100 /* after accept failed for want of descriptors or memory */ };

/* --- ports ------------------------------------------------------------------ */

void doors_open(struct doors *d, const struct sockaddr_in *at)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, (const struct sockaddr *)at, sizeof(*at)) != 0 || listen(fd, SOMAXCONN) != 0)
        die(EXIT_SETUP, "cannot listen on port %d of loopback: %s; the command was not started", ntohs(at->sin_port),
            strerror(errno));
    d->door[d->ndoors++] = (struct door){DOOR_HTTP, fd};
}

/* Without IPv6 in here (no ::1) there is nothing of it to capture. */
void doors_capture(struct doors *d)
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
        d->door[d->ndoors++] = (struct door){wanted[i / 2].kind, fd};
    }
}

/* --- connections ------------------------------------------------------------ */

static struct shim_conn *conn_of_step(const struct doors *d, int fd)
{
    uint8_t head[STEP_HEADER];
    uint32_t run = steps_of(d->steps, fd);

    if (run == 0)
        return shim_conn_nobodys(fd);
    steps_header(d->steps, run, head);
    return shim_conn_new(CONN_HTTP, fd, head, sizeof(head), d->socket);
}

static void door_accept(struct doors *d, const struct door *at)
{
    uint8_t head[CAPTURE_HEADER_MAX];
    size_t nhead = 0;
    int fd = accept4(at->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            d->accept_after = now_ms() + ACCEPT_PAUSE_MS;
        return;
    }
    if (at->kind == DOOR_CAPTURED && (nhead = capture_header(fd, head)) == 0) {
        close(fd); /* somebody connected to this port itself */
        return;
    }
    struct shim_conn *c = at->kind == DOOR_HTTP && d->steps
                              ? conn_of_step(d, fd)
                              : shim_conn_new(at->kind == DOOR_HTTP       ? CONN_HTTP
                                              : at->kind == DOOR_CAPTURED ? CONN_CAPTURED
                                                                          : CONN_NAMES,
                                              fd, head, nhead, d->socket);
    if (c && c->broken)
        shim_conn_free(c);
    else if (c)
        d->conn[d->nconns++] = c;
}

int doors_prepare(struct doors *d, struct pollfd p[DOORS_POLL])
{
    int wait = -1;

    if (d->accept_after != 0 && now_ms() >= d->accept_after)
        d->accept_after = 0;
    if (d->accept_after != 0)
        wait = ACCEPT_PAUSE_MS;
    for (size_t i = 0; i < DOORS_MAX; i++) {
        bool open = d->nconns < d->most && d->accept_after == 0;
        bool now = i < d->ndoors && (d->door[i].kind == DOOR_DATAGRAMS || open);
        p[i] = (struct pollfd){.fd = now ? d->door[i].fd : -1, .events = POLLIN};
    }
    for (size_t k = 0; k < d->nconns; k++) {
        for (int i = 0; i < 2; i++) {
            short events = shim_conn_interest(d->conn[k], i);
            /* Without interest not even a hang-up may wake us: it would do so for ever. */
            p[DOORS_MAX + 2 * k + (size_t)i] =
                (struct pollfd){.fd = events ? d->conn[k]->fd[i] : -1, .events = events};
        }
        if (d->conn[k]->try_until != 0)
            wait = RETRY_MS;
    }
    return wait;
}

nfds_t doors_polled(const struct doors *d)
{
    return (nfds_t)(DOORS_MAX + 2 * d->nconns);
}

static void conns_step(struct doors *d, const struct pollfd *p)
{
    for (size_t k = d->nconns; k-- > 0;) {
        struct shim_conn *c = d->conn[k];
        short revents[2] = {p[2 * k].revents, p[2 * k + 1].revents};
        if (c->try_until != 0)
            shim_conn_connect(c, d->socket);
        if (shim_conn_step(c, revents) == 0)
            continue;
        shim_conn_free(c);
        d->conn[k] = d->conn[--d->nconns];
    }
}

void doors_step(struct doors *d, const struct pollfd p[DOORS_POLL])
{
    conns_step(d, p + DOORS_MAX);
    for (size_t i = 0; i < d->ndoors; i++) {
        if (!p[i].revents)
            continue;
        if (d->door[i].kind == DOOR_DATAGRAMS)
            capture_names(d->door[i].fd);
        else if (d->nconns < d->most)
            door_accept(d, &d->door[i]);
    }
}
