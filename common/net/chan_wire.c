/* The frame's head and its descriptors on the wire. See chan_wire.h. */
#include "common/net/chan_wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

void chan_fds_close(const int *fd, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

void chan_head_patch(uint8_t *p, size_t n, unsigned nfds)
{
    put16(p, (unsigned)(n >> 16));
    put16(p + 2, (unsigned)n & 0xffff);
    put16(p + 6, nfds);
}

void chan_head_put(uint8_t *p, unsigned type, uint64_t id)
{
    put16(p + 4, type);
    chan_head_patch(p, 0, 0);
    for (unsigned i = 0; i < 8; i++)
        p[8 + i] = (uint8_t)(id >> (56 - 8 * i));
}

int chan_head_get(const uint8_t *p, struct frame *f, size_t *n)
{
    *n = get32(p);
    f->type = get16(p + 4);
    f->nfds = get16(p + 6);
    f->id = (uint64_t)get32(p + 8) << 32 | get32(p + 12);
    return *n <= CHAN_PAYLOAD_MAX && f->nfds <= CHAN_FDS_MAX ? 0 : -1;
}

ssize_t chan_receive(int fd, void *to, size_t n, int *fds, unsigned *nfds, unsigned room)
{
    union {
        struct cmsghdr align;
        uint8_t b[CMSG_SPACE(sizeof(int) * CHAN_FDS_MAX)];
    } ctl;
    struct iovec v = {to, n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = ctl.b, .msg_controllen = sizeof(ctl.b)};
    bool many = false;
    ssize_t got;
    do
        got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -1;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (h->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int one;
            memcpy(&one, CMSG_DATA(h) + i * sizeof(int), sizeof(one));
            if (*nfds < room) {
                fds[(*nfds)++] = one;
            } else {
                close(one);
                many = true;
            }
        }
    }
    if (many || m.msg_flags & MSG_CTRUNC) {
        errno = EPROTO;
        return -1;
    }
    return got;
}

int chan_read_one(int fd, struct frame *f, struct dynbuf *payload)
{
    uint8_t head[CHAN_HEAD];
    int fds[CHAN_FDS_MAX];
    unsigned nfds = 0;
    size_t n = 0, have = 0;
    *f = (struct frame){0};
    while (have < CHAN_HEAD) {
        ssize_t got = chan_receive(fd, head + have, CHAN_HEAD - have, fds, &nfds, CHAN_FDS_MAX);
        if (got <= 0)
            goto fail;
        have += (size_t)got;
    }
    if (chan_head_get(head, f, &n) != 0 || f->nfds != nfds)
        goto fail;
    for (have = 0; have < n;) {
        uint8_t *to = dynbuf_room(payload, n - have);
        ssize_t got = to == NULL ? -1 : chan_receive(fd, to, n - have, fds, &nfds, f->nfds);
        if (got <= 0)
            goto fail;
        dynbuf_grew(payload, (size_t)got);
        have += (size_t)got;
    }
    memcpy(f->fd, fds, nfds * sizeof(int));
    f->payload = dynbuf_span(payload);
    return 0;
fail:
    chan_fds_close(fds, nfds);
    f->nfds = 0;
    return -1;
}

static int write_all(int fd, struct span s)
{
    while (s.n > 0) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        s = span_from(s, (size_t)n);
    }
    return 0;
}

int chan_write_one(int fd, uint16_t type, uint64_t id, struct span payload)
{
    uint8_t head[CHAN_HEAD];
    if (payload.n > CHAN_PAYLOAD_MAX)
        return -1;
    chan_head_put(head, type, id);
    chan_head_patch(head, payload.n, 0);
    return write_all(fd, span_of(head, CHAN_HEAD)) != 0 ? -1 : write_all(fd, payload);
}
